//! Whole-slide images as a source of data regions: pyramid levels, pixels at a magnification, and tiles with
//! tissue.
//!
//! OpenSlide reads the files. This is the only crate that links it. A slide is read region by region, and
//! allocations depend on the requested region, never on sizes claimed by the file. `pleach-regions` (`Partition`)
//! cuts a slide into tiles, `pleach-pathology` computes on them, and the study selects them.

mod error;
mod files;
mod libtiff;
mod limits;
mod read;
mod scale;
mod slide;
mod tags;
mod tissue;

pub use error::SlideError;
pub use files::files_of;
pub use scale::Scale;
pub use slide::{PyramidLevel, Slide};
pub use tissue::{MAX_SATURATION, Tissue};
