//! Errors of opening a slide or reading a region of it.

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Error of a slide. Each message is one line with the file, the problem and the allowed values.
#[derive(Debug, Error)]
pub enum SlideError {
    /// The file is missing, or access is denied.
    #[error("{}: cannot be read: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The path is a folder, a pipe or a device.
    #[error("{}: not a regular file; a slide is allowed", path.display())]
    NoFile {
        /// Path of the file.
        path: PathBuf,
    },
    /// No reader recognizes the file as a slide: the format is not supported, or the file is truncated before its
    /// directory.
    #[error(
        "{}: unsupported or truncated slide; SVS, NDPI, SCN, BIF, MIRAX and tiled pyramidal TIFF are allowed",
        path.display()
    )]
    Unsupported {
        /// The file.
        path: PathBuf,
    },
    /// The slide consists of several files, and their list cannot be determined.
    #[error("{}: invalid file list of the slide: {cause}", path.display())]
    Files {
        /// The file that names the slide.
        path: PathBuf,
        /// The problem, in one line.
        cause: String,
    },
    /// The file is a slide, but damaged.
    #[error("{}: corrupt or unsupported slide: {cause}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The reader's error, in one line.
        cause: String,
    },
    /// The file stores its pixels in pieces larger than the decoding limit.
    #[error(
        "{}: level {level} has blocks of {width_px} x {height_px} px; blocks of up to {} px are allowed",
        path.display(), crate::limits::MAX_PIECE_PX
    )]
    LargePieces {
        /// The file.
        path: PathBuf,
        /// Number of the level.
        level: usize,
        /// Width of a piece, pixels.
        width_px: u64,
        /// Height of a piece, pixels.
        height_px: u64,
    },
    /// The slide cannot be read at this magnification.
    #[error("{}: magnification {magnification} of a slide scanned at {own}; {least} to {own} is allowed", path.display())]
    Magnification {
        /// The file.
        path: PathBuf,
        /// Requested magnification.
        magnification: f64,
        /// Magnification of the slide.
        own: f64,
        /// Minimum magnification, which leaves one pixel.
        least: f64,
    },
    /// A magnification was requested, but the slide does not state its own.
    #[error(
        "{}: magnification {magnification} of a slide without magnification and microns per pixel; omit the magnification", path.display()
    )]
    NoMagnification {
        /// The file.
        path: PathBuf,
        /// Requested magnification.
        magnification: f64,
    },
    /// The region is not within the slide.
    #[error("{}: {cause}", path.display())]
    Outside {
        /// The file.
        path: PathBuf,
        /// The region and the bounds of the slide.
        cause: pleach_regions::PartError,
    },
    /// The slide has no level that is small enough for an overview.
    #[error(
        "{}: smallest level has {width_px} x {height_px} px; up to {} million are allowed for an overview",
        path.display(), crate::limits::MAX_OVERVIEW_PX >> 20
    )]
    NoOverview {
        /// The file.
        path: PathBuf,
        /// Width of the level, pixels.
        width_px: u32,
        /// Height of the level, pixels.
        height_px: u32,
    },
    /// Memory is insufficient for the region.
    #[error("{}: insufficient memory for {width_px} x {height_px} px", path.display())]
    Memory {
        /// The file.
        path: PathBuf,
        /// Width, pixels.
        width_px: u32,
        /// Height, pixels.
        height_px: u32,
    },
}
