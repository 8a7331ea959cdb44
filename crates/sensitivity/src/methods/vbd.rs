//! Variance-based decomposition (VBD): first-order, total and second-order Sobol' indices of a Saltelli design.
//!
//! The first-order index of a parameter is the share of the response's variance that it explains alone. The total
//! index includes its interactions. The second-order index of a pair is the share that both explain together beyond
//! their first-order indices. If the design swaps groups of parameters, indices refer to groups. Sources: papers
//! 000 §2.2 and 001 §3. [`Estimator`] names those of the estimators. Responses are centered about the mean of all
//! rows, as in SALib's `analyze.sobol`, whose values the default estimator reproduces.
//!
//! A failed evaluation drops its whole block of rows: all indices then use the same base samples, so that they can
//! be compared and summed. Failed rows are counted by parameter. Intervals resample base samples and assume that
//! these are independent: Sobol' base points are spread more evenly, so intervals are wider than the error.

mod estimator;

pub use estimator::Estimator;

use crate::design::saltelli_blocks::{Role, RowBlocks};
use crate::statistics::bootstrap::{Bootstrap, means};
use crate::statistics::error::AnalysisError;
use crate::statistics::estimate::Estimate;
use crate::statistics::responses::{Response, ResponseGroup, group_responses, is_constant, standardized};
use estimator::Layout;
use serde::{Deserialize, Serialize};

/// Indices of one response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VbdIndices {
    /// Name of the response.
    pub response: String,
    /// Estimator of the first-order and total indices.
    pub estimator: Estimator,
    /// Base samples the indices are over.
    pub samples_used: usize,
    /// Base samples left out, because an evaluation of theirs failed.
    pub samples_dropped: usize,
    /// Whether the response is the same everywhere: no index is defined then.
    pub no_variation: bool,
    /// Bootstrap resamples behind the intervals.
    pub resamples: u32,
    /// One entry per varying parameter or group, in the order of the design.
    pub parameters: Vec<VbdParameter>,
    /// One entry per pair, (0, 1), (0, 2) … (1, 2) …. Absent if the design has no rows for second-order indices.
    pub pairs: Option<Vec<VbdPair>>,
}

/// Indices of one parameter or group: shares of a variance. Noise makes values below 0 and above 1 possible.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VbdParameter {
    /// The parameter.
    pub name: String,
    /// First-order index (main effect).
    pub first: Estimate,
    /// Total index.
    pub total: Estimate,
    /// Failed evaluations among the rows that change this parameter alone.
    pub failed: usize,
}

/// Second-order index of two parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VbdPair {
    /// The parameter that is first in the design.
    pub one: String,
    /// The second parameter.
    pub other: String,
    /// Second-order index.
    pub second: Estimate,
}

/// Computes the indices of each response, with one value per row of the design.
///
/// # Errors
/// [`AnalysisError`] if responses do not fit the design, or fewer than 2 base samples are complete.
pub fn indices(
    blocks: &RowBlocks,
    responses: &[Response<'_>],
    estimator: Estimator,
    bootstrap: Bootstrap,
) -> Result<Vec<VbdIndices>, AnalysisError> {
    for response in responses {
        response.check(blocks.rows())?;
    }
    let mut found: Vec<Option<VbdIndices>> = responses.iter().map(|_| None).collect();
    for group in group_responses(responses, blocks.rows_per_sample()) {
        of_group(blocks, responses, &group, estimator, bootstrap, &mut found)?;
    }
    Ok(found.into_iter().flatten().collect())
}

/// Minimum number of base samples that have a variance.
const FEWEST: usize = 2;

fn of_group(
    blocks: &RowBlocks,
    responses: &[Response<'_>],
    ResponseGroup { responses: places, kept }: &ResponseGroup,
    estimator: Estimator,
    bootstrap: Bootstrap,
    found: &mut [Option<VbdIndices>],
) -> Result<(), AnalysisError> {
    let (used, dropped) = (kept.len(), blocks.samples() - kept.len());
    let layout = Layout::new(estimator, blocks.names().len(), blocks.has_second_order());
    let mut terms = Vec::new();
    for &place in places {
        let response = &responses[place];
        if used < FEWEST {
            return Err(AnalysisError::TooFew {
                response: response.name.to_owned(),
                method: "vbd",
                unit: "base samples",
                used,
                dropped,
                needed: FEWEST,
            });
        }
        let values: Vec<f64> = kept
            .iter()
            .flat_map(|&sample| {
                let length = blocks.rows_per_sample();
                response.values[sample * length..(sample + 1) * length].iter().copied().flatten()
            })
            .collect();
        // Without variation no terms and no indices exist.
        terms.push(if is_constant(&values) { Vec::new() } else { layout.terms(&standardized(&values)) });
    }

    let of_resample = |weights: &[f64]| -> Vec<Vec<f64>> {
        terms.iter().map(|terms| layout.indices(&means(terms, layout.width(), weights))).collect()
    };
    let whole = of_resample(&vec![1.0; used]);
    let resampled = bootstrap.resample(used, of_resample);
    for (at, &place) in places.iter().enumerate() {
        let no_variation = terms[at].is_empty();
        let estimate = |index: usize| match whole[at].get(index) {
            Some(&value) if !no_variation => {
                Estimate::of(value, resampled.iter().map(|resample| resample[at][index]))
            }
            _ => Estimate::ABSENT,
        };
        found[place] = Some(VbdIndices {
            response: responses[place].name.to_owned(),
            estimator,
            samples_used: used,
            samples_dropped: dropped,
            no_variation,
            resamples: bootstrap.resamples,
            parameters: parameters(blocks, &responses[place], estimate),
            pairs: blocks.has_second_order().then(|| pairs(blocks.names(), estimate)),
        });
    }
    Ok(())
}

fn parameters(
    blocks: &RowBlocks,
    response: &Response<'_>,
    estimate: impl Fn(usize) -> Estimate,
) -> Vec<VbdParameter> {
    let mut failed = vec![0; blocks.names().len()];
    for (row, value) in response.values.iter().enumerate() {
        if let (None, Some((_, Role::AWithB(column) | Role::BWithA(column)))) = (value, blocks.role(row)) {
            failed[column] += 1;
        }
    }
    let names = blocks.names().iter().zip(failed).enumerate();
    let parameter = |(place, (name, failed)): (usize, (&String, usize))| VbdParameter {
        name: name.clone(),
        first: estimate(place),
        total: estimate(blocks.names().len() + place),
        failed,
    };
    names.map(parameter).collect()
}

fn pairs(names: &[String], estimate: impl Fn(usize) -> Estimate) -> Vec<VbdPair> {
    let both = (0..names.len()).flat_map(|one| (one + 1..names.len()).map(move |other| (one, other)));
    let pair = |(at, (one, other)): (usize, (usize, usize))| VbdPair {
        one: names[one].clone(),
        other: names[other].clone(),
        second: estimate(2 * names.len() + at),
    };
    both.enumerate().map(pair).collect()
}
