//! Data regions, their keys, the RAM tier that stores them (hop 7 of a study), region templates that locate
//! data regions in space and time, and the partition of a region into tiles.
//!
//! The crate defines the form of pixels (element type, shape, bytes, content digest, encoding), not their
//! meaning: operations are in `pleach-pathology`. This crate reads no image files, runs no operation and sends
//! nothing.

mod codec;
mod data;
mod key;
mod memory;
mod space;
mod template;

pub use codec::digest::Digest;
pub use codec::encode::{
    CompressionEffort, DecodeError, Decoder, Description, EncodedRegion, Head, MAX_EXPANSION,
    MAX_OVERHEAD_BYTES, UndigestedHead,
};
pub use data::array::{ArrayError, DenseArray, MAX_AXES};
pub use data::attachment::Attachment;
pub use data::element::ElementType;
pub use data::labels::LabelMap;
pub use data::number::{NumberType, Sample, TypedValues};
pub use data::objects::{AnnotatedObject, AnnotatedObjects, ObjectError, Outline};
pub use data::points::{Points, PointsError};
pub use data::polygons::{OutlineError, Polygons, Position, Rings};
pub use data::ragged::{RaggedArray, RaggedError};
pub use data::raster::{PartError, PixelRectangle, Raster, RasterView, ShapeError};
pub use data::region::{DataRegion, Table, WrongElement};
pub use data::shape::Shape;
pub use key::{RegionIdentity, RegionKey, TaskKey, input_id, provenance_id};
pub use memory::memory_counter::MemoryCounter;
pub use memory::memory_size;
pub use memory::ram::{RamRegion, RamTier, StoreError};
pub use memory::result_cache::{
    AcquiredOutputs, CachedForm, CachedRegion, EvictedResult, EvictedTask, RefState, RegionToEncode,
    ResultCache,
};
pub use space::bounds::{BoundsError, Interval, SpatialBounds, TemporalBounds};
pub use space::partition::{
    Assembly, AssemblyError, Centroid, OwnerError, Partition, PartitionError, PartitionTile,
};
pub use space::query::{
    FoundObject, FoundObjects, MAX_FOUND, QueryError, Selection, SpatialIndex, SpatialQuery,
};
pub use space::resolution::{Resolution, ResolutionError};
pub use space::units::{MAX_PARTS, UnitBox, UnitError, UnitLayout};
pub use template::{MAX_NAME_BYTES, NameError, RegionEntry, RegionTemplate, TEMPLATE_FORMAT, TemplateError};
