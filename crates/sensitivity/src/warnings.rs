//! What a reader of indices has to be told: intervals that span zero, samples that are small, evaluations that failed.
//!
//! Follows from indices alone, of any method. Nothing is decided by it.

use crate::correlation::Coefficient;
use crate::estimate::Estimate;
use crate::indices::Indices;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Something to keep in mind when reading indices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "warning", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Warning {
    /// The response does not vary: there is nothing to explain.
    NoVariation {
        /// Name of the response.
        response: String,
    },
    /// The method wants more than it was given.
    SmallSample {
        /// What is counted.
        unit: String,
        /// How many are used.
        used: usize,
        /// From how many on indices settle.
        advised: usize,
    },
    /// Failed evaluations took others with them, or were left out.
    Dropped {
        /// What is counted.
        unit: String,
        /// How many are used.
        used: usize,
        /// How many are not.
        dropped: usize,
    },
    /// The interval of an index holds 0: the data do not show that the parameter matters in this way.
    SpansZero {
        /// The parameter, or two of them.
        parameter: String,
        /// The index, as results name it.
        index: String,
        /// Its value.
        value: f64,
        /// Half-width of its interval.
        conf: f64,
    },
    /// An index is not defined.
    Undefined {
        /// The parameter.
        parameter: String,
        /// The index, as results name it.
        index: String,
    },
    /// The linear model explains less than half of the variance: coefficients tell little.
    PoorModel {
        /// Share of the variance that it explains.
        r_squared: f64,
    },
    /// First-order indices sum to more than 1 by more than their intervals allow: the sample is too small.
    SumAboveOne {
        /// The sum.
        sum: f64,
    },
    /// The method's intervals are known to be unreliable.
    IndicativeIntervals,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoVariation { response } => {
                write!(f, "no variation: {response} is the same in all evaluations used")
            }
            Self::SmallSample { unit, used, advised } => {
                write!(f, "{used} {unit} are few for this method; {advised} and more are advised")
            }
            Self::Dropped { unit, used, dropped } => {
                write!(f, "{dropped} of {} {unit} are left out, because evaluations failed", used + dropped)
            }
            Self::SpansZero { parameter, index, value, conf } => {
                write!(f, "{index} of {parameter} is {value:.4} ± {conf:.4}, which spans zero")
            }
            Self::Undefined { parameter, index } => write!(f, "{index} of {parameter} is not defined"),
            Self::PoorModel { r_squared } => {
                write!(f, "the linear model explains {:.0} % of the variance only", 100.0 * r_squared)
            }
            Self::SumAboveOne { sum } => {
                write!(f, "first-order indices sum to {sum:.3}, which is above 1: more samples are needed")
            }
            Self::IndicativeIntervals => {
                write!(
                    f,
                    "intervals of this method take points of a curve for independent; they are indicative only"
                )
            }
        }
    }
}

/// How many trajectories the papers take at least (000 §2.2: 5 to 15).
const TRAJECTORIES: usize = 5;

/// How many base samples the papers take at least (001 §3: hundreds to thousands).
const BASE_SAMPLES: usize = 100;

/// Evaluations for each regression coefficient from which R² is not made of chance: a rule of thumb of regression.
const ROWS_PER_COEFFICIENT: usize = 10;

/// Evaluations for each class, slice or harmonic, likewise.
const ROWS_PER_CLASS: usize = 20;

impl Indices {
    /// What to keep in mind when reading these indices, weightiest first.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let mut list = List::default();
        if self.no_variation() {
            return vec![Warning::NoVariation { response: self.response().to_owned() }];
        }
        match self {
            Self::Moat(found) => {
                list.sample(
                    "trajectories",
                    found.trajectories_used,
                    found.trajectories_dropped,
                    TRAJECTORIES,
                );
                for parameter in &found.parameters {
                    let (value, conf) = (Some(parameter.mu_star), parameter.mu_star_conf);
                    list.index("mu_star", &parameter.name, Estimate { value, conf, ..Estimate::ABSENT });
                }
            }
            Self::Pearson(found) | Self::Spearman(found) | Self::Pcc(found) | Self::Prcc(found) => {
                let advised = ROWS_PER_COEFFICIENT * (found.parameters.len() + 1);
                list.sample("evaluations", found.evaluations_used, found.evaluations_dropped, advised);
                list.coefficients("coefficient", &found.parameters);
            }
            Self::Src(found) | Self::Srrc(found) => {
                let advised = ROWS_PER_COEFFICIENT * (found.parameters.len() + 1);
                list.sample("evaluations", found.evaluations_used, found.evaluations_dropped, advised);
                if let Some(r_squared) = found.r_squared.value.filter(|&share| share < 0.5) {
                    list.0.push(Warning::PoorModel { r_squared });
                }
                list.coefficients("coefficient", &found.parameters);
            }
            Self::Vbd(found) => {
                list.sample("base samples", found.samples_used, found.samples_dropped, BASE_SAMPLES);
                list.sum(found.parameters.iter().map(|parameter| parameter.first));
                for parameter in &found.parameters {
                    list.index("first", &parameter.name, parameter.first);
                    list.index("total", &parameter.name, parameter.total);
                }
                for pair in found.pairs.iter().flatten() {
                    list.index("second", &format!("{}, {}", pair.one, pair.other), pair.second);
                }
            }
            Self::Pawn(found) => {
                let advised = ROWS_PER_CLASS * found.slices;
                list.sample("evaluations", found.evaluations_used, found.evaluations_dropped, advised);
                for parameter in &found.parameters {
                    list.index("median", &parameter.name, parameter.median);
                }
            }
            Self::Delta(found) => {
                let advised = ROWS_PER_CLASS * found.classes;
                list.sample("evaluations", found.evaluations_used, found.evaluations_dropped, advised);
                for parameter in &found.parameters {
                    list.index("delta", &parameter.name, parameter.delta);
                    list.index("first", &parameter.name, parameter.first);
                }
            }
            Self::Efast(found) => {
                list.0.push(Warning::IndicativeIntervals);
                let (used, dropped) = (found.evaluations_used, found.evaluations_dropped);
                // Curves that are long enough are a matter of the design.
                list.sample("evaluations", used, dropped, 0);
                for parameter in &found.parameters {
                    list.index("first", &parameter.name, parameter.first);
                    list.index("total", &parameter.name, parameter.total);
                }
            }
            Self::RbdFast(found) => {
                let advised = ROWS_PER_CLASS * found.harmonics;
                list.sample("evaluations", found.evaluations_used, found.evaluations_dropped, advised);
                list.coefficients("first", &found.parameters);
            }
        }
        list.0
    }
}

#[derive(Default)]
struct List(Vec<Warning>);

impl List {
    fn sample(&mut self, unit: &str, used: usize, dropped: usize, advised: usize) {
        let unit = unit.to_owned();
        if used < advised {
            self.0.push(Warning::SmallSample { unit: unit.clone(), used, advised });
        }
        if dropped > 0 {
            self.0.push(Warning::Dropped { unit, used, dropped });
        }
    }

    fn index(&mut self, index: &str, parameter: &str, estimate: Estimate) {
        let (parameter, index) = (parameter.to_owned(), index.to_owned());
        match (estimate.value, estimate.conf) {
            (None, _) => self.0.push(Warning::Undefined { parameter, index }),
            (Some(value), Some(conf)) if value.abs() <= conf => {
                self.0.push(Warning::SpansZero { parameter, index, value, conf });
            }
            _ => {}
        }
    }

    fn coefficients(&mut self, index: &str, coefficients: &[Coefficient]) {
        for coefficient in coefficients {
            self.index(index, &coefficient.name, coefficient.coefficient);
        }
    }

    fn sum(&mut self, estimates: impl Iterator<Item = Estimate>) {
        let (mut sum, mut squares) = (0.0, 0.0);
        for estimate in estimates {
            let (Some(value), Some(conf)) = (estimate.value, estimate.conf) else { return };
            sum += value;
            squares += conf * conf;
        }
        if sum - f64::sqrt(squares) > 1.0 {
            self.0.push(Warning::SumAboveOne { sum });
        }
    }
}
