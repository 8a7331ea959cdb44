//! Segmentations as files that other programs open: masks, label images, outlines, tables, OME-Zarr, OME-TIFF and
//! SpatialData.
//!
//! An image is segmented tile by tile, and the objects of each tile are written at once, so that memory does not grow with the
//! slide. Each object is written by the tile whose core owns it. Labels count from 1 in the order of tiles, and in raster order
//! within a tile. This crate plans nothing and keeps no results of studies.

mod files;
mod format;
mod geometry;
mod image_export;
mod job;
mod objects;
mod ordered;
mod record;
mod rings;
mod segmentation;
mod submissions;

pub use format::{ExportFormat, UnknownFormat};
pub use geometry::Geometry;
pub use image_export::{ExportOptions, ExportedImage, ImageExport, WriteError};
pub use job::{ExportError, ExportJob, ExportOutcome, ExportProgress};
pub use objects::{ExportedObject, owned_objects};
pub use record::{Earlier, ExportFolder, ExportRequest, FailedImage, FolderStateError};
pub use segmentation::{OutputError, Segmentation, SegmentationError, StudyImage, images_of, output_of};
pub use submissions::RecordedSubmission;
