//! Morris one-at-a-time (MOAT): elementary effects of a design's trajectories and their statistics.
//!
//! An elementary effect is the change of the response over one step, divided by the step as a signed fraction of
//! the parameter's range: the change over the whole range for a linear response. Sources: Morris (1991). μ* from
//! Campolongo, Cariboni and Saltelli (2007). Confidence of μ* as SALib's `analyze.morris` (see [`CONFIDENCE_Z`] and
//! [`RESAMPLES`]).
//!
//! A failed evaluation drops its whole trajectory: keeping the other effects would weight parameters by the
//! position of their step in a trajectory. The result includes the number of dropped trajectories.

use crate::design::trajectory::{Trajectories, Trajectory};
use crate::statistics::bootstrap::means;
pub use crate::statistics::estimate::CONFIDENCE_Z;
use crate::statistics::rng::{self, RngStream};
use rand::RngExt;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Bootstrap resamples, as SALib's default: the half-widths themselves then vary by about 2 %.
pub const RESAMPLES: usize = 1000;

/// MOAT indices of one response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoatIndices {
    /// Name of the response, such as `dice`.
    pub response: String,
    /// Trajectories the statistics are over.
    pub trajectories_used: usize,
    /// Trajectories left out, because an evaluation failed or the trajectory is unfinished.
    pub trajectories_dropped: usize,
    /// One entry per varying parameter, in the order of the parameters.
    pub parameters: Vec<MoatParameter>,
}

/// Statistics of one parameter's elementary effects. All but `effect` are in units of the response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MoatParameter {
    /// The parameter.
    pub name: String,
    /// Mean of the effects.
    pub mu: f64,
    /// Mean of the effects' absolute values.
    pub mu_star: f64,
    /// Sample standard deviation (n − 1) of the effects. `None` with one trajectory, which shows no spread.
    pub sigma: Option<f64>,
    /// Half-width of the 95 % bootstrap interval of `mu`. `None` with one trajectory.
    pub mu_conf: Option<f64>,
    /// Half-width of the interval of `mu_star`, as `mu_conf`.
    pub mu_star_conf: Option<f64>,
    /// Half-width of the interval of `sigma`, as `mu_conf`.
    pub sigma_conf: Option<f64>,
    /// `mu` divided by the range of the responses of the trajectories used. 0 if they are all equal. No unit. A
    /// step below the whole range makes effects above 1 possible.
    pub effect: f64,
}

/// Elementary effects of the trajectories that have all their responses.
#[derive(Clone, Debug, PartialEq)]
pub struct ElementaryEffects {
    /// Varying parameters, in the order of the parameters.
    pub names: Vec<String>,
    /// One row of effects per trajectory, one effect per parameter, in the order of `names`. At least one row.
    pub effects: Vec<Vec<f64>>,
    /// Trajectories left out.
    pub dropped: usize,
    /// Largest minus smallest response of the trajectories used.
    pub response_range: f64,
}

/// Cause of a failed MOAT analysis.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum MoatError {
    /// Responses and evaluations do not pair up.
    #[error(
        "{responses} responses for {evaluations} evaluations; one per evaluation is needed, empty for a \
         failed one"
    )]
    ResponseCount {
        /// Responses given.
        responses: usize,
        /// Rows of the design.
        evaluations: usize,
    },
    /// A response is NaN or infinite.
    #[error(
        "response {value} of evaluation {evaluation} is not a finite number; leave the response of a failed evaluation empty"
    )]
    NotFinite {
        /// Its number, from 1.
        evaluation: usize,
        /// The response.
        value: f64,
    },
    /// No trajectory has all its responses.
    #[error("all {dropped} trajectories lack responses; at least one complete trajectory is needed")]
    NoTrajectoryLeft {
        /// Trajectories dropped.
        dropped: usize,
    },
    /// Responses so large that their differences exceed an f64.
    #[error(
        "effects of parameter {name} exceed the range of floating-point numbers; smaller responses are \
             needed"
    )]
    Overflow {
        /// The parameter.
        name: String,
    },
}

/// Computes the MOAT indices of `responses` (named `response`), one per row of the design, `None` for failed
/// evaluations.
///
/// `seed` feeds the bootstrap only, which resamples trajectories, so that the effects of one trajectory stay
/// together. Means and deviations do not depend on it.
///
/// # Errors
/// [`MoatError`] if responses do not fit. A response that is NaN or infinite is an error, not a failed
/// evaluation.
pub fn indices(
    trajectories: &Trajectories,
    response: &str,
    responses: &[Option<f64>],
    seed: u64,
) -> Result<MoatIndices, MoatError> {
    let effects = elementary_effects(trajectories, responses)?;
    let resampled = resample(&effects.effects, seed);
    let parameters = effects
        .names
        .iter()
        .enumerate()
        .map(|(place, name)| {
            let column: Vec<f64> = effects.effects.iter().map(|row| row[place]).collect();
            let point = Statistics::of(&column);
            let conf = |pick: fn(&Statistics) -> Option<f64>| half_width(&resampled, place, pick);
            let constant = effects.response_range == 0.0;
            let parameter = MoatParameter {
                name: name.clone(),
                mu: point.mu,
                mu_star: point.mu_star,
                sigma: point.sigma,
                mu_conf: conf(|statistics| Some(statistics.mu)),
                mu_star_conf: conf(|statistics| Some(statistics.mu_star)),
                sigma_conf: conf(|statistics| statistics.sigma),
                effect: if constant { 0.0 } else { point.mu / effects.response_range },
            };
            if parameter.is_finite() {
                Ok(parameter)
            } else {
                Err(MoatError::Overflow { name: name.clone() })
            }
        })
        .collect::<Result<_, _>>()?;
    Ok(MoatIndices {
        response: response.to_owned(),
        trajectories_used: effects.effects.len(),
        trajectories_dropped: effects.dropped,
        parameters,
    })
}

/// Counts failed evaluations by the parameter whose step led to them, in the order of [`Trajectories::names`].
///
/// A failure at the beginning of a trajectory, or on an unfinished one, counts for no parameter. `responses`
/// are as in [`indices`].
#[must_use]
pub fn failures(trajectories: &Trajectories, responses: &[Option<f64>]) -> Vec<usize> {
    let mut failed = vec![0; trajectories.names().len()];
    for trajectory in trajectories.complete() {
        for (row, step) in (trajectory.first_row + 1..).zip(&trajectory.steps) {
            if responses.get(row) == Some(&None) {
                failed[step.parameter] += 1;
            }
        }
    }
    failed
}

/// Computes the elementary effects of `responses`, one per row of the design, `None` for failed evaluations.
///
/// # Errors
/// As [`indices`].
pub fn elementary_effects(
    trajectories: &Trajectories,
    responses: &[Option<f64>],
) -> Result<ElementaryEffects, MoatError> {
    if responses.len() != trajectories.rows() {
        let (responses, evaluations) = (responses.len(), trajectories.rows());
        return Err(MoatError::ResponseCount { responses, evaluations });
    }
    for (index, response) in responses.iter().enumerate() {
        if let Some(value) = response.filter(|value| !value.is_finite()) {
            return Err(MoatError::NotFinite { evaluation: index + 1, value });
        }
    }
    let names = trajectories.names();
    let mut effects = Vec::with_capacity(trajectories.complete().len());
    let mut dropped = usize::from(trajectories.has_unfinished());
    let (mut smallest, mut largest) = (f64::INFINITY, f64::NEG_INFINITY);
    for trajectory in trajectories.complete() {
        let Some(along) = responses_along(trajectory, responses) else {
            dropped += 1;
            continue;
        };
        let mut row = vec![0.0; names.len()];
        for (step, pair) in trajectory.steps.iter().zip(along.windows(2)) {
            row[step.parameter] = (pair[1] - pair[0]) / step.fraction;
        }
        // Finite responses can differ by more than an f64 holds.
        if let Some(place) = row.iter().position(|effect| !effect.is_finite()) {
            return Err(MoatError::Overflow { name: names[place].clone() });
        }
        effects.push(row);
        smallest = along.iter().copied().fold(smallest, f64::min);
        largest = along.iter().copied().fold(largest, f64::max);
    }
    if effects.is_empty() {
        return Err(MoatError::NoTrajectoryLeft { dropped });
    }
    let response_range = largest - smallest;
    if !response_range.is_finite() {
        return Err(MoatError::Overflow { name: names[0].clone() });
    }
    Ok(ElementaryEffects { names: names.to_vec(), effects, dropped, response_range })
}

fn responses_along(trajectory: &Trajectory, responses: &[Option<f64>]) -> Option<Vec<f64>> {
    let first = trajectory.first_row;
    responses[first..=first + trajectory.steps.len()].iter().copied().collect()
}

/// Statistics of one parameter over some trajectories.
#[derive(Clone, Copy, Debug)]
struct Statistics {
    mu: f64,
    mu_star: f64,
    sigma: Option<f64>,
}

impl Statistics {
    /// Computes the statistics of at least one effect.
    fn of(effects: &[f64]) -> Self {
        let count = effects.len() as f64;
        Self {
            mu: effects.iter().sum::<f64>() / count,
            mu_star: effects.iter().map(|effect| effect.abs()).sum::<f64>() / count,
            sigma: deviation(effects),
        }
    }
}

/// Returns the sample standard deviation (n − 1). Returns `None` for fewer than two numbers.
fn deviation(numbers: &[f64]) -> Option<f64> {
    if numbers.len() < 2 {
        return None;
    }
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    let squares: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
    Some((squares / (numbers.len() - 1) as f64).sqrt())
}

/// Computes the statistics of [`RESAMPLES`] resamples, each a row with one entry per parameter. Empty with one
/// trajectory.
///
/// A resample counts how often each trajectory was drawn, so that its statistics are weighted means over one table.
/// Effects are centered about their mean there, which avoids differences of large squares.
fn resample(effects: &[Vec<f64>], seed: u64) -> Vec<Vec<Statistics>> {
    let count = effects.len();
    if count < 2 {
        return Vec::new();
    }
    let width = effects[0].len();
    let centers: Vec<f64> =
        (0..width).map(|place| effects.iter().map(|row| row[place]).sum::<f64>() / count as f64).collect();
    let terms = |(effect, center): (&f64, &f64)| {
        let apart = effect - center;
        [apart, effect.abs(), apart * apart]
    };
    let table: Vec<f64> = effects.iter().flat_map(|row| row.iter().zip(&centers).flat_map(terms)).collect();
    let mut generator = rng::generator(seed, RngStream::Bootstrap);
    let mut weights = vec![0.0; count];
    let mut one = || {
        weights.fill(0.0);
        for _ in 0..count {
            weights[generator.random_range(0..count)] += 1.0;
        }
        let means = means(&table, 3 * width, &weights);
        let statistics = |(means, center): (&[f64], &f64)| {
            let variance = (means[2] - means[0] * means[0]) * (count as f64 / (count - 1) as f64);
            // Rounding can leave a variance just below 0 if a resample repeats one trajectory.
            Statistics { mu: means[0] + center, mu_star: means[1], sigma: Some(variance.max(0.0).sqrt()) }
        };
        means.chunks_exact(3).zip(&centers).map(statistics).collect()
    };
    (0..RESAMPLES).map(|_| one()).collect()
}

fn half_width(
    resampled: &[Vec<Statistics>],
    place: usize,
    pick: fn(&Statistics) -> Option<f64>,
) -> Option<f64> {
    let values: Vec<f64> = resampled.iter().filter_map(|row| pick(&row[place])).collect();
    deviation(&values).map(|deviation| CONFIDENCE_Z * deviation)
}

impl MoatParameter {
    fn is_finite(&self) -> bool {
        [Some(self.mu), Some(self.mu_star), Some(self.effect), self.sigma]
            .into_iter()
            .chain([self.mu_conf, self.mu_star_conf, self.sigma_conf])
            .flatten()
            .all(f64::is_finite)
    }
}
