//! Parameter axes with ticks only at values that the parameter can take.

use crate::charts::svg::{Scale, nice_step};
use crate::page::format_number::{Rounding, brief};
use pleach_workflow::{Domain, Value};

/// Maximum ticks of an axis. More would crowd a panel.
const MAX_TICKS: usize = 5;
/// Up to this number of levels, every level is a tick.
const FEW_VALUES: usize = 4;
/// Maximum characters of an exact label: [`MAX_TICKS`] such labels fit beside each other.
const MAX_LETTERS: usize = 7;

/// Value and label of a tick.
pub(crate) type Tick = (f64, String);

/// Returns the scale from `low` to `high` over the pixels `px`, and its ticks. Values of a table may exceed
/// the domain. No ticks are placed there.
pub(crate) fn of_parameter(domain: &Domain, [low, high]: [f64; 2], px: [f64; 2]) -> (Scale, Vec<Tick>) {
    let scale = Scale::exact(low, high, px);
    let ticks = match domain {
        Domain::Levels { values } => of_levels(values),
        Domain::Fixed { value } => vec![(value.as_f64(), labeled(*value))],
        Domain::Continuous { .. } | Domain::Distributed { .. } => {
            let (least, most) = domain.bounds();
            of_range(low.max(least), high.min(most))
        }
    };
    let shown = ticks.into_iter().filter(|(value, _)| (low..=high).contains(value));
    (scale, shown.collect())
}

/// Returns ticks at round numbers within a range.
fn of_range(low: f64, high: f64) -> Vec<Tick> {
    if low >= high {
        return vec![(low, Rounding::brief(low.abs()).show(low))];
    }
    // Starts with a third of the range. Takes a finer step if the range has fewer than 2 multiples.
    let steps = [3.0, 4.0, 6.0].map(|parts| nice_step((high - low) / parts));
    let ticks = steps.map(|step| multiples(step, low, high));
    let chosen = ticks.iter().find(|ticks| ticks.len() > 1).unwrap_or(&ticks[2]);
    chosen.clone()
}

/// Returns the multiples of `step` in a range, at most `2 * MAX_TICKS + 1`.
fn multiples(step: f64, low: f64, high: f64) -> Vec<Tick> {
    let rounding = Rounding::of_tick(step, low.abs().max(high.abs()));
    let (first, last) = ((low / step - 1e-9).ceil(), (high / step + 1e-9).floor());
    let count = (last - first).clamp(-1.0, 2.0 * MAX_TICKS as f64) as i32;
    let values = (0..=count).map(|place| ((first + f64::from(place)) * step).clamp(low, high));
    values.map(|value| (value, rounding.show(value))).collect()
}

/// Returns ticks at some of the levels: all levels if they are few, else levels at multiples of a round step,
/// else every n-th level.
fn of_levels(values: &[Value]) -> Vec<Tick> {
    let mut levels: Vec<f64> = values.iter().map(|value| value.as_f64()).collect();
    levels.sort_by(f64::total_cmp);
    let (Some(&low), Some(&high)) = (levels.first(), levels.last()) else { return Vec::new() };
    if levels.len() > FEW_VALUES {
        // Tries steps of 1, 2 and 5 times powers of 10, from about a fifth of the range up.
        let mut step = nice_step((high - low) / MAX_TICKS as f64);
        while step <= high - low {
            let ticks = multiples(step, low, high);
            if (2..=MAX_TICKS).contains(&ticks.len())
                && ticks.iter().all(|(tick, _)| is_level(&levels, *tick))
            {
                return ticks;
            }
            // A factor of 2.1 leads from 1 to 2, from 2 to 5 and from 5 to 10.
            step = nice_step(step * 2.1);
        }
    }
    let stride = levels.len().div_ceil(if levels.len() > FEW_VALUES { MAX_TICKS - 1 } else { FEW_VALUES });
    let mut chosen = values.to_vec();
    chosen.sort_by(|a, b| a.as_f64().total_cmp(&b.as_f64()));
    chosen.into_iter().step_by(stride).map(|value| (value.as_f64(), labeled(value))).collect()
}

/// Returns whether `tick` is a level. Tolerates a billionth of the range, since decimal steps have no exact
/// binary form.
fn is_level(levels: &[f64], tick: f64) -> bool {
    let room = 1e-9 * (levels[levels.len() - 1] - levels[0]);
    let place = levels.partition_point(|level| *level < tick - room);
    levels.get(place).is_some_and(|level| (level - tick).abs() <= room)
}

/// Returns a value as a label. Rounds values longer than [`MAX_LETTERS`].
fn labeled(value: Value) -> String {
    let exact = value.to_string().replace('-', "−");
    if exact.chars().count() > MAX_LETTERS { brief(value.as_f64()) } else { exact }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_workflow::ValueType;
    use proptest::prelude::*;

    fn labels(domain: &Domain) -> Vec<String> {
        let (low, high) = domain.bounds();
        of_parameter(domain, [low, high], [0.0, 180.0]).1.into_iter().map(|(_, label)| label).collect()
    }

    fn stepped(value_type: ValueType, low: f64, high: f64, step: f64) -> Domain {
        Domain::range(value_type, low, high, Some(step)).unwrap()
    }

    #[test]
    fn ticks_are_values_that_the_parameter_can_take() {
        let integers = |low, high, step| labels(&stepped(ValueType::Integer, low, high, step));
        assert_eq!(integers(5.0, 80.0, 5.0), ["20", "40", "60", "80"]);
        assert_eq!(integers(0.0, 100.0, 1.0), ["0", "50", "100"]);
        assert_eq!(integers(1.0, 21.0, 2.0), ["1", "7", "13", "19"]);
        assert_eq!(integers(2.0, 4.0, 1.0), ["2", "3", "4"]);
        assert_eq!(labels(&Domain::set(ValueType::Integer, &[8.0, 4.0]).unwrap()), ["4", "8"]);
        assert_eq!(labels(&stepped(ValueType::Real, 2.5, 7.5, 0.5)), ["3", "4", "5", "6", "7"]);
        let real = Domain::range(ValueType::Real, 0.21, 0.93, None).unwrap();
        assert_eq!(labels(&real), ["0.4", "0.6", "0.8"]);
    }

    proptest! {
        #[test]
        fn every_tick_is_admissible(
            low in -1000i32..1000, count in 1u32..300, step in 1i32..40, divisor in prop::sample::select(vec![1, 2, 4, 10, 100]),
            numbers in prop::collection::hash_set(-500i32..500, 1..40),
        ) {
            let grid = |number: i64| number as f64 / f64::from(divisor);
            let (low, high) = (i64::from(low), i64::from(low) + i64::from(count) * i64::from(step));
            let numbers: Vec<f64> = numbers.into_iter().map(f64::from).collect();
            let domains = [
                stepped(ValueType::Real, grid(low), grid(high), grid(step.into())),
                stepped(ValueType::Integer, low as f64, high as f64, step.into()),
                Domain::set(ValueType::Integer, &numbers).unwrap(),
            ];
            for domain in domains {
                let Domain::Levels { values } = &domain else { unreachable!() };
                let bounds = domain.bounds();
                let room = 1e-9 * (bounds.1 - bounds.0);
                let (scale, ticks) = of_parameter(&domain, [bounds.0, bounds.1], [0.0, 180.0]);
                prop_assert!((1..=MAX_TICKS).contains(&ticks.len()), "{ticks:?}");
                prop_assert!(ticks.len() > 1 || values.len() == 1, "{ticks:?} of {values:?}");
                prop_assert!(ticks.windows(2).all(|pair| pair[0].0 < pair[1].0));
                for (tick, label) in &ticks {
                    prop_assert!(values.iter().any(|value| (value.as_f64() - tick).abs() <= room), "{tick}");
                    prop_assert!((0.0..=180.0).contains(&scale.px(*tick)) && !label.is_empty());
                }
            }
        }
    }
}
