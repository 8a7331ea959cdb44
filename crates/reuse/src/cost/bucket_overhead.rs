//! Weighs a fixed overhead of each bucket (queue, submission) against the wait for the last bucket: number and size of
//! buckets.
//!
//! W cores run a stage of T seconds in k buckets each. A core spends k·o seconds on overheads of o seconds, and waits at the
//! end for one bucket at most, T / (W·k) seconds: few large buckets pay few overheads, many small ones wait little. With s
//! instances per bucket, n / (W·s) buckets of s·T / n seconds run on each core. Both sums over the stages have one
//! minimum, and the number of buckets at it does not grow with the overhead. Clustering of tasks by run time sizes jobs
//! likewise (DFJS and AFJS in paper 002 §5), by a limit that its user tunes.

use std::num::NonZeroUsize;

/// Buckets per core, "experimentally found" (paper 001 §4.2.4): enough to even out errors of the predicted costs.
pub const BUCKETS_PER_CORE: NonZeroUsize = NonZeroUsize::new(3).expect("3 is not 0");

/// Work of one stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageLoad {
    /// Number of stage instances.
    pub instances: usize,
    /// Seconds of their distinct tasks: the least that buckets execute in total.
    pub seconds: f64,
}

/// Number and size of buckets of the least time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverheadChoice {
    /// Buckets for each core, at most [`BUCKETS_PER_CORE`].
    pub buckets_per_core: NonZeroUsize,
    /// Size of a bucket in instances from that on a larger one waits longer than it saves of overheads. 1 without
    /// overhead. Never so large that a core has no bucket.
    pub bucket_size: NonZeroUsize,
}

/// Chooses number and size of the buckets of `stages` on `cores`, each bucket with an overhead of `overhead_seconds`.
///
/// Stages of no more instances than cores have no choice, and do not count. Number and size never move towards smaller
/// buckets as the overhead grows.
///
/// # Panics
/// If the overhead is negative or not finite.
#[must_use]
pub fn weigh_overhead(stages: &[StageLoad], cores: NonZeroUsize, overhead_seconds: f64) -> OverheadChoice {
    let is_valid = overhead_seconds.is_finite() && overhead_seconds >= 0.0;
    assert!(is_valid, "a bucket has an overhead of {overhead_seconds} s");
    let free = OverheadChoice { buckets_per_core: BUCKETS_PER_CORE, bucket_size: NonZeroUsize::MIN };
    let wide: Vec<&StageLoad> = stages.iter().filter(|stage| stage.instances > cores.get()).collect();
    if overhead_seconds == 0.0 || wide.is_empty() {
        return free;
    }
    let of_core = |sum: f64| sum / cores.get() as f64;
    let work = of_core(wide.iter().map(|stage| stage.seconds).sum());
    let overhead = overhead_seconds * wide.len() as f64;
    // k·o + T/(W·k) is less than for k − 1 where T/(W·o) is more than k·(k − 1).
    let pays = |buckets: &usize| work >= overhead * (buckets * (buckets - 1)) as f64;
    let buckets_per_core = (2..=BUCKETS_PER_CORE.get()).rev().find(pays).and_then(NonZeroUsize::new);
    let instances: usize = wide.iter().map(|stage| stage.instances).sum();
    let of_instance: f64 = wide.iter().map(|stage| stage.seconds / stage.instances as f64).sum();
    // Infinite without work: the cast saturates, and the maximum limits it.
    let best_size = (of_core(instances as f64 * overhead_seconds) / of_instance).sqrt().ceil() as usize;
    let max_size = wide.iter().map(|stage| stage.instances.div_ceil(cores.get())).max().unwrap_or(1);
    OverheadChoice {
        buckets_per_core: buckets_per_core.unwrap_or(NonZeroUsize::MIN),
        bucket_size: NonZeroUsize::new(best_size.min(max_size)).unwrap_or(NonZeroUsize::MIN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(stages: &[(usize, f64)], cores: usize, overhead_seconds: f64) -> (usize, usize) {
        let load = |&(instances, seconds): &(usize, f64)| StageLoad { instances, seconds };
        let stages: Vec<StageLoad> = stages.iter().map(load).collect();
        let choice = weigh_overhead(&stages, NonZeroUsize::new(cores).unwrap(), overhead_seconds);
        (choice.buckets_per_core.get(), choice.bucket_size.get())
    }

    #[test]
    fn small_tasks_behind_a_slow_queue_go_in_larger_buckets() {
        // 1,000 instances of 0.1 s on 4 cores: 25 s of work for each.
        let small = |overhead| chosen(&[(1000, 100.0)], 4, overhead);
        assert_eq!(small(0.0), (3, 1));
        assert_eq!(small(1.0), (3, 50));
        assert_eq!(small(25.0 / 6.0), (3, 103));
        assert_eq!(small(5.0), (2, 112));
        assert_eq!(small(60.0), (1, 250));
        // Instances of 100 s are worth a bucket each.
        assert_eq!(chosen(&[(1000, 1e5)], 4, 1.0), (3, 2));
    }

    #[test]
    fn stages_without_a_choice_do_not_count() {
        let alone = chosen(&[(1000, 100.0)], 4, 5.0);
        assert_eq!(chosen(&[(1, 9e9), (1000, 100.0), (4, 0.0)], 4, 5.0), alone);
        assert_eq!(chosen(&[(4, 1.0)], 4, 1e9), (3, 1));
        assert_eq!(chosen(&[], 4, 1e9), (3, 1));
    }

    #[test]
    fn instances_that_take_no_time_fill_the_cores_once() {
        assert_eq!(chosen(&[(1000, 0.0)], 4, 1e-9), (1, 250));
    }
}
