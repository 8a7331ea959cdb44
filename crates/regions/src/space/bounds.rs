//! Bounding boxes: the extent of a region in space and time.
//!
//! Boxes are half-open and have 1–3 axes, like regions of the region-template abstraction (thesis, 2.3:
//! containers for 1D, 2D or 3D spaces with a temporal component). Coordinates are pixels of a resolution that
//! the box states. Comparing different dimensions or resolutions is an error. This module knows neither the
//! content of a box nor its storage.

mod interval;

pub use interval::Interval;

use crate::Resolution;
use interval::Rounding;
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// Names of the axes, in the order of coordinates.
const AXES: [char; 3] = ['x', 'y', 'z'];

/// Errors of creating or comparing bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BoundsError {
    /// An interval ends before it starts.
    #[error("bounds: start {start} is beyond end {end}; a start up to the end is allowed")]
    Reversed {
        /// Start.
        start: i64,
        /// End.
        end: i64,
    },
    /// A box without axes, or with more than 3.
    #[error("bounds: {found} axes; 1 to 3 are allowed, and z only with y")]
    Axes {
        /// Number of axes.
        found: usize,
    },
    /// Two values have different numbers of axes.
    #[error("bounds: {found} axes; {allowed} are allowed, as in the other bounds")]
    Dimensions {
        /// Axes of the other value.
        found: usize,
        /// Axes of this value.
        allowed: usize,
    },
    /// Two boxes have different resolutions.
    #[error("bounds: {} instead of {}; scale one of them", stated(*.found), stated(*.allowed))]
    Resolutions {
        /// Resolution of the other box.
        found: Option<Resolution>,
        /// Resolution of this box.
        allowed: Option<Resolution>,
    },
    /// A box without a resolution cannot be scaled.
    #[error("bounds: no stated resolution; scaling requires one")]
    Unstated,
    /// A number exceeds 64 bits.
    #[error("bounds: {what} is beyond 64 bits")]
    Overflow {
        /// Name of the number.
        what: &'static str,
    },
}

fn stated(resolution: Option<Resolution>) -> String {
    resolution.map_or_else(|| "no stated resolution".to_owned(), |resolution| resolution.to_string())
}

/// A box of pixels: one interval per axis, in the order x, y, z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "StoredBounds", into = "StoredBounds")]
pub struct SpatialBounds {
    /// Axes beyond the last one are empty at 0.
    axes: [Interval; 3],
    dimensions: usize,
    resolution: Option<Resolution>,
}

/// A time interval in nanoseconds, by the acquisition's own clock or since 1970. Time has no resolution to
/// scale to, so it is a plain interval.
pub type TemporalBounds = Interval;

/// Serialized form of a box: axes by their names.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct StoredBounds {
    x: Interval,
    #[serde(default)]
    y: Option<Interval>,
    #[serde(default)]
    z: Option<Interval>,
    #[serde(default)]
    microns_per_px: Option<Resolution>,
}

impl SpatialBounds {
    /// Creates the box of these intervals, at a resolution if known.
    ///
    /// # Errors
    /// Returns [`BoundsError::Axes`] unless there are 1–3 intervals.
    pub fn new(axes: &[Interval], resolution: Option<Resolution>) -> Result<Self, BoundsError> {
        if axes.is_empty() || axes.len() > AXES.len() {
            return Err(BoundsError::Axes { found: axes.len() });
        }
        let mut all = [Interval::default(); 3];
        all[..axes.len()].copy_from_slice(axes);
        Ok(Self { axes: all, dimensions: axes.len(), resolution })
    }

    /// Creates the box of an image: `width_px × height_px` from the origin.
    #[must_use]
    pub fn of_image(width_px: u32, height_px: u32, resolution: Option<Resolution>) -> Self {
        let axes = [Interval::of_length(width_px), Interval::of_length(height_px), Interval::default()];
        Self { axes, dimensions: 2, resolution }
    }

    /// Returns the intervals, one per axis.
    #[must_use]
    pub fn axes(&self) -> &[Interval] {
        &self.axes[..self.dimensions]
    }

    /// Returns the number of axes: 1, 2 or 3.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Returns the resolution of the coordinates. `None` if unknown.
    #[must_use]
    pub fn resolution(&self) -> Option<Resolution> {
        self.resolution
    }

    /// Returns whether the box contains no pixel.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.axes().iter().any(|axis| axis.is_empty())
    }

    /// Returns the number of pixels (samples for 1 axis, voxels for 3).
    ///
    /// # Errors
    /// Returns [`BoundsError::Overflow`] for 2^64 or more.
    pub fn pixels(&self) -> Result<u64, BoundsError> {
        if self.is_empty() {
            return Ok(0);
        }
        let product = self.axes().iter().try_fold(1_u64, |pixels, axis| pixels.checked_mul(axis.length()));
        product.ok_or(BoundsError::Overflow { what: "the number of pixels" })
    }

    /// Returns whether the pixel at `position` is inside.
    ///
    /// # Errors
    /// Returns [`BoundsError::Dimensions`] if the position has another number of axes.
    pub fn holds(&self, position: &[i64]) -> Result<bool, BoundsError> {
        self.same_dimensions(position.len())?;
        Ok(self.axes().iter().zip(position).all(|(axis, coordinate)| axis.holds(*coordinate)))
    }

    /// Returns whether all of `other` is inside. An empty box is inside every other one.
    ///
    /// # Errors
    /// Returns [`BoundsError::Dimensions`] or [`BoundsError::Resolutions`] if the boxes cannot be compared.
    pub fn contains(&self, other: &Self) -> Result<bool, BoundsError> {
        self.same_space(other)?;
        let inside = self.axes().iter().zip(other.axes()).all(|(axis, other)| axis.contains(*other));
        Ok(other.is_empty() || inside)
    }

    /// Returns the intersection of both boxes, which may be empty.
    ///
    /// # Errors
    /// Same as [`contains`](Self::contains).
    pub fn intersection(&self, other: &Self) -> Result<Self, BoundsError> {
        self.same_space(other)?;
        self.each(|number, axis| Ok(axis.intersection(other.axes[number])))
    }

    /// Returns the smallest box that contains both.
    ///
    /// # Errors
    /// Same as [`contains`](Self::contains).
    pub fn union(&self, other: &Self) -> Result<Self, BoundsError> {
        self.same_space(other)?;
        match (self.is_empty(), other.is_empty()) {
            (_, true) => Ok(*self),
            (true, false) => Ok(*other),
            (false, false) => self.each(|number, axis| Ok(axis.union(other.axes[number]))),
        }
    }

    /// Returns this box moved by `offset` along each axis.
    ///
    /// # Errors
    /// Returns [`BoundsError::Dimensions`] if the offset has another number of axes, and [`BoundsError::Overflow`] if the
    /// result exceeds 64 bits.
    pub fn translated(&self, offset: &[i64]) -> Result<Self, BoundsError> {
        self.same_dimensions(offset.len())?;
        self.each(|number, axis| axis.translated(offset[number]))
    }

    /// Returns the smallest box at `resolution` that covers this one: edges are rounded outward. Scaling
    /// there and back yields a box that contains the original.
    ///
    /// # Errors
    /// Returns [`BoundsError::Unstated`] if this box has no resolution, and [`BoundsError::Overflow`] beyond 64 bits.
    pub fn covering_at(&self, resolution: Resolution) -> Result<Self, BoundsError> {
        self.scaled(resolution, Rounding::Outward)
    }

    /// Returns the box at `resolution` with edges nearest to those of this one. Adjacent boxes stay adjacent,
    /// and scaling to a finer resolution and back restores a box.
    ///
    /// # Errors
    /// Same as [`covering_at`](Self::covering_at).
    pub fn nearest_at(&self, resolution: Resolution) -> Result<Self, BoundsError> {
        self.scaled(resolution, Rounding::Nearest)
    }

    fn scaled(&self, resolution: Resolution, rounding: Rounding) -> Result<Self, BoundsError> {
        let from = self.resolution.ok_or(BoundsError::Unstated)?.femtometres();
        let scaled = self.each(|_, axis| axis.scaled(from, resolution.femtometres(), rounding))?;
        Ok(Self { resolution: Some(resolution), ..scaled })
    }

    /// Applies `change` to each axis with its number.
    pub(crate) fn each(
        &self,
        change: impl Fn(usize, Interval) -> Result<Interval, BoundsError>,
    ) -> Result<Self, BoundsError> {
        let mut changed = *self;
        for (number, axis) in changed.axes.iter_mut().enumerate().take(self.dimensions) {
            *axis = change(number, *axis)?;
        }
        Ok(changed)
    }

    /// Checks that another value has as many axes as this box.
    pub(crate) fn same_dimensions(&self, found: usize) -> Result<(), BoundsError> {
        let allowed = self.dimensions;
        if found == allowed { Ok(()) } else { Err(BoundsError::Dimensions { found, allowed }) }
    }

    fn same_space(&self, other: &Self) -> Result<(), BoundsError> {
        self.same_dimensions(other.dimensions)?;
        let (found, allowed) = (other.resolution, self.resolution);
        if found == allowed { Ok(()) } else { Err(BoundsError::Resolutions { found, allowed }) }
    }
}

impl TryFrom<StoredBounds> for SpatialBounds {
    type Error = BoundsError;

    fn try_from(stored: StoredBounds) -> Result<Self, BoundsError> {
        match (stored.y, stored.z) {
            (None, None) => Self::new(&[stored.x], stored.microns_per_px),
            (Some(y), None) => Self::new(&[stored.x, y], stored.microns_per_px),
            (Some(y), Some(z)) => Self::new(&[stored.x, y, z], stored.microns_per_px),
            (None, Some(_)) => Err(BoundsError::Axes { found: 2 }),
        }
    }
}

impl From<SpatialBounds> for StoredBounds {
    fn from(bounds: SpatialBounds) -> Self {
        let [x, y, z] = bounds.axes;
        let (y, z) = ((bounds.dimensions > 1).then_some(y), (bounds.dimensions > 2).then_some(z));
        Self { x, y, z, microns_per_px: bounds.resolution }
    }
}

impl fmt::Display for SpatialBounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (axis, name) in self.axes().iter().zip(AXES) {
            write!(f, "{name} {axis}, ")?;
        }
        f.write_str(&stated(self.resolution))
    }
}
