//! Features of nuclei: intensity, gradient, edges, texture and shape of every object of a mask, as an `objects` region, and
//! their means as a table of responses. [`OUTLINES`] makes a `polygons` region of objects, for queries.
//!
//! Planes of the tile ([`CHANNELS_OF_TILE`], [`GRADIENT`], [`SOBEL`], [`CANNY`]) do not depend on the mask, so that a study
//! computes them once per tile. The other operations read objects: pixels of each nucleus, or of the cytoplasm around it.
//! They visit an object's pixels as runs, so their time grows with the pixels of the objects and not with their number times
//! the image. All results of an image without objects are empty, and means are then 0.
//!
//! Definitions are those of the reference application's feature stage unless a module states another source.

mod canny;
mod channels;
mod collect;
mod columns;
mod counts;
mod gradient;
mod labels;
mod outlines;
mod planes;
mod rings;
mod shape;
mod statistics;
mod summary;
mod texture;

pub(crate) use collect::COLLECT;
pub(crate) use labels::LABELS;
pub(crate) use outlines::OUTLINES;
pub(crate) use planes::{CANNY, CHANNELS_OF_TILE, GRADIENT, SOBEL};
pub(crate) use rings::RINGS;
pub(crate) use shape::SHAPE;
pub(crate) use statistics::{NUCLEUS_STATISTICS, RING_STATISTICS};
pub(crate) use summary::{CORE_SUMMARY, SUMMARY};
pub(crate) use texture::TEXTURE;

use crate::typed_operation::port;
use pleach_regions::{ElementType, RaggedArray};
use pleach_workflow::{OperationError, Port};

/// Channels of every plane: blue, green and red of the tile, and the amount of hematoxylin.
pub(crate) const CHANNELS: usize = 4;

/// Port of interleaved bytes, [`CHANNELS`] per pixel.
const fn plane(name: &'static str) -> Port {
    port(name, ElementType::ArrayU8)
}

/// Port of the label map of the objects. A mask takes its place.
const OBJECTS: Port = port("labels", ElementType::Labels);

/// Converts the error of a computation on regions of invalid content.
fn invalid(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> OperationError {
    OperationError::Library { library: "features", cause: cause.into() }
}

/// Creates a ragged array with one row of `columns` numbers per object.
fn rows(columns: usize, values: Vec<f64>) -> Result<RaggedArray, OperationError> {
    let ends = (1..=values.len() / columns).map(|row| (row * columns) as u64).collect();
    RaggedArray::new(ends, values.into()).map_err(invalid)
}
