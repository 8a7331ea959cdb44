//! Data regions, the keys they are stored under, and the RAM tier that holds them (hop 7 of a study); region templates
//! that say where data regions lie, and how a region is cut into tiles.
//!
//! This crate knows what pixels *are* (element type, shape, bytes, content digest, and how they become bytes and back),
//! not what they mean: operations live in `pleach-pathology`, and nothing here reads image files, computes or sends.

mod bounds;
mod digest;
mod element;
mod encode;
mod key;
mod labels;
mod ledger;
mod partition;
mod ram;
mod raster;
mod region;
mod resolution;
mod shelf;
mod template;

pub use bounds::{BoundsError, Interval, SpatialBounds, TemporalBounds};
pub use digest::Digest;
pub use element::ElementType;
pub use encode::{DecodeError, Decoder, Head, MAX_EXPANSION};
pub use key::RegionKey;
pub use labels::LabelMap;
pub use ledger::Ledger;
pub use partition::{Assembly, AssemblyError, Centroid, OwnerError, Partition, PartitionError, Tile};
pub use ram::{HeldRegion, RamTier, StoreError};
pub use raster::{PartError, PixelRectangle, Raster, RasterView, ShapeError};
pub use region::{DataRegion, Table, WrongElement};
pub use resolution::{Resolution, ResolutionError};
pub use shelf::{Fallen, HeldOutputs, Holders, Identity, Shelf, Shelved, TaskKey};
pub use template::{MAX_NAME_BYTES, NameError, RegionEntry, RegionTemplate, TEMPLATE_FORMAT, TemplateError};
