//! Half-open intervals of 64-bit coordinates: one axis of a box, or a time interval.
//!
//! The caller defines the unit.

use super::BoundsError;
use serde::{Deserialize, Serialize};
use std::fmt;

/// From `start` to `end`, excluding `end`. Empty if both are equal. Serialized as `[start, end]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "[i64; 2]", into = "[i64; 2]")]
pub struct Interval {
    start: i64,
    end: i64,
}

/// Rounding of an edge between two coordinates of another resolution.
#[derive(Clone, Copy)]
pub(crate) enum Rounding {
    /// Away from the interval's middle.
    Outward,
    /// To the nearest coordinate, halfway to the higher one.
    Nearest,
}

impl Interval {
    /// Creates `start..end`.
    ///
    /// # Errors
    /// Returns [`BoundsError::Reversed`] if `start` is beyond `end`.
    pub fn new(start: i64, end: i64) -> Result<Self, BoundsError> {
        if start > end { Err(BoundsError::Reversed { start, end }) } else { Ok(Self { start, end }) }
    }

    /// Creates `0..length`.
    #[must_use]
    pub fn of_length(length: u32) -> Self {
        Self { start: 0, end: i64::from(length) }
    }

    /// Returns the first coordinate inside.
    #[must_use]
    pub fn start(self) -> i64 {
        self.start
    }

    /// Returns the first coordinate after the interval.
    #[must_use]
    pub fn end(self) -> i64 {
        self.end
    }

    /// Returns the number of coordinates inside.
    #[must_use]
    pub fn length(self) -> u64 {
        self.start.abs_diff(self.end)
    }

    /// Returns whether the interval is empty.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Returns whether a coordinate is inside.
    #[must_use]
    pub fn holds(self, coordinate: i64) -> bool {
        (self.start..self.end).contains(&coordinate)
    }

    /// Returns whether all of `other` is inside. An empty interval is inside every interval.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        other.is_empty() || (self.start <= other.start && other.end <= self.end)
    }

    /// Returns the intersection, which may be empty.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        let start = self.start.max(other.start);
        Self { start, end: self.end.min(other.end).max(start) }
    }

    /// Returns the smallest interval that contains both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        match (self.is_empty(), other.is_empty()) {
            (_, true) => self,
            (true, false) => other,
            (false, false) => Self { start: self.start.min(other.start), end: self.end.max(other.end) },
        }
    }

    /// Returns this interval moved by `offset`.
    ///
    /// # Errors
    /// Returns [`BoundsError::Overflow`] beyond 64 bits.
    pub fn translated(self, offset: i64) -> Result<Self, BoundsError> {
        let moved = |coordinate: i64| {
            let overflow = BoundsError::Overflow { what: "a coordinate moved" };
            coordinate.checked_add(offset).ok_or(overflow)
        };
        Ok(Self { start: moved(self.start)?, end: moved(self.end)? })
    }

    /// Returns this interval with both edges multiplied by `from / to`.
    ///
    /// # Errors
    /// Returns [`BoundsError::Overflow`] beyond 64 bits.
    pub(crate) fn scaled(self, from: u64, to: u64, rounding: Rounding) -> Result<Self, BoundsError> {
        // A signed times an unsigned 64-bit number always fits into 128 bits with sign.
        let exact = |coordinate: i64| i128::from(coordinate) * i128::from(from);
        let to = i128::from(to);
        let (start, end) = match rounding {
            Rounding::Outward => (floor(exact(self.start), to), -floor(-exact(self.end), to)),
            Rounding::Nearest => (nearest(exact(self.start), to), nearest(exact(self.end), to)),
        };
        // Edges of an empty interval have no middle to move away from.
        let end = if self.is_empty() { start } else { end };
        let fitting = |coordinate| {
            i64::try_from(coordinate).map_err(|_| BoundsError::Overflow { what: "a coordinate scaled" })
        };
        Ok(Self { start: fitting(start)?, end: fitting(end)? })
    }
}

/// Returns the integer at or below `value / by`. `by` is above 0.
fn floor(value: i128, by: i128) -> i128 {
    value.div_euclid(by)
}

/// Returns the integer nearest to `value / by`, halfway the higher one. `by` is above 0.
fn nearest(value: i128, by: i128) -> i128 {
    value.div_euclid(by) + i128::from(2 * value.rem_euclid(by) >= by)
}

impl TryFrom<[i64; 2]> for Interval {
    type Error = BoundsError;

    fn try_from([start, end]: [i64; 2]) -> Result<Self, BoundsError> {
        Self::new(start, end)
    }
}

impl From<Interval> for [i64; 2] {
    fn from(interval: Interval) -> Self {
        [interval.start, interval.end]
    }
}

impl fmt::Display for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}
