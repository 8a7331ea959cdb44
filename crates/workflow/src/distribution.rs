//! Distributions of reals that are not uniform over a range: data and validation. Samplers draw the values.

use crate::domain_error::{DomainError, MAX_DEVIATIONS};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Distribution of a real parameter. Numbers are finite. [`Distribution::check`] checks the other conditions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "shape")]
pub enum Distribution {
    /// The logarithm is uniform: `0 < low < high`.
    LogUniform {
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
    },
    /// Normal, without bounds.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation, above 0.
        deviation: f64,
    },
    /// Normal, truncated to the bounds: `low < high`.
    TruncatedNormal {
        /// Mean of the normal distribution that is truncated.
        mean: f64,
        /// Standard deviation, above 0.
        deviation: f64,
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
    },
    /// Rises in a line from `low` to `mode` and falls in a line to `high`: `low <= mode <= high`, `low < high`.
    Triangular {
        /// Smallest value.
        low: f64,
        /// The likeliest value.
        mode: f64,
        /// Largest value.
        high: f64,
    },
    /// The natural logarithm is normal. Values are above 0, without an upper bound.
    LogNormal {
        /// Mean of the logarithm. Its exponential is the median.
        mean: f64,
        /// Standard deviation of the logarithm, above 0.
        deviation: f64,
    },
}

impl Distribution {
    /// Names of all distributions in study files.
    pub const NAMES: [&'static str; 6] =
        ["uniform", "log-uniform", "normal", "truncated-normal", "triangular", "log-normal"];

    /// Deviations from the mean of the logarithm within which a log-normal value must be a finite number above 0.
    /// Samplers reach 6.4, half a cell of 2⁻³² from the ends.
    const LOG_NORMAL_REACH: f64 = 6.5;

    /// Maximum distance of the bounds of a truncated normal distribution from its mean, in deviations. Beyond it,
    /// an f64 cannot distinguish the remaining probability from 0.
    pub const MAX_BOUND_DEVIATIONS: f64 = MAX_DEVIATIONS;

    /// Returns the name in study files.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::LogUniform { .. } => "log-uniform",
            Self::Normal { .. } => "normal",
            Self::TruncatedNormal { .. } => "truncated-normal",
            Self::Triangular { .. } => "triangular",
            Self::LogNormal { .. } => "log-normal",
        }
    }

    /// Returns the smallest and the largest value. Infinite without bounds.
    #[must_use]
    pub fn bounds(&self) -> (f64, f64) {
        match *self {
            Self::Normal { .. } => (f64::NEG_INFINITY, f64::INFINITY),
            Self::LogNormal { .. } => (0.0, f64::INFINITY),
            Self::LogUniform { low, high }
            | Self::TruncatedNormal { low, high, .. }
            | Self::Triangular { low, high, .. } => (low, high),
        }
    }

    /// Returns the distribution if its numbers are valid.
    ///
    /// # Errors
    /// Returns a [`DomainError`] for numbers that are not finite, empty ranges, and invalid distribution parameters.
    pub fn check(self) -> Result<Self, DomainError> {
        let numbers = match self {
            Self::LogUniform { low, high } => [low, high, 0.0, 0.0],
            Self::Normal { mean, deviation } | Self::LogNormal { mean, deviation } => {
                [mean, deviation, 0.0, 0.0]
            }
            Self::TruncatedNormal { mean, deviation, low, high } => [mean, deviation, low, high],
            Self::Triangular { low, mode, high } => [low, mode, high, 0.0],
        };
        if let Some(&number) = numbers.iter().find(|number| !number.is_finite()) {
            return Err(DomainError::NotFinite(number));
        }
        if !matches!(self, Self::Normal { .. } | Self::LogNormal { .. }) {
            let (low, high) = self.bounds();
            if low >= high {
                return Err(DomainError::EmptyRange { low, high });
            }
            if !(high - low).is_finite() {
                return Err(DomainError::NotFinite(high - low));
            }
        }
        match self {
            Self::LogUniform { low, .. } if low <= 0.0 => Err(DomainError::NotPositive { low }),
            Self::Normal { deviation, .. }
            | Self::TruncatedNormal { deviation, .. }
            | Self::LogNormal { deviation, .. }
                if deviation <= 0.0 =>
            {
                Err(DomainError::BadDeviation { deviation })
            }
            Self::LogNormal { mean, deviation } => {
                let reach = Self::LOG_NORMAL_REACH * deviation;
                let ends = [(mean - reach).exp(), (mean + reach).exp()];
                match ends.into_iter().find(|end| !end.is_normal()) {
                    Some(end) => Err(DomainError::NotFinite(end)),
                    None => Ok(self),
                }
            }
            Self::TruncatedNormal { mean, deviation, low, high }
                if (low - mean) / deviation > Self::MAX_BOUND_DEVIATIONS
                    || (mean - high) / deviation > Self::MAX_BOUND_DEVIATIONS =>
            {
                Err(DomainError::FarFromMean { low, high, mean, deviation })
            }
            Self::Triangular { low, mode, high } if !(low..=high).contains(&mode) => {
                Err(DomainError::BadMode { mode, low, high })
            }
            _ => Ok(self),
        }
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LogUniform { low, high } => write!(f, "log-uniform, {low} to {high}"),
            Self::Normal { mean, deviation } => write!(f, "normal, {mean} ± {deviation}"),
            Self::TruncatedNormal { mean, deviation, low, high } => {
                write!(f, "normal, {mean} ± {deviation}, {low} to {high}")
            }
            Self::Triangular { low, mode, high } => write!(f, "triangular, {low} to {high}, mostly {mode}"),
            Self::LogNormal { mean, deviation } => write!(f, "log-normal, logarithm {mean} ± {deviation}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_distribution_error_lists_allowed_values() {
        use Distribution::{LogNormal, LogUniform, Normal, Triangular, TruncatedNormal};
        let said = |distribution: Distribution| distribution.check().unwrap_err().to_string();
        assert_eq!(
            said(LogUniform { low: 0.0, high: 1.0 }),
            "log-scaled range starts at 0; the first number must be above 0"
        );
        assert!(said(LogUniform { low: 2.0, high: 1.0 }).starts_with("range [2, 1] is empty"));
        assert_eq!(said(Normal { mean: 1.0, deviation: 0.0 }), "deviation 0 is not above 0");
        assert!(said(Normal { mean: f64::NAN, deviation: 1.0 }).contains("not a finite number"));
        assert_eq!(
            said(TruncatedNormal { mean: 0.0, deviation: 1.0, low: 31.0, high: 40.0 }),
            "range [31, 40] is more than 30 deviations of 1 from the mean 0"
        );
        assert_eq!(said(LogNormal { mean: 1.0, deviation: 0.0 }), "deviation 0 is not above 0");
        assert!(said(LogNormal { mean: 700.0, deviation: 2.0 }).contains("not a finite number"));
        assert_eq!(said(Triangular { low: 0.0, mode: 2.0, high: 1.0 }), "mode 2 is not within [0, 1]");
        for good in [
            LogUniform { low: 1e-3, high: 1.0 },
            Normal { mean: -1.0, deviation: 0.5 },
            TruncatedNormal { mean: 0.0, deviation: 1.0, low: 29.0, high: 40.0 },
            Triangular { low: 0.0, mode: 0.0, high: 1.0 },
            LogNormal { mean: -2.0, deviation: 0.5 },
        ] {
            assert_eq!(good.check(), Ok(good));
        }
    }
}
