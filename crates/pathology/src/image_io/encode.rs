//! Encodes regions as image files in memory: the caller decides where the bytes go.
//!
//! Values are neither scaled nor cropped.

mod tiff;

pub use tiff::tiff_bytes;

use super::{ImageFileError, png, write};
use image::ExtendedColorType;
use image::codecs::jpeg::JpegEncoder;
use pleach_regions::{DataRegion, DenseArray, ElementType, LabelMap, Raster, TypedValues};
use std::io;

/// Returns whether [`png_bytes`] encodes regions of this type as images.
#[must_use]
pub fn is_image(element: ElementType) -> bool {
    matches!(element, ElementType::Bgr8 | ElementType::Gray8 | ElementType::Mask)
}

/// Encodes a region as a PNG: a mask with 1 bit per pixel, gray with 8, color with 24. The bytes equal those that the
/// `write_*` functions write to files. A label map has 16 bits per pixel. An array of 8 or 16 bits with two axes
/// becomes gray, or color if it has three channels, which are red, green and blue.
///
/// # Errors
/// Returns [`ImageFileError::NotEncoded`] if the region is no image, does not have the channels of its type, or has
/// labels beyond 16 bits.
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
        other => Err(io::Error::other(format!("a region of type {} is not an image", other.element()))),
    };
    written.map(|()| bytes).map_err(|cause| ImageFileError::NotEncoded { cause })
}

fn labels_png(file: &mut Vec<u8>, map: &LabelMap) -> io::Result<()> {
    let highest = map.labels().iter().copied().max().unwrap_or(0);
    if highest > u32::from(u16::MAX) {
        return Err(io::Error::other(format!("label {highest} exceeds the 16 bits of PNG; TIFF has 32")));
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

/// Returns width and height of an array with two axes.
fn plane_of(array: &DenseArray) -> io::Result<(u32, u32)> {
    match *array.extents() {
        [width_px, height_px] => Ok((width_px, height_px)),
        ref extents => {
            Err(io::Error::other(format!("{} axes; an image has 2, NPY allows any number", extents.len())))
        }
    }
}

fn no_picture(values: &TypedValues, channels: u16) -> io::Error {
    let number = values.number();
    io::Error::other(format!("{channels} channels of {number} are not supported; NPY allows any"))
}

/// Encodes a color image as a JPEG of `quality` (1–100), for pictures that need not be exact.
///
/// # Errors
/// Returns [`ImageFileError::NotEncoded`] unless the image has three channels and sides of at most 65,535 px, the
/// format's limit.
pub fn jpeg_bytes(image: &Raster, quality: u8) -> Result<Vec<u8>, ImageFileError> {
    let fail = |cause| ImageFileError::NotEncoded { cause };
    if image.channels() != 3 {
        return Err(fail(io::Error::other(format!("{} channels are not a color image", image.channels()))));
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
