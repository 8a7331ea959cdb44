//! Parameters for the tests of samplers.

use pleach_workflow::{Domain, Parameter, Value, ValueType};

/// A parameter of a type, with these values; its default is 4.
pub(crate) fn parameter(name: &str, value_type: ValueType, domain: Domain) -> Parameter {
    let default = Value::from_f64(4.0, value_type).unwrap();
    Parameter { name: name.into(), value_type, default, domain }
}

/// These whole numbers.
pub(crate) fn integers(name: &str, numbers: &[f64]) -> Parameter {
    parameter(name, ValueType::Integer, Domain::set(ValueType::Integer, numbers).unwrap())
}

/// All reals of a range.
pub(crate) fn reals(name: &str, low: f64, high: f64) -> Parameter {
    parameter(name, ValueType::Real, Domain::Continuous { low, high })
}
