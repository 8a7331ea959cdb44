//! Data regions: the values that pass between tasks and stages.

use crate::{
    AnnotatedObjects, Attachment, DenseArray, ElementType, LabelMap, Points, Polygons, RaggedArray, Raster,
};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Named numbers in a fixed order, such as `dice = 0.91, jaccard = 0.83`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Table(Vec<(String, f64)>);

impl Table {
    /// Creates a table with these columns, in this order.
    pub fn new<N: Into<String>>(columns: impl IntoIterator<Item = (N, f64)>) -> Self {
        Self(columns.into_iter().map(|(name, value)| (name.into(), value)).collect())
    }

    /// Returns the value of a column.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        self.0.iter().find(|(column, _)| column == name).map(|(_, value)| *value)
    }

    /// Returns the columns in order.
    pub fn columns(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(name, value)| (name.as_str(), *value))
    }
}

/// One immutable value, shared behind an `Arc` by all of its readers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum DataRegion {
    /// See [`ElementType::Bgr8`].
    Bgr8(Raster),
    /// See [`ElementType::Gray8`].
    Gray8(Raster),
    /// See [`ElementType::Mask`].
    Mask(Raster),
    /// See [`ElementType::Labels`].
    Labels(LabelMap),
    /// See [`ElementType::Table`].
    Table(Table),
    /// See [`ElementType::ArrayU8`] and its like.
    Array(DenseArray),
    /// See [`ElementType::RaggedU8`] and its like.
    Ragged(RaggedArray),
    /// See [`ElementType::Points`].
    Points(Points),
    /// See [`ElementType::Polygons`]. Boxed like `Objects`: every region is as large as the largest variant.
    Polygons(Box<Polygons>),
    /// See [`ElementType::Objects`].
    Objects(Box<AnnotatedObjects>),
    /// See [`ElementType::Scalar`].
    Scalar(f64),
}

/// A data region has another element type than requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("data region holds {found}; {expected} is needed")]
pub struct WrongElement {
    /// The requested type.
    pub expected: ElementType,
    /// The actual type.
    pub found: ElementType,
}

impl DataRegion {
    /// Returns the element type.
    #[must_use]
    pub fn element(&self) -> ElementType {
        match self {
            Self::Bgr8(_) => ElementType::Bgr8,
            Self::Gray8(_) => ElementType::Gray8,
            Self::Mask(_) => ElementType::Mask,
            Self::Labels(_) => ElementType::Labels,
            Self::Table(_) => ElementType::Table,
            Self::Array(array) => ElementType::array_of(array.values().number()),
            Self::Ragged(ragged) => ElementType::ragged_of(ragged.values().number()),
            Self::Points(_) => ElementType::Points,
            Self::Polygons(_) => ElementType::Polygons,
            Self::Objects(_) => ElementType::Objects,
            Self::Scalar(_) => ElementType::Scalar,
        }
    }

    /// Returns the bytes of payload in memory.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Bgr8(raster) | Self::Gray8(raster) | Self::Mask(raster) => raster.data().len() as u64,
            Self::Labels(map) => size_of_val(map.labels()) as u64,
            Self::Table(table) => {
                table.0.iter().map(|(name, _)| (name.len() + size_of::<(String, f64)>()) as u64).sum()
            }
            Self::Array(array) => array.values().bytes(),
            Self::Ragged(ragged) => size_of_val(ragged.ends()) as u64 + ragged.values().bytes(),
            Self::Points(points) => size_of_val(points.coordinates()) as u64,
            Self::Polygons(polygons) => size_of::<Polygons>() as u64 + polygons.0.bytes(),
            Self::Objects(objects) => size_of::<AnnotatedObjects>() as u64 + objects.bytes(),
            Self::Scalar(_) => size_of::<f64>() as u64,
        }
    }

    /// Returns the width and height in pixels, for an array only if it has two axes. `None` for types without pixels.
    #[must_use]
    pub fn size_px(&self) -> Option<(u32, u32)> {
        match self {
            Self::Bgr8(raster) | Self::Gray8(raster) | Self::Mask(raster) => {
                Some((raster.width_px(), raster.height_px()))
            }
            Self::Labels(map) => Some((map.width_px(), map.height_px())),
            Self::Array(array) => match *array.extents() {
                [width_px, height_px] => Some((width_px, height_px)),
                _ => None,
            },
            Self::Table(_)
            | Self::Ragged(_)
            | Self::Points(_)
            | Self::Polygons(_)
            | Self::Objects(_)
            | Self::Scalar(_) => None,
        }
    }

    /// Returns what readers keep with the region. `None` for types that are small.
    #[must_use]
    pub fn attachment(&self) -> Option<&Attachment> {
        match self {
            Self::Bgr8(raster) | Self::Gray8(raster) | Self::Mask(raster) => Some(raster.attachment()),
            Self::Labels(map) => Some(map.attachment()),
            Self::Array(array) => Some(array.attachment()),
            Self::Table(_)
            | Self::Ragged(_)
            | Self::Points(_)
            | Self::Polygons(_)
            | Self::Objects(_)
            | Self::Scalar(_) => None,
        }
    }

    /// Returns the raster of a region of type `expected`.
    ///
    /// # Errors
    /// Returns [`WrongElement`] if the region has another type.
    pub fn raster(&self, expected: ElementType) -> Result<&Raster, WrongElement> {
        match self {
            Self::Bgr8(raster) | Self::Gray8(raster) | Self::Mask(raster) if self.element() == expected => {
                Ok(raster)
            }
            _ => Err(WrongElement { expected, found: self.element() }),
        }
    }

    /// Returns the table of a region.
    ///
    /// # Errors
    /// Returns [`WrongElement`] if the region has another type.
    pub fn table(&self) -> Result<&Table, WrongElement> {
        match self {
            Self::Table(table) => Ok(table),
            _ => Err(WrongElement { expected: ElementType::Table, found: self.element() }),
        }
    }

    /// Returns the dense array of a region of type `expected`.
    ///
    /// # Errors
    /// Returns [`WrongElement`] if the region has another type.
    pub fn array(&self, expected: ElementType) -> Result<&DenseArray, WrongElement> {
        match self {
            Self::Array(array) if self.element() == expected => Ok(array),
            _ => Err(WrongElement { expected, found: self.element() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_those_of_what_is_held() {
        let array = DenseArray::new(&[3, 2], 2, vec![0_u16; 12].into()).unwrap();
        let ragged = RaggedArray::new(vec![1, 3], vec![0.5_f32; 3].into()).unwrap();
        let points = Points::new(2, vec![0.0; 6]).unwrap();
        let polygons = Polygons::new([[[[0.0; 2], [1.0, 0.0], [1.0; 2]]]]).unwrap();
        for (region, bytes) in [
            (DataRegion::Array(array), 24),
            (DataRegion::Ragged(ragged), 16 + 12),
            (DataRegion::Points(points), 48),
            (DataRegion::Polygons(Box::new(polygons)), 72 + 4 + 4 + 3 * 16),
            (DataRegion::Objects(Box::default()), size_of::<AnnotatedObjects>() as u64),
            (DataRegion::Scalar(0.5), 8),
        ] {
            assert_eq!(region.bytes(), bytes, "{}", region.element());
        }
    }

    #[test]
    fn only_arrays_of_two_axes_have_a_size() {
        let array =
            |extents: &[u32]| DataRegion::Array(DenseArray::new(extents, 1, vec![0_u8; 6].into()).unwrap());
        assert_eq!(array(&[3, 2]).size_px(), Some((3, 2)));
        assert_eq!(array(&[6]).size_px(), None);
        assert!(array(&[3, 2]).array(ElementType::ArrayU8).is_ok());
        let wrong = array(&[3, 2]).array(ElementType::ArrayF32).unwrap_err().to_string();
        assert_eq!(wrong, "data region holds array-u8; array-f32 is needed");
    }
}
