//! Reading tiles and masks.

use super::{MAX_BYTES, MAX_SIDE_PX, TileError};
use image::error::{ImageError, UnsupportedErrorKind};
use image::{DynamicImage, ImageDecoder, ImageFormat, ImageReader, Limits};
use pleach_regions::{DataRegion, Raster};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read};
use std::path::Path;

/// What the header of an image says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileInfo {
    /// Width, pixels.
    pub width_px: u32,
    /// Height, pixels.
    pub height_px: u32,
}

/// Reads the header only: an image that is damaged further on is not found out.
///
/// # Errors
/// [`TileError`].
pub fn probe(path: &Path) -> Result<TileInfo, TileError> {
    let (width_px, height_px) = decoder(path)?.dimensions();
    Ok(TileInfo { width_px, height_px })
}

/// Reads a colour tile. Grey is repeated in the three channels, alpha is dropped without blending, 16 bits become 8 by
/// scaling 65,535 to 255 with rounding.
///
/// # Errors
/// [`TileError`].
pub fn read_bgr(path: &Path) -> Result<DataRegion, TileError> {
    let image = Samples::read(path)?;
    let data = match &image.values {
        Values::Bytes(values) => image.bgr(values, |value| value),
        Values::Words(values) => image.bgr(values, scaled_down),
    };
    image.raster(3, data).map(DataRegion::Bgr8).map_err(|cause| unreadable(path, cause))
}

/// Reads a mask: a pixel is object where any channel but alpha is above 0, so label maps of 8 and 16 bits will do.
/// A palette is looked up first: its colours decide.
///
/// # Errors
/// [`TileError`].
pub fn read_mask(path: &Path) -> Result<DataRegion, TileError> {
    let image = Samples::read(path)?;
    let data = match &image.values {
        Values::Bytes(values) => image.mask(values),
        Values::Words(values) => image.mask(values),
    };
    image.raster(1, data).map(DataRegion::Mask).map_err(|cause| unreadable(path, cause))
}

/// The nearest of 256 levels.
#[expect(clippy::cast_possible_truncation, reason = "65,535 becomes 255")]
fn scaled_down(value: u16) -> u8 {
    ((u32::from(value) + 128) / 257) as u8
}

fn unreadable(path: &Path, cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> TileError {
    TileError::Unreadable { path: path.to_owned(), cause: io::Error::other(cause) }
}

/// A decoder that has read the header, of an image of allowed size.
fn decoder(path: &Path) -> Result<impl ImageDecoder, TileError> {
    let unreadable = |cause| TileError::Unreadable { path: path.to_owned(), cause };
    let file = File::open(path).map_err(unreadable)?;
    let about = file.metadata().map_err(unreadable)?;
    if about.is_dir() {
        return Err(TileError::Folder { path: path.to_owned() });
    }
    if about.is_file() && about.len() == 0 {
        return Err(TileError::Empty { path: path.to_owned() });
    }
    let mut reader = ImageReader::new(BufReader::new(file)).with_guessed_format().map_err(unreadable)?;
    if !matches!(reader.format(), Some(ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::Tiff)) {
        return Err(TileError::UnknownFormat { path: path.to_owned() });
    }
    // Sides are checked below, where the message can name them.
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(MAX_BYTES);
    reader.limits(limits);
    let decoder = reader.into_decoder().map_err(|cause| refused(path, cause))?;
    let (width_px, height_px) = decoder.dimensions();
    let as_bgr = 3 * u64::from(width_px) * u64::from(height_px);
    if width_px.max(height_px) > MAX_SIDE_PX || decoder.total_bytes().max(as_bgr) > MAX_BYTES {
        return Err(TileError::TooLarge { path: path.to_owned(), width_px, height_px });
    }
    Ok(decoder)
}

/// What the decoder's error means for the user.
fn refused(path: &Path, cause: ImageError) -> TileError {
    let path = path.to_owned();
    match cause {
        ImageError::Unsupported(error) => match error.kind() {
            UnsupportedErrorKind::Color(colour) => {
                TileError::UnsupportedPixels { path, found: format!("{colour:?}") }
            }
            _ => TileError::Damaged { path, cause: ImageError::Unsupported(error) },
        },
        // A file that ends too early is the image's fault, anything else the system's.
        ImageError::IoError(cause) if cause.kind() != ErrorKind::UnexpectedEof => {
            TileError::Unreadable { path, cause }
        }
        cause => TileError::Damaged { path, cause },
    }
}

/// The JPEG decoder fills what is missing of a file that was cut short with grey, and says nothing. Compressed data
/// holds no marker but restarts, so behind the last start of a scan the first other one of a whole file ends the
/// scan: without an end marker there, the file is not whole.
fn check_jpeg_end(path: &Path) -> Result<(), TileError> {
    let mut file =
        File::open(path).map_err(|cause| TileError::Unreadable { path: path.to_owned(), cause })?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(|cause| TileError::Unreadable { path: path.to_owned(), cause })?;
    if !bytes.starts_with(&JPEG_START) {
        return Ok(());
    }
    let last_scan = bytes.windows(2).rposition(|pair| pair == SCAN_START).unwrap_or(0);
    if bytes[last_scan..].windows(2).any(|pair| pair == IMAGE_END) {
        return Ok(());
    }
    let cause = io::Error::new(ErrorKind::UnexpectedEof, "the JPEG has no end marker");
    Err(TileError::Damaged { path: path.to_owned(), cause: ImageError::IoError(cause) })
}

/// Markers of the JPEG format (ITU-T T.81, table B.1).
const JPEG_START: [u8; 3] = [0xff, 0xd8, 0xff];
const SCAN_START: [u8; 2] = [0xff, 0xda];
const IMAGE_END: [u8; 2] = [0xff, 0xd9];

/// A decoded image: `channels` values a pixel, alpha last where there is one.
struct Samples {
    info: TileInfo,
    channels: usize,
    values: Values,
}

enum Values {
    Bytes(Vec<u8>),
    Words(Vec<u16>),
}

impl Samples {
    fn read(path: &Path) -> Result<Self, TileError> {
        let image = DynamicImage::from_decoder(decoder(path)?).map_err(|cause| refused(path, cause))?;
        check_jpeg_end(path)?;
        let info = TileInfo { width_px: image.width(), height_px: image.height() };
        let channels = usize::from(image.color().channel_count());
        let values = match image {
            DynamicImage::ImageLuma8(buffer) => Values::Bytes(buffer.into_raw()),
            DynamicImage::ImageLumaA8(buffer) => Values::Bytes(buffer.into_raw()),
            DynamicImage::ImageRgb8(buffer) => Values::Bytes(buffer.into_raw()),
            DynamicImage::ImageRgba8(buffer) => Values::Bytes(buffer.into_raw()),
            DynamicImage::ImageLuma16(buffer) => Values::Words(buffer.into_raw()),
            DynamicImage::ImageLumaA16(buffer) => Values::Words(buffer.into_raw()),
            DynamicImage::ImageRgb16(buffer) => Values::Words(buffer.into_raw()),
            DynamicImage::ImageRgba16(buffer) => Values::Words(buffer.into_raw()),
            other => {
                let found = format!("{:?}", other.color());
                return Err(TileError::UnsupportedPixels { path: path.to_owned(), found });
            }
        };
        Ok(Self { info, channels, values })
    }

    fn bgr<S: Copy>(&self, values: &[S], level: impl Fn(S) -> u8) -> Vec<u8> {
        let blue = if self.channels < 3 { 0 } else { 2 };
        let green = blue / 2;
        let colours = values.chunks_exact(self.channels);
        colours.flat_map(|pixel| [level(pixel[blue]), level(pixel[green]), level(pixel[0])]).collect()
    }

    fn mask<S: Copy + Default + PartialEq>(&self, values: &[S]) -> Vec<u8> {
        let colours = if self.channels < 3 { 1 } else { 3 };
        let object = |pixel: &[S]| pixel[..colours].iter().any(|value| *value != S::default());
        values.chunks_exact(self.channels).map(|pixel| if object(pixel) { 255 } else { 0 }).collect()
    }

    fn raster(&self, channels: u8, data: Vec<u8>) -> Result<Raster, pleach_regions::ShapeError> {
        Raster::new(self.info.width_px, self.info.height_px, channels, data)
    }
}
