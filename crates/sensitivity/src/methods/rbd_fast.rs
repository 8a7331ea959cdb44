//! RBD-FAST: first-order indices from any sample, by the low frequencies of the response along each parameter.
//!
//! Responses in the order of a parameter's values, every second one forward and the rest backward, are a periodic
//! series. Its first harmonics hold the variance that the parameter explains alone. Sources: Plischke, "An
//! effective algorithm for computing global sensitivity indices (EASI)", Reliability Engineering & System Safety 95
//! (2010). Correction of the bias: Tissot and Prieur, the same 107 (2012). Values are SALib's `analyze.rbd_fast` if
//! all values of a parameter differ: equal ones are in the order of evaluations here, and in any order there. A
//! failed evaluation drops its row.
//!
//! Intervals resample half of the evaluations, as SALib's do, and so are wider than the error. Repeated draws are
//! adjacent, which looks like an effect: half-widths are usable, but percentiles would be too high and are omitted.

use crate::design::columns::Columns;
use crate::methods::correlation::{Coefficient, coefficients};
use crate::methods::spectrum::{first_powers, variance};
use crate::statistics::bootstrap::{Bootstrap, drawn};
use crate::statistics::error::AnalysisError;
use crate::statistics::estimate::Estimate;
use crate::statistics::ranks::order;
use crate::statistics::responses::{Response, group_responses, is_constant, standardized, values_at};
use serde::{Deserialize, Serialize};

/// Number of harmonics, as in SALib.
pub const HARMONICS: usize = 10;

/// First-order indices of one response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RbdFastIndices {
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
    /// Number of summed harmonics.
    pub harmonics: usize,
    /// One entry per parameter, in the order of the parameters: its first-order index, without percentiles.
    pub parameters: Vec<Coefficient>,
}

/// Computes the first-order indices of each response, with one value per row of `columns`, from `harmonics`
/// harmonics.
///
/// # Errors
/// [`AnalysisError`] if responses do not fit, a parameter has one value, `harmonics` is 0, or evaluations are fewer
/// than 4·harmonics + 2: resamples of half of them must hold more than the harmonics.
pub fn indices(
    columns: &Columns,
    responses: &[Response<'_>],
    harmonics: usize,
    bootstrap: Bootstrap,
) -> Result<Vec<RbdFastIndices>, AnalysisError> {
    let method = "rbd-fast";
    if harmonics == 0 {
        let (setting, allowed) = ("harmonics", "1 and more".to_owned());
        return Err(AnalysisError::Setting { method, setting, given: harmonics, allowed });
    }
    for response in responses {
        response.check(columns.rows())?;
    }
    let needed = harmonics.saturating_mul(4).saturating_add(2);
    let mut found: Vec<Option<RbdFastIndices>> = responses.iter().map(|_| None).collect();
    for group in group_responses(responses, 1) {
        let (used, dropped) = (group.kept.len(), columns.rows() - group.kept.len());
        let Some(name) = group.responses.first().map(|&place| responses[place].name) else { continue };
        if used < needed {
            let (response, unit) = (name.to_owned(), "evaluations");
            return Err(AnalysisError::TooFew { response, method, unit, used, dropped, needed });
        }
        let mut orders = Vec::new();
        for (name_of, column) in columns.names().iter().zip(columns.iter()) {
            let values: Vec<f64> = group.kept.iter().map(|&row| column[row]).collect();
            if is_constant(&values) {
                let (name, response) = (name_of.clone(), name.to_owned());
                return Err(AnalysisError::OneValue { name, response, evaluations: used });
            }
            orders.push(order(&values));
        }
        for &place in &group.responses {
            let values = values_at(&responses[place], &group.kept);
            let no_variation = is_constant(&values);
            let values = standardized(&values);
            let of_resample = |weights: &[f64]| -> Vec<f64> {
                orders.iter().map(|order| first_order(&values, order, weights, harmonics)).collect()
            };
            let mut estimates = Vec::new();
            if !no_variation {
                let whole = of_resample(&vec![1.0; used]);
                let resampled = bootstrap.resample_with_size(used, used / 2, of_resample);
                let estimate = |(at, &value): (usize, &f64)| {
                    let estimate = Estimate::of(value, resampled.iter().map(|resample| resample[at]));
                    Estimate { low: None, high: None, ..estimate }
                };
                estimates.extend(whole.iter().enumerate().map(estimate));
            }
            found[place] = Some(RbdFastIndices {
                response: responses[place].name.to_owned(),
                evaluations_used: used,
                evaluations_dropped: dropped,
                no_variation,
                resamples: bootstrap.resamples,
                harmonics,
                parameters: coefficients(columns.names(), &estimates),
            });
        }
    }
    Ok(found.into_iter().flatten().collect())
}

/// Returns the index of the parameter with this order of values, in a resample. NaN for a constant response.
fn first_order(values: &[f64], order: &[u32], weights: &[f64], harmonics: usize) -> f64 {
    let ascending: Vec<f64> = drawn(order, weights)
        .flat_map(|(row, weight)| std::iter::repeat_n(values[row], weight as usize))
        .collect();
    let (forth, back) = (ascending.iter().step_by(2), ascending.iter().skip(1).step_by(2).rev());
    let series: Vec<f64> = forth.chain(back).copied().collect();
    let of_harmonics: f64 = first_powers(&series, harmonics).iter().sum();
    let share = 2.0 * of_harmonics / variance(&series);
    // Share of noise in the harmonics: 2M of n frequencies.
    let noise = 2.0 * harmonics as f64 / series.len() as f64;
    share - noise / (1.0 - noise) * (1.0 - share)
}
