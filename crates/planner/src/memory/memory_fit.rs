//! Cuts buckets until a plan fits the memory of the workers.
//!
//! Beyond trees, a shared output lives until its last reader in the bucket is done: the larger the bucket, the more memory it
//! needs. If a plan needs more than the workers have, its buckets are cut into smaller ones. If no cut helps, the tree scope
//! is the fallback. A dry run judges each candidate, so that `plan`, `run` and managers report the same number.

use crate::{
    BucketLimitOptions, BucketLimits, Draft, PlanBuilder, PlanOptions, PlanRequest, PlanningError,
    WorkerMemory,
};
use pleach_dispatch::memory_model::MinimumMemory;
use std::num::NonZeroUsize;

/// Plan that fits, or the candidate that comes closest.
#[derive(Debug)]
pub(crate) struct FittedPlan {
    pub(crate) options: PlanOptions,
    pub(crate) limits: BucketLimits,
    pub(crate) draft: Draft,
    /// Minimum memory of the first candidate.
    pub(crate) requested_needs: MinimumMemory,
}

/// Distance of a plan from fitting: the number of workers that are too small and, if all are, the bytes that it needs.
type Misfit = (usize, u64);

/// The plan fits all workers.
const FITS: Misfit = (0, 0);

fn misfit(needs: &MinimumMemory, workers: &[WorkerMemory]) -> Misfit {
    let too_small = workers.iter().filter(|worker| !worker.fits(needs)).count();
    (too_small, if too_small == workers.len() && too_small > 0 { needs.min_bytes } else { 0 })
}

/// Searches for a plan that fits as many of the workers as possible.
///
/// # Errors
/// [`PlanningError`] if the study is too large to be planned.
pub(crate) fn fit(builder: &PlanBuilder<'_>, request: &PlanRequest<'_>) -> Result<FittedPlan, PlanningError> {
    let options = request.options;
    let smallest = request.workers.iter().map(|worker| worker.memory_bytes).min().unwrap_or(u64::MAX);
    // One plan serves all workers, so the smallest memory sets the first limits.
    let chosen = BucketLimits::choose(request.buckets, builder, request.slots, smallest)?;
    let make = |options: PlanOptions, limits: BucketLimits| {
        let draft = Draft::new(builder, options.mode(limits))?;
        Ok::<_, PlanningError>((misfit(draft.needs(), request.workers), options, limits, draft))
    };
    let mut best = make(options, chosen)?;
    let requested_needs = best.3.needs().clone();
    // Half of the instances need at least half of the bytes, so no smaller factor can suffice.
    let mut factor = requested_needs.min_bytes.div_ceil(smallest.max(1)).max(2);
    let mut limits = chosen;
    let mut singles_fit = None;
    while best.0 > FITS {
        let smaller = |factor| options.smaller(limits, request.buckets, factor, builder.max_instances());
        let Some(cut) = smaller(factor) else { break };
        // Each round allows more or smaller buckets, so the search ends.
        let is_smaller = cut.max_buckets > limits.max_buckets || cut.max_bucket_size < limits.max_bucket_size;
        assert!(is_smaller, "{cut:?} is not smaller than {limits:?}");
        let candidate = make(options, cut)?;
        limits = cut;
        // Only the first cut is predicted from bytes. Later ones double: the search takes logarithmically many plans.
        factor = 2;
        if candidate.0 < best.0 {
            best = candidate;
        }
        // Where single instances do not fit, nothing between does, and the search ends here.
        if best.0 > FITS && singles_fit.is_none() {
            let Some(single) = options.smaller(limits, request.buckets, u64::MAX, builder.max_instances())
            else {
                break;
            };
            let single = make(options, single)?;
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
    // The tree scope comes last, because it gives up sharing between tasks of different prefixes.
    if best.0 > FITS
        && let Some(tree) = options.as_tree().filter(|_| request.tree_fallback)
    {
        let candidate = make(tree, chosen)?;
        if candidate.0 < best.0 {
            best = candidate;
        }
    }
    let (_, options, limits, draft) = best;
    Ok(FittedPlan { options, limits, draft, requested_needs })
}

impl PlanOptions {
    /// Returns limits that make buckets smaller by a factor. `None` if the user set the limit, or no smaller one exists.
    fn smaller(
        self,
        limits: BucketLimits,
        set: BucketLimitOptions,
        factor: u64,
        instances: NonZeroUsize,
    ) -> Option<BucketLimits> {
        let factor = NonZeroUsize::new(usize::try_from(factor).unwrap_or(usize::MAX))?;
        if self.max_buckets(limits).is_some() && set.max_buckets.is_none() {
            let max_buckets = limits.max_buckets.saturating_mul(factor).min(instances);
            return (max_buckets > limits.max_buckets).then_some(BucketLimits { max_buckets, ..limits });
        }
        if self.max_bucket_size(limits).is_some() && set.max_bucket_size.is_none() {
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
    use crate::StrategyName;
    use pleach_dispatch::plan::ReuseScope;

    const UNSET: BucketLimitOptions = BucketLimitOptions { max_bucket_size: None, max_buckets: None };

    fn size(size: usize) -> NonZeroUsize {
        NonZeroUsize::new(size).unwrap()
    }

    fn limits(max_buckets: usize, max_bucket_size: usize) -> BucketLimits {
        BucketLimits { max_buckets: size(max_buckets), max_bucket_size: size(max_bucket_size) }
    }

    #[test]
    fn buckets_are_cut_by_the_limit_that_the_strategy_keeps() {
        let smaller = |strategy, set, factor| {
            PlanOptions::new(strategy, ReuseScope::Value).smaller(limits(6, 16), set, factor, size(20))
        };
        use StrategyName::{Hrb, Ranges, Rtma, Stage, Trtma};
        assert_eq!(smaller(Trtma, UNSET, 2), Some(limits(12, 16)));
        assert_eq!(smaller(Trtma, UNSET, u64::MAX), Some(limits(20, 16)));
        assert_eq!(smaller(Ranges, UNSET, 2), Some(limits(12, 16)));
        assert_eq!(smaller(Hrb, UNSET, 2), Some(limits(12, 16)));
        assert_eq!(smaller(Rtma, UNSET, 3), Some(limits(6, 5)));
        assert_eq!(smaller(Rtma, UNSET, u64::MAX), Some(limits(6, 1)));
        assert_eq!(smaller(Stage, UNSET, 2), None);
        let set = BucketLimitOptions { max_buckets: Some(size(6)), ..UNSET };
        assert_eq!(smaller(Trtma, set, 2), None);
        let options = PlanOptions::new(Trtma, ReuseScope::Value);
        assert_eq!(options.smaller(limits(20, 16), UNSET, 2, size(20)), None);
    }

    #[test]
    fn misfit_counts_workers_that_are_too_small() {
        let worker = |memory_bytes, spill_bytes| WorkerMemory { memory_bytes, spill_bytes };
        let needs = MinimumMemory { min_bytes: 100, busy_bytes: 60, drains: Vec::new() };
        assert_eq!(misfit(&needs, &[]), FITS);
        assert_eq!(misfit(&needs, &[worker(100, 0), worker(60, 100)]), FITS);
        assert_eq!(misfit(&needs, &[worker(99, 0), worker(100, 0)]), (1, 0));
        assert_eq!(misfit(&needs, &[worker(99, 0), worker(60, 99)]), (2, 100));
    }
}
