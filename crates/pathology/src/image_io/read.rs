//! Reads tiles, masks and label maps.

use super::jpeg::{self, Frame};
use super::tiff::{self, Refusal};
use super::{ImageFileError, MAX_BYTES, MAX_SIDE_PX, png};
use crate::kernels::components::Components;
use crate::objects::OBJECT_CONNECTIVITY;
use image::error::{ImageError, UnsupportedErrorKind};
use image::{ColorType, DynamicImage, ExtendedColorType, ImageDecoder, ImageFormat, ImageReader, Limits};
use pleach_regions::{DataRegion, LabelMap, Raster};
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, Read, Seek};
use std::path::Path;

/// Properties in the header of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TileInfo {
    /// Width, pixels.
    pub width_px: u32,
    /// Height, pixels.
    pub height_px: u32,
}

/// Reads the header only, so damage after the header is not detected.
///
/// # Errors
/// Returns an [`ImageFileError`].
pub fn probe(path: &Path) -> Result<TileInfo, ImageFileError> {
    let mut opened = OpenImageFile::new(path)?;
    if opened.format == ImageFormat::Jpeg {
        // The decoder would read the whole file.
        return Ok(opened.frame()?.info);
    }
    let (width_px, height_px) = opened.decoder()?.dimensions();
    Ok(TileInfo { width_px, height_px })
}

/// Reads a color tile. Gray is repeated in the three channels. Alpha is dropped without blending. 16 bits become 8 by
/// scaling 65,535 to 255 with rounding.
///
/// # Errors
/// Returns an [`ImageFileError`].
pub fn read_bgr(path: &Path) -> Result<DataRegion, ImageFileError> {
    let image = Samples::read(path)?;
    let data = match &image.values {
        Values::Bytes(values) => image.bgr(values, |value| value),
        Values::Words(values) => image.bgr(values, scaled_down),
    };
    image.raster(3, data).map(DataRegion::Bgr8).map_err(|cause| unreadable(path, cause))
}

/// Reads a mask. A pixel is object if any channel except alpha is above 0, so label maps of 8 and 16 bits are accepted.
/// The colors of a palette decide, not its indices.
///
/// # Errors
/// Returns an [`ImageFileError`].
pub fn read_mask(path: &Path) -> Result<DataRegion, ImageFileError> {
    let image = Samples::read(path)?;
    let data = match &image.values {
        Values::Bytes(values) => image.mask(values),
        Values::Words(values) => image.mask(values),
    };
    image.raster(1, data).map(DataRegion::Mask).map_err(|cause| unreadable(path, cause))
}

/// Reads a label map from a gray image of 8 or 16 bits: 0 is background, every other value one object. Alpha is
/// dropped. If all objects have the same value or color, the image is a mask, and its objects are its connected
/// components ([`OBJECT_CONNECTIVITY`]).
///
/// # Errors
/// Returns [`ImageFileError::ColorLabels`] if colors distinguish objects. Otherwise returns any [`ImageFileError`].
///
/// [`OBJECT_CONNECTIVITY`]: crate::objects::OBJECT_CONNECTIVITY
pub fn read_labels(path: &Path) -> Result<DataRegion, ImageFileError> {
    let image = Samples::read(path)?;
    let labels = match &image.values {
        Values::Bytes(values) => image.labels(values),
        Values::Words(values) => image.labels(values),
    };
    let labels = labels.ok_or_else(|| ImageFileError::ColorLabels { path: path.to_owned() })?;
    let map = LabelMap::new(image.info.width_px, image.info.height_px, labels);
    map.map(DataRegion::Labels).map_err(|cause| unreadable(path, cause))
}

/// Returns the nearest of 256 levels.
#[expect(clippy::cast_possible_truncation, reason = "65,535 becomes 255")]
fn scaled_down(value: u16) -> u8 {
    ((u32::from(value) + 128) / 257) as u8
}

pub(super) fn unreadable(
    path: &Path,
    cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> ImageFileError {
    ImageFileError::Unreadable { path: path.to_owned(), cause: io::Error::other(cause) }
}

/// Allowed kinds of JPEG, for messages.
const JPEG_ALLOWED: &str = "baseline or progressive JPEG of 8 bits per channel";

/// Allowed kinds of TIFF, for messages.
const TIFF_ALLOWED: &str = "TIFF without compression or with LZW, Deflate, PackBits or Group 4";

/// 16 MiB: maximum unpacked size of a PNG's metadata, such as profiles and texts. Profiles have up to a few MiB, and
/// may unpack to 1,000 times their size in the file.
const PNG_METADATA_BYTES: u64 = 16 << 20;

/// Bytes that identify a format. The longest signature has 8 bytes.
const START_BYTES: u64 = 16;

/// The signatures of a BigTIFF in both byte orders, which `image` does not recognize.
const BIG_TIFF: [[u8; 4]; 2] = [*b"II+\0", *b"MM\0+"];

/// A nonempty regular file that starts with the signature of a supported format.
struct OpenImageFile<'a> {
    path: &'a Path,
    file: BufReader<File>,
    format: ImageFormat,
    length: u64,
}

impl<'a> OpenImageFile<'a> {
    fn new(path: &'a Path) -> Result<Self, ImageFileError> {
        let unreadable = |cause| ImageFileError::Unreadable { path: path.to_owned(), cause };
        // Checked before opening: opening a pipe waits for a writer.
        let about = std::fs::metadata(path).map_err(unreadable)?;
        if about.is_dir() {
            return Err(ImageFileError::Folder { path: path.to_owned() });
        }
        if !about.is_file() {
            return Err(ImageFileError::NoFile { path: path.to_owned() });
        }
        if about.len() == 0 {
            return Err(ImageFileError::Empty { path: path.to_owned() });
        }
        let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
        let mut start = Vec::new();
        file.by_ref().take(START_BYTES).read_to_end(&mut start).map_err(unreadable)?;
        let format = match image::guess_format(&start) {
            Ok(format @ (ImageFormat::Png | ImageFormat::Jpeg | ImageFormat::Tiff)) => format,
            _ if BIG_TIFF.iter().any(|mark| start.starts_with(mark)) => ImageFormat::Tiff,
            _ => return Err(ImageFileError::UnknownFormat { path: path.to_owned() }),
        };
        let mut opened = Self { path, file, format, length: about.len() };
        opened.rewind()?;
        Ok(opened)
    }

    fn rewind(&mut self) -> Result<(), ImageFileError> {
        self.file.rewind().map_err(|cause| ImageFileError::Unreadable { path: self.path.to_owned(), cause })
    }

    /// Reads the frame header of a JPEG, and checks size and channels.
    fn frame(&mut self) -> Result<Frame, ImageFileError> {
        let frame = Frame::read(&mut self.file).map_err(|cause| failed(self.path, cause))?;
        self.rewind()?;
        let path = || self.path.to_owned();
        if !matches!(frame.components, 1 | 3) {
            let found = match frame.components {
                4 => "CMYK".to_owned(),
                other => format!("{other}-channel"),
            };
            return Err(ImageFileError::UnsupportedPixels { path: path(), found });
        }
        allowed_size(self.path, frame.info, 3)?;
        if self.length > MAX_BYTES {
            return Err(ImageFileError::TooLong { path: path(), bytes: self.length });
        }
        Ok(frame)
    }

    /// Reads the header of a PNG, and checks the size.
    fn png_header(&mut self) -> Result<png::Header, ImageFileError> {
        let header = png::Header::read(&mut self.file).map_err(|cause| failed(self.path, cause))?;
        self.rewind()?;
        allowed_size(self.path, header.info, 1)?;
        Ok(header)
    }

    /// Returns a decoder that has read the header, and checks the size.
    fn decoder(mut self) -> Result<impl ImageDecoder + 'a, ImageFileError> {
        let path = self.path;
        let mut limits = Limits::no_limits();
        limits.max_alloc = Some(MAX_BYTES);
        let mut frame = None;
        match self.format {
            ImageFormat::Jpeg => frame = Some(self.frame()?),
            ImageFormat::Tiff => {
                tiff::check(&mut self.file, self.length).map_err(|refusal| match refusal {
                    Refusal::Failed(cause) => failed(path, cause),
                    Refusal::TooLarge(info) => too_large(path, info),
                    Refusal::Compression(number) => {
                        let found = format!("TIFF with compression {number}");
                        ImageFileError::Unsupported { path: path.to_owned(), found, allowed: TIFF_ALLOWED }
                    }
                })?;
                self.rewind()?;
            }
            // For PNG the limit excludes the pixels. The decoder allocates a row before it checks the limit.
            _ => {
                self.png_header()?;
                limits.max_alloc = Some(PNG_METADATA_BYTES);
            }
        }
        let mut reader = ImageReader::with_format(self.file, self.format);
        reader.limits(limits);
        let decoder = reader.into_decoder().map_err(|cause| refused(path, cause))?;
        let (width_px, height_px) = decoder.dimensions();
        let info = TileInfo { width_px, height_px };
        // Size limits were checked on the header as read here. A decoder that reads another size would escape them.
        if frame.is_some_and(|frame| frame.info != info) {
            let cause = io::Error::new(ErrorKind::InvalidData, "two different sizes");
            return Err(failed(path, cause));
        }
        allowed_size(path, info, u64::from(decoder.color_type().bytes_per_pixel()))?;
        if let found @ (ColorType::Rgb32F | ColorType::Rgba32F) = decoder.color_type() {
            return Err(ImageFileError::UnsupportedPixels {
                path: path.to_owned(),
                found: format!("{found:?}"),
            });
        }
        // Ink colors are unspecified, or defined in a profile, which the decoder does not apply.
        if let found @ (ExtendedColorType::Cmyk8 | ExtendedColorType::Cmyk16) = decoder.original_color_type()
        {
            return Err(ImageFileError::UnsupportedPixels {
                path: path.to_owned(),
                found: format!("{found:?}"),
            });
        }
        Ok(decoder)
    }

    /// Returns the length of the shortest file that can hold the header's image, in bytes.
    fn min_bytes(&mut self) -> Result<u64, ImageFileError> {
        match self.format {
            ImageFormat::Jpeg => Ok(self.frame()?.min_bytes()),
            ImageFormat::Png => Ok(self.png_header()?.min_bytes()),
            // A TIFF may use one strip repeatedly.
            _ => Ok(0),
        }
    }

    /// Rejects a JPEG without an end marker.
    fn check_end(&mut self) -> Result<(), ImageFileError> {
        if self.format != ImageFormat::Jpeg {
            return Ok(());
        }
        if !jpeg::is_complete(&mut self.file).map_err(|cause| failed(self.path, cause))? {
            let cause = io::Error::new(ErrorKind::UnexpectedEof, "the JPEG end marker is missing");
            return Err(failed(self.path, cause));
        }
        self.rewind()
    }
}

fn too_large(path: &Path, info: TileInfo) -> ImageFileError {
    ImageFileError::TooLarge { path: path.to_owned(), width_px: info.width_px, height_px: info.height_px }
}

/// Rejects sides and sizes beyond the limit, as decoded or as B, G, R.
fn allowed_size(path: &Path, info: TileInfo, pixel_bytes: u64) -> Result<(), ImageFileError> {
    let pixels = u64::from(info.width_px) * u64::from(info.height_px);
    if info.width_px.max(info.height_px) > MAX_SIDE_PX
        || pixels.saturating_mul(pixel_bytes.max(3)) > MAX_BYTES
    {
        return Err(too_large(path, info));
    }
    if pixels == 0 {
        return Err(failed(path, io::Error::new(ErrorKind::InvalidData, "the image has no pixels")));
    }
    Ok(())
}

/// Maps an error before decoding: damaged images and unsupported kinds are errors of the file, any other is the
/// system's.
fn failed(path: &Path, cause: io::Error) -> ImageFileError {
    let path = path.to_owned();
    match cause.kind() {
        ErrorKind::UnexpectedEof | ErrorKind::InvalidData => {
            ImageFileError::Damaged { path, cause: ImageError::IoError(cause) }
        }
        ErrorKind::Unsupported => {
            ImageFileError::Unsupported { path, found: format!("JPEG with {cause}"), allowed: JPEG_ALLOWED }
        }
        _ => ImageFileError::Unreadable { path, cause },
    }
}

/// Maps an error of the decoder.
fn refused(path: &Path, cause: ImageError) -> ImageFileError {
    let pixels = |found| ImageFileError::UnsupportedPixels { path: path.to_owned(), found };
    match cause {
        ImageError::Unsupported(error) => match error.kind() {
            UnsupportedErrorKind::Color(ExtendedColorType::Unknown(bits)) => {
                pixels(format!("palette or other {bits}-bit"))
            }
            UnsupportedErrorKind::Color(color) => pixels(format!("{color:?}")),
            kind => {
                let found = match kind {
                    UnsupportedErrorKind::GenericFeature(text) => format!("this kind of image ({text})"),
                    _ => "this kind of image".to_owned(),
                };
                let allowed = "gray or color of 8 or 16 bits per channel";
                ImageFileError::Unsupported { path: path.to_owned(), found, allowed }
            }
        },
        ImageError::IoError(cause) => failed(path, cause),
        cause => ImageFileError::Damaged { path: path.to_owned(), cause },
    }
}

/// Returns the components of a mask, numbered from 1.
fn label(mask: &[u8], width: usize) -> Vec<u32> {
    let mut labels = vec![0; mask.len()];
    let components = Components::of_objects(mask, width, OBJECT_CONNECTIVITY);
    components.for_each_run(|pixels, component| labels[pixels].fill(component + 1));
    labels
}

/// A decoded image: `channels` values per pixel, with any alpha last.
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
    fn read(path: &Path) -> Result<Self, ImageFileError> {
        let mut opened = OpenImageFile::new(path)?;
        let (length, least) = (opened.length, opened.min_bytes()?);
        // Checked before the decoder allocates memory for the pixels.
        if length < least {
            let text = format!(
                "{length} bytes are too short for the size in the header; at least {least} are needed"
            );
            return Err(failed(path, io::Error::new(ErrorKind::UnexpectedEof, text)));
        }
        opened.check_end()?;
        let image = DynamicImage::from_decoder(opened.decoder()?).map_err(|cause| refused(path, cause))?;
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
                return Err(ImageFileError::UnsupportedPixels { path: path.to_owned(), found });
            }
        };
        Ok(Self { info, channels, values })
    }

    fn bgr<S: Copy>(&self, values: &[S], level: impl Fn(S) -> u8) -> Vec<u8> {
        let blue = if self.channels < 3 { 0 } else { 2 };
        let green = blue / 2;
        let colors = values.chunks_exact(self.channels);
        colors.flat_map(|pixel| [level(pixel[blue]), level(pixel[green]), level(pixel[0])]).collect()
    }

    fn mask<S: Copy + Default + PartialEq>(&self, values: &[S]) -> Vec<u8> {
        let colors = if self.channels < 3 { 1 } else { 3 };
        let object = |pixel: &[S]| pixel[..colors].iter().any(|value| *value != S::default());
        values.chunks_exact(self.channels).map(|pixel| if object(pixel) { 255 } else { 0 }).collect()
    }

    /// Returns the labels. Returns `None` if colors differ between objects.
    fn labels<S: Copy + Default + PartialEq + Into<u32>>(&self, values: &[S]) -> Option<Vec<u32>> {
        let colors = if self.channels < 3 { 1 } else { 3 };
        let pixels = || values.chunks_exact(self.channels).map(|pixel| &pixel[..colors]);
        let is_object = |pixel: &&[S]| pixel.iter().any(|value| *value != S::default());
        let mut objects = pixels().filter(is_object);
        let first = objects.next();
        // A single value marks a mask, not one object: its connected components are the objects.
        if objects.all(|pixel| Some(pixel) == first) {
            return Some(label(&self.mask(values), self.info.width_px as usize));
        }
        (colors == 1).then(|| pixels().map(|pixel| pixel[0].into()).collect())
    }

    fn raster(&self, channels: u8, data: Vec<u8>) -> Result<Raster, pleach_regions::ShapeError> {
        Raster::new(self.info.width_px, self.info.height_px, channels, data)
    }
}
