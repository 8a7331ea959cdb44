//! Estimators of Sobol' indices, each a function of means over base samples.
//!
//! Each base sample has a row of terms, computed from its block of responses. Indices follow from the means
//! of the columns, so a resample costs one weighted mean of a table with any estimator. The caller draws the
//! blocks and drops incomplete ones.

use serde::{Deserialize, Serialize};

/// Estimator of first-order (S) and total (T) indices from responses a, b, aᵢ (A with column i of B), with
/// mean μ and variance V of all a and b. Second-order indices follow Saltelli (2002) with each: (E[bⱼ·aₖ] −
/// E[a·b])/V − Sⱼ − Sₖ, with bⱼ the response of B with column j of A.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Estimator {
    /// Saltelli et al. (2010), Computer Physics Communications 181, table 2 (b) and (f), as SALib's: S = E[b(aᵢ − a)]/V,
    /// T = E[(a − aᵢ)²]/2V.
    #[default]
    Saltelli,
    /// Jansen (1999), Computer Physics Communications 117: S = 1 − E[(b − aᵢ)²]/2V, T = E[(a − aᵢ)²]/2V.
    Jansen,
    /// Janon et al. (2014), ESAIM: Probability and Statistics 18, T_N: S = (E[b·aᵢ] − m²)/(E[(b² + aᵢ²)/2] − m²) with
    /// m = E[(b + aᵢ)/2]; T = 1 − the same of a instead of b.
    Janon,
}

/// Layout of the terms of a base sample: those of V, of each parameter, and of each pair.
pub(super) struct Layout {
    estimator: Estimator,
    varying: usize,
    second_order: bool,
}

/// Number of terms for V: mean and mean square of a and b.
const COMMON: usize = 2;

impl Layout {
    pub(super) fn new(estimator: Estimator, varying: usize, second_order: bool) -> Self {
        Self { estimator, varying, second_order }
    }

    fn per_parameter(&self) -> usize {
        match self.estimator {
            Estimator::Saltelli | Estimator::Jansen => 2,
            Estimator::Janon => 6,
        }
    }

    fn pairs(&self) -> usize {
        if self.second_order { self.varying * (self.varying - 1) / 2 } else { 0 }
    }

    /// Number of terms of a base sample.
    pub(super) fn width(&self) -> usize {
        COMMON + self.per_parameter() * self.varying + self.pairs()
    }

    /// Returns the terms of all base samples, row by row. `responses` holds each block as a, aᵢ …, bᵢ …, b.
    pub(super) fn terms(&self, responses: &[f64]) -> Vec<f64> {
        let length = if self.second_order { 2 * self.varying } else { self.varying } + 2;
        let mut terms = Vec::with_capacity(responses.len() / length * self.width());
        for block in responses.chunks_exact(length) {
            let (a, b) = (block[0], block[length - 1]);
            let mixed = &block[1..=self.varying];
            terms.extend([(a + b) / 2.0, (a * a + b * b) / 2.0]);
            for &one in mixed {
                let total = (a - one) * (a - one) / 2.0;
                match self.estimator {
                    Estimator::Saltelli => terms.extend([b * (one - a), total]),
                    Estimator::Jansen => terms.extend([(b - one) * (b - one) / 2.0, total]),
                    Estimator::Janon => {
                        for other in [b, a] {
                            let square = (other * other + one * one) / 2.0;
                            terms.extend([other * one, (other + one) / 2.0, square]);
                        }
                    }
                }
            }
            if self.second_order {
                for one in 0..self.varying {
                    let b_with_a = block[1 + self.varying + one];
                    terms.extend(mixed[one + 1..].iter().map(|a_with_b| b_with_a * a_with_b - a * b));
                }
            }
        }
        terms
    }

    /// Returns the indices from the means of the terms: first-order, total, then those of pairs. NaN where
    /// not defined.
    pub(super) fn indices(&self, means: &[f64]) -> Vec<f64> {
        // Responses have variance 1 over all rows, so this variance is a share of it.
        let variance = means[1] - means[0] * means[0];
        let share = |part: f64| if variance > f64::EPSILON { part / variance } else { f64::NAN };
        let (of_parameters, of_pairs) = means[COMMON..].split_at(self.per_parameter() * self.varying);
        let each = of_parameters.chunks_exact(self.per_parameter());
        let first = each.clone().map(|terms| match self.estimator {
            Estimator::Saltelli => share(terms[0]),
            Estimator::Jansen => 1.0 - share(terms[0]),
            Estimator::Janon => correlation(&terms[..3]),
        });
        let mut indices: Vec<f64> = first.collect();
        indices.extend(each.map(|terms| match self.estimator {
            Estimator::Saltelli | Estimator::Jansen => share(terms[1]),
            Estimator::Janon => 1.0 - correlation(&terms[3..]),
        }));
        let mut of_pairs = of_pairs.iter();
        for one in 0..self.varying {
            for other in one + 1..self.varying {
                if let Some(&mean) = of_pairs.next() {
                    indices.push(share(mean) - indices[one] - indices[other]);
                }
            }
        }
        indices
    }
}

/// Returns Janon's quotient of the mean product, mean and mean square of two responses.
fn correlation(means: &[f64]) -> f64 {
    let square = means[1] * means[1];
    let variance = means[2] - square;
    if variance > f64::EPSILON { (means[0] - square) / variance } else { f64::NAN }
}
