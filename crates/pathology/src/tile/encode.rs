//! Rasters as the bytes of an image file, for those who decide themselves where the bytes go.
//!
//! Nothing is scaled or cropped here, and no file is touched.

use super::{TileError, png, write};
use image::ExtendedColorType;
use image::codecs::jpeg::JpegEncoder;
use pleach_regions::{DataRegion, ElementType, Raster};
use std::io;

/// Whether regions of this type are images, which [`png_bytes`] encodes.
#[must_use]
pub fn is_image(element: ElementType) -> bool {
    matches!(element, ElementType::Bgr8 | ElementType::Gray8 | ElementType::Mask)
}

/// A region as a PNG: a mask of 1 bit a pixel, grey of 8, colour of 24. The bytes are those that the functions that
/// write files put there.
///
/// # Errors
/// [`TileError::NotEncoded`] when it is no image, or has another number of channels than its type.
pub fn png_bytes(region: &DataRegion) -> Result<Vec<u8>, TileError> {
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
        other => Err(io::Error::other(format!("a region of type {} is no image", other.element()))),
    };
    written.map(|()| bytes).map_err(|cause| TileError::NotEncoded { cause })
}

/// A colour image as a JPEG of `quality` (1 to 100): for pictures to look at, which need not be exact.
///
/// # Errors
/// [`TileError::NotEncoded`] unless it has three channels and sides that the format knows (up to 65,535 px).
pub fn jpeg_bytes(image: &Raster, quality: u8) -> Result<Vec<u8>, TileError> {
    let fail = |cause| TileError::NotEncoded { cause };
    if image.channels() != 3 {
        return Err(fail(io::Error::other(format!("{} channels are no colours", image.channels()))));
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
