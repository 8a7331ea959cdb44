//! Warnings on indices: small samples, failed evaluations, wide intervals, parameters without effect.
//!
//! Each kind gives one warning for all affected parameters. Warnings follow from the indices of any method. The
//! caller warns about the sample itself.

use crate::methods::correlation::Coefficient;
use crate::methods::indices::Indices;
use crate::statistics::estimate::Estimate;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A caution for readers of indices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "warning", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Warning {
    /// The response does not vary, so the indices explain nothing.
    NoVariation {
        /// Name of the response.
        response: String,
    },
    /// The sample is smaller than the method needs for stable indices.
    SmallSample {
        /// Counted unit.
        unit: String,
        /// Number used.
        used: usize,
        /// Minimum number for stable indices.
        advised: usize,
    },
    /// Failed evaluations are excluded, and further evaluations with them where the method needs complete
    /// units.
    Dropped {
        /// Counted unit.
        unit: String,
        /// Number used.
        used: usize,
        /// Number excluded.
        dropped: usize,
    },
    /// Parameters without any effect on the response in the sample: their index and its interval are exactly
    /// 0.
    NoEffect {
        /// The index, as results name it.
        index: String,
        /// The parameters.
        parameters: Vec<String>,
    },
    /// The interval of an index contains 0: the sample does not show an influence of this kind.
    SpansZero {
        /// The index, as results name it.
        index: String,
        /// The parameters, or pairs of them.
        parameters: Vec<String>,
        /// Number of all parameters, or pairs, that have the index.
        of: usize,
    },
    /// The interval of a nonnegative index is wider than the index, so the order of the parameters is chance.
    Uncertain {
        /// The index, as results name it.
        index: String,
        /// The parameters.
        parameters: Vec<String>,
        /// Number of all parameters that have the index.
        of: usize,
    },
    /// An index is not defined.
    Undefined {
        /// The index, as results name it.
        index: String,
        /// The parameters, or pairs of them.
        parameters: Vec<String>,
    },
    /// The linear model explains less than half of the variance, so its coefficients are unreliable.
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
                write!(f, "{used} {unit} are few for this method; {advised} or more are recommended")
            }
            Self::Dropped { unit, used, dropped } => {
                write!(f, "{dropped} of {} {unit} are excluded, because evaluations failed", used + dropped)
            }
            Self::NoEffect { index, parameters } => {
                write!(f, "{index} is 0 for {}: no evaluation shows an effect", listed(parameters))
            }
            Self::SpansZero { index, parameters, of } => {
                let (count, all) = (parameters.len(), counted(index, *of));
                write!(
                    f,
                    "{index} has an interval that spans zero for {count} of {all}: {}",
                    listed(parameters)
                )
            }
            Self::Uncertain { index, parameters, of } => {
                let (count, all) = (parameters.len(), counted(index, *of));
                let names = listed(parameters);
                write!(f, "{index} is below the half-width of its interval for {count} of {all}: {names}")
            }
            Self::Undefined { index, parameters } => {
                write!(f, "{index} is not defined for {}", listed(parameters))
            }
            Self::PoorModel { r_squared } => {
                write!(f, "the linear model explains only {:.0} % of the variance", 100.0 * r_squared)
            }
            Self::SumAboveOne { sum } => {
                write!(f, "the sum of first-order indices is {sum:.3}, above 1: more samples are needed")
            }
            Self::IndicativeIntervals => {
                write!(
                    f,
                    "intervals of this method treat points of a curve as independent and are only indicative"
                )
            }
        }
    }
}

/// Maximum number of names in a line. Further names are only counted.
const MAX_NAMES: usize = 6;

fn listed(names: &[String]) -> String {
    let shown = names[..names.len().min(MAX_NAMES)].join(", ");
    match names.len().saturating_sub(MAX_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn counted(index: &str, of: usize) -> String {
    format!("{of} {}{}", if index == SECOND { "pair" } else { "parameter" }, if of == 1 { "" } else { "s" })
}

/// Name of the second-order index, which belongs to pairs.
const SECOND: &str = "second";

/// Minimum number of trajectories. Morris (1991) takes 4, Campolongo, Cariboni and Saltelli (2007) take 4–10,
/// and other studies of pipelines take 5–15.
const TRAJECTORIES: usize = 5;

/// Minimum number of base samples. Saltelli et al. (2010) and SALib's manual take hundreds to thousands.
const BASE_SAMPLES: usize = 100;

/// Minimum number of evaluations per regression coefficient, a rule of thumb. With fewer, chance inflates R².
const ROWS_PER_COEFFICIENT: usize = 10;

/// Minimum number of evaluations per slice of PAWN. With the usual 10 slices and Latin hypercubes, all 40
/// samples of 200 and more rank Ishigami's three parameters right. The first three of Sobol's G are right in
/// 13 of 40 samples of 500, in 21 of 1,000 and in 31 of 2,000 (`tests/truth/ranking.rs`).
const ROWS_PER_SLICE: usize = 100;

/// Minimum number of evaluations for delta. With 200 evaluations (4 classes), 0 of 40 samples rank
/// Ishigami's parameters right. With 300, 34 samples do, and with 700 and more, all. For Sobol's G, 19 of 40
/// samples of 200 rank the first three right, and 30 of 1,000 (ibid.).
const DELTA_ROWS: usize = 1_000;

/// Minimum number of evaluations per harmonic of RBD-FAST. With the usual 10 harmonics, 34 of 40 samples of
/// 100 rank Ishigami's parameters right, 38 of 200, and all of 300 and more. For the first three of Sobol's
/// G, 21 of 500 do, and 35 of 1,000 (ibid.).
const ROWS_PER_HARMONIC: usize = 50;

impl Indices {
    /// Returns the warnings on these indices, most severe first: one per kind and index for all affected
    /// parameters.
    #[must_use]
    pub fn warnings(&self) -> Vec<Warning> {
        let mut list = List::default();
        if self.no_variation() {
            return vec![Warning::NoVariation { response: self.response().to_owned() }];
        }
        match self {
            Self::Moat(found) => {
                let (used, dropped) = (found.trajectories_used, found.trajectories_dropped);
                list.sample("trajectories", used, dropped, TRAJECTORIES);
                let of = found.parameters.iter().map(|p| {
                    let (value, conf) = (Some(p.mu_star), p.mu_star_conf);
                    (p.name.clone(), Estimate { value, conf, ..Estimate::ABSENT })
                });
                list.indices("mu_star", Sign::Positive, of);
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
                list.indices("first", Sign::Any, found.parameters.iter().map(|p| (p.name.clone(), p.first)));
                list.indices("total", Sign::Any, found.parameters.iter().map(|p| (p.name.clone(), p.total)));
                let pairs = found.pairs.iter().flatten();
                let pairs = pairs.map(|pair| (format!("{} × {}", pair.one, pair.other), pair.second));
                list.indices(SECOND, Sign::Any, pairs);
            }
            Self::Pawn(found) => {
                let advised = ROWS_PER_SLICE * found.slices;
                list.sample("evaluations", found.evaluations_used, found.evaluations_dropped, advised);
                let of = found.parameters.iter().map(|p| (p.name.clone(), p.median));
                list.indices("median", Sign::Positive, of);
            }
            Self::Delta(found) => {
                list.sample("evaluations", found.evaluations_used, found.evaluations_dropped, DELTA_ROWS);
                let of = found.parameters.iter().map(|p| (p.name.clone(), p.delta));
                list.indices("delta", Sign::Positive, of);
                list.indices("first", Sign::Any, found.parameters.iter().map(|p| (p.name.clone(), p.first)));
            }
            Self::Efast(found) => {
                list.0.push(Warning::IndicativeIntervals);
                let (used, dropped) = (found.evaluations_used, found.evaluations_dropped);
                // The design ensures long enough curves, so no minimum applies.
                list.sample("evaluations", used, dropped, 0);
                list.indices("first", Sign::Any, found.parameters.iter().map(|p| (p.name.clone(), p.first)));
                list.indices("total", Sign::Any, found.parameters.iter().map(|p| (p.name.clone(), p.total)));
            }
            Self::RbdFast(found) => {
                let advised = ROWS_PER_HARMONIC * found.harmonics;
                list.sample("evaluations", found.evaluations_used, found.evaluations_dropped, advised);
                list.coefficients("first", &found.parameters);
            }
        }
        list.0
    }
}

/// Possible signs of an index.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    /// A mean or median of absolute values, which is never below 0. An interval that reaches 0 leaves its
    /// sign certain.
    Positive,
    /// Any sign.
    Any,
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

    /// Adds at most one warning of each kind.
    fn indices(&mut self, index: &str, sign: Sign, estimates: impl Iterator<Item = (String, Estimate)>) {
        let [mut undefined, mut without_effect, mut wide] = [const { Vec::new() }; 3];
        let mut of = 0;
        for (name, estimate) in estimates {
            of += 1;
            match (estimate.value, estimate.conf) {
                (None, _) => undefined.push(name),
                // Before the test of the interval, which 0 passes as well.
                (Some(0.0), Some(0.0)) => without_effect.push(name),
                (Some(value), Some(conf)) if value.abs() <= conf => wide.push(name),
                _ => {}
            }
        }
        let index = || index.to_owned();
        if !undefined.is_empty() {
            self.0.push(Warning::Undefined { index: index(), parameters: undefined });
        }
        if !wide.is_empty() {
            self.0.push(match sign {
                Sign::Positive => Warning::Uncertain { index: index(), parameters: wide, of },
                Sign::Any => Warning::SpansZero { index: index(), parameters: wide, of },
            });
        }
        if !without_effect.is_empty() {
            self.0.push(Warning::NoEffect { index: index(), parameters: without_effect });
        }
    }

    fn coefficients(&mut self, index: &str, coefficients: &[Coefficient]) {
        let of = coefficients.iter().map(|coefficient| (coefficient.name.clone(), coefficient.coefficient));
        self.indices(index, Sign::Any, of);
    }

    fn sum(&mut self, estimates: impl Iterator<Item = Estimate>) {
        let (mut sum, mut squares) = (0.0, 0.0);
        for estimate in estimates {
            let (Some(value), Some(conf)) = (estimate.value, estimate.conf) else { return };
            sum += value;
            // Half-widths add as squares, as if the estimates were independent.
            squares += conf * conf;
        }
        if sum - f64::sqrt(squares) > 1.0 {
            self.0.push(Warning::SumAboveOne { sum });
        }
    }
}
