//! Points of the unit cube in one flat matrix, and the sequences that draw them.
//!
//! Samplers draw points first and map them to parameter sets afterwards ([`crate::design::marginal`]). Designs with
//! several rows per point (Saltelli's, Morris') also draw their base points here. Parameters are not used.

use super::halton::{self, Halton};
use super::latin_hypercube::{self, Placement};
use super::{monte_carlo, sobol};
use pleach_workflow::BasePoints;
use thiserror::Error;

/// Points, one per row, with each coordinate within `[0, 1)`.
#[derive(Clone, Debug, PartialEq)]
pub struct UnitPoints {
    columns: usize,
    data: Vec<f64>,
}

impl UnitPoints {
    /// Creates points from their coordinates, row by row. Returns `None` if `data` is no whole number of
    /// rows.
    #[must_use]
    pub fn from_rows(columns: usize, data: Vec<f64>) -> Option<Self> {
        (columns > 0 && data.len().is_multiple_of(columns)).then_some(Self { columns, data })
    }

    /// Creates points with all coordinates 0. `columns` is at least 1.
    pub(super) fn zeros(rows: usize, columns: usize) -> Self {
        debug_assert!(columns > 0, "the dimension of points is at least 1");
        Self { columns, data: vec![0.0; rows * columns] }
    }

    /// Number of points.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.data.len() / self.columns
    }

    /// Number of dimensions.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Coordinates of a point. Panics beyond the last row, as slices do.
    #[must_use]
    pub fn row(&self, row: usize) -> &[f64] {
        &self.data[row * self.columns..(row + 1) * self.columns]
    }

    /// All points, in order.
    pub fn iter(&self) -> std::slice::ChunksExact<'_, f64> {
        self.data.chunks_exact(self.columns)
    }

    pub(super) fn iter_mut(&mut self) -> std::slice::ChunksExactMut<'_, f64> {
        self.data.chunks_exact_mut(self.columns)
    }

    /// All coordinates, row by row.
    #[must_use]
    pub fn data(&self) -> &[f64] {
        &self.data
    }

    pub(super) fn data_mut(&mut self) -> &mut [f64] {
        &mut self.data
    }
}

/// Method of drawing points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequence {
    /// Independent random points.
    MonteCarlo,
    /// A Latin hypercube.
    LatinHypercube(Placement),
    /// Halton's sequence.
    Halton {
        /// Whether digits are permuted at random.
        scrambled: bool,
    },
    /// Hammersley's points: evenly spaced in the first dimension, Halton's in the others.
    Hammersley {
        /// Whether digits are permuted at random.
        scrambled: bool,
    },
    /// Sobol's sequence, scrambled.
    Sobol,
}

/// Cause of failed points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PointsError {
    /// No points are requested.
    #[error("samples = 0 gives no evaluations; at least 1 is needed")]
    NoSamples,
    /// More dimensions than the sequence has.
    #[error(
        "sampler \"{sampler}\" has up to {most} dimensions, but {expected} are needed; use \"mc\" or \"lhs\", \
         which have no limit"
    )]
    TooManyDimensions {
        /// Name of the sampler.
        sampler: &'static str,
        /// Maximum number of dimensions.
        most: usize,
        /// Requested dimensions.
        expected: usize,
    },
    /// Too many points for a maximin hypercube, which repeatedly compares all pairs.
    #[error(
        "samples = {samples} are too many for a maximin hypercube; up to {} are allowed, and any number in \
         other hypercubes",
        latin_hypercube::MAX_SPREAD
    )]
    TooManyToSpread {
        /// Requested points.
        samples: usize,
    },
    /// The sequence cannot be extended: its points depend on their total number.
    #[error(
        "sampler \"{sampler}\" cannot be extended: {reason}; \"mc\", \"halton\" and \"sobol\" are \
             allowed"
    )]
    NotExtensible {
        /// Name of the sampler.
        sampler: &'static str,
        /// Reason, in words.
        reason: &'static str,
    },
}

impl Sequence {
    /// Name of the sampler in study files, without options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::MonteCarlo => "mc",
            Self::LatinHypercube(_) => "lhs",
            Self::Halton { .. } => "halton",
            Self::Hammersley { .. } => "hammersley",
            Self::Sobol => "sobol",
        }
    }

    /// Checks that the first points of a longer sample are those of a shorter one.
    ///
    /// # Errors
    /// [`PointsError::NotExtensible`] with the reason.
    pub fn extensible(self) -> Result<(), PointsError> {
        let reason = match self {
            Self::MonteCarlo | Self::Halton { .. } | Self::Sobol => return Ok(()),
            Self::LatinHypercube(_) => {
                "the number of strata equals the number of points, so a larger sample has other points"
            }
            Self::Hammersley { .. } => "the first coordinate depends on the number of points",
        };
        Err(PointsError::NotExtensible { sampler: self.name(), reason })
    }

    /// Maximum number of dimensions of the points.
    #[must_use]
    pub fn max_dimensions(self) -> usize {
        match self {
            Self::MonteCarlo | Self::LatinHypercube(_) => usize::MAX,
            Self::Halton { .. } => halton::MAX_DIMENSIONS,
            Self::Hammersley { .. } => halton::MAX_DIMENSIONS + 1,
            Self::Sobol => sobol::MAX_DIMENSIONS,
        }
    }

    /// Draws `rows` points of `columns` dimensions.
    ///
    /// [`PointsError`] if no points or dimensions are requested, or the sequence cannot draw as many.
    /// [`PointsError`] when there are no such points.
    pub fn points(self, rows: usize, columns: usize, seed: u64) -> Result<UnitPoints, PointsError> {
        if rows == 0 || columns == 0 {
            return Err(PointsError::NoSamples);
        }
        if columns > self.max_dimensions() {
            let (sampler, most) = (self.name(), self.max_dimensions());
            return Err(PointsError::TooManyDimensions { sampler, most, expected: columns });
        }
        match self {
            Self::MonteCarlo => Ok(monte_carlo::points(rows, columns, seed)),
            Self::LatinHypercube(placement) => latin_hypercube::points(rows, columns, placement, seed),
            Self::Halton { scrambled } => Ok(Halton::new(columns, scrambled.then_some(seed)).points(rows)),
            Self::Hammersley { scrambled } => {
                Ok(halton::hammersley(rows, columns, scrambled.then_some(seed)))
            }
            Self::Sobol => Ok(sobol::points(rows, columns, seed)),
        }
    }
}

impl From<BasePoints> for Sequence {
    /// Converts the base points of a design. Halton's and Hammersley's are scrambled: parameters are many,
    /// and unscrambled points are collinear in high dimensions.
    fn from(base: BasePoints) -> Self {
        match base {
            BasePoints::Sobol => Self::Sobol,
            BasePoints::MonteCarlo => Self::MonteCarlo,
            BasePoints::LatinHypercube => Self::LatinHypercube(Placement::Random),
            BasePoints::Halton => Self::Halton { scrambled: true },
            BasePoints::Hammersley => Self::Hammersley { scrambled: true },
        }
    }
}
