//! Zero-copy `ndarray` views of arrays, images and label maps, or parts of them.

use super::{ArrayError, DenseArray, MAX_AXES};
use crate::{LabelMap, RasterView, Sample};
use ndarray::{ArrayView2, ArrayView3, ArrayViewD, Axis, IxDyn, ShapeBuilder, Slice};
use std::ops::Range;

impl DenseArray {
    /// Borrows the whole array. Shape: `[z ×] [y ×] x × channels`.
    ///
    /// # Errors
    /// Returns [`ArrayError::Kind`] if it has another number type.
    pub fn view<T: Sample>(&self) -> Result<ArrayViewD<'_, T>, ArrayError> {
        let samples = self.samples()?;
        let sides = self.extents().iter().rev().map(|extent| *extent as usize);
        let shape: Vec<usize> = sides.chain([usize::from(self.channels)]).collect();
        ArrayViewD::from_shape(IxDyn(&shape), samples).map_err(|_| self.misfit())
    }

    /// Borrows a part of the array, given by one range per axis, x first. The view has as many axes as the array.
    ///
    /// # Errors
    /// Returns [`ArrayError::Kind`] like [`view`](Self::view), [`ArrayError::Ranges`] unless there is one
    /// range per axis, and [`ArrayError::Part`] if a range is empty or exceeds the array.
    pub fn part<T: Sample>(&self, part: &[Range<u32>]) -> Result<ArrayViewD<'_, T>, ArrayError> {
        let mut view = self.view()?;
        let axes = self.extents().len();
        if part.len() != axes {
            return Err(ArrayError::Ranges { found: part.len(), axes });
        }
        for (axis, (&Range { start, end }, &extent)) in part.iter().zip(self.extents()).enumerate() {
            if start >= end || end > extent {
                return Err(ArrayError::Part { axis, start, end, extent });
            }
            let slice = Slice::from(start as usize..end as usize);
            view.slice_axis_inplace(Axis(axes - 1 - axis), slice);
        }
        Ok(view)
    }

    fn misfit(&self) -> ArrayError {
        let extents: [u32; MAX_AXES] = self.extents;
        ArrayError::Length { extents, channels: self.channels, values: self.values.len() }
    }
}

impl<'a> RasterView<'a> {
    /// Borrows these pixels as an `ndarray` view, with row stride. Shape: `height_px × width_px × channels`.
    ///
    /// # Panics
    /// Never: the borrowed data contain all pixels of a view.
    #[must_use]
    pub fn to_ndarray(&self) -> ArrayView3<'a, u8> {
        let channels = usize::from(self.channels());
        let shape = (self.height_px() as usize, self.width_px() as usize, channels);
        let strides = (self.stride_bytes(), channels, 1);
        ArrayView3::from_shape(shape.strides(strides), self.data()).expect("rows are within the data")
    }
}

impl LabelMap {
    /// Borrows all labels as an `ndarray` view. Shape: `height_px × width_px`.
    ///
    /// # Panics
    /// Never: a label map is as long as its shape.
    #[must_use]
    pub fn to_ndarray(&self) -> ArrayView2<'_, u32> {
        let shape = (self.height_px() as usize, self.width_px() as usize);
        ArrayView2::from_shape(shape, self.labels()).expect("one label a pixel")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PixelRectangle, Raster};

    #[test]
    fn a_part_is_where_the_array_is() {
        let array = DenseArray::new(&[4, 3, 2], 2, (0..48_u16).collect::<Vec<_>>().into()).unwrap();
        let samples = array.samples::<u16>().unwrap();
        let all = array.view::<u16>().unwrap();
        assert_eq!(all.shape(), [2, 3, 4, 2]);
        assert!(std::ptr::eq(all.as_ptr(), samples.as_ptr()));
        let part = array.part::<u16>(&[1..3, 2..3, 0..2]).unwrap();
        assert_eq!(part.shape(), [2, 1, 2, 2]);
        assert_eq!(part.iter().copied().collect::<Vec<_>>(), [18, 19, 20, 21, 42, 43, 44, 45]);
        assert!(std::ptr::eq(part.as_ptr(), &raw const samples[18]));
    }

    #[test]
    fn part_outside_the_array_is_refused() {
        let array = DenseArray::new(&[4, 3], 1, vec![0.0_f64; 12].into()).unwrap();
        let refusal = |part: &[Range<u32>]| array.part::<f64>(part).unwrap_err().to_string();
        let beyond = "array: 1 to 4 along axis 1; a non-empty range within 0 to 3 is allowed";
        assert_eq!(refusal(&[0..4, 1..4]), beyond);
        assert!(array.part::<f64>(&[2..2, 0..3]).is_err());
        assert_eq!(refusal(&[0..1, 0..1, 0..1]), "array: 3 ranges; one for each of 2 axes is allowed");
        assert!(array.view::<u8>().is_err());
    }

    #[test]
    fn a_part_of_an_image_is_where_the_image_is() {
        let raster = Raster::new(4, 3, 2, (0..24).collect()).unwrap();
        let part = PixelRectangle { x_px: 1, y_px: 1, width_px: 2, height_px: 2 };
        let view = raster.view().part(part).unwrap().to_ndarray();
        assert_eq!(view.shape(), [2, 2, 2]);
        assert_eq!(view.iter().copied().collect::<Vec<_>>(), [10, 11, 12, 13, 18, 19, 20, 21]);
        assert!(std::ptr::eq(view.as_ptr(), &raw const raster.data()[10]));
        assert_eq!(raster.view().to_ndarray().shape(), [3, 4, 2]);
    }

    #[test]
    fn labels_are_where_they_were() {
        let map = LabelMap::new(3, 2, (0..6).collect()).unwrap();
        let view = map.to_ndarray();
        assert_eq!(view[[1, 0]], 3);
        assert!(std::ptr::eq(view.as_ptr(), map.labels().as_ptr()));
    }
}
