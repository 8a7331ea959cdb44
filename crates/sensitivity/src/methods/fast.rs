//! eFAST (extended Fourier amplitude sensitivity test): first-order and total indices from one search curve per
//! parameter.
//!
//! On its own curve a parameter oscillates at a high frequency, and all other parameters at low ones: its harmonics
//! hold the variance that it explains alone, the low frequencies the variance without it. Sources: Saltelli,
//! Tarantola and Chan, Technometrics 41 (1999). Cukier et al., Journal of Chemical Physics 59 (1973). Frequencies
//! and values are those of SALib's `sample.fast_sampler` and `analyze.fast`. [`crate::sampling::fast`] draws the
//! sample.
//!
//! A curve requires all of its evaluations: a failed evaluation drops the curve of its parameter, whose indices are
//! then absent. Intervals are those of SALib: each resample is half a curve from a random start. SALib and
//! [`crate::methods::warnings`] warn that they are unreliable, because points of a curve are no independent samples.

pub use crate::design::curves::Curves;

use crate::design::curves::high_frequency;
use crate::methods::spectrum::{Spectrum, variance};
use crate::statistics::bootstrap::Bootstrap;
use crate::statistics::error::AnalysisError;
use crate::statistics::estimate::Estimate;
use crate::statistics::responses::{Response, is_constant, standardized};
use crate::statistics::rng::{self, RngStream};
use rand::RngExt;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Number of harmonics, as in SALib.
pub const HARMONICS: usize = 4;

/// Indices of one response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FastIndices {
    /// Name of the response.
    pub response: String,
    /// Number of evaluations on complete curves.
    pub evaluations_used: usize,
    /// Number of excluded evaluations.
    pub evaluations_dropped: usize,
    /// Whether the response is the same everywhere: no index is defined then.
    pub no_variation: bool,
    /// Resamples behind the intervals.
    pub resamples: u32,
    /// Number of summed harmonics.
    pub harmonics: usize,
    /// One entry per parameter, in the order of the curves.
    pub parameters: Vec<FastParameter>,
}

/// Indices of one parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FastParameter {
    /// The parameter.
    pub name: String,
    /// First-order index. Absent if an evaluation of the parameter's curve failed, or the response is constant on
    /// it.
    pub first: Estimate,
    /// Total index. Absent in the same cases.
    pub total: Estimate,
    /// Failed evaluations of its curve.
    pub failed: usize,
}

/// Computes the indices of each response, with one value per row of the curves.
///
/// # Errors
/// [`AnalysisError`] if responses do not fit, or no curve is complete.
pub fn indices(
    curves: &Curves,
    responses: &[Response<'_>],
    bootstrap: Bootstrap,
) -> Result<Vec<FastIndices>, AnalysisError> {
    let transforms = Transforms::new(curves.samples(), curves.harmonics());
    responses.iter().map(|response| of_response(curves, response, &transforms, bootstrap)).collect()
}

fn of_response(
    curves: &Curves,
    response: &Response<'_>,
    transforms: &Transforms,
    bootstrap: Bootstrap,
) -> Result<FastIndices, AnalysisError> {
    response.check(curves.rows())?;
    let one = |(place, name): (usize, &String)| {
        let values = &response.values[place * curves.samples()..(place + 1) * curves.samples()];
        let whole: Vec<f64> = values.iter().copied().flatten().collect();
        let failed = values.len() - whole.len();
        let (first, total) = if failed > 0 || is_constant(&whole) {
            (Estimate::ABSENT, Estimate::ABSENT)
        } else {
            transforms.estimates(&standardized(&whole), place, bootstrap)
        };
        FastParameter { name: name.clone(), first, total, failed }
    };
    let parameters: Vec<FastParameter> = curves.names().iter().enumerate().map(one).collect();
    let dropped = curves.samples() * parameters.iter().filter(|parameter| parameter.failed > 0).count();
    let used = curves.rows() - dropped;
    // Complete curves still give their parameters' indices, so only the loss of all curves is an error.
    if used == 0 {
        return Err(AnalysisError::TooFew {
            response: response.name.to_owned(),
            method: "efast",
            unit: "evaluations of complete curves",
            used,
            dropped,
            needed: curves.samples(),
        });
    }
    let all: Vec<f64> = response.values.iter().copied().flatten().collect();
    Ok(FastIndices {
        response: response.name.to_owned(),
        evaluations_used: used,
        evaluations_dropped: dropped,
        no_variation: is_constant(&all),
        resamples: bootstrap.resamples,
        harmonics: curves.harmonics(),
        parameters,
    })
}

/// Fourier transforms of whole and of half curves.
struct Transforms {
    harmonics: usize,
    spectrum: Spectrum,
    half: Spectrum,
    half_length: usize,
}

impl Transforms {
    fn new(samples: usize, harmonics: usize) -> Self {
        let half_length = samples.div_ceil(2);
        Self { harmonics, spectrum: Spectrum::new(samples), half: Spectrum::new(half_length), half_length }
    }

    /// Returns the first-order and total index of a curve, with their intervals.
    fn estimates(&self, curve: &[f64], place: usize, bootstrap: Bootstrap) -> (Estimate, Estimate) {
        let (first, total) = orders(curve, &self.spectrum, self.harmonics);
        let resample = |index: u32| {
            // A study has at most a few dozen curves, so the upper half of the seed distinguishes them.
            let seed = bootstrap.seed ^ ((place as u64 + 1) << 32);
            let begin = rng::generator(seed, RngStream::Resample(index)).random_range(0..curve.len() as u32);
            let part: Vec<f64> =
                curve.iter().cycle().skip(begin as usize).take(self.half_length).copied().collect();
            orders(&part, &self.half, self.harmonics)
        };
        let resampled: Vec<(f64, f64)> = (0..bootstrap.resamples).into_par_iter().map(resample).collect();
        // Half a curve has other indices than a whole one, so only the spread of resamples is used.
        let of = |value, resamples: Vec<f64>| Estimate {
            low: None,
            high: None,
            ..Estimate::of(value, resamples.into_iter())
        };
        let (firsts, totals) = resampled.into_iter().unzip();
        (of(first, firsts), of(total, totals))
    }
}

/// Returns the first-order and the total index of a curve. NaN for a constant curve.
fn orders(curve: &[f64], spectrum: &Spectrum, harmonics: usize) -> (f64, f64) {
    let powers = spectrum.powers(curve);
    let high = high_frequency(curve.len(), harmonics);
    // SALib's variance omits the middle frequency of an even length.
    let middle = if curve.len().is_multiple_of(2) { powers[curve.len() / 2] } else { 0.0 };
    let variance = variance(curve) - middle;
    let alone: f64 = (1..=harmonics).map(|harmonic| powers[harmonic * high]).sum();
    let others: f64 = powers[1..=high / 2].iter().sum();
    (2.0 * alone / variance, 1.0 - 2.0 * others / variance)
}
