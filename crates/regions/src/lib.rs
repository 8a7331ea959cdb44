//! Data regions, their keys, the RAM tier that stores them (hop 7 of a study), region templates that locate
//! data regions in space and time, and the partition of a region into tiles.
//!
//! The crate defines the form of pixels (element type, shape, bytes, content digest, encoding), not their
//! meaning: operations are in `pleach-pathology`. This crate reads no image files, computes nothing and sends
//! nothing.

mod array;
mod bounds;
mod content;
mod digest;
mod element;
mod encode;
mod key;
mod labels;
mod memory_counter;
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
mod result_cache;
mod shape;
mod template;

pub use array::{ArrayError, DenseArray, MAX_AXES};
pub use bounds::{BoundsError, Interval, SpatialBounds, TemporalBounds};
pub use digest::Digest;
pub use element::ElementType;
pub use encode::{
    CompressionEffort, DecodeError, Decoder, Description, Head, MAX_EXPANSION, MAX_OVERHEAD_BYTES,
    UndigestedHead,
};
pub use key::RegionKey;
pub use labels::LabelMap;
pub use memory_counter::MemoryCounter;
pub use number::{NumberType, Sample, TypedValues};
pub use objects::{AnnotatedObject, AnnotatedObjects, ObjectError, Outline};
pub use partition::{
    Assembly, AssemblyError, Centroid, OwnerError, Partition, PartitionError, PartitionTile,
};
pub use points::{Points, PointsError};
pub use polygons::{OutlineError, Polygons, Position, Rings};
pub use ragged::{RaggedArray, RaggedError};
pub use ram::{RamRegion, RamTier, StoreError};
pub use raster::{PartError, PixelRectangle, Raster, RasterView, ShapeError};
pub use region::{DataRegion, Table, WrongElement};
pub use resolution::{Resolution, ResolutionError};
pub use result_cache::{
    AcquiredOutputs, CachedRegion, EvictedResult, RefState, RegionIdentity, ResultCache, TaskKey,
};
pub use shape::Shape;
pub use template::{MAX_NAME_BYTES, NameError, RegionEntry, RegionTemplate, TEMPLATE_FORMAT, TemplateError};
