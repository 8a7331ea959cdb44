//! Reads and writes tiles, masks and label maps: PNG, JPEG and TIFF in, PNG, TIFF and pyramids of slides out. Polygons
//! in GeoJSON are read as a mask or label map.
//!
//! The format of an image is detected by content, never by the file name. Only the first image of a TIFF or BigTIFF is
//! read. Orientation tags are ignored. Whole-slide formats are not read here.
//!
//! Headers are validated before decoding, so that no file costs more memory than the pixels it can hold.
//! `tests/hostile_images` defines and checks the memory limits.

mod annotation_set;
mod encode;
mod geojson;
mod jpeg;
mod png;
mod pyramid;
mod read;
mod reference;
mod tiff;
mod write;

pub use annotation_set::{AnnotationSet, MAX_POSITION_PX};
pub use encode::{is_image, jpeg_bytes, png_bytes, tiff_bytes};
pub use geojson::{
    MAX_GEOJSON_BYTES, MAX_SLIDE_GEOJSON_BYTES, is_annotations, read_annotations, read_polygons,
};
pub use pyramid::{PYRAMID_TILE_PX, Pyramid, PyramidFormat, cut, reduce, write_pyramid};
pub use read::{TileInfo, probe, read_bgr, read_labels, read_mask};
pub use reference::{check_annotations, check_reference, counted_mask, objects_of_view, read_reference};
pub(crate) use write::replace_with;
pub use write::{write_bgr, write_gray, write_labels, write_mask};

use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Maximum side of an image. Tiles are 4,096. A header with more is wrong or hostile.
pub const MAX_SIDE_PX: u32 = 65_536;

/// 2 GiB: maximum size of a decoded image, both in the file's own format and as B, G, R.
pub const MAX_BYTES: u64 = 2 << 30;

/// Error of reading or writing an image file. Each message is one line with the file, the problem and the allowed
/// values.
#[derive(Debug, Error)]
pub enum ImageFileError {
    /// The file is missing, access is denied, or reading failed.
    #[error("{}: cannot be read: {cause}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
    /// The path is a folder.
    #[error("{}: is a folder; a PNG, JPEG or TIFF file is allowed", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
    },
    /// The path is a pipe, a socket or a device.
    #[error("{}: not a regular file; a PNG, JPEG or TIFF file is allowed", path.display())]
    NoFile {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is empty.
    #[error("{}: the file is empty; a PNG, JPEG or TIFF image is allowed", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// The first bytes match no supported format.
    #[error("{}: unknown image format; PNG, JPEG and TIFF are allowed", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// The image is truncated or inconsistent.
    #[error("{}: corrupt or truncated image: {cause}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The decoder's error.
        cause: image::ImageError,
    },
    /// The image has an unsupported kind of pixels.
    #[error("{}: {found} pixels are not supported; gray and color of 8 or 16 bits per channel are allowed", path.display())]
    UnsupportedPixels {
        /// The file.
        path: PathBuf,
        /// The kind found.
        found: String,
    },
    /// The image is of an unsupported kind.
    #[error("{}: {found} is not supported; {allowed} is allowed", path.display())]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// The kind found.
        found: String,
        /// The kinds that are read.
        allowed: &'static str,
    },
    /// The image is larger than allowed.
    #[error("{}: {width_px} x {height_px} px is too large; up to {MAX_SIDE_PX} px per side and {} MiB decoded are allowed", path.display(), MAX_BYTES >> 20)]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Width in its header, pixels.
        width_px: u32,
        /// Height in its header, pixels.
        height_px: u32,
    },
    /// The JPEG file is longer than allowed.
    #[error("{}: {bytes} bytes are too many; a JPEG file of up to {} MiB is allowed", path.display(), MAX_BYTES >> 20)]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Length of the file, bytes.
        bytes: u64,
    },
    /// A label map in color: the assignment of colors to objects is unknown.
    #[error("{}: labels in several colors; a gray image (0 is background, any other value one object) or one color on black is allowed", path.display())]
    ColorLabels {
        /// The file.
        path: PathBuf,
    },
    /// The reference and its tile differ in size.
    #[error("{}: {} x {} px, but its tile {} has {} x {} px; a reference mask has its tile's size", path.display(), found.width_px, found.height_px, tile.display(), wanted.width_px, wanted.height_px)]
    SizeDiffers {
        /// The reference file.
        path: PathBuf,
        /// Size of the reference.
        found: TileInfo,
        /// The tile's file.
        tile: PathBuf,
        /// The tile's size.
        wanted: TileInfo,
    },
    /// The GeoJSON file is larger than [`MAX_GEOJSON_BYTES`], or that of a slide than [`MAX_SLIDE_GEOJSON_BYTES`].
    #[error("{}: too much GeoJSON; {} MiB of text are allowed", path.display(), max_bytes >> 20)]
    GeoJsonTooLarge {
        /// The file.
        path: PathBuf,
        /// Maximum length of the text, bytes.
        max_bytes: u64,
    },
    /// The file is not valid JSON or not a collection of polygons.
    #[error("{}: {place}{cause}; GeoJSON with features of type Polygon or MultiPolygon is allowed", path.display())]
    NotGeoJson {
        /// The file.
        path: PathBuf,
        /// Location, such as `features[3].geometry: `. Empty for the whole document.
        place: String,
        /// The parser's error.
        cause: serde_json::Error,
    },
    /// A ring of a feature encloses no area.
    #[error("{}: features[{feature}]: a ring of {positions} different positions encloses nothing; 3 or more are allowed", path.display())]
    ShortRing {
        /// The file.
        path: PathBuf,
        /// Index of the feature, from 0.
        feature: usize,
        /// Number of positions that differ from their predecessor.
        positions: usize,
    },
    /// The file has more positions than 2^32.
    #[error("{}: features[{feature}]: more than 4,294,967,295 positions; fewer are allowed", path.display())]
    ManyPositions {
        /// The file.
        path: PathBuf,
        /// Index of the feature, from 0.
        feature: usize,
    },
    /// A position is farther from the tile than [`MAX_POSITION_PX`].
    #[error("{}: features[{feature}]: position {value} is beyond {MAX_POSITION_PX} px; positions are pixels from the top left corner of the tile or slide", path.display())]
    FarPosition {
        /// The file.
        path: PathBuf,
        /// Index of the feature, from 0.
        feature: usize,
        /// The coordinate, pixels.
        value: f64,
    },
    /// All features are outside the tile or slide.
    #[error(
        "{}: none of its {features} features covers a pixel of the {of} of {width_px} x {height_px} px; positions are pixels from the {of}'s top left corner{}",
        path.display(), if *of == "tile" { "; annotations = { unit = \"um\", mpp = 0.25 } reads micrometers" } else { " at full resolution, not micrometers; annotations = { unit = \"um\" } reads micrometers" }
    )]
    NothingInside {
        /// The file.
        path: PathBuf,
        /// Number of features.
        features: usize,
        /// `tile` or `slide`.
        of: &'static str,
        /// Width of the tile, pixels.
        width_px: u32,
        /// Height of the tile, pixels.
        height_px: u32,
    },
    /// The raster does not have the number of channels of this kind of file.
    #[error("{}: {found} channels; {wanted} are allowed", path.display())]
    Channels {
        /// The file.
        path: PathBuf,
        /// Channels that such a file has.
        wanted: u8,
        /// Channels of the raster.
        found: u8,
    },
    /// The region could not be encoded as an image file.
    #[error("cannot be encoded as an image: {cause}")]
    NotEncoded {
        /// The error.
        cause: io::Error,
    },
    /// The file could not be written. Any existing file of this name is unchanged.
    #[error("{}: cannot be written: {cause}", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        cause: io::Error,
    },
}
