//! Monte Carlo: independent uniform points, or what marginals make of them.
//!
//! One generator draws the points in order, so that a longer sample begins with a shorter one.

use super::points::{Sequence, UnitPoints};
use super::{Design, SampleError, plain};
use crate::rng::{self, RngStream};
use pleach_workflow::Parameter;
use rand::RngExt;

/// What to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonteCarlo {
    /// Number of parameter sets, at least 1.
    pub samples: u32,
    /// Seed of the study.
    pub seed: u64,
}

/// Draws the parameter sets, of which more may be asked for later.
///
/// # Errors
/// [`SampleError`] when nothing is asked for, nothing varies, a range cannot be drawn from, or it is too much.
pub fn sample(parameters: &[Parameter], monte_carlo: &MonteCarlo) -> Result<Design, SampleError> {
    plain(parameters, Sequence::MonteCarlo, monte_carlo.samples, monte_carlo.seed)
}

/// Independent random points. 53 bits each, so that none is 1.
pub(super) fn points(rows: usize, columns: usize, seed: u64) -> UnitPoints {
    let mut generator = rng::generator(seed, RngStream::RandomPoints);
    let mut points = UnitPoints::zeros(rows, columns);
    points.data_mut().fill_with(|| generator.random::<f64>());
    points
}
