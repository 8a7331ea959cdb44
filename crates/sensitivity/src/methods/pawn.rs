//! PAWN: shift of the response's distribution if a parameter is restricted to a slice of its values.
//!
//! Each parameter's values are cut into slices. The distance of a slice is the Kolmogorov–Smirnov statistic between
//! the response within it and overall, from 0 (the parameter does not matter) to 1. The index is the median over
//! slices. Needs no design, and no finite variance. Sources: Pianosi and Wagener, Environmental Modelling &
//! Software 67 (2015) and 108 (2018). Values are SALib's `analyze.pawn` for continuous values.
//!
//! Slices are bounded by equally spaced quantiles, and the largest value is in none, as in SALib. A parameter with
//! no more distinct values than slices gets one slice per value instead: SALib omits some levels then. A failed
//! evaluation drops its row. Resamples are sliced again. Distances of few evaluations are above 0 by chance alone,
//! so intervals do not show whether a parameter matters at all.

mod slices;

use crate::design::columns::Columns;
use crate::statistics::bootstrap::Bootstrap;
use crate::statistics::error::AnalysisError;
use crate::statistics::estimate::Estimate;
use crate::statistics::ranks::order;
use crate::statistics::responses::{Response, ResponseGroup, group_responses, is_constant, values_at};
use serde::{Deserialize, Serialize};
use slices::{Input, STATISTICS, distances, summary};

/// Slices as in SALib.
pub const SLICES: usize = 10;

/// PAWN indices of one response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PawnIndices {
    /// Name of the response.
    pub response: String,
    /// Evaluations the indices are over.
    pub evaluations_used: usize,
    /// Evaluations left out, because they failed.
    pub evaluations_dropped: usize,
    /// Whether the response is the same everywhere: no index is defined then.
    pub no_variation: bool,
    /// Bootstrap resamples behind the intervals.
    pub resamples: u32,
    /// Slices of a parameter with more distinct values.
    pub slices: usize,
    /// One entry per parameter or group, in the order of the parameters.
    pub parameters: Vec<PawnParameter>,
}

/// Statistics of one parameter's distances over its slices. For a group, means of its members' statistics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PawnParameter {
    /// The parameter or group.
    pub name: String,
    /// Median: the PAWN index.
    pub median: Estimate,
    /// Mean.
    pub mean: Estimate,
    /// Smallest.
    pub minimum: Estimate,
    /// Largest.
    pub maximum: Estimate,
    /// Population standard deviation.
    pub deviation: Estimate,
    /// Coefficient of variation: deviation divided by mean.
    pub cv: Estimate,
}

/// Computes the PAWN indices of each response, with one value per row of `columns`.
///
/// `groups` names the group of each parameter, in the order of the parameters, if parameters are grouped.
///
/// # Errors
/// [`AnalysisError`] if responses do not fit, evaluations are fewer than slices, a parameter has one value, or
/// groups do not fit.
pub fn indices(
    columns: &Columns,
    responses: &[Response<'_>],
    slices: usize,
    groups: Option<&[String]>,
    bootstrap: Bootstrap,
) -> Result<Vec<PawnIndices>, AnalysisError> {
    let setting =
        |setting, given, allowed: String| AnalysisError::Setting { method: "pawn", setting, given, allowed };
    if slices < 2 || slices > columns.rows() {
        return Err(setting("slices", slices, format!("2 to the number of evaluations, {}", columns.rows())));
    }
    if let Some(groups) = groups.filter(|groups| groups.len() != columns.names().len()) {
        let allowed = format!("one for each of the {} parameters", columns.names().len());
        return Err(setting("groups", groups.len(), allowed));
    }
    for response in responses {
        response.check(columns.rows())?;
    }
    let mut found: Vec<Option<PawnIndices>> = responses.iter().map(|_| None).collect();
    for group in group_responses(responses, 1) {
        of_group(columns, responses, &group, slices, groups, bootstrap, &mut found)?;
    }
    Ok(found.into_iter().flatten().collect())
}

/// Values of a response in the rows used, and their order.
type Output = (Vec<f64>, Vec<u32>);

/// Computes the indices of responses that failed in the same evaluations.
fn of_group(
    columns: &Columns,
    responses: &[Response<'_>],
    ResponseGroup { responses: places, kept }: &ResponseGroup,
    slices: usize,
    groups: Option<&[String]>,
    bootstrap: Bootstrap,
    found: &mut [Option<PawnIndices>],
) -> Result<(), AnalysisError> {
    let (used, dropped) = (kept.len(), columns.rows() - kept.len());
    let Some(name) = places.first().map(|&place| responses[place].name) else { return Ok(()) };
    if used < slices {
        let (response, unit) = (name.to_owned(), "evaluations");
        return Err(AnalysisError::TooFew { response, method: "pawn", unit, used, dropped, needed: slices });
    }
    let inputs = inputs(columns, kept, slices, name)?;
    let outputs: Vec<Output> = places
        .iter()
        .map(|&place| {
            let values = values_at(&responses[place], kept);
            let order = order(&values);
            (values, order)
        })
        .collect();
    let (names, members) = members(columns.names(), groups);
    let of_resample = |weights: &[f64]| resample_statistics(&inputs, &outputs, &members, slices, weights);
    let whole = of_resample(&vec![1.0; used]);
    let resampled = bootstrap.resample(used, of_resample);
    for (at, &place) in places.iter().enumerate() {
        let no_variation = is_constant(&outputs[at].0);
        let estimate = |group: usize, statistic: usize| {
            if no_variation {
                return Estimate::ABSENT;
            }
            let resamples = resampled.iter().map(|resample| resample[at][group][statistic]);
            Estimate::of(whole[at][group][statistic], resamples)
        };
        let entries = names.iter().enumerate();
        found[place] = Some(PawnIndices {
            response: responses[place].name.to_owned(),
            evaluations_used: used,
            evaluations_dropped: dropped,
            no_variation,
            resamples: bootstrap.resamples,
            slices,
            parameters: entries
                .map(|(group, name)| parameter(name, |statistic| estimate(group, statistic)))
                .collect(),
        });
    }
    Ok(())
}

/// Returns each parameter's values in the rows `kept`. A parameter with one value is an error.
fn inputs(
    columns: &Columns,
    kept: &[usize],
    slices: usize,
    response: &str,
) -> Result<Vec<Input>, AnalysisError> {
    let mut inputs = Vec::new();
    for (name, column) in columns.names().iter().zip(columns.iter()) {
        let values: Vec<f64> = kept.iter().map(|&row| column[row]).collect();
        if is_constant(&values) {
            let (name, response) = (name.clone(), response.to_owned());
            return Err(AnalysisError::OneValue { name, response, evaluations: kept.len() });
        }
        inputs.push(Input::new(values, slices));
    }
    Ok(inputs)
}

/// Returns the statistics of each response and reported entry over a resample: means over the members of each entry.
fn resample_statistics(
    inputs: &[Input],
    outputs: &[Output],
    members: &[Vec<usize>],
    slices: usize,
    weights: &[f64],
) -> Vec<Vec<[f64; STATISTICS]>> {
    let cuts: Vec<Vec<usize>> = inputs.iter().map(|input| input.slices_of(slices, weights)).collect();
    let of_output = |(values, order): &Output| {
        let each: Vec<[f64; STATISTICS]> =
            cuts.iter().map(|cut| summary(distances(values, order, cut, weights))).collect();
        let mean = |members: &Vec<usize>| {
            std::array::from_fn(|at| {
                members.iter().map(|&member| each[member][at]).sum::<f64>() / members.len() as f64
            })
        };
        members.iter().map(mean).collect()
    };
    outputs.iter().map(of_output).collect()
}

/// Creates an entry from the estimate of each statistic, in the order of [`summary`].
fn parameter(name: &str, estimate: impl Fn(usize) -> Estimate) -> PawnParameter {
    PawnParameter {
        name: name.to_owned(),
        median: estimate(0),
        mean: estimate(1),
        minimum: estimate(2),
        maximum: estimate(3),
        deviation: estimate(4),
        cv: estimate(5),
    }
}

/// Returns the names of the reported entries and the parameters of each: groups in the order of their first
/// members.
fn members(names: &[String], groups: Option<&[String]>) -> (Vec<String>, Vec<Vec<usize>>) {
    let mut reported: Vec<(String, Vec<usize>)> = Vec::new();
    for (place, name) in groups.unwrap_or(names).iter().enumerate() {
        match reported.iter_mut().find(|(known, _)| known == name) {
            Some((_, members)) => members.push(place),
            None => reported.push((name.clone(), vec![place])),
        }
    }
    reported.into_iter().unzip()
}
