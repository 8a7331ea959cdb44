//! Points: positions of 1–3 coordinates, such as the centroids of nuclei.

use crate::data::array::MAX_AXES;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Positions in pixels of the region's resolution, x first, all with the same number of coordinates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Points {
    axes: u8,
    /// Coordinates, point by point.
    coordinates: Vec<f64>,
}

/// Errors of creating points.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum PointsError {
    /// Points have no coordinate or too many, or the last one is incomplete.
    #[error(
        "points: {numbers} numbers do not form points of {axes} coordinates; 1 to {MAX_AXES} per point are allowed"
    )]
    Axes {
        /// Coordinates per point.
        axes: u8,
        /// Number of values given.
        numbers: usize,
    },
    /// A coordinate is infinite or NaN.
    #[error("points: coordinate {value} of point {point}; finite values are allowed")]
    NotFinite {
        /// Index of the point.
        point: usize,
        /// The coordinate.
        value: f64,
    },
}

impl Points {
    /// Creates points of `axes` coordinates each, point by point.
    ///
    /// # Errors
    /// Returns a [`PointsError`] if the last point is incomplete, or a coordinate is not finite.
    pub fn new(axes: u8, coordinates: Vec<f64>) -> Result<Self, PointsError> {
        let numbers = coordinates.len();
        let known = (1..=MAX_AXES).contains(&usize::from(axes));
        if !known || !numbers.is_multiple_of(usize::from(axes)) {
            return Err(PointsError::Axes { axes, numbers });
        }
        if let Some(place) = coordinates.iter().position(|coordinate| !coordinate.is_finite()) {
            let point = place / usize::from(axes);
            return Err(PointsError::NotFinite { point, value: coordinates[place] });
        }
        Ok(Self { axes, coordinates })
    }

    /// Returns the number of points.
    #[must_use]
    pub fn len(&self) -> usize {
        self.coordinates.len() / usize::from(self.axes)
    }

    /// Returns whether there are no points.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.coordinates.is_empty()
    }

    /// Returns the coordinates per point.
    #[must_use]
    pub fn axes(&self) -> u8 {
        self.axes
    }

    /// Returns the coordinates of all points, point by point.
    #[must_use]
    pub fn coordinates(&self) -> &[f64] {
        &self.coordinates
    }

    /// Returns the coordinates of each point, x first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[f64]> {
        self.coordinates.chunks_exact(usize::from(self.axes))
    }
}

/// Serialized form of points: their parts, so that deserialization checks them again.
#[derive(Serialize, Deserialize)]
struct Stored {
    axes: u8,
    coordinates: Vec<f64>,
}

impl TryFrom<Stored> for Points {
    type Error = PointsError;

    fn try_from(Stored { axes, coordinates }: Stored) -> Result<Self, PointsError> {
        Self::new(axes, coordinates)
    }
}

impl From<Points> for Stored {
    fn from(Points { axes, coordinates }: Points) -> Self {
        Self { axes, coordinates }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_to_make_whole_points() {
        let points = Points::new(2, vec![1.0, 2.0, 3.5, -4.0]).unwrap();
        assert_eq!((points.len(), points.axes()), (2, 2));
        assert_eq!(points.iter().nth(1).unwrap(), [3.5, -4.0]);
        assert!(Points::new(3, Vec::new()).unwrap().is_empty());
        let error = Points::new(2, vec![0.0; 3]).unwrap_err().to_string();
        assert_eq!(
            error,
            "points: 3 numbers do not form points of 2 coordinates; 1 to 3 per point are allowed"
        );
        assert!(Points::new(0, Vec::new()).is_err() && Points::new(4, vec![0.0; 4]).is_err());
        let error = Points::new(2, vec![0.0, 0.0, 0.0, f64::NAN]).unwrap_err().to_string();
        assert_eq!(error, "points: coordinate NaN of point 1; finite values are allowed");
    }
}
