//! Learned overhead of a bucket: the median of the last measured ones.
//!
//! A bucket takes a fixed time on its slot before its first task: it waits in a queue, for messages, for the start of a
//! program. The median ignores leases that waited for something else, as long as they are the minority. The window forgets
//! old leases, because a queue is long at one hour and short at the next.

use std::collections::VecDeque;

/// Measured overheads that count, those of the last 64 leases: the median of independent ones is then off by about an eighth
/// of their spread.
const WINDOW: usize = 64;

/// Leases after which the overhead counts as known.
const SEVERAL: u64 = 8;

/// Shorter overheads count as none, 0.1 s: a busy machine delays messages as long, and one bucket less for each core would
/// save no more. Plans on a cluster without a queue stay as they are.
pub const LEAST_OVERHEAD_SECONDS: f64 = 0.1;

/// First field of its line. No operation has this name.
pub(super) const NAME: &str = "bucket-overhead";

/// Version of its line.
const VERSION: u32 = 1;

/// Measured overheads of buckets.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct BucketOverhead {
    /// Leases measured so far.
    leases: u64,
    /// Seconds of the last of them, oldest first.
    last: VecDeque<f64>,
}

impl BucketOverhead {
    /// Adds the overhead of one lease. Ignores invalid times.
    pub(super) fn observe(&mut self, seconds: f64) {
        if !seconds.is_finite() || seconds < 0.0 {
            return;
        }
        if self.last.len() == WINDOW {
            self.last.pop_front();
        }
        self.last.push_back(seconds);
        self.leases = self.leases.saturating_add(1);
    }

    /// Takes over the overheads of a model that has measured more leases.
    pub(super) fn merge(&mut self, other: &Self) {
        if self.leases < other.leases {
            self.clone_from(other);
        }
    }

    /// Returns the median in seconds. `None` until several leases have been measured.
    pub(super) fn measured_seconds(&self) -> Option<f64> {
        let mut last: Vec<f64> = self.last.iter().copied().collect();
        last.sort_by(f64::total_cmp);
        // The lower one of two in the middle: the errors of single leases are too long times.
        last.get(last.len().saturating_sub(1) / 2).copied().filter(|_| self.leases >= SEVERAL)
    }

    /// Returns the seconds to plan with. 0 until they are known, and for overheads that need no other buckets.
    pub(super) fn planned_seconds(&self) -> f64 {
        self.measured_seconds().filter(|seconds| *seconds >= LEAST_OVERHEAD_SECONDS).unwrap_or(0.0)
    }

    /// Returns the line of text that [`parse`](Self::parse) reads. It has the fields of an operation's line. `None` without a
    /// measurement.
    pub(super) fn line(&self) -> Option<String> {
        let last: Vec<String> = self.last.iter().map(|seconds| format!("{seconds:e}")).collect();
        let median = self.measured_seconds().unwrap_or(0.0);
        let line = || format!("{NAME}\t{VERSION}\t{}\t{}\t{median:e}", last.join(","), self.leases);
        (!last.is_empty()).then(line)
    }

    /// Parses a line. `None` if it is invalid.
    pub(super) fn parse(line: &str) -> Option<Self> {
        let [name, version, last, leases, _median] = line.split('\t').collect::<Vec<_>>()[..] else {
            return None;
        };
        let is_own = name == NAME && version.parse() == Ok(VERSION);
        let seconds =
            |text: &str| text.parse().ok().filter(|seconds: &f64| seconds.is_finite() && *seconds >= 0.0);
        let last = last.split(',').map(seconds).collect::<Option<VecDeque<f64>>>()?;
        let leases: u64 = leases.parse().ok()?;
        let is_sensible = is_own && last.len() <= WINDOW && leases >= last.len() as u64;
        is_sensible.then_some(Self { leases, last })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learned(seconds: impl IntoIterator<Item = f64>) -> BucketOverhead {
        let mut overhead = BucketOverhead::default();
        seconds.into_iter().for_each(|seconds| overhead.observe(seconds));
        overhead
    }

    #[test]
    fn overhead_is_the_median_of_several_leases() {
        assert_eq!(learned([5.0; 7]).measured_seconds(), None);
        assert_eq!(learned([5.0; 7]).planned_seconds(), 0.0);
        assert_eq!(learned([5.0; 8]).planned_seconds(), 5.0);
        // 31 of 64 leases waited for something else.
        let mixed = (0..64).map(|number| if number % 2 == 1 && number < 63 { 900.0 } else { 3.0 });
        assert_eq!(learned(mixed).planned_seconds(), 3.0);
        assert_eq!(learned([f64::NAN, -1.0, f64::INFINITY]), BucketOverhead::default());
    }

    #[test]
    fn short_overheads_need_no_other_buckets() {
        let short = learned([0.09; 20]);
        assert_eq!((short.measured_seconds(), short.planned_seconds()), (Some(0.09), 0.0));
    }

    #[test]
    fn queue_of_an_earlier_hour_is_forgotten() {
        let mut overhead = learned([600.0; 1000]);
        (0..33).for_each(|_| overhead.observe(2.0));
        assert_eq!(overhead.planned_seconds(), 2.0);
    }

    #[test]
    fn line_gives_the_same_overhead_again() {
        let overhead = learned((0..100).map(|number| f64::from(number) / 7.0));
        assert_eq!(BucketOverhead::parse(&overhead.line().unwrap()), Some(overhead));
        assert_eq!(BucketOverhead::default().line(), None);
        let many = vec!["1"; 65].join(",");
        for line in [
            "bucket-overhead\t1\t\t9\t1",
            "bucket-overhead\t1\t-1\t9\t1",
            "bucket-overhead\t1\tNaN\t9\t1",
            "bucket-overhead\t1\t1,2\t1\t1",
            "bucket-overhead\t2\t1,2\t2\t1",
            "bucket-overhead\t1\t1,2\t2",
            "other\t1\t1,2\t2\t1",
            &format!("bucket-overhead\t1\t{many}\t99\t1"),
        ] {
            assert_eq!(BucketOverhead::parse(line), None, "{line}");
        }
    }
}
