//! Tiles and masks in files: PNG, JPEG and TIFF in, PNG out.
//!
//! The format is told by the content, never by the file's name. Of a TIFF the first image is read; an orientation noted
//! in a file is not followed. Whole-slide formats and their pyramids are not read here.

mod png;
mod read;
mod write;

pub use read::{TileInfo, probe, read_bgr, read_mask};
pub use write::{write_bgr, write_gray, write_labels, write_mask};

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Longest side of an image that is read. Tiles are 4,096; a header that says more is mistaken or hostile.
pub const MAX_SIDE_PX: u32 = 65_536;

/// Most bytes that an image may decode to, as it is in the file or as B, G, R.
pub const MAX_BYTES: u64 = 2 << 30;

/// Why a tile could not be read or written. Each message is one line: the file, what is wrong, what is allowed.
#[derive(Debug, Error)]
pub enum TileError {
    /// It is missing, or may not be read, or reading failed.
    #[error("{}: cannot be read: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
    /// It is a folder.
    #[error("{}: is a folder; a PNG, JPEG or TIFF file is wanted", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// There is nothing in it.
    #[error("{}: the file is empty; a PNG, JPEG or TIFF image is wanted", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Its first bytes are no known image's.
    #[error("{}: the content is not an image that can be read; PNG, JPEG and TIFF are", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// The image breaks off or contradicts itself.
    #[error("{}: the image is damaged or cut short: {cause}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the decoder said.
        cause: image::ImageError,
    },
    /// Its pixels are of a kind that is not read.
    #[error("{}: {found} pixels are not read; grey and colour of 8 or 16 bits a channel are", path.display())]
    UnsupportedPixels {
        /// The file.
        path: PathBuf,
        /// What kind.
        found: String,
    },
    /// It is larger than allowed.
    #[error("{}: {width_px} x {height_px} px is too large; up to {MAX_SIDE_PX} px a side and {} MiB decoded are allowed", path.display(), MAX_BYTES >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Width in its header, pixels.
        width_px: u32,
        /// Height in its header, pixels.
        height_px: u32,
    },
    /// The raster to write does not have the channels that the kind of file does.
    #[error("{}: {found} channels cannot be written; {wanted} can", path.display())]
    Channels {
        /// The file.
        path: PathBuf,
        /// Channels written to such a file.
        wanted: u8,
        /// Channels given.
        found: u8,
    },
    /// It could not be written. Nothing was changed under its name.
    #[error("{}: cannot be written: {cause}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: io::Error,
    },
}
