//! Rasters as the bytes of an image file, for those who decide themselves where the bytes go.
//!
//! Nothing is scaled or cropped here, and no file is touched.

mod tiff;

pub use tiff::tiff_bytes;

use super::{ImageFileError, png, write};
use image::ExtendedColorType;
use image::codecs::jpeg::JpegEncoder;
use pleach_regions::{DataRegion, DenseArray, ElementType, LabelMap, Raster, TypedValues};
use std::io;

/// Whether regions of this type are images, which [`png_bytes`] encodes.
#[must_use]
pub fn is_image(element: ElementType) -> bool {
    matches!(element, ElementType::Bgr8 | ElementType::Gray8 | ElementType::Mask)
}

/// A region as a PNG: a mask of 1 bit a pixel, gray of 8, color of 24. The bytes are those that the functions that
/// write files put there. A label map has 16 bits a pixel; an array of 8 or 16 bits that has two axes is gray, or color
/// where it has three channels, which are taken as red, green and blue.
///
/// # Errors
/// [`ImageFileError::NotEncoded`] when it is no image, or has another number of channels than its type; or labels are beyond
/// 16 bits.
pub fn png_bytes(region: &DataRegion) -> Result<Vec<u8>, ImageFileError> {
    let mut bytes = Vec::new();
    let written = match region {
        DataRegion::Mask(raster) if raster.channels() == 1 => {
            png::write_bits(&mut bytes, raster.width_px(), raster.height_px(), raster.data())
        }
        DataRegion::Gray8(raster) if raster.channels() == 1 => {
            write::encode(&mut bytes, raster, raster.data(), ExtendedColorType::L8)
        }
        DataRegion::Bgr8(raster) if raster.channels() == 3 => {
            write::encode(&mut bytes, raster, &rgb(raster), ExtendedColorType::Rgb8)
        }
        DataRegion::Labels(map) => labels_png(&mut bytes, map),
        DataRegion::Array(array) => array_png(&mut bytes, array),
        other => Err(io::Error::other(format!("a region of type {} is no image", other.element()))),
    };
    written.map(|()| bytes).map_err(|cause| ImageFileError::NotEncoded { cause })
}

fn labels_png(file: &mut Vec<u8>, map: &LabelMap) -> io::Result<()> {
    let highest = map.labels().iter().copied().max().unwrap_or(0);
    if highest > u32::from(u16::MAX) {
        return Err(io::Error::other(format!(
            "label {highest} is beyond the 16 bits that PNG has; TIFF has 32"
        )));
    }
    let bytes: Vec<u8> = map.labels().iter().flat_map(|label| (*label as u16).to_ne_bytes()).collect();
    write::encode_shape(file, map.width_px(), map.height_px(), &bytes, ExtendedColorType::L16)
}

fn array_png(file: &mut Vec<u8>, array: &DenseArray) -> io::Result<()> {
    let (width_px, height_px) = plane_of(array)?;
    match (array.values(), array.channels()) {
        (TypedValues::U8(values), 1) => {
            write::encode_shape(file, width_px, height_px, values, ExtendedColorType::L8)
        }
        (TypedValues::U8(values), 3) => {
            write::encode_shape(file, width_px, height_px, values, ExtendedColorType::Rgb8)
        }
        (TypedValues::U16(values), channels @ (1 | 3)) => {
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_ne_bytes()).collect();
            let color = if channels == 1 { ExtendedColorType::L16 } else { ExtendedColorType::Rgb16 };
            write::encode_shape(file, width_px, height_px, &bytes, color)
        }
        (values, channels) => Err(no_picture(values, channels)),
    }
}

/// Width and height of an array of two axes.
fn plane_of(array: &DenseArray) -> io::Result<(u32, u32)> {
    match *array.extents() {
        [width_px, height_px] => Ok((width_px, height_px)),
        ref extents => {
            Err(io::Error::other(format!("{} axes are no image, two are; NPY holds any", extents.len())))
        }
    }
}

fn no_picture(values: &TypedValues, channels: u16) -> io::Error {
    let number = values.number();
    io::Error::other(format!("{channels} channels of {number} are no pixels that it has; NPY holds any"))
}

/// A color image as a JPEG of `quality` (1 to 100): for pictures to look at, which need not be exact.
///
/// # Errors
/// [`ImageFileError::NotEncoded`] unless it has three channels and sides that the format knows (up to 65,535 px).
pub fn jpeg_bytes(image: &Raster, quality: u8) -> Result<Vec<u8>, ImageFileError> {
    let fail = |cause| ImageFileError::NotEncoded { cause };
    if image.channels() != 3 {
        return Err(fail(io::Error::other(format!("{} channels are no colors", image.channels()))));
    }
    let mut bytes = Vec::new();
    let mut encoder = JpegEncoder::new_with_quality(&mut bytes, quality);
    let encoded = encoder.encode(&rgb(image), image.width_px(), image.height_px(), ExtendedColorType::Rgb8);
    encoded.map(|()| bytes).map_err(|error| fail(io::Error::other(error)))
}

pub(super) fn rgb(image: &Raster) -> Vec<u8> {
    let (pixels, _) = image.data().as_chunks::<3>();
    pixels.iter().flat_map(|&[b, g, r]| [r, g, b]).collect()
}
