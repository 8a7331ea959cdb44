//! Operations on every OpenCL device found, bit for bit against their CPU variants: random images, real tiles, the reference masks,
//! and faults. Without a device the tests say so and pass.

#![expect(clippy::unwrap_used, reason = "clippy exempts tests, not the functions they call")]

#[path = "../../../../tests/support/data.rs"]
mod data;
mod faults;
mod found;
#[path = "../laws/images.rs"]
mod images;
mod masks;
mod random;
#[path = "../support/reference.rs"]
mod reference_masks;
mod tiles;
