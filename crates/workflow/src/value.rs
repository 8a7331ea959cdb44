//! Parameter values: exact, hashable, and printed in a form that parses to the same value.

use crate::text::quoted;
use serde::{Deserialize, Serialize};
use std::fmt;
use thiserror::Error;

/// A finite real number. −0 is stored as 0, so that equal numbers are equal keys.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "f64", into = "f64")]
pub struct Real(f64);

/// Error for NaN and infinities, which are no parameter values.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
#[error("{0} is not a finite number")]
pub struct NotFinite(f64);

impl Real {
    /// Returns the number.
    #[must_use]
    pub fn get(self) -> f64 {
        self.0
    }
}

impl TryFrom<f64> for Real {
    type Error = NotFinite;

    fn try_from(number: f64) -> Result<Self, NotFinite> {
        // Adding 0 turns −0 into 0 and changes nothing else.
        if number.is_finite() { Ok(Self(number + 0.0)) } else { Err(NotFinite(number)) }
    }
}

impl From<Real> for f64 {
    fn from(real: Real) -> Self {
        real.0
    }
}

// Never NaN and never −0, so equality of numbers is equality of bits.
impl Eq for Real {}

impl std::hash::Hash for Real {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.to_bits().hash(state);
    }
}

/// Type of a parameter's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueType {
    /// Integers, 64 bits signed.
    Integer,
    /// Finite reals, 64 bits.
    Real,
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Integer => "integer",
            Self::Real => "real",
        })
    }
}

/// The value of one parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Value {
    /// An integer.
    Integer(i64),
    /// A finite real number.
    Real(Real),
}

/// The text is not a value of the expected type.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("\"{}\" is not {}", quoted(text, 80), match wanted { ValueType::Integer => "an integer", ValueType::Real => "a finite number" })]
pub struct ParseValueError {
    /// The parsed text.
    pub text: String,
    /// Type of the parameter.
    pub wanted: ValueType,
}

/// 2^53: all smaller integers are exact in an f64.
const EXACT: f64 = 9_007_199_254_740_992.0;

impl Value {
    /// Returns the type of this value.
    #[must_use]
    pub fn value_type(self) -> ValueType {
        match self {
            Self::Integer(_) => ValueType::Integer,
            Self::Real(_) => ValueType::Real,
        }
    }

    /// Returns the value as a real number. Integers beyond 2^53 are rounded.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "documented; no parameter is near 2^53")]
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Integer(number) => number as f64,
            Self::Real(real) => real.get(),
        }
    }

    /// Converts `number` to a value of type `wanted`. An integer parameter accepts `4.0` but not `4.5`. Returns `None`
    /// for other numbers.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and exact")]
    pub fn from_f64(number: f64, wanted: ValueType) -> Option<Self> {
        match wanted {
            ValueType::Real => Real::try_from(number).ok().map(Self::Real),
            ValueType::Integer if number.fract() == 0.0 && number.abs() <= EXACT => {
                Some(Self::Integer(number as i64))
            }
            ValueType::Integer => None,
        }
    }

    /// Parses a value of type `wanted` from text, for example a CSV field or the value after `--set G1=`.
    ///
    /// # Errors
    /// Returns [`ParseValueError`] if the text is not a finite number, or not an integer for an integer parameter.
    pub fn parse(text: &str, wanted: ValueType) -> Result<Self, ParseValueError> {
        let text = text.trim();
        // Integers are parsed as such first: through an f64, those beyond 2^53 would change.
        let exact = text.parse().ok().filter(|_| wanted == ValueType::Integer).map(Self::Integer);
        exact
            .or_else(|| text.parse().ok().and_then(|number| Self::from_f64(number, wanted)))
            .ok_or_else(|| ParseValueError { text: text.to_owned(), wanted })
    }
}

impl fmt::Display for Value {
    /// Writes the shortest form that parses to the same value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::Real(real) => write!(f, "{}", real.get()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn integers_take_whole_reals_only() {
        assert_eq!(Value::parse("4.0", ValueType::Integer), Ok(Value::Integer(4)));
        let error = Value::parse("4.5", ValueType::Integer).unwrap_err();
        assert_eq!(error.to_string(), "\"4.5\" is not an integer");
        assert!(Value::parse("nan", ValueType::Real).is_err());
        assert!(Value::parse("inf", ValueType::Real).is_err());
        assert!(Value::parse("", ValueType::Real).is_err());
    }

    #[test]
    fn both_zeros_are_one_key() {
        assert_eq!(Value::from_f64(-0.0, ValueType::Real), Value::from_f64(0.0, ValueType::Real));
    }

    proptest! {
        #[test]
        fn text_reads_back(number in any::<f64>().prop_filter("finite", |n| n.is_finite()), whole: i64) {
            let real = Value::from_f64(number, ValueType::Real).unwrap();
            prop_assert_eq!(Value::parse(&real.to_string(), ValueType::Real), Ok(real));
            let integer = Value::Integer(whole);
            prop_assert_eq!(Value::parse(&integer.to_string(), ValueType::Integer), Ok(integer));
        }
    }
}
