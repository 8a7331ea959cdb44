//! Borrowed, read-only OpenCV matrices over regions, without a copy.

use opencv::Error;
use opencv::boxed_ref::BoxedRef;
use opencv::core::{CV_8U, CV_16U, CV_32F, CV_32S, CV_64F, Mat, StsBadSize, StsUnsupportedFormat};
use pleach_regions::{DenseArray, RasterView, TypedValues};
use std::ffi::c_void;

/// Maximum number of channels of an OpenCV matrix.
const MAX_CHANNELS: usize = 512;

/// Returns a matrix over the pixels of an image or of a part of one. Shape: `height_px × width_px`, 8 bits, with the
/// channels of the image.
///
/// ```
/// use opencv::core::MatTraitConst;
/// use pleach_pathology::matrix;
/// use pleach_regions::{PixelRectangle, Raster};
///
/// let image = Raster::new(4, 3, 1, (0..12).collect())?;
/// let part = image.view().part(PixelRectangle { x_px: 1, y_px: 1, width_px: 2, height_px: 2 })?;
/// let matrix = matrix::of_pixels(&part)?;
/// assert_eq!(*matrix.at_2d::<u8>(1, 0)?, 9);
/// assert_eq!(matrix.data(), part.data().as_ptr());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Returns OpenCV's error, or an error if a side is beyond 2^31 px.
pub fn of_pixels<'a>(pixels: &RasterView<'a>) -> opencv::Result<BoxedRef<'a, Mat>> {
    let size = (pixels.height_px(), pixels.width_px());
    matrix(size, CV_8U, usize::from(pixels.channels()), pixels.stride_bytes(), pixels.data())
}

/// Returns a matrix over the numbers of an array with two axes. Shape: `y × x`, with the channels of the array.
///
/// # Errors
/// Returns OpenCV's error, or an error if the array does not have exactly two axes, has more channels than OpenCV
/// supports (512), or has a side beyond 2^31.
pub fn of_array(array: &DenseArray) -> opencv::Result<BoxedRef<'_, Mat>> {
    let [width, height] = *array.extents() else {
        return Err(Error::new(StsBadSize, format!("{} axes; 2 are allowed", array.extents().len())));
    };
    let channels = usize::from(array.channels());
    let stride_bytes = width as usize * channels * array.values().number().bytes();
    let size = (height, width);
    match array.values() {
        TypedValues::U8(values) => matrix(size, CV_8U, channels, stride_bytes, values),
        TypedValues::U16(values) => matrix(size, CV_16U, channels, stride_bytes, values),
        TypedValues::I32(values) => matrix(size, CV_32S, channels, stride_bytes, values),
        TypedValues::F32(values) => matrix(size, CV_32F, channels, stride_bytes, values),
        TypedValues::F64(values) => matrix(size, CV_64F, channels, stride_bytes, values),
    }
}

/// Returns a matrix over `values`: rows of interleaved channels, `stride_bytes` apart.
fn matrix<'a, T>(
    (rows, columns): (u32, u32),
    depth: i32,
    channels: usize,
    stride_bytes: usize,
    values: &'a [T],
) -> opencv::Result<BoxedRef<'a, Mat>> {
    let side = |side: u32| {
        i32::try_from(side)
            .map_err(|_| Error::new(StsBadSize, format!("a side of {side}; up to 2^31 - 1 is allowed")))
    };
    if channels == 0 || channels > MAX_CHANNELS {
        let text = format!("{channels} channels; 1 to {MAX_CHANNELS} are allowed");
        return Err(Error::new(StsUnsupportedFormat, text));
    }
    let row_bytes = columns as usize * channels * size_of::<T>();
    let wanted_bytes = (rows as usize).saturating_sub(1) * stride_bytes + row_bytes;
    if stride_bytes < row_bytes || size_of_val(values) < wanted_bytes {
        return Err(Error::new(
            StsBadSize,
            format!("{} bytes; at least {wanted_bytes} are needed", size_of_val(values)),
        ));
    }
    // OpenCV's encoding of a type from depth and channels (CV_MAKETYPE).
    let kind = depth + ((channels as i32 - 1) << 3);
    let data = values.as_ptr().cast::<c_void>().cast_mut();
    // SAFETY: the check above ensures that all rows are within `values`. `values` outlives the returned matrix, which
    // is read-only.
    let matrix = unsafe {
        Mat::new_rows_cols_with_data_unsafe(side(rows)?, side(columns)?, kind, data, stride_bytes)
    }?;
    Ok(BoxedRef::from(matrix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use opencv::core::{MatTraitConst, Vec3b};
    use pleach_regions::{PixelRectangle, Raster};

    #[test]
    fn a_part_of_an_image_is_where_the_image_is() {
        let image = Raster::new(5, 4, 3, (0..60).collect()).unwrap();
        let part = PixelRectangle { x_px: 1, y_px: 2, width_px: 3, height_px: 2 };
        let part = image.view().part(part).unwrap();
        let matrix = of_pixels(&part).unwrap();
        assert_eq!((matrix.rows(), matrix.cols(), matrix.channels()), (2, 3, 3));
        assert_eq!(matrix.data(), &raw const image.data()[33]);
        assert_eq!(*matrix.at_2d::<Vec3b>(1, 2).unwrap(), Vec3b::from([54, 55, 56]));
        assert!(!matrix.is_continuous());
    }

    #[test]
    fn an_array_is_where_it_was() {
        let array = DenseArray::new(&[3, 2], 1, vec![0.5_f32, 1.5, 2.5, 3.5, 4.5, 5.5].into()).unwrap();
        let matrix = of_array(&array).unwrap();
        assert_eq!((matrix.rows(), matrix.cols(), matrix.typ()), (2, 3, CV_32F));
        assert_eq!(matrix.data().cast::<f32>(), array.samples::<f32>().unwrap().as_ptr());
        assert_eq!(*matrix.at_2d::<f32>(1, 0).unwrap(), 3.5);
        let deep = DenseArray::new(&[1, 1], 600, vec![0_u16; 600].into()).unwrap();
        assert!(of_array(&deep).is_err());
        let line = DenseArray::new(&[4], 1, vec![0_u8; 4].into()).unwrap();
        assert!(of_array(&line).unwrap_err().message.contains("1 axes; 2 are allowed"));
    }
}
