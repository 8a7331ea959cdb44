//! Segmentation of nuclei against its reference application, objects, and cores of tiles.

mod chain;
mod cores;
#[path = "../../../../tests/support/data.rs"]
mod data;
mod objects;
#[path = "../support/operations.rs"]
mod operations;
mod reference;
#[path = "../support/reference.rs"]
mod reference_masks;
