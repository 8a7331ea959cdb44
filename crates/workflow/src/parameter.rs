//! Parameters of a workflow and the domains that samplers draw them from.

use crate::distribution::Distribution;
use crate::domain_error::{self, DomainError};
use crate::value::{Real, Value, ValueType};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;

/// Values that a sampler may draw. A default or a user-given value may be outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Domain {
    /// Every real in `[low, high]`, `low < high`.
    Continuous {
        /// Smallest value.
        low: f64,
        /// Largest value.
        high: f64,
    },
    /// Reals that are not all equally likely.
    Distributed {
        /// Distribution of the values.
        distribution: Distribution,
    },
    /// An ordered list of at least one distinct value: an integer range, a stepped grid, or a given set.
    Levels {
        /// The values, in order.
        values: Vec<Value>,
    },
    /// One value, never varied.
    Fixed {
        /// The value.
        value: Value,
    },
}

impl Domain {
    /// 1,000,000 values: grids are stored as lists of 16 MB at most, far beyond the samples of any study.
    pub const MAX_LEVELS: usize = domain_error::MAX_LEVELS;

    /// Creates the range `[low, high]` of a parameter of type `value_type`: continuous for reals, every integer for
    /// integers, or a grid if `step` is given.
    ///
    /// # Errors
    /// Returns a [`DomainError`] for empty ranges, numbers that are not finite or not integers, and steps that do not
    /// divide the range.
    pub fn range(value_type: ValueType, low: f64, high: f64, step: Option<f64>) -> Result<Self, DomainError> {
        for number in [Some(low), Some(high), step].into_iter().flatten() {
            value_of(value_type, number)?;
        }
        if low >= high {
            return Err(DomainError::EmptyRange { low, high });
        }
        if !(high - low).is_finite() {
            return Err(DomainError::NotFinite(high - low));
        }
        let step = match (step, value_type) {
            (None, ValueType::Real) => return Ok(Self::Continuous { low, high }),
            (None, ValueType::Integer) => 1.0,
            (Some(step), _) => step,
        };
        let count = (high - low) / step;
        // A decimal step such as 0.1 has no exact binary form, so deviations up to 1e-9 steps count as rounding.
        if step <= 0.0 || (count - count.round()).abs() > 1e-9 * count.max(1.0) {
            return Err(DomainError::BadStep { low, high, step });
        }
        if count >= Self::MAX_LEVELS as f64 {
            return Err(DomainError::TooManyLevels { count: count.round() + 1.0 });
        }
        let values = (0..=count.round() as u32)
            .map(|level| grid_value(value_type, low, step, level))
            .collect::<Result<_, _>>()?;
        Ok(Self::Levels { values })
    }

    /// Returns the domain of the keys `range` and `step` of a file. Errors name the invalid key.
    pub(crate) fn stepped(
        value_type: ValueType,
        [low, high]: [f64; 2],
        step: Option<f64>,
    ) -> Result<Self, (&'static str, DomainError)> {
        step.map_or(Ok(()), |step| value_of(value_type, step).map(drop)).map_err(|error| ("step", error))?;
        Self::range(value_type, low, high, step).map_err(|error| match error {
            DomainError::BadStep { .. } | DomainError::TooManyLevels { .. } if step.is_some() => {
                ("step", error)
            }
            _ => ("range", error),
        })
    }

    /// Creates a discrete set of values in the given order.
    ///
    /// # Errors
    /// Returns a [`DomainError`] if the set is empty, repeats a value, or holds a value that does not fit the type.
    pub fn set(value_type: ValueType, numbers: &[f64]) -> Result<Self, DomainError> {
        if numbers.is_empty() {
            return Err(DomainError::NoValues);
        }
        if numbers.len() > Self::MAX_LEVELS {
            return Err(DomainError::TooManyLevels { count: numbers.len() as f64 });
        }
        let mut values = Vec::with_capacity(numbers.len());
        let mut seen = HashSet::with_capacity(numbers.len());
        for &number in numbers {
            let value = value_of(value_type, number)?;
            if !seen.insert(value) {
                return Err(DomainError::DuplicateValue(value));
            }
            values.push(value);
        }
        Ok(Self::Levels { values })
    }

    /// Creates a domain of one value that never varies.
    ///
    /// # Errors
    /// Returns a [`DomainError`] if the value does not fit the type.
    pub fn fixed(value_type: ValueType, number: f64) -> Result<Self, DomainError> {
        Ok(Self::Fixed { value: value_of(value_type, number)? })
    }

    /// Creates a domain of non-uniformly distributed reals.
    ///
    /// # Errors
    /// Returns a [`DomainError`] if the parameter takes integers, or the distribution is invalid.
    pub fn distributed(value_type: ValueType, distribution: Distribution) -> Result<Self, DomainError> {
        match value_type {
            ValueType::Integer => Err(DomainError::DistributionOfIntegers),
            ValueType::Real => Ok(Self::Distributed { distribution: distribution.check()? }),
        }
    }

    /// Returns the smallest and the largest value. Infinite if a distribution has no bounds.
    #[must_use]
    pub fn bounds(&self) -> (f64, f64) {
        match self {
            Self::Continuous { low, high } => (*low, *high),
            Self::Distributed { distribution } => distribution.bounds(),
            Self::Fixed { value } => (value.as_f64(), value.as_f64()),
            Self::Levels { values } => {
                let numbers = values.iter().map(|value| value.as_f64());
                (numbers.clone().fold(f64::INFINITY, f64::min), numbers.fold(f64::NEG_INFINITY, f64::max))
            }
        }
    }

    /// Returns the number of stored values.
    pub(crate) fn values_held(&self) -> usize {
        match self {
            Self::Continuous { .. } | Self::Distributed { .. } => 0,
            Self::Levels { values } => values.len(),
            Self::Fixed { .. } => 1,
        }
    }

    /// Returns whether a sampler can vary the parameter. Fixed parameters and sets of one value do not vary.
    #[must_use]
    pub fn varies(&self) -> bool {
        match self {
            Self::Continuous { .. } | Self::Distributed { .. } => true,
            Self::Levels { values } => values.len() > 1,
            Self::Fixed { .. } => false,
        }
    }
}

/// Converts a number of a file to a value of this type.
///
/// # Errors
/// Returns a [`DomainError`] if the number is not finite, or not an integer for a parameter that takes integers.
pub(crate) fn value_of(value_type: ValueType, number: f64) -> Result<Value, DomainError> {
    if !number.is_finite() {
        return Err(DomainError::NotFinite(number));
    }
    Value::from_f64(number, value_type).ok_or(DomainError::NotAnInteger(number))
}

fn grid_value(value_type: ValueType, low: f64, step: f64, level: u32) -> Result<Value, DomainError> {
    let exact = low + f64::from(level) * step;
    // Rounds to the nearest 1e-12, so that the third step of 0.1 is 0.3 and not 0.30000000000000004. The step must
    // be larger than this rounding, and the value within the precision of an f64.
    let decimal = (exact * 1e12).round() / 1e12;
    let number = if exact.abs() < 1e3 && step > 1e-9 { decimal } else { exact };
    match value_type {
        ValueType::Integer => value_of(value_type, number),
        ValueType::Real => Real::try_from(number).map(Value::Real).map_err(|_| DomainError::NotFinite(exact)),
    }
}

/// One parameter of a workflow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// Name in study files, tables and reports.
    pub name: String,
    /// Integers or reals.
    #[serde(rename = "type")]
    pub value_type: ValueType,
    /// The value of the reference evaluation, and of every study that does not vary it.
    pub default: Value,
    /// Domain that samplers draw from.
    pub domain: Domain,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn reals(domain: Domain) -> Vec<f64> {
        match domain {
            Domain::Levels { values } => values.iter().map(|v| v.as_f64()).collect(),
            other => panic!("not a grid: {other:?}"),
        }
    }

    #[test]
    fn grids_have_the_values_a_reader_expects() {
        let tenths = reals(Domain::range(ValueType::Real, 0.0, 0.5, Some(0.1)).unwrap());
        assert_eq!(tenths, [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]);
        assert_eq!(reals(Domain::range(ValueType::Integer, 4.0, 8.0, None).unwrap()), [4., 5., 6., 7., 8.]);
        assert_eq!(reals(Domain::range(ValueType::Integer, 5.0, 80.0, Some(5.0)).unwrap()).len(), 16);
        let tiny = reals(Domain::range(ValueType::Real, 0.0, 1e-12, Some(2.5e-13)).unwrap());
        assert_eq!(tiny, [0.0, 2.5e-13, 5e-13, 7.5e-13, 1e-12]);
    }

    #[test]
    fn invalid_domain_error_lists_allowed_values() {
        let error = |result: Result<Domain, DomainError>| result.unwrap_err().to_string();
        assert_eq!(
            error(Domain::range(ValueType::Integer, 8.0, 4.0, None)),
            "range [8, 4] is empty; the first number must be below the second"
        );
        assert_eq!(
            error(Domain::range(ValueType::Integer, 0.0, 10.0, Some(3.0))),
            "step 3 does not divide the range from 0 to 10; a positive divisor of 10 is allowed"
        );
        assert!(error(Domain::range(ValueType::Integer, 0.0, 10.0, Some(0.0))).contains("step 0"));
        assert!(error(Domain::range(ValueType::Integer, 0.5, 10.0, None)).contains("0.5 is not an integer"));
        assert!(error(Domain::range(ValueType::Real, f64::NAN, 1.0, None)).contains("not a finite"));
        assert!(error(Domain::range(ValueType::Real, 0.0, 1.0, Some(1e-9))).contains("too many"));
        assert!(error(Domain::range(ValueType::Real, -1.5e308, 1.5e308, None)).contains("not a finite"));
        assert!(error(Domain::set(ValueType::Integer, &[])).contains("at least one"));
        assert!(error(Domain::set(ValueType::Integer, &[4.0, 4.0])).contains("listed twice"));
    }

    proptest! {
        #[test]
        fn grid_starts_and_ends_at_its_bounds(low in -1000i32..1000, step in 1i32..50, count in 1i32..200) {
            let (low, step) = (f64::from(low) / 10.0, f64::from(step) / 10.0);
            let high = low + f64::from(count) * step;
            let values = reals(Domain::range(ValueType::Real, low, high, Some(step)).unwrap());
            prop_assert_eq!(values.len() as i32, count + 1);
            prop_assert!((values[0] - low).abs() < 1e-9);
            prop_assert!((values[values.len() - 1] - high).abs() < 1e-9);
            prop_assert!(values.windows(2).all(|pair| pair[0] < pair[1]));
        }
    }
}
