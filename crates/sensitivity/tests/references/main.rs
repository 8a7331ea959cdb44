//! Designs and indices against SALib, published numbers and files of other programs.

#[path = "../../../../tests/support/data.rs"]
mod data;
mod imports;
#[path = "../../../../tests/support/mutations.rs"]
mod mutations;
mod reference_data;
mod salib;
