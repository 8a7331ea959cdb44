//! Half-open intervals of 64-bit coordinates: one axis of a box, or a stretch of time.
//!
//! Nothing here knows a unit.

use super::BoundsError;
use serde::{Deserialize, Serialize};
use std::fmt;

/// From `start` up to, but without, `end`; empty where both are equal. It is serialized as `[start, end]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "[i64; 2]", into = "[i64; 2]")]
pub struct Interval {
    start: i64,
    end: i64,
}

/// Where an edge goes that falls between two coordinates of another resolution.
#[derive(Clone, Copy)]
pub(crate) enum Rounding {
    /// Away from the interval's middle.
    Outward,
    /// To the nearer one; to the higher one from halfway.
    Nearest,
}

impl Interval {
    /// `start..end`.
    ///
    /// # Errors
    /// [`BoundsError::Reversed`] where `start` is beyond `end`.
    pub fn new(start: i64, end: i64) -> Result<Self, BoundsError> {
        if start > end { Err(BoundsError::Reversed { start, end }) } else { Ok(Self { start, end }) }
    }

    /// `0..length`.
    #[must_use]
    pub fn of_length(length: u32) -> Self {
        Self { start: 0, end: i64::from(length) }
    }

    /// The first coordinate inside.
    #[must_use]
    pub fn start(self) -> i64 {
        self.start
    }

    /// The first coordinate behind it.
    #[must_use]
    pub fn end(self) -> i64 {
        self.end
    }

    /// How many coordinates are inside.
    #[must_use]
    pub fn length(self) -> u64 {
        self.start.abs_diff(self.end)
    }

    /// Whether nothing is inside.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Whether a coordinate is inside.
    #[must_use]
    pub fn holds(self, coordinate: i64) -> bool {
        (self.start..self.end).contains(&coordinate)
    }

    /// Whether all of `other` is inside. An empty one is inside every interval.
    #[must_use]
    pub fn contains(self, other: Self) -> bool {
        other.is_empty() || (self.start <= other.start && other.end <= self.end)
    }

    /// What is in both; empty where nothing is.
    #[must_use]
    pub fn intersection(self, other: Self) -> Self {
        let start = self.start.max(other.start);
        Self { start, end: self.end.min(other.end).max(start) }
    }

    /// The smallest interval that contains both.
    #[must_use]
    pub fn union(self, other: Self) -> Self {
        match (self.is_empty(), other.is_empty()) {
            (_, true) => self,
            (true, false) => other,
            (false, false) => Self { start: self.start.min(other.start), end: self.end.max(other.end) },
        }
    }

    /// This interval, `offset` further on.
    ///
    /// # Errors
    /// [`BoundsError::Overflow`] where that is beyond 64 bits.
    pub fn translated(self, offset: i64) -> Result<Self, BoundsError> {
        let moved = |coordinate: i64| {
            let overflow = BoundsError::Overflow { what: "a coordinate moved" };
            coordinate.checked_add(offset).ok_or(overflow)
        };
        Ok(Self { start: moved(self.start)?, end: moved(self.end)? })
    }

    /// This interval, its edges times `from / to`.
    ///
    /// # Errors
    /// [`BoundsError::Overflow`] where that is beyond 64 bits.
    pub(crate) fn scaled(self, from: u64, to: u64, rounding: Rounding) -> Result<Self, BoundsError> {
        // A product of 64 bits with sign and 64 bits without takes 128 bits with sign, never more.
        let exact = |coordinate: i64| i128::from(coordinate) * i128::from(from);
        let to = i128::from(to);
        let (start, end) = match rounding {
            Rounding::Outward => (floor(exact(self.start), to), -floor(-exact(self.end), to)),
            Rounding::Nearest => (nearest(exact(self.start), to), nearest(exact(self.end), to)),
        };
        // What is empty has no inside that its edges could be moved away from.
        let end = if self.is_empty() { start } else { end };
        let fitting = |coordinate| {
            i64::try_from(coordinate).map_err(|_| BoundsError::Overflow { what: "a coordinate scaled" })
        };
        Ok(Self { start: fitting(start)?, end: fitting(end)? })
    }
}

/// The integer at or below `value / by`; `by` is above 0.
fn floor(value: i128, by: i128) -> i128 {
    value.div_euclid(by)
}

/// The integer next to `value / by`, the higher one of two; `by` is above 0.
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
