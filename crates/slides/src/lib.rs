//! Whole-slide images as a source of data regions: what levels a slide has, its pixels at a magnification, and which of
//! its tiles show tissue.
//!
//! OpenSlide reads the files; this is the only crate that links it. A slide is read region by region, and what is allocated
//! follows from the region that was asked for, never from what the file claims. How a slide is cut into tiles is
//! `pleach-regions`' (`Partition`), what is computed on them `pleach-pathology`'s, and which of them a study takes the
//! study's.

mod error;
mod files;
mod libtiff;
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
