//! Data regions, the keys they are stored under, and the RAM tier that holds them (hop 7 of a study); region templates
//! that say where data regions lie, and how a region is cut into tiles.
//!
//! This crate knows what pixels *are* (element type, shape, bytes, content digest, and how they become bytes and back),
//! not what they mean: operations live in `pleach-pathology`, and nothing here reads image files, computes or sends.

mod array;
mod bounds;
mod content;
mod digest;
mod element;
mod encode;
mod key;
mod labels;
mod ledger;
mod number;
mod objects;
mod partition;
mod points;
mod polygons;
mod ragged;
mod ram;
mod raster;
mod region;
mod resolution;
mod shape;
mod shelf;
mod template;

pub use array::{ArrayError, DenseArray, MAX_AXES};
pub use bounds::{BoundsError, Interval, SpatialBounds, TemporalBounds};
pub use digest::Digest;
pub use element::ElementType;
pub use encode::{
    DecodeError, Decoder, Description, Effort, Head, MAX_EXPANSION, MAX_OVERHEAD_BYTES, UndigestedHead,
};
pub use key::RegionKey;
pub use labels::LabelMap;
pub use ledger::Ledger;
pub use number::{Number, Sample, Values};
pub use objects::{AnnotatedObject, ObjectError, Objects, Outline};
pub use partition::{Assembly, AssemblyError, Centroid, OwnerError, Partition, PartitionError, Tile};
pub use points::{Points, PointsError};
pub use polygons::{OutlineError, Polygons, Position, Rings};
pub use ragged::{RaggedArray, RaggedError};
pub use ram::{HeldRegion, RamTier, StoreError};
pub use raster::{PartError, PixelRectangle, Raster, RasterView, ShapeError};
pub use region::{DataRegion, Table, WrongElement};
pub use resolution::{Resolution, ResolutionError};
pub use shape::Shape;
pub use shelf::{Fallen, HeldOutputs, Holders, Identity, Shelf, Shelved, TaskKey};
pub use template::{MAX_NAME_BYTES, NameError, RegionEntry, RegionTemplate, TEMPLATE_FORMAT, TemplateError};
