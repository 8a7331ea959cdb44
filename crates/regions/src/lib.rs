//! Data regions, the keys they are stored under, and the RAM tier that holds them (hop 7 of a study).
//!
//! This crate knows what pixels *are* (element type, shape, bytes), not what they mean: operations live in
//! `pleach-pathology`, and nothing here decodes, computes or sends.

mod digest;
mod element;
mod key;
mod labels;
mod ledger;
mod ram;
mod raster;
mod region;
mod shelf;

pub use digest::Digest;
pub use element::ElementType;
pub use key::RegionKey;
pub use labels::LabelMap;
pub use ledger::Ledger;
pub use ram::{RamTier, StoreError};
pub use raster::{Raster, ShapeError};
pub use region::{DataRegion, Table, WrongElement};
pub use shelf::{HeldOutputs, Holders, Identity, Shelf, Shelved, TaskKey};
