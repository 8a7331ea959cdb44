//! From a place in the unit interval to a value of a parameter.
//!
//! A place is one of 2³² cells of equal width. Continuous parameters take the middle of the cell, so that no value is
//! favoured and the mean is that of the range; levels share the cells out, each ⌊2³²/L⌋ or ⌈2³²/L⌉ of them, so that
//! their chances differ by less than L/2³² of themselves (0.03 % for a million levels). Distributions other than uniform
//! are not known here.

use super::real_range;
use pleach_workflow::{Domain, Parameter, Value, ValueType};

/// The value at the cell `place`; `None` of a continuous domain that cannot be sampled.
pub(super) fn value(parameter: &Parameter, place: u32) -> Option<Value> {
    match &parameter.domain {
        Domain::Continuous { .. } => {
            let (low, high) = real_range(parameter)?;
            let fraction = (f64::from(place) + 0.5) / CELLS as f64;
            // Rounding may overshoot the range by a last digit.
            Value::from_f64((low + fraction * (high - low)).clamp(low, high), ValueType::Real)
        }
        Domain::Levels { values } => {
            // Below 2³² levels, of which a domain has up to a million, this stays below 2⁶⁴.
            let level = u64::from(place) * values.len() as u64 / CELLS;
            values.get(level as usize).copied()
        }
        Domain::Fixed { value } => Some(*value),
    }
}

/// Cells of the unit interval: as many as 32 bits tell apart.
const CELLS: u64 = 1 << 32;

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(value_type: ValueType, domain: Domain) -> Parameter {
        let default = Value::from_f64(0.0, value_type).unwrap();
        Parameter { name: "p".into(), value_type, default, domain }
    }

    /// The cells of a level are found from its ends: the first is the smallest place that it has.
    fn cells(levels: u32) -> Vec<u64> {
        let numbers: Vec<f64> = (0..levels).map(f64::from).collect();
        let parameter =
            parameter(ValueType::Integer, Domain::set(ValueType::Integer, &numbers).expect("distinct"));
        let level = |place: u32| value(&parameter, place).unwrap().as_f64() as u32;
        let first_at_least = |wanted: u32| {
            let (mut below, mut at_least) = (0_u64, CELLS);
            while below < at_least {
                let middle = (below + at_least) / 2;
                if level(middle as u32) < wanted { below = middle + 1 } else { at_least = middle }
            }
            below
        };
        let mut ends: Vec<u64> = (0..levels).map(first_at_least).collect();
        ends.push(CELLS);
        ends.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    #[test]
    fn levels_share_the_unit_interval_out() {
        for levels in [1, 2, 3, 5, 7, 16, 76, 601, 1000, 65_537] {
            let cells = cells(levels);
            assert_eq!(cells.iter().sum::<u64>(), CELLS);
            let fair = CELLS / u64::from(levels);
            assert!(cells.iter().all(|&cells| cells == fair || cells == fair + 1), "{levels}: {cells:?}");
        }
    }

    #[test]
    fn reals_are_the_middles_of_their_cells() {
        let range = |low, high| parameter(ValueType::Real, Domain::Continuous { low, high });
        let at = |parameter: &Parameter, place| value(parameter, place).unwrap().as_f64();
        let cells = range(-1.0, CELLS as f64 - 1.0);
        assert_eq!([0, 1, u32::MAX].map(|place| at(&cells, place)), [-0.5, 0.5, CELLS as f64 - 1.5]);
        let narrow = range(0.3, 0.3_f64.next_up());
        assert!((0.3..=0.3_f64.next_up()).contains(&at(&narrow, u32::MAX)));
        for (low, high) in [(2.0, 1.0), (f64::MIN, f64::MAX), (f64::NAN, 1.0), (0.0, f64::INFINITY)] {
            assert_eq!(value(&range(low, high), 7), None);
        }
        let whole = parameter(ValueType::Integer, Domain::Continuous { low: 0.0, high: 9.0 });
        assert_eq!(value(&whole, 7), None);
        let fixed = parameter(ValueType::Real, Domain::fixed(ValueType::Real, 2.5).unwrap());
        assert_eq!(at(&fixed, u32::MAX), 2.5);
    }
}
