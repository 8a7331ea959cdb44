//! Monte Carlo sampling: independent uniform points, mapped to values by the marginals.
//!
//! One generator draws the points in order, so a longer sample begins with a shorter one.

use super::points::{Sequence, UnitPoints};
use super::{Design, SampleError, plain};
use crate::statistics::rng::{self, RngStream};
use pleach_workflow::Parameter;
use rand::RngExt;

/// Settings of a Monte Carlo sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonteCarlo {
    /// Number of parameter sets, at least 1.
    pub samples: u32,
    /// Seed of the study.
    pub seed: u64,
}

/// Draws the parameter sets. A longer sample extends a shorter one.
///
/// # Errors
/// [`SampleError`] if no set is requested, nothing varies, a range cannot be sampled, or the sample is too
/// large.
pub fn sample(parameters: &[Parameter], monte_carlo: &MonteCarlo) -> Result<Design, SampleError> {
    plain(parameters, Sequence::MonteCarlo, monte_carlo.samples, monte_carlo.seed)
}

/// Returns independent random points. Coordinates have 53 bits, so none rounds to 1.
pub(super) fn points(rows: usize, columns: usize, seed: u64) -> UnitPoints {
    let mut generator = rng::generator(seed, RngStream::RandomPoints);
    let mut points = UnitPoints::zeros(rows, columns);
    points.data_mut().fill_with(|| generator.random::<f64>());
    points
}
