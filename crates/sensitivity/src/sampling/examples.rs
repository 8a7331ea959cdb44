//! Parameters for tests of samplers.

use pleach_workflow::{Domain, Parameter, Value, ValueType};

/// Creates a parameter of this type and domain. Its default is 4.
pub(crate) fn parameter(name: &str, value_type: ValueType, domain: Domain) -> Parameter {
    let default = Value::from_f64(4.0, value_type).unwrap();
    Parameter { name: name.into(), value_type, default, domain }
}

/// Creates an integer parameter with these values.
pub(crate) fn integers(name: &str, numbers: &[f64]) -> Parameter {
    parameter(name, ValueType::Integer, Domain::set(ValueType::Integer, numbers).unwrap())
}

/// Creates a parameter over all reals of a range.
pub(crate) fn reals(name: &str, low: f64, high: f64) -> Parameter {
    parameter(name, ValueType::Real, Domain::Continuous { low, high })
}
