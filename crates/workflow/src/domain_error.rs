//! Error of an invalid parameter domain.

use crate::value::Value;
use thiserror::Error;

/// Maximum number of values of a grid.
pub(crate) const MAX_LEVELS: usize = 1_000_000;

/// Maximum distance of a truncated range from the mean, in standard deviations.
pub(crate) const MAX_DEVIATIONS: f64 = 30.0;

/// Error of an invalid domain.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum DomainError {
    /// The range contains no value.
    #[error("range [{low}, {high}] is empty; the first number must be below the second")]
    EmptyRange {
        /// First bound given.
        low: f64,
        /// Second bound given.
        high: f64,
    },
    /// A bound or value is no finite number.
    #[error("{0} is not a finite number")]
    NotFinite(f64),
    /// A bound, step or value is no integer, and the parameter takes integers.
    #[error("{0} is not an integer; the parameter allows integers")]
    NotAnInteger(f64),
    /// The step does not divide the range.
    #[error("step {step} does not divide the range from {low} to {high}; a positive divisor of {} is allowed", high - low)]
    BadStep {
        /// First bound.
        low: f64,
        /// Second bound.
        high: f64,
        /// Step given.
        step: f64,
    },
    /// The grid has more values than allowed.
    #[error("{count} values are too many; up to {} are allowed", MAX_LEVELS)]
    TooManyLevels {
        /// Number of requested values.
        count: f64,
    },
    /// A set of values is empty.
    #[error("the list of values is empty; at least one is needed")]
    NoValues,
    /// A set names a value twice.
    #[error("value {0} is listed twice")]
    DuplicateValue(Value),
    /// A distribution of reals for a parameter that takes integers.
    #[error("distribution for an integer parameter; a range or values are allowed")]
    DistributionOfIntegers,
    /// A logarithmic scale requires positive values.
    #[error("log-scaled range starts at {low}; the first number must be above 0")]
    NotPositive {
        /// First bound.
        low: f64,
    },
    /// The deviation is not positive.
    #[error("deviation {deviation} is not above 0")]
    BadDeviation {
        /// The standard deviation given.
        deviation: f64,
    },
    /// The bounds enclose almost no probability.
    #[error(
        "range [{low}, {high}] is more than {} deviations of {deviation} from the mean {mean}",
        MAX_DEVIATIONS
    )]
    FarFromMean {
        /// First bound.
        low: f64,
        /// Second bound.
        high: f64,
        /// The mean given.
        mean: f64,
        /// The standard deviation given.
        deviation: f64,
    },
    /// The mode of a triangular distribution is outside its range.
    #[error("mode {mode} is not within [{low}, {high}]")]
    BadMode {
        /// The likeliest value given.
        mode: f64,
        /// First bound.
        low: f64,
        /// Second bound.
        high: f64,
    },
}
