//! Correlation of each parameter with a response: Pearson's and Spearman's, and partial (PCC) and partial rank
//! correlation (PRCC).
//!
//! Pearson's coefficient detects linear effects, Spearman's monotonic ones. The partial coefficients remove the
//! part of an effect due to correlation with other parameters. None detects an effect that rises and falls equally,
//! or interactions. They accept any design, best a Latin hypercube. Sources: Helton et al., "Survey of
//! sampling-based methods for uncertainty and sensitivity analysis", Reliability Engineering & System Safety 91
//! (2006), sections 6.5 and 6.6. Papers 001 §3 (importance measures). A failed evaluation drops its row.
//!
//! The partial coefficient of parameter i follows from the regression on all parameters in units of their
//! deviations: with coefficients b, multiple correlation R² and D the diagonal of the inverse of the parameters'
//! correlations, it is bᵢ / √((1 − R²)·Dᵢ + bᵢ²). It is undefined if the other parameters explain the response
//! completely.

use crate::design::columns::Columns;
use crate::methods::linear::{Coefficients, Conditioning, Statistic, ValueScale, analyze};
use crate::statistics::bootstrap::Bootstrap;
use crate::statistics::cholesky::Cholesky;
use crate::statistics::error::AnalysisError;
use crate::statistics::estimate::Estimate;
use crate::statistics::responses::Response;
use serde::{Deserialize, Serialize};

/// Coefficients of one response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Correlations {
    /// Name of the response.
    pub response: String,
    /// Evaluations the coefficients are over.
    pub evaluations_used: usize,
    /// Evaluations left out, because they failed.
    pub evaluations_dropped: usize,
    /// Whether the response is the same everywhere: no coefficient is defined then.
    pub no_variation: bool,
    /// Bootstrap resamples behind the intervals.
    pub resamples: u32,
    /// One entry per parameter, in the order of the parameters.
    pub parameters: Vec<Coefficient>,
}

/// A coefficient of one parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Coefficient {
    /// The parameter.
    pub name: String,
    /// The coefficient, without unit.
    pub coefficient: Estimate,
}

/// Computes Pearson's coefficients of parameters and responses, within [−1, 1].
///
/// Each response has one value per row of `columns`, and the result one entry per response.
///
/// # Errors
/// [`AnalysisError`] if responses do not fit, fewer than 3 are left, or a parameter has one value in those.
pub fn pearson(
    columns: &Columns,
    responses: &[Response<'_>],
    bootstrap: Bootstrap,
) -> Result<Vec<Correlations>, AnalysisError> {
    let single = |with: &[f64], _: Option<&Cholesky>| with.to_vec();
    let (scale, regard) = (ValueScale::Numbers, Conditioning::Single);
    correlate(columns, responses, bootstrap, Statistic { name: "pearson", scale, regard, statistic: single })
}

/// Computes Spearman's coefficients: Pearson's of ranks, where equal values share their middle rank.
///
/// # Errors
/// As [`pearson`].
pub fn spearman(
    columns: &Columns,
    responses: &[Response<'_>],
    bootstrap: Bootstrap,
) -> Result<Vec<Correlations>, AnalysisError> {
    let single = |with: &[f64], _: Option<&Cholesky>| with.to_vec();
    let (scale, regard) = (ValueScale::Ranks, Conditioning::Single);
    correlate(columns, responses, bootstrap, Statistic { name: "spearman", scale, regard, statistic: single })
}

/// Computes partial correlation coefficients (PCC).
///
/// # Errors
/// As [`pearson`], and if there are fewer than 2 evaluations more than parameters, or a parameter depends on
/// others.
pub fn pcc(
    columns: &Columns,
    responses: &[Response<'_>],
    bootstrap: Bootstrap,
) -> Result<Vec<Correlations>, AnalysisError> {
    let (scale, regard) = (ValueScale::Numbers, Conditioning::All);
    correlate(columns, responses, bootstrap, Statistic { name: "pcc", scale, regard, statistic: partial })
}

/// Computes partial rank correlation coefficients (PRCC).
///
/// # Errors
/// As [`pcc`].
pub fn prcc(
    columns: &Columns,
    responses: &[Response<'_>],
    bootstrap: Bootstrap,
) -> Result<Vec<Correlations>, AnalysisError> {
    let (scale, regard) = (ValueScale::Ranks, Conditioning::All);
    correlate(columns, responses, bootstrap, Statistic { name: "prcc", scale, regard, statistic: partial })
}

/// Minimum unexplained share of a response's variance. A smaller remainder is rounding.
const NOTHING_LEFT: f64 = 1e-12;

fn partial(with: &[f64], factor: Option<&Cholesky>) -> Vec<f64> {
    let Some(factor) = factor else { return Vec::new() };
    let mut coefficients = with.to_vec();
    factor.solve(&mut coefficients);
    let explained: f64 = coefficients.iter().zip(with).map(|(b, r)| b * r).sum();
    // Rounding may leave the explained share just above 1.
    let rest = (1.0 - explained).max(0.0);
    let partial = |(b, inverse): (&f64, f64)| {
        let left_by_others = rest + b * b / inverse;
        if left_by_others > NOTHING_LEFT { b / (rest * inverse + b * b).sqrt() } else { f64::NAN }
    };
    coefficients.iter().zip(factor.inverse_diagonal()).map(partial).collect()
}

fn correlate(
    columns: &Columns,
    responses: &[Response<'_>],
    bootstrap: Bootstrap,
    method: Statistic,
) -> Result<Vec<Correlations>, AnalysisError> {
    let analyzed = analyze(columns, responses, bootstrap, method)?;
    let of = |(response, analyzed): (&Response<'_>, Coefficients)| Correlations {
        response: response.name.to_owned(),
        evaluations_used: analyzed.used,
        evaluations_dropped: analyzed.dropped,
        no_variation: analyzed.no_variation,
        resamples: bootstrap.resamples,
        parameters: coefficients(columns.names(), &analyzed.estimates),
    };
    Ok(responses.iter().zip(analyzed).map(of).collect())
}

/// Returns one coefficient per name. Absent without an estimate.
pub(crate) fn coefficients(names: &[String], estimates: &[Estimate]) -> Vec<Coefficient> {
    let estimate = |place| estimates.get(place).copied().unwrap_or_default();
    let of =
        |(place, name): (usize, &String)| Coefficient { name: name.clone(), coefficient: estimate(place) };
    names.iter().enumerate().map(of).collect()
}
