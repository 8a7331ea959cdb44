//! Encodes regions as TIFF, which holds numbers that PNG does not: 32-bit labels, real and signed numbers.

use super::{no_picture, plane_of, rgb};
use crate::image_io::ImageFileError;
use pleach_regions::{DataRegion, DenseArray, LabelMap, TypedValues};
use std::io::{self, Cursor};
use tiff::encoder::colortype::{self, ColorType};
use tiff::encoder::{TiffEncoder, TiffValue};

/// Encodes a region as an uncompressed TIFF of one image: masks and gray with 8 bits per pixel, color with 24, label
/// maps with 16, or 32 for labels beyond 16 bits, and arrays of two axes with their own type. Three channels of an
/// array are red, green and blue.
///
/// # Errors
/// Returns [`ImageFileError::NotEncoded`] if the region is no image, does not have the channels of its type, or is
/// longer than 4 GiB.
pub fn tiff_bytes(region: &DataRegion) -> Result<Vec<u8>, ImageFileError> {
    let written = match region {
        DataRegion::Mask(raster) | DataRegion::Gray8(raster) if raster.channels() == 1 => {
            write::<colortype::Gray8>((raster.width_px(), raster.height_px()), raster.data())
        }
        DataRegion::Bgr8(raster) if raster.channels() == 3 => {
            write::<colortype::RGB8>((raster.width_px(), raster.height_px()), &rgb(raster))
        }
        DataRegion::Labels(map) => labels(map),
        DataRegion::Array(values) => array(values),
        other => Err(io::Error::other(format!("a region of type {} is not an image", other.element()))),
    };
    written.map_err(|cause| ImageFileError::NotEncoded { cause })
}

fn labels(map: &LabelMap) -> io::Result<Vec<u8>> {
    let size = (map.width_px(), map.height_px());
    let short: Result<Vec<u16>, _> = map.labels().iter().map(|label| u16::try_from(*label)).collect();
    match short {
        Ok(labels) => write::<colortype::Gray16>(size, &labels),
        Err(_) => write::<colortype::Gray32>(size, map.labels()),
    }
}

fn array(array: &DenseArray) -> io::Result<Vec<u8>> {
    let size = plane_of(array)?;
    match (array.values(), array.channels()) {
        (TypedValues::U8(values), 1) => write::<colortype::Gray8>(size, values),
        (TypedValues::U8(values), 3) => write::<colortype::RGB8>(size, values),
        (TypedValues::U16(values), 1) => write::<colortype::Gray16>(size, values),
        (TypedValues::U16(values), 3) => write::<colortype::RGB16>(size, values),
        (TypedValues::I32(values), 1) => write::<colortype::GrayI32>(size, values),
        (TypedValues::F32(values), 1) => write::<colortype::Gray32Float>(size, values),
        (TypedValues::F32(values), 3) => write::<colortype::RGB32Float>(size, values),
        (TypedValues::F64(values), 1) => write::<colortype::Gray64Float>(size, values),
        (TypedValues::F64(values), 3) => write::<colortype::RGB64Float>(size, values),
        (values, channels) => Err(no_picture(values, channels)),
    }
}

fn write<C: ColorType>((width_px, height_px): (u32, u32), values: &[C::Inner]) -> io::Result<Vec<u8>>
where
    [C::Inner]: TiffValue,
{
    let mut file = Cursor::new(Vec::new());
    let written = TiffEncoder::new(&mut file)
        .and_then(|mut encoder| encoder.write_image::<C>(width_px, height_px, values));
    written.map_err(io::Error::other)?;
    Ok(file.into_inner())
}
