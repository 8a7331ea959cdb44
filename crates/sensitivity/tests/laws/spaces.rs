//! Random parameter spaces with every kind of domain. At least one parameter varies.

use pleach_workflow::{Domain, Parameter, Value, ValueType};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;

/// One to six parameters named p0, p1, ….
pub(crate) fn space() -> impl Strategy<Value = Vec<Parameter>> {
    vec(domain(), 1..=6)
        .prop_filter("something varies", |domains| domains.iter().any(|(_, domain)| domain.varies()))
        .prop_map(|domains| domains.into_iter().enumerate().map(parameter).collect())
}

fn parameter((index, (value_type, domain)): (usize, (ValueType, Domain))) -> Parameter {
    let default = Value::from_f64(1.0, value_type).expect("1 is of either type");
    Parameter { name: format!("p{index}"), value_type, default, domain }
}

fn domain() -> impl Strategy<Value = (ValueType, Domain)> {
    let continuous = (-1000i32..1000, 1u32..5000).prop_map(|(low, width)| {
        let low = f64::from(low) / 7.0;
        (ValueType::Real, Domain::Continuous { low, high: low + f64::from(width) / 11.0 })
    });
    let range = (-50i32..50, 1i32..30).prop_map(|(low, width)| {
        let (low, high) = (f64::from(low), f64::from(low + width));
        (ValueType::Integer, Domain::range(ValueType::Integer, low, high, None).expect("low < high"))
    });
    // In any order, as users may list values.
    let set =
        btree_set(-100i32..100, 1..9).prop_map(|set| set.into_iter().collect::<Vec<_>>()).prop_shuffle();
    let set = set.prop_map(|numbers| {
        let numbers: Vec<f64> = numbers.into_iter().map(|number| f64::from(number) / 4.0).collect();
        (ValueType::Real, Domain::set(ValueType::Real, &numbers).expect("distinct"))
    });
    let fixed = (-9i32..9).prop_map(|number| {
        (ValueType::Integer, Domain::fixed(ValueType::Integer, f64::from(number)).expect("whole"))
    });
    prop_oneof![3 => continuous, 3 => range, 3 => set, 1 => fixed]
}

/// Returns the size of the range of a parameter.
pub(crate) fn width(parameter: &Parameter) -> f64 {
    let (low, high) = parameter.domain.bounds();
    high - low
}

/// Returns the columns of the parameters that a sampler varies.
pub(crate) fn varying(parameters: &[Parameter]) -> Vec<usize> {
    (0..parameters.len()).filter(|&column| parameters[column].domain.varies()).collect()
}

/// Parameters x1, x2, … of the unit interval.
pub(crate) fn reals(count: usize) -> Vec<Parameter> {
    let domain = Domain::Continuous { low: 0.0, high: 1.0 };
    let default = Value::from_f64(0.0, ValueType::Real).expect("finite");
    let parameter = |place| Parameter {
        name: format!("x{place}"),
        value_type: ValueType::Real,
        default,
        domain: domain.clone(),
    };
    (1..=count).map(parameter).collect()
}
