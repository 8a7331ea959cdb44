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

use crate::design::columns::Columns;
use crate::statistics::bootstrap::Bootstrap;
use crate::statistics::error::AnalysisError;
use crate::statistics::estimate::{Estimate, between, quantile};
use crate::statistics::ranks::{order, pair_at};
use crate::statistics::responses::{Response, ResponseGroup, group_responses, is_constant, values_at};
use serde::{Deserialize, Serialize};

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

/// Number of statistics of a parameter.
const STATISTICS: usize = 6;

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
    let mut inputs = Vec::new();
    for (name_of, column) in columns.names().iter().zip(columns.iter()) {
        let values: Vec<f64> = kept.iter().map(|&row| column[row]).collect();
        if is_constant(&values) {
            let (name, response) = (name_of.clone(), name.to_owned());
            return Err(AnalysisError::OneValue { name, response, evaluations: used });
        }
        inputs.push(Input::new(values, slices));
    }
    let outputs: Vec<(Vec<f64>, Vec<u32>)> = places
        .iter()
        .map(|&place| {
            let values = values_at(&responses[place], kept);
            let order = order(&values);
            (values, order)
        })
        .collect();
    let (names, members) = members(columns.names(), groups);
    let of_resample = |weights: &[f64]| -> Vec<Vec<[f64; STATISTICS]>> {
        let cuts: Vec<Vec<usize>> = inputs.iter().map(|input| input.slices_of(slices, weights)).collect();
        let of_output = |(values, order): &(Vec<f64>, Vec<u32>)| {
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
    };
    let whole = of_resample(&vec![1.0; used]);
    let resampled = bootstrap.over(used, of_resample);
    for (at, &place) in places.iter().enumerate() {
        let no_variation = is_constant(&outputs[at].0);
        let parameter = |(group, name): (usize, &String)| {
            let estimate = |statistic: usize| {
                let resamples = resampled.iter().map(|resample| resample[at][group][statistic]);
                if no_variation {
                    Estimate::ABSENT
                } else {
                    Estimate::of(whole[at][group][statistic], resamples)
                }
            };
            PawnParameter {
                name: name.clone(),
                median: estimate(0),
                mean: estimate(1),
                minimum: estimate(2),
                maximum: estimate(3),
                deviation: estimate(4),
                cv: estimate(5),
            }
        };
        found[place] = Some(PawnIndices {
            response: responses[place].name.to_owned(),
            evaluations_used: used,
            evaluations_dropped: dropped,
            no_variation,
            resamples: bootstrap.resamples,
            slices,
            parameters: names.iter().enumerate().map(parameter).collect(),
        });
    }
    Ok(())
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

/// One parameter's values in the rows used.
struct Input {
    values: Vec<f64>,
    order: Vec<u32>,
    /// Distinct values, if their number is at most that of slices.
    levels: Option<Vec<f64>>,
}

/// Slice number of a row outside all slices.
const NOWHERE: usize = usize::MAX;

impl Input {
    fn new(values: Vec<f64>, slices: usize) -> Self {
        let order = order(&values);
        let mut levels: Vec<f64> = order.iter().map(|&row| values[row as usize]).collect();
        levels.dedup();
        let levels = (levels.len() <= slices).then_some(levels);
        Self { values, order, levels }
    }

    /// Returns the slice of each row in a resample.
    fn slices_of(&self, slices: usize, weights: &[f64]) -> Vec<usize> {
        let mut cut = vec![NOWHERE; self.values.len()];
        if let Some(levels) = &self.levels {
            for (slice, value) in cut.iter_mut().zip(&self.values) {
                *slice = levels.partition_point(|level| level < value);
            }
            return cut;
        }
        let last = weights.iter().sum::<f64>() - 1.0;
        let edge = |slice: usize| {
            // The steps and their rounding are SALib's: an edge equal to a value decides the slice of that
            // value.
            let place = slice as f64 * (1.0 / slices as f64) * last;
            let (from, to) = pair_at(&self.values, &self.order, weights, place.floor() as usize);
            between(from, to, place - place.floor())
        };
        let edges: Vec<f64> = (0..=slices).map(edge).collect();
        for (slice, &value) in cut.iter_mut().zip(&self.values) {
            let below = edges.partition_point(|&edge| edge <= value);
            if (1..=slices).contains(&below) {
                *slice = below - 1;
            }
        }
        cut
    }
}

/// Returns the Kolmogorov–Smirnov distance of each non-empty slice.
///
/// One pass over the responses in ascending order: the share of a slice rises at its own rows only, so the distance
/// is largest just before or at one of them.
fn distances(values: &[f64], order: &[u32], cut: &[usize], weights: &[f64]) -> Vec<f64> {
    let slices = cut.iter().filter(|&&slice| slice != NOWHERE).max().map_or(0, |last| last + 1);
    let mut sizes = vec![0.0; slices];
    let mut all = 0.0;
    for (&slice, &weight) in cut.iter().zip(weights) {
        all += weight;
        if slice != NOWHERE {
            sizes[slice] += weight;
        }
    }
    let mut within = vec![0.0; slices];
    let mut largest = vec![0.0_f64; slices];
    let (mut before, mut start) = (0.0, 0);
    while start < order.len() {
        let value = values[order[start] as usize];
        let mut end = start;
        let mut up_to = before;
        while end < order.len() && values[order[end] as usize] == value {
            let row = order[end] as usize;
            up_to += weights[row];
            let slice = cut[row];
            if slice != NOWHERE && weights[row] > 0.0 {
                // Measures just before the first of these equal responses. Later ones of the slice are at
                // most as distant.
                largest[slice] = largest[slice].max(before / all - within[slice] / sizes[slice]);
                within[slice] += weights[row];
            }
            end += 1;
        }
        for &row in &order[start..end] {
            let slice = cut[row as usize];
            if slice != NOWHERE && weights[row as usize] > 0.0 {
                largest[slice] = largest[slice].max(within[slice] / sizes[slice] - up_to / all);
            }
        }
        before = up_to;
        start = end;
    }
    largest.into_iter().zip(sizes).filter(|(_, size)| *size > 0.0).map(|(distance, _)| distance).collect()
}

/// Returns median, mean, smallest, largest, deviation and coefficient of variation. NaN without distances.
fn summary(mut distances: Vec<f64>) -> [f64; STATISTICS] {
    if distances.is_empty() {
        return [f64::NAN; STATISTICS];
    }
    distances.sort_unstable_by(f64::total_cmp);
    let count = distances.len() as f64;
    let mean = distances.iter().sum::<f64>() / count;
    let deviation = (distances.iter().map(|distance| (distance - mean).powi(2)).sum::<f64>() / count).sqrt();
    let (minimum, maximum) = (distances[0], distances[distances.len() - 1]);
    [quantile(&distances, 0.5), mean, minimum, maximum, deviation, deviation / mean]
}
