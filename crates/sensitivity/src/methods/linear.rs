//! Shared parts of methods based on correlations: correlations of parameters and responses, whole and resampled.
//!
//! Each statistic is a function of correlations alone. The correlations among parameters, and their factor, are
//! computed once per resample for all responses. Rank methods rank every resample again, so that intervals include
//! the effect of ranking. The caller defines the statistic.

use crate::design::columns::Columns;
use crate::statistics::bootstrap::Bootstrap;
use crate::statistics::cholesky::{Cholesky, packed};
use crate::statistics::error::AnalysisError;
use crate::statistics::estimate::Estimate;
use crate::statistics::ranks;
use crate::statistics::responses::{
    Response, ResponseGroup, group_responses, is_constant, standardized, values_at,
};

/// Scale of the values: numbers or ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueScale {
    /// Numbers as they are.
    Numbers,
    /// Ranks from 1. Equal numbers share their middle rank.
    Ranks,
}

/// Whether a method considers each parameter alone or given all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Conditioning {
    /// Uses only correlations of parameters with responses.
    Single,
    /// Also uses correlations among parameters.
    All,
}

/// A statistic of correlations and its requirements.
#[derive(Clone, Copy)]
pub(crate) struct Statistic {
    /// Name of the method in messages.
    pub(crate) name: &'static str,
    pub(crate) scale: ValueScale,
    pub(crate) regard: Conditioning,
    /// Values for one response, from its correlations with the parameters and, with [`Conditioning::All`], the
    /// factor of the correlations among parameters.
    pub(crate) statistic: fn(&[f64], Option<&Cholesky>) -> Vec<f64>,
}

/// Results for one response.
pub(crate) struct Coefficients {
    pub(crate) used: usize,
    pub(crate) dropped: usize,
    pub(crate) no_variation: bool,
    /// Estimates of the values of the statistic. Empty without variation.
    pub(crate) estimates: Vec<Estimate>,
}

/// Applies `method` to each response.
pub(crate) fn analyze(
    columns: &Columns,
    responses: &[Response<'_>],
    bootstrap: Bootstrap,
    method: Statistic,
) -> Result<Vec<Coefficients>, AnalysisError> {
    for response in responses {
        response.check(columns.rows())?;
    }
    let mut analyzed: Vec<Option<Coefficients>> = responses.iter().map(|_| None).collect();
    for group in group_responses(responses, 1) {
        of_group(columns, responses, &group, bootstrap, method, &mut analyzed)?;
    }
    Ok(analyzed.into_iter().flatten().collect())
}

fn of_group(
    columns: &Columns,
    responses: &[Response<'_>],
    ResponseGroup { responses: places, kept }: &ResponseGroup,
    bootstrap: Bootstrap,
    method: Statistic,
    analyzed: &mut [Option<Coefficients>],
) -> Result<(), AnalysisError> {
    let Some(first) = places.first().map(|&place| responses[place].name.to_owned()) else { return Ok(()) };
    let (used, dropped) = (kept.len(), columns.rows() - kept.len());
    let needed = match method.regard {
        Conditioning::Single => 3,
        // One more than the number of coefficients, the constant included.
        Conditioning::All => columns.names().len() + 2,
    };
    if used < needed {
        let unit = "evaluations";
        let (response, method) = (first, method.name);
        return Err(AnalysisError::TooFew { response, method, unit, used, dropped, needed });
    }
    let mut varying = Vec::new();
    for &place in places {
        let values = values_at(&responses[place], kept);
        let no_variation = is_constant(&values);
        analyzed[place] = Some(Coefficients { used, dropped, no_variation, estimates: Vec::new() });
        if !no_variation {
            varying.push((place, standardized(&values)));
        }
    }
    if varying.is_empty() {
        return Ok(());
    }
    let inputs: Vec<Vec<f64>> =
        columns.iter().map(|column| kept.iter().map(|&row| column[row]).collect()).collect();
    if let Some(place) = inputs.iter().position(|column| is_constant(column)) {
        let name = columns.names()[place].clone();
        return Err(AnalysisError::OneValue { name, response: first, evaluations: used });
    }
    let inputs = inputs.iter().map(|column| standardized(column)).collect();
    let (places, outputs): (Vec<usize>, Vec<Vec<f64>>) = varying.into_iter().unzip();
    let table = Table::new(inputs, outputs, method);

    let whole = table.statistics(&vec![1.0; used]).map_err(|place| AnalysisError::Dependent {
        name: columns.names()[place].clone(),
        response: first,
        method: method.name,
    })?;
    // A resample may lack the rows that distinguish two parameters. It then defines no statistic.
    let resampled = bootstrap.resample(used, |weights| table.statistics(weights).ok());
    for (output, (&place, values)) in places.iter().zip(&whole).enumerate() {
        let estimate = |(at, &value): (usize, &f64)| {
            let of = |all: &Option<Vec<Vec<f64>>>| all.as_ref().map_or(f64::NAN, |all| all[output][at]);
            Estimate::of(value, resampled.iter().map(of))
        };
        let estimates = values.iter().enumerate().map(estimate).collect();
        analyzed[place] = Some(Coefficients { used, dropped, no_variation: false, estimates });
    }
    Ok(())
}

/// Maximum variance of a constant column in a resample. Rounding alone reaches less. The whole column has a
/// variance of about 1, or 1/12 for ranks.
const CONSTANT: f64 = 1e-14;

/// Numbers of the rows used: one column per parameter, then one per response, each in units of its deviation.
struct Table {
    columns: Vec<Vec<f64>>,
    /// Sort order of each column, for ranks.
    orders: Vec<Vec<u32>>,
    inputs: usize,
    method: Statistic,
}

impl Table {
    fn new(mut columns: Vec<Vec<f64>>, outputs: Vec<Vec<f64>>, method: Statistic) -> Self {
        let inputs = columns.len();
        columns.extend(outputs);
        let orders = match method.scale {
            ValueScale::Numbers => Vec::new(),
            ValueScale::Ranks => columns.iter().map(|column| ranks::order(column)).collect(),
        };
        Self { columns, orders, inputs, method }
    }

    /// Returns the values of the statistic of each response in a resample. The error is the index of a
    /// parameter that depends on earlier ones.
    fn statistics(&self, weights: &[f64]) -> Result<Vec<Vec<f64>>, usize> {
        match self.method.scale {
            ValueScale::Numbers => self.of_columns(&self.columns, weights),
            ValueScale::Ranks => {
                let count = weights.len() as f64;
                let mut ranks = vec![0.0; weights.len()];
                let ranked = self.columns.iter().zip(&self.orders).map(|(column, order)| {
                    ranks::weighted_ranks(column, order, weights, &mut ranks);
                    // Scaled ranks are within ±½ around 0, so differences of large sums lose no digits.
                    ranks.iter().map(|rank| (rank - (count + 1.0) / 2.0) / count).collect()
                });
                self.of_columns(&ranked.collect::<Vec<_>>(), weights)
            }
        }
    }

    fn of_columns(&self, columns: &[Vec<f64>], weights: &[f64]) -> Result<Vec<Vec<f64>>, usize> {
        let covariances = self.covariances(columns, weights);
        let deviation = |place: usize| {
            let variance = covariances[packed(place, place)];
            if variance > CONSTANT { variance.sqrt() } else { 0.0 }
        };
        let deviations: Vec<f64> = (0..columns.len()).map(deviation).collect();
        let correlation = |i: usize, j: usize| {
            (covariances[packed(i.max(j), i.min(j))] / (deviations[i] * deviations[j])).clamp(-1.0, 1.0)
        };
        let factor = match self.method.regard {
            Conditioning::Single => None,
            Conditioning::All => {
                let mut matrix = vec![1.0; packed(self.inputs, 0)];
                for i in 0..self.inputs {
                    for j in 0..i {
                        matrix[packed(i, j)] = correlation(i, j);
                    }
                    if deviations[i] == 0.0 {
                        return Err(i);
                    }
                }
                Some(Cholesky::of(matrix, self.inputs)?)
            }
        };
        let of_output = |output| {
            let with: Vec<f64> = (0..self.inputs).map(|input| correlation(input, output)).collect();
            (self.method.statistic)(&with, factor.as_ref())
        };
        Ok((self.inputs..columns.len()).map(of_output).collect())
    }

    /// Returns the covariances as a packed lower triangle. Covariances that the method does not use stay 0.
    fn covariances(&self, columns: &[Vec<f64>], weights: &[f64]) -> Vec<f64> {
        let count = weights.iter().sum::<f64>();
        let mut weighted = vec![0.0; weights.len()];
        let mut means = Vec::with_capacity(columns.len());
        let mut covariances = vec![0.0; packed(columns.len(), 0)];
        for (i, column) in columns.iter().enumerate() {
            weighted.iter_mut().zip(column).zip(weights).for_each(|((product, number), weight)| {
                *product = number * weight;
            });
            means.push(weighted.iter().sum::<f64>() / count);
            for (j, other) in columns[..=i].iter().enumerate() {
                let wanted = match self.method.regard {
                    // Single coefficients need no covariances between inputs, which are most of the triangle.
                    Conditioning::Single => i == j || (j < self.inputs && i >= self.inputs),
                    Conditioning::All => i == j || j < self.inputs,
                };
                if wanted {
                    // Standardized columns have means near 0, so little cancels.
                    covariances[packed(i, j)] = dot(&weighted, other) / count - means[i] * means[j];
                }
            }
        }
        covariances
    }
}

/// Returns the sum of products. Compilers turn the eight partial sums into vector instructions.
fn dot(left: &[f64], right: &[f64]) -> f64 {
    const LANES: usize = 8;
    let (left, right) = (left.chunks_exact(LANES), right.chunks_exact(LANES));
    let rest: f64 = left.remainder().iter().zip(right.remainder()).map(|(a, b)| a * b).sum();
    // The number of lanes is fixed, not the machine's: the order of additions decides the last digits.
    let mut sums = [0.0; LANES];
    for (left, right) in left.zip(right) {
        for lane in 0..LANES {
            sums[lane] += left[lane] * right[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
}
