//! Search curves for eFAST: on each, one varying parameter oscillates fast and all other ones slowly, from a random
//! phase.
//!
//! Source: Saltelli, Tarantola and Chan, "A quantitative model-independent method for global sensitivity analysis
//! of model output", Technometrics 41 (1999), equation (20): x = ½ + arcsin(sin(ωs + φ))/π, with one random phase φ
//! per curve, as in SALib's `sample.fast_sampler`. A parameter sweeps its range evenly, and levels are equally
//! likely. [`Curves`] defines the frequencies, and [`crate::methods::fast`] computes indices.

use super::{Design, MAX_EVALUATIONS, Structure, resting_value, varying};
use crate::design::curves::Curves;
use crate::design::marginal::Marginal;
use crate::statistics::error::AnalysisError;
use crate::statistics::rng::{self, RngStream};
use pleach_workflow::{Parameter, Value};
use rand::RngExt;
use std::f64::consts::{PI, TAU};
use thiserror::Error;

/// Settings of an eFAST sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fast {
    /// Evaluations of each varying parameter's curve, more than 4·harmonics².
    pub samples: u32,
    /// Number of separated harmonics, at least 1. SALib uses 4.
    pub harmonics: u32,
    /// Seed of the study, for the phases.
    pub seed: u64,
}

/// Cause of failed search curves.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FastError {
    /// Every parameter is fixed or has one value.
    #[error("no parameter varies; at least one needs a range or two values")]
    NothingVaries,
    /// Too few samples or no harmonics.
    #[error(transparent)]
    Curves(#[from] AnalysisError),
    /// A range that `f64` numbers cannot divide, or a range of reals for whole numbers.
    #[error(
        "parameter {name} cannot be drawn from [{low}, {high}]; allowed are reals within a finite range, or two values and more"
    )]
    BadRange {
        /// The parameter.
        name: String,
        /// Its smallest value.
        low: f64,
        /// Its largest value.
        high: f64,
    },
    /// More parameter sets than are held in memory.
    #[error(
        "samples = {samples} of {varying} curves are too many evaluations; at most {MAX_EVALUATIONS} are \
         allowed"
    )]
    TooManyEvaluations {
        /// Requested samples per curve.
        samples: u32,
        /// Number of varying parameters.
        varying: usize,
    },
}

/// Draws the curves, one after the other in the order of the parameters, and returns their structure.
///
/// Unlike with other samplers, a different number of samples gives different sets: they cannot extend a study.
///
/// # Errors
/// [`FastError`] if no parameter varies, a curve is too short, a range cannot be sampled, or the sample is too
/// large.
pub fn sample(parameters: &[Parameter], fast: &Fast) -> Result<(Design, Curves), FastError> {
    let varying = varying(parameters);
    if varying.is_empty() {
        return Err(FastError::NothingVaries);
    }
    if u64::from(fast.samples) * varying.len() as u64 > MAX_EVALUATIONS {
        let (samples, varying) = (fast.samples, varying.len());
        return Err(FastError::TooManyEvaluations { samples, varying });
    }
    let names = varying.iter().map(|&column| parameters[column].name.clone()).collect();
    let curves = Curves::new(names, fast.samples as usize, fast.harmonics as usize)?;
    let resting: Vec<Value> = parameters.iter().map(resting_value).collect();
    let bad_range = |column: usize| {
        let (low, high) = parameters[column].domain.bounds();
        FastError::BadRange { name: parameters[column].name.clone(), low, high }
    };
    let marginals: Vec<Marginal<'_>> = varying
        .iter()
        .map(|&column| Marginal::of(&parameters[column]).ok_or_else(|| bad_range(column)))
        .collect::<Result<_, _>>()?;
    let mut evaluations = Vec::with_capacity(curves.rows());
    for curve in 0..varying.len() {
        // The number of parameters fits in a `u32` everywhere.
        let phase = TAU * rng::generator(fast.seed, RngStream::Curve(curve as u32)).random::<f64>();
        for at in 0..curves.samples() {
            let mut point = resting.clone();
            for (place, &column) in varying.iter().enumerate() {
                // Computes the turn modulo 1 in integers, so that late samples are as exact as early ones.
                let turn = (curves.frequency(curve, place) * at) % curves.samples();
                let angle = TAU * turn as f64 / curves.samples() as f64 + phase;
                let value = marginals[place].value(0.5 + angle.sin().asin() / PI);
                point[column] = value.ok_or_else(|| bad_range(column))?;
            }
            evaluations.push(point);
        }
    }
    let structure = Structure::Curves(curves.clone());
    Ok((Design { structure, ..Design::of_rows(parameters, evaluations) }, curves))
}

#[cfg(test)]
mod tests {
    use super::super::examples::{integers, reals};
    use super::*;

    #[test]
    fn invalid_curves_are_refused_with_the_cause() {
        let ask = |parameters: &[Parameter], samples, harmonics| {
            sample(parameters, &Fast { samples, harmonics, seed: 1 }).unwrap_err().to_string()
        };
        let free = [reals("T1", 0.0, 1.0), reals("T2", 0.0, 1.0)];
        assert!(
            ask(&free, 64, 4)
                .starts_with("samples = 64 does not suit efast; allowed are more than 4·harmonics²")
        );
        assert!(ask(&free, 65, 0).starts_with("harmonics = 0 does not suit efast"));
        assert!(ask(&[], 65, 4).starts_with("no parameter varies"));
        assert!(ask(&free, u32::MAX, 4).contains("too many evaluations"));
        assert!(ask(&[reals("T1", 2.0, 1.0)], 65, 4).contains("T1 cannot be drawn from [2, 1]"));
    }

    #[test]
    fn each_parameter_sweeps_its_range_evenly_on_each_curve() {
        let parameters = [reals("a", -1.0, 1.0), integers("b", &[1.0, 2.0, 3.0, 4.0]), reals("c", 0.0, 8.0)];
        let (design, curves) = sample(&parameters, &Fast { samples: 1000, harmonics: 4, seed: 7 }).unwrap();
        assert_eq!(design.evaluations.len(), curves.rows());
        for curve in design.evaluations.chunks(1000) {
            for (column, (low, width)) in [(-1.0, 2.0), (0.5, 4.0), (0.0, 8.0)].into_iter().enumerate() {
                let mut quarters = [0_i32; 4];
                for row in curve {
                    quarters[((row[column].as_f64() - low) / width * 4.0).min(3.0) as usize] += 1;
                }
                assert!(quarters.iter().all(|count| (count - 250).abs() <= 20), "{quarters:?}");
            }
        }
    }

    /// Frequencies equal those of SALib 1.6.0, `fast_sampler.sample` with N = 1000 and M = 4: ω = 124, and 1,
    /// 8, 15 for three other parameters.
    #[test]
    fn frequencies_are_those_of_salib() {
        let curves = |samples, names: &[&str]| {
            Curves::new(names.iter().map(ToString::to_string).collect(), samples, 4).unwrap()
        };
        let of = |curves: &Curves, curve| {
            (0..curves.names().len()).map(|at| curves.frequency(curve, at)).collect()
        };
        let four: [Vec<usize>; 2] = [0, 2].map(|curve| of(&curves(1000, &["a", "b", "c", "d"]), curve));
        assert_eq!(four, [vec![124, 1, 8, 15], vec![1, 8, 124, 15]]);
        let short: Vec<usize> = of(&curves(65, &["a", "b", "c"]), 1);
        assert_eq!(short, [1, 8, 1]);
        let two: Vec<usize> = of(&curves(1000, &["a", "b"]), 1);
        assert_eq!(two, [1, 124]);
    }
}
