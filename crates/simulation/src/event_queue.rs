//! Scheduled events of a simulation, ordered by time and then by creation: simulations of equal input are equal.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// An event at a time in microseconds, with its number.
#[derive(Debug)]
struct Scheduled<T>(u64, u64, T);

impl<T> PartialEq for Scheduled<T> {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}

impl<T> Eq for Scheduled<T> {}

impl<T> PartialOrd for Scheduled<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Scheduled<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// Scheduled events.
#[derive(Debug)]
pub(crate) struct EventQueue<T> {
    events: BinaryHeap<Reverse<Scheduled<T>>>,
    /// Number of events so far.
    created: u64,
}

impl<T> Default for EventQueue<T> {
    fn default() -> Self {
        Self { events: BinaryHeap::new(), created: 0 }
    }
}

impl<T> EventQueue<T> {
    /// Schedules an event.
    pub(crate) fn push(&mut self, at_us: u64, event: T) {
        self.created += 1;
        self.events.push(Reverse(Scheduled(at_us, self.created, event)));
    }

    /// Returns the time of the next event.
    pub(crate) fn next_us(&self) -> Option<u64> {
        self.events.peek().map(|Reverse(next)| next.0)
    }

    /// Removes the next event, with its time.
    pub(crate) fn pop(&mut self) -> Option<(u64, T)> {
        self.events.pop().map(|Reverse(Scheduled(at_us, _, event))| (at_us, event))
    }
}
