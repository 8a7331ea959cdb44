//! Plans that fit the memory of workers.
//!
//! Tasks that are shared beyond trees hold their outputs until their last reader in the bucket is done: the larger the
//! bucket, the more is held. Where a plan needs more than workers have, its buckets are cut into smaller ones, and where no
//! cut helps, tasks are shared as in trees. Every candidate is judged by its rehearsal, so that `plan`, `run` and managers
//! name the same number.

use super::{BucketLimits, PlanOptions};
use crate::cli::BucketArgs;
use crate::planning::{Draft, PlanBuilder, PlanningError, WorkerMemory};
use pleach_dispatch::memory_model::MinimumMemory;
use std::num::{NonZeroU32, NonZeroUsize};

/// What a plan is to fit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room<'a> {
    /// Limits that were asked for: they are kept.
    pub(crate) buckets: BucketArgs,
    /// Tasks that workers run at once.
    pub(crate) slots: NonZeroU32,
    /// What each worker has; none: any plan fits.
    pub(crate) workers: &'a [WorkerMemory],
    /// Whether tasks may be shared as in trees where nothing else fits.
    pub(crate) may_be_tree: bool,
}

/// A plan that fits, or the one that comes closest.
#[derive(Debug)]
pub(crate) struct Fitted {
    pub(crate) way: PlanOptions,
    pub(crate) limits: BucketLimits,
    pub(crate) draft: Draft,
    /// What the plan needs that was tried first.
    pub(crate) first_needs: MinimumMemory,
}

/// How far a plan is from fitting: workers that it does not fit, and what it needs where it fits none.
type Misfit = (usize, u64);

/// It fits all workers.
const FITS: Misfit = (0, 0);

fn misfit(needs: &MinimumMemory, workers: &[WorkerMemory]) -> Misfit {
    let too_small = workers.iter().filter(|worker| !worker.fits(needs)).count();
    (too_small, if too_small == workers.len() && too_small > 0 { needs.least_bytes } else { 0 })
}

/// Plans a study for workers with some memory. The plan fits as many of them as one can.
///
/// # Errors
/// [`PlanningError`] when the study is too large to be planned.
pub(crate) fn fit(loom: &PlanBuilder<'_>, way: PlanOptions, room: Room<'_>) -> Result<Fitted, PlanningError> {
    let smallest = room.workers.iter().map(|worker| worker.memory_bytes).min().unwrap_or(u64::MAX);
    let chosen = BucketLimits::choose(room.buckets, loom, room.slots, smallest)?;
    let make = |way: PlanOptions, limits: BucketLimits| {
        let draft = Draft::new(loom, way.level(limits))?;
        Ok::<_, PlanningError>((misfit(draft.needs(), room.workers), way, limits, draft))
    };
    let mut best = make(way, chosen)?;
    let first_needs = best.3.needs().clone();
    // Half of the instances need at least half of the bytes: it takes at least this factor.
    let mut factor = first_needs.least_bytes.div_ceil(smallest.max(1)).max(2);
    let mut limits = chosen;
    let mut singles_fit = None;
    while best.0 > FITS {
        let smaller = |factor| way.smaller(limits, room.buckets, factor, loom.most_instances());
        let Some(cut) = smaller(factor) else { break };
        let candidate = make(way, cut)?;
        limits = cut;
        factor = 2;
        if candidate.0 < best.0 {
            best = candidate;
        }
        // Where single instances do not fit, nothing between does, and the search ends here.
        if best.0 > FITS && singles_fit.is_none() {
            let Some(single) = way.smaller(limits, room.buckets, u64::MAX, loom.most_instances()) else {
                break;
            };
            let single = make(way, single)?;
            let is_better = single.0.0 < best.0.0;
            if !is_better {
                if single.0 < best.0 {
                    best = single;
                }
                break;
            }
            singles_fit = Some(is_better);
        }
    }
    if best.0 > FITS
        && let Some(tree) = way.as_tree().filter(|_| room.may_be_tree)
    {
        let candidate = make(tree, chosen)?;
        if candidate.0 < best.0 {
            best = candidate;
        }
    }
    let (_, way, limits, draft) = best;
    Ok(Fitted { way, limits, draft, first_needs })
}

impl PlanOptions {
    /// Limits that make buckets smaller by a factor; `None` where they are as small as they get, or their limit was asked
    /// for.
    fn smaller(
        self,
        limits: BucketLimits,
        asked: BucketArgs,
        factor: u64,
        instances: NonZeroUsize,
    ) -> Option<BucketLimits> {
        let factor = NonZeroUsize::new(usize::try_from(factor).unwrap_or(usize::MAX))?;
        if self.max_buckets(limits).is_some() && asked.max_buckets.is_none() {
            let max_buckets = limits.max_buckets.saturating_mul(factor).min(instances);
            return (max_buckets > limits.max_buckets).then_some(BucketLimits { max_buckets, ..limits });
        }
        if self.max_bucket_size(limits).is_some() && asked.max_bucket_size.is_none() {
            let size = NonZeroUsize::new(limits.max_bucket_size.get() / factor).unwrap_or(NonZeroUsize::MIN);
            return (size < limits.max_bucket_size)
                .then_some(BucketLimits { max_bucket_size: size, ..limits });
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{ReuseName, StrategyName, TaskOrderName};

    const NOTHING_ASKED: BucketArgs =
        BucketArgs { max_bucket_size: None, max_buckets: None, task_order: TaskOrderName::Declared };

    fn size(size: usize) -> NonZeroUsize {
        NonZeroUsize::new(size).unwrap()
    }

    fn limits(max_buckets: usize, max_bucket_size: usize) -> BucketLimits {
        BucketLimits { max_buckets: size(max_buckets), max_bucket_size: size(max_bucket_size) }
    }

    #[test]
    fn buckets_are_cut_by_the_limit_that_the_strategy_keeps() {
        let smaller = |strategy, asked, factor| {
            PlanOptions::new(strategy, ReuseName::Value).smaller(limits(6, 16), asked, factor, size(20))
        };
        use StrategyName::{Rtma, Stage, Trtma};
        assert_eq!(smaller(Trtma, NOTHING_ASKED, 2), Some(limits(12, 16)));
        assert_eq!(smaller(Trtma, NOTHING_ASKED, u64::MAX), Some(limits(20, 16)));
        assert_eq!(smaller(Rtma, NOTHING_ASKED, 3), Some(limits(6, 5)));
        assert_eq!(smaller(Rtma, NOTHING_ASKED, u64::MAX), Some(limits(6, 1)));
        assert_eq!(smaller(Stage, NOTHING_ASKED, 2), None);
        let asked = BucketArgs { max_buckets: Some(size(6)), ..NOTHING_ASKED };
        assert_eq!(smaller(Trtma, asked, 2), None);
        let way = PlanOptions::new(Trtma, ReuseName::Value);
        assert_eq!(way.smaller(limits(20, 16), NOTHING_ASKED, 2, size(20)), None);
    }

    #[test]
    fn misfit_counts_workers_that_are_too_small() {
        let worker = |memory_bytes, below_bytes| WorkerMemory { memory_bytes, below_bytes };
        let needs = MinimumMemory { least_bytes: 100, busy_bytes: 60, drains: Vec::new() };
        assert_eq!(misfit(&needs, &[]), FITS);
        assert_eq!(misfit(&needs, &[worker(100, 0), worker(60, 100)]), FITS);
        assert_eq!(misfit(&needs, &[worker(99, 0), worker(100, 0)]), (1, 0));
        assert_eq!(misfit(&needs, &[worker(99, 0), worker(60, 99)]), (2, 100));
    }
}
