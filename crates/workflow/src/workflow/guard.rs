//! Guards: comparisons of values that tasks output, which decide during a run whether a task runs (paper 004: branches and
//! iterations).
//!
//! Loops and choices of a stage descriptor become guarded tasks when it is loaded. A task that does not run is *skipped*: a
//! region of another task passes as its output, unchanged, or it has no output.

use crate::value::Real;
use pleach_regions::{DataRegion, ElementType, WrongElement};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Conditions under which a task runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Guard {
    /// Number of the operation's inputs, which are the first of [`Task::reads`](crate::Task::reads). The others are the values to compare and the
    /// regions that pass.
    pub operands: usize,
    /// The task runs if all of them are met. The first one that is not met decides the outputs: outer loops and choices come
    /// first, because the value of an inner one is missing if an outer one is not met.
    pub conditions: Vec<Condition>,
}

/// Comparison of one value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    /// Index into [`Task::reads`](crate::Task::reads) of the scalar to compare.
    pub value: usize,
    /// The comparison.
    pub comparison: Comparison,
    /// Result of the comparison with which the condition is met.
    pub expected: bool,
    /// By output of the task: index into [`Task::reads`](crate::Task::reads) of the region that passes if the condition is not met. `None` for an
    /// output that only tasks under the same guard read.
    pub passes: Vec<Option<usize>>,
}

/// Comparison of a value with a constant. A value that is not a number meets none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comparison {
    /// The value is smaller.
    Below(Real),
    /// The value is equal or larger.
    AtLeast(Real),
}

impl Comparison {
    /// Returns whether `value` meets the comparison.
    #[must_use]
    pub fn holds(self, value: f64) -> bool {
        match self {
            Self::Below(limit) => value < limit.get(),
            Self::AtLeast(limit) => value >= limit.get(),
        }
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Below(limit) => write!(f, "< {}", limit.get()),
            Self::AtLeast(limit) => write!(f, ">= {}", limit.get()),
        }
    }
}

/// Decision of a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision<'a> {
    /// The task runs.
    Run,
    /// The task is skipped. By output: index into [`Task::reads`](crate::Task::reads) of the region that passes.
    Skip(&'a [Option<usize>]),
}

impl Guard {
    /// Decides by the values at indices of [`Task::reads`](crate::Task::reads). Reads no value after the first condition that is not met.
    ///
    /// # Errors
    /// The first error of `value`.
    pub fn decide<E>(&self, mut value: impl FnMut(usize) -> Result<f64, E>) -> Result<Decision<'_>, E> {
        for condition in &self.conditions {
            if condition.comparison.holds(value(condition.value)?) != condition.expected {
                return Ok(Decision::Skip(&condition.passes));
            }
        }
        Ok(Decision::Run)
    }

    /// Returns whether the guard of a task with these numbers of inputs, reads and outputs names only reads after its inputs.
    #[must_use]
    pub fn is_sound(&self, operands: usize, reads: usize, outputs: usize) -> bool {
        let added = |read: &usize| (operands..reads).contains(read);
        let sound = |condition: &Condition| {
            added(&condition.value)
                && condition.passes.len() == outputs
                && condition.passes.iter().flatten().all(added)
        };
        self.operands == operands && self.conditions.iter().all(sound)
    }

    /// Moves the reads of the conditions by one place, after an input of the operation was inserted before them.
    pub(super) fn shift(&mut self) {
        self.operands += 1;
        for condition in &mut self.conditions {
            condition.value += 1;
            condition.passes.iter_mut().flatten().for_each(|read| *read += 1);
        }
    }
}

/// Returns the number that a guard compares.
///
/// # Errors
/// [`WrongElement`] if the region is no scalar.
pub fn guard_value(region: &DataRegion) -> Result<f64, WrongElement> {
    match region {
        DataRegion::Scalar(value) => Ok(*value),
        other => Err(WrongElement { expected: ElementType::Scalar, found: other.element() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn real(number: f64) -> Real {
        Real::try_from(number).unwrap()
    }

    fn condition(value: usize, expected: bool, pass: Option<usize>) -> Condition {
        Condition { value, comparison: Comparison::Below(real(2.0)), expected, passes: vec![pass] }
    }

    #[test]
    fn first_condition_that_is_not_met_decides() {
        let conditions = vec![condition(1, false, Some(2)), condition(3, true, None)];
        let guard = Guard { operands: 1, conditions };
        let decide = |values: [f64; 4]| guard.decide(|read| Ok::<_, ()>(values[read])).unwrap();
        assert_eq!(decide([0.0, 2.0, 0.0, 1.0]), Decision::Run);
        assert_eq!(decide([0.0, 1.0, 0.0, 1.0]), Decision::Skip(&[Some(2)]));
        assert_eq!(decide([0.0, 2.0, 0.0, 2.0]), Decision::Skip(&[None]));
        // The value of the inner condition is missing if the outer one is not met.
        let outer = |read| if read == 1 { Ok(1.0) } else { Err(()) };
        assert_eq!(guard.decide(outer), Ok(Decision::Skip(&[Some(2)])));
        assert!(guard.is_sound(1, 4, 1));
        assert!(!guard.is_sound(1, 3, 1) && !guard.is_sound(2, 4, 1) && !guard.is_sound(1, 4, 2));
    }

    #[test]
    fn values_that_are_no_numbers_meet_no_comparison() {
        for value in [f64::NAN, f64::INFINITY, 2.0, 1.0] {
            let (below, at_least) = (Comparison::Below(real(2.0)), Comparison::AtLeast(real(2.0)));
            assert_eq!(below.holds(value), value == 1.0);
            assert_eq!(at_least.holds(value), value >= 2.0);
        }
        assert_eq!(Comparison::AtLeast(real(0.5)).to_string(), ">= 0.5");
    }
}
