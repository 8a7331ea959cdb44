//! Standardized regression coefficients: a linear model of the response in units of standard deviations
//! (SRC), or of ranks (SRRC).
//!
//! A coefficient is the change of the response, in its standard deviations, per standard deviation of the
//! parameter. R² is the share of the response's variance that the model explains. A low R² makes coefficients
//! unreliable: effects that are not linear (not monotonic, on ranks) are in the remainder. Source: Helton et
//! al., "Survey of sampling-based methods for uncertainty and sensitivity analysis", Reliability Engineering
//! & System Safety 91 (2006), sections 6.3 and 6.6. A failed evaluation drops its row. Parameters are not
//! selected stepwise.

use crate::design::columns::Columns;
use crate::methods::correlation::{Coefficient, coefficients};
use crate::methods::linear::{Coefficients, Conditioning, Statistic, ValueScale, analyze};
use crate::statistics::bootstrap::Bootstrap;
use crate::statistics::cholesky::Cholesky;
use crate::statistics::error::AnalysisError;
use crate::statistics::estimate::Estimate;
use crate::statistics::responses::Response;
use serde::{Deserialize, Serialize};

/// Linear model of one response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Regression {
    /// Name of the response.
    pub response: String,
    /// Number of evaluations in the fit.
    pub evaluations_used: usize,
    /// Evaluations left out, because they failed.
    pub evaluations_dropped: usize,
    /// Whether the response is the same everywhere: no model is defined then.
    pub no_variation: bool,
    /// Bootstrap resamples behind the intervals.
    pub resamples: u32,
    /// Share of the response's variance that the model explains, within [0, 1]. It is not adjusted for the
    /// number of parameters.
    pub r_squared: Estimate,
    /// One entry per parameter, in the order of the parameters.
    pub parameters: Vec<Coefficient>,
}

/// Computes standardized regression coefficients (SRC), one entry per response. Each response has one value
/// per row of `columns`.
///
/// # Errors
/// [`AnalysisError`] if responses do not fit, there are fewer than 2 evaluations more than parameters, a
/// parameter has one value, or a parameter depends on others.
pub fn src(
    columns: &Columns,
    responses: &[Response<'_>],
    bootstrap: Bootstrap,
) -> Result<Vec<Regression>, AnalysisError> {
    regress(columns, responses, bootstrap, "src", ValueScale::Numbers)
}

/// Computes standardized rank regression coefficients (SRRC): [`src()`] of ranks.
///
/// # Errors
/// As [`src()`].
pub fn srrc(
    columns: &Columns,
    responses: &[Response<'_>],
    bootstrap: Bootstrap,
) -> Result<Vec<Regression>, AnalysisError> {
    regress(columns, responses, bootstrap, "srrc", ValueScale::Ranks)
}

fn regress(
    columns: &Columns,
    responses: &[Response<'_>],
    bootstrap: Bootstrap,
    name: &'static str,
    scale: ValueScale,
) -> Result<Vec<Regression>, AnalysisError> {
    let method = Statistic { name, scale, regard: Conditioning::All, statistic: model };
    let analyzed = analyze(columns, responses, bootstrap, method)?;
    let of = |(response, analyzed): (&Response<'_>, Coefficients)| Regression {
        response: response.name.to_owned(),
        evaluations_used: analyzed.used,
        evaluations_dropped: analyzed.dropped,
        no_variation: analyzed.no_variation,
        resamples: bootstrap.resamples,
        r_squared: analyzed.estimates.last().copied().unwrap_or(Estimate::ABSENT),
        parameters: coefficients(columns.names(), &analyzed.estimates),
    };
    Ok(responses.iter().zip(analyzed).map(of).collect())
}

/// Returns the coefficients, and R² after them.
fn model(with: &[f64], factor: Option<&Cholesky>) -> Vec<f64> {
    let Some(factor) = factor else { return Vec::new() };
    let mut values = with.to_vec();
    factor.solve(&mut values);
    let explained: f64 = values.iter().zip(with).map(|(b, r)| b * r).sum();
    values.push(explained.clamp(0.0, 1.0));
    values
}
