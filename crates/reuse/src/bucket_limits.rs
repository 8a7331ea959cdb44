//! Default number and size of buckets: enough buckets for the cores, and none beyond the memory budget.
//!
//! The papers take three buckets per core. [`peak_bytes`] predicts whether the concurrent buckets fit into memory.
//! If they do not fit, more and smaller buckets are tried, down to single instances. The search doubles, so the
//! result is within a factor of two of the fewest buckets that fit. The worker admits tasks by their real sizes. Where
//! buckets have an overhead, the search starts with fewer of them.

use std::num::NonZeroUsize;

use serde::Serialize;
use thiserror::Error;

use crate::buckets::Buckets;
use crate::cost::bucket_overhead::BUCKETS_PER_CORE;
use crate::cost::peak_memory::{LevelBytes, peak_bytes};
use crate::graph::tree::ReuseTree;
use crate::merge_problem::MergeProblem;
use crate::strategy::{LeftoverRule, SolveError, Strategy, TrtmaOptions};

/// Capacity available to buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Cores of all workers.
    pub cores: NonZeroUsize,
    /// Buckets for each core where memory allows: [`BUCKETS_PER_CORE`], or fewer if each has an overhead
    /// ([`weigh_overhead`](crate::weigh_overhead)).
    pub buckets_per_core: NonZeroUsize,
    /// Buckets that run at once and share the budget.
    pub concurrent_buckets: NonZeroUsize,
    /// Memory budget of the concurrent buckets.
    pub budget_bytes: u64,
}

/// Bytes held by the instances of a stage.
#[derive(Debug, Clone, Copy)]
pub struct StageBytes<'a> {
    /// Inputs of an instance, held while its bucket runs.
    pub input_bytes: u64,
    /// One entry per level.
    pub levels: &'a [LevelBytes],
}

/// Limits for strategies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Limits {
    /// Maximum number of buckets, for TRTMA.
    pub max_buckets: NonZeroUsize,
    /// Maximum bucket size, for RTMA.
    pub max_bucket_size: NonZeroUsize,
    /// Predicted peak of the concurrent buckets under either limit.
    pub peak_bytes: u64,
}

/// Cause of failed limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum LimitsError {
    /// Not even single instances fit.
    #[error(
        "keep {concurrent_buckets} buckets within {budget_bytes} bytes: with one instance each they hold {peak_bytes}; {fitting} would fit"
    )]
    Memory {
        /// Buckets that run at once.
        concurrent_buckets: usize,
        /// Memory budget.
        budget_bytes: u64,
        /// Predicted peak with one instance per bucket.
        peak_bytes: u64,
        /// Number of the largest single-instance buckets that fit.
        fitting: u64,
    },
    /// A strategy cannot solve the problem.
    #[error(transparent)]
    Solve(#[from] SolveError),
}

/// Chooses the fewest and the largest buckets that keep the cores busy and fit into memory.
///
/// # Errors
/// If even single instances are too large.
///
/// # Panics
/// If `bytes.levels` has fewer entries than the problem has levels.
pub fn choose_limits(
    problem: &MergeProblem,
    tree: &ReuseTree,
    bytes: StageBytes<'_>,
    machine: Capacity,
) -> Result<Limits, LimitsError> {
    let instances = NonZeroUsize::new(problem.len()).unwrap_or(NonZeroUsize::MIN);
    let usual_buckets = machine.cores.saturating_mul(machine.buckets_per_core).min(instances);
    // In depth-first order a bucket holds one output of a level at a time. If these fit, any buckets fit.
    let any_bucket = max_bytes(&bytes.levels[..problem.levels()]).saturating_add(bytes.input_bytes);
    let any_buckets = any_bucket.saturating_mul(machine.concurrent_buckets.get() as u64);
    if any_buckets <= machine.budget_bytes {
        return Ok(Limits {
            max_buckets: usual_buckets,
            max_bucket_size: instances,
            peak_bytes: any_buckets,
        });
    }
    let at_once = |buckets: &Buckets| concurrent_bytes(problem, tree, buckets, bytes, machine);
    let single = at_once(&Strategy::Stage.solve(problem, tree)?);
    if single > machine.budget_bytes {
        let largest = single.div_ceil(machine.concurrent_buckets.get().min(instances.get()) as u64);
        return Err(LimitsError::Memory {
            concurrent_buckets: machine.concurrent_buckets.get(),
            budget_bytes: machine.budget_bytes,
            peak_bytes: single,
            fitting: machine.budget_bytes / largest.max(1),
        });
    }
    let options = TrtmaOptions::default();
    let mut max_buckets = usual_buckets;
    let mut with_buckets = single;
    while max_buckets < instances {
        with_buckets = at_once(&Strategy::Trtma { max_buckets, options }.solve(problem, tree)?);
        if with_buckets <= machine.budget_bytes {
            break;
        }
        // If the loop ends here, each instance has its own bucket, and `single` has fitted above. Up to the usual
        // number the steps are those of `buckets_per_core`: fewer of them never end with more buckets.
        let is_below_usual = max_buckets < machine.cores.saturating_mul(BUCKETS_PER_CORE);
        let step = if is_below_usual { machine.cores } else { max_buckets };
        max_buckets = max_buckets.saturating_add(step.get()).min(instances);
        with_buckets = single;
    }
    let mut max_bucket_size = instances;
    let mut with_size = single;
    while max_bucket_size > NonZeroUsize::MIN {
        let strategy = Strategy::Rtma { max_bucket_size, ending: LeftoverRule::default() };
        with_size = at_once(&strategy.solve(problem, tree)?);
        if with_size <= machine.budget_bytes {
            break;
        }
        max_bucket_size = NonZeroUsize::new(max_bucket_size.get() / 2).unwrap_or(NonZeroUsize::MIN);
        with_size = single;
    }
    let (peak_bytes, budget_bytes) = (with_buckets.max(with_size), machine.budget_bytes);
    assert!(peak_bytes <= budget_bytes, "the limits need {peak_bytes} bytes, the budget is {budget_bytes}");
    assert!(max_buckets <= instances, "{max_buckets} buckets are allowed for {instances} instances");
    assert!(
        max_bucket_size <= instances,
        "buckets of {max_bucket_size} are allowed for {instances} instances"
    );
    Ok(Limits { max_buckets, max_bucket_size, peak_bytes })
}

/// Returns an upper bound of the bytes of any bucket, without its inputs.
fn max_bytes(levels: &[LevelBytes]) -> u64 {
    let outputs = levels.iter().fold(0, |sum: u64, level| sum.saturating_add(level.output_bytes));
    let scratch = levels.iter().map(|level| level.scratch_bytes).max();
    outputs.saturating_add(scratch.unwrap_or(0))
}

/// Returns the bytes of the largest buckets, as many as run concurrently.
fn concurrent_bytes(
    problem: &MergeProblem,
    tree: &ReuseTree,
    buckets: &Buckets,
    bytes: StageBytes<'_>,
    machine: Capacity,
) -> u64 {
    let peak = |members| peak_bytes(problem, tree, members, bytes.input_bytes, bytes.levels);
    let mut peaks: Vec<u64> = buckets.iter().map(peak).collect();
    peaks.sort_unstable_by_key(|peak| std::cmp::Reverse(*peak));
    peaks.iter().take(machine.concurrent_buckets.get()).fold(0, |sum, peak| sum.saturating_add(*peak))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge_problem::TaskCosts;

    /// Eight instances of three tasks. Pairs of instances share the first task. The next task reads an
    /// output, so a single instance holds two outputs of 10 bytes at a time, and three if the first task
    /// branches.
    fn limits(cores: usize, concurrent: usize, budget_bytes: u64) -> Result<Limits, LimitsError> {
        limits_of(3, cores, concurrent, budget_bytes)
    }

    fn limits_of(
        buckets_per_core: usize,
        cores: usize,
        concurrent: usize,
        budget_bytes: u64,
    ) -> Result<Limits, LimitsError> {
        let keys = (0..8).flat_map(|instance| [instance / 2, instance, instance]).collect();
        let problem = MergeProblem::new(3, vec![0; 8], keys, TaskCosts::Count).unwrap();
        let tree = ReuseTree::build(&problem);
        let level = |last_read| LevelBytes { output_bytes: 10, scratch_bytes: 1, last_read };
        let levels = [level(1), level(2), level(2)];
        let non_zero = |count| NonZeroUsize::new(count).unwrap();
        let machine = Capacity {
            cores: non_zero(cores),
            buckets_per_core: non_zero(buckets_per_core),
            concurrent_buckets: non_zero(concurrent),
            budget_bytes,
        };
        choose_limits(&problem, &tree, StageBytes { input_bytes: 100, levels: &levels }, machine)
    }

    #[test]
    fn three_buckets_a_core_where_memory_allows() {
        let found = limits(1, 2, 1000).unwrap();
        assert_eq!((found.max_buckets.get(), found.max_bucket_size.get()), (3, 8));
        assert_eq!(found.peak_bytes, 2 * 131);
        assert_eq!(limits(64, 2, 1000).unwrap().max_buckets.get(), 8);
    }

    #[test]
    fn less_memory_makes_more_and_smaller_buckets() {
        let found = limits(1, 2, 2 * 131 - 1).unwrap();
        assert_eq!((found.max_buckets.get(), found.max_bucket_size.get()), (6, 1));
        assert_eq!(found.peak_bytes, 2 * 121);
        let found = limits(1, 1, 131).unwrap();
        assert_eq!((found.max_buckets.get(), found.max_bucket_size.get()), (3, 8));
    }

    #[test]
    fn fewer_buckets_a_core_never_end_with_more_buckets() {
        let max_buckets = |buckets_per_core, budget_bytes| {
            limits_of(buckets_per_core, 1, 2, budget_bytes).unwrap().max_buckets.get()
        };
        assert_eq!([1, 2, 3].map(|each| max_buckets(each, 1000)), [1, 2, 3]);
        for budget_bytes in 2 * 121..=2 * 131 {
            let found = [1, 2, 3].map(|each| max_buckets(each, budget_bytes));
            assert!(found.is_sorted(), "{budget_bytes}: {found:?}");
        }
    }

    #[test]
    fn buckets_beyond_memory_are_refused_with_the_numbers() {
        let refused = limits(1, 3, 2 * 121).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "keep 3 buckets within 242 bytes: with one instance each they hold 363; 2 would fit"
        );
        assert!(limits(1, 2, 2 * 121).is_ok());
    }
}
