//! Shape of a data region: one list of counts for every element type.
//!
//! The element type defines the meaning of the counts.

use crate::DataRegion;
use std::fmt;
use std::ops::Deref;

/// Maximum number of counts in a shape.
const MOST: usize = 5;

/// Counts, the slowest first, as in NumPy.
///
/// | element type | counts |
/// | --- | --- |
/// | images, masks | rows, columns, channels |
/// | label maps | rows, columns |
/// | tables | columns |
/// | arrays | values along z, y and x as far as there are such axes, channels |
/// | ragged arrays | rows, values of all rows |
/// | points | points, axes |
/// | polygons | polygons, rings, positions |
/// | annotated objects | objects, rings, positions, classes, named numbers |
/// | scalars | none |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape {
    counts: [u64; MOST],
    length: usize,
}

impl Shape {
    /// Creates a shape from these counts. `None` if there are too many.
    pub(crate) fn of(counts: &[u64]) -> Option<Self> {
        let mut all = [0; MOST];
        all.get_mut(..counts.len())?.copy_from_slice(counts);
        Some(Self { counts: all, length: counts.len() })
    }

    /// Creates a shape from these counts. Too many counts do not compile.
    fn from<const N: usize>(counts: [u64; N]) -> Self {
        const { assert!(N <= MOST) };
        let mut all = [0; MOST];
        all[..N].copy_from_slice(&counts);
        Self { counts: all, length: N }
    }

    /// Returns the product of all counts. `None` beyond 64 bits.
    pub(crate) fn product(&self) -> Option<u64> {
        self.iter().try_fold(1_u64, |product, count| product.checked_mul(*count))
    }
}

impl Deref for Shape {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.counts[..self.length]
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.write_str("one value");
        }
        for (place, count) in self.iter().enumerate() {
            write!(f, "{}{count}", if place == 0 { "" } else { " x " })?;
        }
        Ok(())
    }
}

impl DataRegion {
    /// Returns the shape of the region.
    #[must_use]
    pub fn shape(&self) -> Shape {
        match self {
            Self::Bgr8(raster) | Self::Gray8(raster) | Self::Mask(raster) => Shape::from([
                u64::from(raster.height_px()),
                u64::from(raster.width_px()),
                u64::from(raster.channels()),
            ]),
            Self::Labels(map) => Shape::from([u64::from(map.height_px()), u64::from(map.width_px())]),
            Self::Table(table) => Shape::from([table.columns().count() as u64]),
            Self::Array(array) => {
                let mut shape = Shape::default();
                for extent in array.extents().iter().rev().map(|extent| u64::from(*extent)) {
                    shape.counts[shape.length] = extent;
                    shape.length += 1;
                }
                shape.counts[shape.length] = u64::from(array.channels());
                shape.length += 1;
                shape
            }
            Self::Ragged(ragged) => Shape::from([ragged.len() as u64, ragged.values().len() as u64]),
            Self::Points(points) => Shape::from([points.len() as u64, u64::from(points.axes())]),
            Self::Polygons(polygons) => {
                let (rings, positions) = (polygons.0.ring_count(), polygons.0.positions().len());
                Shape::from([polygons.len() as u64, rings as u64, positions as u64])
            }
            Self::Objects(objects) => {
                let outlines = objects.outlines();
                Shape::from([
                    objects.len() as u64,
                    outlines.ring_count() as u64,
                    outlines.positions().len() as u64,
                    objects.classes().len() as u64,
                    objects.columns().len() as u64,
                ])
            }
            Self::Scalar(_) => Shape::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DenseArray, Raster};

    #[test]
    fn shapes_are_those_of_numpy() {
        let image = DataRegion::Bgr8(Raster::filled(3, 2, 3, 0).unwrap());
        assert_eq!(image.shape().to_string(), "2 x 3 x 3");
        let volume = DenseArray::new(&[4, 3, 2], 1, vec![0_u8; 24].into()).unwrap();
        assert_eq!(DataRegion::Array(volume).shape().to_vec(), [2, 3, 4, 1]);
        assert_eq!(DataRegion::Scalar(0.5).shape().to_string(), "one value");
        assert_eq!(Shape::of(&[1; 6]), None);
    }
}
