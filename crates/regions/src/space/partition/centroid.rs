//! Core ownership: an object belongs to the tile whose core contains its centroid.
//!
//! Cores are half-open and cover the region without overlap, so a centroid has exactly one owner, on borders
//! too. All tiles that see an object must also compute the same centroid, to the bit. Sums of coordinates are
//! therefore integers relative to the region, never to the tile, and nothing is rounded.
//!
//! A tile sees all of its own objects if the halo is at least as wide as an object minus one pixel: the
//! centroid is within the object's bounding box. The visible part of an object that the window cuts is then
//! entirely in the halo, and so is the centroid of that part. The number of owned objects is therefore that
//! of the whole region, for any partition.

use super::Partition;
use crate::space::bounds::BoundsError;
use thiserror::Error;

/// Exact mean position of pixels. `D` is the number of axes.
///
/// A pixel at x is the square from x to x + 1 with its centroid at x + 0.5: positions are those of outlines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Centroid<const D: usize> {
    pixels: u64,
    sums: [i128; D],
}

/// Reasons why an object has no owner.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum OwnerError {
    /// The object has no pixels, and so no centroid.
    #[error("owner: an object without pixels")]
    NoPixels,
    /// The centroid is outside the region.
    #[error("owner: a centroid outside the region along axis {axis}")]
    Outside {
        /// Number of the axis, from 0.
        axis: usize,
    },
    /// The centroid has another number of axes than the region.
    #[error(transparent)]
    Bounds(#[from] BoundsError),
}

impl<const D: usize> Default for Centroid<D> {
    fn default() -> Self {
        Self { pixels: 0, sums: [0; D] }
    }
}

impl<const D: usize> Centroid<D> {
    /// Returns the centroid of these pixels.
    #[must_use]
    pub fn of(pixels: impl IntoIterator<Item = [i64; D]>) -> Self {
        let mut centroid = Self::default();
        pixels.into_iter().for_each(|pixel| centroid.add_run(pixel, 1));
        centroid
    }

    /// Adds `length` consecutive pixels along the first axis, from `start`. A centroid covers fewer than 2^64 pixels, so the
    /// sums fit for all coordinates.
    pub fn add_run(&mut self, start: [i64; D], length: u32) {
        let pixels = i128::from(length);
        for (axis, (sum, coordinate)) in self.sums.iter_mut().zip(start).enumerate() {
            let along = if axis == 0 { pixels * (pixels - 1) / 2 } else { 0 };
            *sum += pixels * i128::from(coordinate) + along;
        }
        self.pixels += u64::from(length);
    }

    /// Returns the number of pixels.
    #[must_use]
    pub fn pixels(&self) -> u64 {
        self.pixels
    }

    /// Returns the pixel that contains the centroid, the one of higher coordinates if it is between two.
    /// `None` without pixels, or beyond 64 bits.
    #[must_use]
    pub fn pixel(&self) -> Option<[i64; D]> {
        let pixels = i128::from(self.pixels);
        if pixels == 0 {
            return None;
        }
        let mut position = [0; D];
        for (coordinate, sum) in position.iter_mut().zip(self.sums) {
            // The mean of the pixels' centers is half a pixel further than the mean of their coordinates.
            let beyond = i128::from(2 * sum.rem_euclid(pixels) >= pixels);
            *coordinate = i64::try_from(sum.div_euclid(pixels) + beyond).ok()?;
        }
        Some(position)
    }
}

impl Partition {
    /// Returns the tile that owns an object of pixels.
    ///
    /// # Errors
    /// Returns an [`OwnerError`] if there are no pixels, or they are not of this region.
    pub fn owner<const D: usize>(&self, object: &Centroid<D>) -> Result<u64, OwnerError> {
        self.owner_at(&object.pixel().ok_or(OwnerError::NoPixels)?)
    }

    /// Returns the tile that owns an object with the centroid `point` of its outline, in coordinates of the
    /// region, with pixels starting at integers. A point on the region's last edge belongs to the last tile.
    ///
    /// Two tiles agree on an object if they pass the same point. Outlines should therefore be in the region's coordinates
    /// before their centroid is computed.
    ///
    /// # Errors
    /// Returns an [`OwnerError`] if the point is not in the region, or is NaN.
    pub fn owner_of_point<const D: usize>(&self, point: [f64; D]) -> Result<u64, OwnerError> {
        self.region.same_dimensions(D)?;
        let mut pixel = [0; D];
        for (number, axis) in self.region.axes().iter().enumerate() {
            let (coordinate, last_edge) = (point[number], axis.end() as f64);
            // NaN is in no interval.
            if axis.is_empty() || !(axis.start() as f64..=last_edge).contains(&coordinate) {
                return Err(OwnerError::Outside { axis: number });
            }
            // The clamp assigns the last edge to the last tile, and covers edges beyond 2^53, which `f64` rounds.
            pixel[number] = (coordinate.floor() as i64).clamp(axis.start(), axis.end() - 1);
        }
        self.owner_at(&pixel)
    }

    fn owner_at(&self, pixel: &[i64]) -> Result<u64, OwnerError> {
        let owner = self.tile_of_pixel(pixel)?;
        owner.ok_or_else(|| {
            let outside = self.region.axes().iter().zip(pixel).position(|(axis, at)| !axis.holds(*at));
            OwnerError::Outside { axis: outside.unwrap_or_default() }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::bounds::SpatialBounds;

    #[test]
    fn a_centroid_is_exact() {
        assert_eq!(Centroid::of([[3, -4]]).pixel(), Some([3, -4]));
        // Pixels 3 and 4 meet at 4.0, where pixel 4 begins. Likewise -4 and -3 meet at -3.0.
        assert_eq!(Centroid::of([[3, -4], [4, -3]]).pixel(), Some([4, -3]));
        assert_eq!(Centroid::of([[0], [0], [1]]).pixel(), Some([0]));
        assert_eq!(Centroid::<2>::default().pixel(), None);
        let far = Centroid::of([[i64::MIN, i64::MAX], [i64::MIN, i64::MAX]]);
        assert_eq!(far.pixel(), Some([i64::MIN, i64::MAX]));
        let mut run = Centroid::default();
        run.add_run([7, 2], 4);
        assert_eq!(run, Centroid::of((7..11).map(|x| [x, 2])));
    }

    #[test]
    fn a_centroid_on_a_border_has_one_owner() {
        let partition = Partition::new(SpatialBounds::of_image(20, 10, None), &[8, 8], &[4, 4]).unwrap();
        assert_eq!(partition.owner(&Centroid::of([[7, 0], [8, 0]])), Ok(1));
        assert_eq!(partition.owner(&Centroid::of([[6, 7], [7, 7], [8, 7]])), Ok(0));
        assert_eq!(partition.owner_of_point([8.0, 8.0]), Ok(4));
        assert_eq!(partition.owner_of_point([8.0_f64.next_down(), 0.0]), Ok(0));
        assert_eq!(partition.owner_of_point([20.0, 10.0]), Ok(5));
    }

    #[test]
    fn centroid_outside_the_region_has_no_owner() {
        let partition = Partition::new(SpatialBounds::of_image(20, 10, None), &[8, 8], &[4, 4]).unwrap();
        assert_eq!(partition.owner(&Centroid::<2>::default()), Err(OwnerError::NoPixels));
        assert_eq!(partition.owner(&Centroid::of([[5, 10]])), Err(OwnerError::Outside { axis: 1 }));
        assert!(matches!(partition.owner(&Centroid::of([[5]])), Err(OwnerError::Bounds(_))));
        for x in [-0.1, 20.1, f64::NAN, f64::INFINITY] {
            assert_eq!(partition.owner_of_point([x, 1.0]), Err(OwnerError::Outside { axis: 0 }));
        }
    }
}
