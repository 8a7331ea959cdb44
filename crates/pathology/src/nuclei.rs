//! The seven tasks of nuclear segmentation, t1 to t7, as operations.
//!
//! Each task is one file. Together they equal the published nscale program pixel for pixel (`tests/reference.rs`). The
//! rules that decide this are stated where they are applied. The workflow descriptor, not this module, connects the
//! tasks.

mod background;
mod candidate_area;
mod candidates;
mod final_area;
mod reconstruct;
mod select;
mod separate;

pub(crate) use background::BACKGROUND;
pub(crate) use candidate_area::CANDIDATE_AREA;
pub(crate) use candidates::CANDIDATES;
pub(crate) use final_area::FINAL_AREA;
pub(crate) use reconstruct::RECONSTRUCT;
pub(crate) use select::NUCLEI;
pub(crate) use separate::{SEPARATE, separated};

use crate::typed_operation::port;
use pleach_regions::ElementType;
use pleach_workflow::{OperationError, Port};

/// The color image that t1, t2 and t6 read.
const NORMALIZED: Port = port("normalized", ElementType::Bgr8);

/// Column of t1's table: 1 if the tile is background, else 0.
const BACKGROUND_COLUMN: &str = "background";

fn opencv(error: opencv::Error) -> OperationError {
    OperationError::Library { library: "OpenCV", cause: Box::new(error) }
}
