//! Delta: Borgonovo's moment-independent importance, and the first-order index from the same classes.
//!
//! Evaluations are split into equally large classes by a parameter's value. Delta is half the mean area between the
//! density of the response within a class and overall, from 0 to 1. The first-order Sobol' index is the share of
//! the variance between classes. Needs no design. Sources: Borgonovo, Reliability Engineering & System Safety 92
//! (2007). Plischke, Borgonovo and Smith, European Journal of Operational Research 226 (2013), estimator (26) and
//! its bias reduction (30). Classes, densities and grid are those of SALib's `analyze.delta`.
//!
//! Densities of small classes differ by chance alone: the plain estimate is too large, and the reduced estimate,
//! twice the plain one less the mean of its resamples, is also reported. SALib replaces the plain estimate by a
//! resample, so that its numbers depend on the seed. Here only the reduced ones do. Equal values may fall into
//! several classes, as in SALib, in the order of evaluations. Classes with a constant response add nothing, as in
//! SALib: delta is too small then. A failed evaluation drops its row.

mod density;

use crate::design::columns::Columns;
use crate::statistics::bootstrap::{Bootstrap, drawn};
use crate::statistics::error::AnalysisError;
use crate::statistics::estimate::Estimate;
use crate::statistics::ranks::order;
use crate::statistics::responses::{
    Response, ResponseGroup, group_responses, is_constant, standardized, values_at,
};
use density::Grid;
use serde::{Deserialize, Serialize};

/// Delta indices of one response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeltaIndices {
    /// Name of the response.
    pub response: String,
    /// Evaluations the indices are over.
    pub evaluations_used: usize,
    /// Evaluations left out, because they failed.
    pub evaluations_dropped: usize,
    /// Whether the response is the same everywhere: no index is defined then.
    pub no_variation: bool,
    /// Bootstrap resamples behind the reduced bias and the intervals.
    pub resamples: u32,
    /// Classes of evaluations.
    pub classes: usize,
    /// One entry per parameter, in the order of the parameters.
    pub parameters: Vec<DeltaParameter>,
}

/// Indices of one parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeltaParameter {
    /// The parameter.
    pub name: String,
    /// Delta with reduced bias. Absent without resamples.
    pub delta: Estimate,
    /// The plain estimate.
    pub plain: Option<f64>,
    /// First-order Sobol' index.
    pub first: Estimate,
}

/// Minimum number of evaluations: SALib's smallest class. A density needs as many.
const FEWEST: usize = 20;

/// Computes the delta indices of each response, with one value per row of `columns`.
///
/// # Errors
/// [`AnalysisError`] if responses do not fit, fewer than 20 evaluations are left, or a parameter has one value.
pub fn indices(
    columns: &Columns,
    responses: &[Response<'_>],
    bootstrap: Bootstrap,
) -> Result<Vec<DeltaIndices>, AnalysisError> {
    for response in responses {
        response.check(columns.rows())?;
    }
    let mut found: Vec<Option<DeltaIndices>> = responses.iter().map(|_| None).collect();
    for group in group_responses(responses, 1) {
        of_group(columns, responses, &group, bootstrap, &mut found)?;
    }
    Ok(found.into_iter().flatten().collect())
}

fn of_group(
    columns: &Columns,
    responses: &[Response<'_>],
    ResponseGroup { responses: places, kept }: &ResponseGroup,
    bootstrap: Bootstrap,
    found: &mut [Option<DeltaIndices>],
) -> Result<(), AnalysisError> {
    let (used, dropped) = (kept.len(), columns.rows() - kept.len());
    let Some(name) = places.first().map(|&place| responses[place].name) else { return Ok(()) };
    if used < FEWEST {
        let (response, unit) = (name.to_owned(), "evaluations");
        return Err(AnalysisError::TooFew { response, method: "delta", unit, used, dropped, needed: FEWEST });
    }
    let mut orders = Vec::new();
    for (name_of, column) in columns.names().iter().zip(columns.iter()) {
        let values: Vec<f64> = kept.iter().map(|&row| column[row]).collect();
        if is_constant(&values) {
            let (name, response) = (name_of.clone(), name.to_owned());
            return Err(AnalysisError::OneValue { name, response, evaluations: used });
        }
        orders.push(order(&values));
    }
    let classes = class_count(used);
    for &place in places {
        let values = values_at(&responses[place], kept);
        let no_variation = is_constant(&values);
        let output = Output::new(standardized(&values), classes);
        let of_resample = |weights: &[f64]| output.statistics(&orders, weights);
        // A constant response has no density, so it gets no resamples.
        let bootstrap =
            Bootstrap { resamples: if no_variation { 0 } else { bootstrap.resamples }, ..bootstrap };
        let whole = if no_variation { Vec::new() } else { of_resample(&vec![1.0; used]) };
        let resampled = bootstrap.resample(used, of_resample);
        let parameter = |(at, name): (usize, &String)| {
            let Some(&(plain, first)) = whole.get(at) else {
                let (delta, first) = (Estimate::ABSENT, Estimate::ABSENT);
                return DeltaParameter { name: name.clone(), delta, plain: None, first };
            };
            // Bias reduction (30) of Plischke et al.: its mean over resamples is the reduced estimate.
            let reduced = |resample: &Vec<(f64, f64)>| 2.0 * plain - resample[at].0;
            let mean = resampled.iter().map(reduced).sum::<f64>() / resampled.len() as f64;
            DeltaParameter {
                name: name.clone(),
                delta: Estimate::of(mean, resampled.iter().map(reduced)),
                plain: plain.is_finite().then_some(plain),
                first: Estimate::of(first, resampled.iter().map(|resample| resample[at].1)),
            }
        };
        let parameters = columns.names().iter().enumerate().map(parameter).collect();
        found[place] = Some(DeltaIndices {
            response: responses[place].name.to_owned(),
            evaluations_used: used,
            evaluations_dropped: dropped,
            no_variation,
            resamples: bootstrap.resamples,
            classes,
            parameters,
        });
    }
    Ok(())
}

/// Returns the number of classes for `evaluations`: Plischke et al.'s rule, as SALib rounds it, at most 48.
fn class_count(evaluations: usize) -> usize {
    let count = evaluations as f64;
    let exponent = 2.0 / (7.0 + ((1500.0 - count) / 500.0).tanh());
    (count.powf(exponent).ceil() as usize).min(48)
}

/// One response, in units of its deviation: affine changes do not affect the indices.
struct Output {
    values: Vec<f64>,
    grid: Grid,
    classes: usize,
    all: Vec<u32>,
}

impl Output {
    fn new(values: Vec<f64>, classes: usize) -> Self {
        let grid = Grid::spanning(&values);
        // Designs have at most 10 million rows.
        let all = (0..values.len() as u32).collect();
        Self { values, grid, classes, all }
    }

    /// Returns the plain delta and first-order index of each parameter in a resample. `orders` are those of the
    /// parameters' values.
    fn statistics(&self, orders: &[Vec<u32>], weights: &[f64]) -> Vec<(f64, f64)> {
        let count: f64 = weights.iter().sum();
        let anywhere: Vec<(f64, f64)> = self.drawn(&self.all, weights).collect();
        let (mean, variance) = moments(&anywhere);
        let Some(density) = self.grid.density(&anywhere) else {
            return vec![(f64::NAN, f64::NAN); orders.len()];
        };
        let of_parameter = |order: &Vec<u32>| {
            let (mut delta, mut between) = (0.0, 0.0);
            for class in self.split(order, weights, count) {
                let size: f64 = class.iter().map(|(_, weight)| weight).sum();
                if size == 0.0 {
                    continue;
                }
                between += size / count * (moments(&class).0 - mean).powi(2);
                if let Some(within) = self.grid.density(&class) {
                    delta += size / (2.0 * count) * self.grid.area_between(&density, &within);
                }
            }
            (delta, between / variance)
        };
        orders.iter().map(of_parameter).collect()
    }

    fn drawn<'a>(&'a self, order: &'a [u32], weights: &'a [f64]) -> impl Iterator<Item = (f64, f64)> + 'a {
        drawn(order, weights).map(|(row, weight)| (self.values[row], weight))
    }

    /// Splits values with their weights into classes. A value drawn several times may fall into two classes.
    fn split(&self, order: &[u32], weights: &[f64], count: f64) -> Vec<Vec<(f64, f64)>> {
        let mut classes = vec![Vec::new(); self.classes];
        // Highest rank of the class, as numpy's linspace.
        let upper = |class: usize| (class + 1) as f64 * (count / self.classes as f64);
        let last = self.classes - 1;
        let (mut class, mut rank) = (0, 0.0);
        for (value, mut weight) in self.drawn(order, weights) {
            while weight > 0.0 {
                // Ranks are whole numbers.
                let room = if class == last { weight } else { (upper(class).floor() - rank).min(weight) };
                if room > 0.0 {
                    classes[class].push((value, room));
                    rank += room;
                    weight -= room;
                } else {
                    class += 1;
                }
            }
        }
        classes
    }
}

/// Returns the mean and population variance of weighted values.
fn moments(values: &[(f64, f64)]) -> (f64, f64) {
    let count: f64 = values.iter().map(|(_, weight)| weight).sum();
    let mean = values.iter().map(|(value, weight)| value * weight).sum::<f64>() / count;
    let squares: f64 = values.iter().map(|(value, weight)| weight * (value - mean).powi(2)).sum();
    (mean, squares / count)
}
