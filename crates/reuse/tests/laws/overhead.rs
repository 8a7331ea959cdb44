//! Number and size of buckets by their overhead, compared with a search of all numbers and sizes.

#![expect(
    clippy::unwrap_used,
    reason = "generators and models are tests too, though outside of test functions"
)]

use std::num::NonZeroUsize;

use pleach_reuse::{OverheadChoice, StageLoad, weigh_overhead};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::strategy::Strategy as Generator;

fn stages() -> impl Generator<Value = Vec<StageLoad>> {
    let load = |(instances, seconds)| StageLoad { instances, seconds: f64::from(seconds) / 8.0 };
    vec((0_usize..300, 0_u32..10_000).prop_map(load), 0..4)
}

fn choose(stages: &[StageLoad], cores: usize, overhead_seconds: f64) -> OverheadChoice {
    weigh_overhead(stages, NonZeroUsize::new(cores).unwrap(), overhead_seconds)
}

/// Seconds of a core beyond its work, with some buckets for it in each stage.
fn seconds_by_number(stages: &[&StageLoad], cores: usize, overhead: f64, buckets: usize) -> f64 {
    let of_stage =
        |stage: &&StageLoad| buckets as f64 * overhead + stage.seconds / (cores as f64 * buckets as f64);
    stages.iter().map(of_stage).sum()
}

/// The same, with some instances in each bucket.
fn seconds_by_size(stages: &[&StageLoad], cores: usize, overhead: f64, size: usize) -> f64 {
    let of_stage = |stage: &&StageLoad| {
        let instances = stage.instances as f64;
        instances * overhead / (cores as f64 * size as f64) + size as f64 * stage.seconds / instances
    };
    stages.iter().map(of_stage).sum()
}

proptest! {
    #[test]
    fn buckets_do_not_shrink_as_the_overhead_grows(
        stages in stages(), cores in 1_usize..20, mut overheads in vec(0.0..1000.0_f64, 2..9),
    ) {
        overheads.sort_by(f64::total_cmp);
        let chosen: Vec<OverheadChoice> =
            overheads.iter().map(|overhead| choose(&stages, cores, *overhead)).collect();
        prop_assert!(chosen.is_sorted_by_key(|choice| choice.bucket_size), "{chosen:?}");
        prop_assert!(chosen.is_sorted_by_key(|choice| std::cmp::Reverse(choice.buckets_per_core)), "{chosen:?}");
        prop_assert_eq!(choose(&stages, cores, 0.0), choose(&[], cores, 1.0));
    }

    #[test]
    fn choice_takes_the_least_time(stages in stages(), cores in 1_usize..20, overhead in 0.01..1000.0_f64) {
        let wide: Vec<&StageLoad> = stages.iter().filter(|stage| stage.instances > cores).collect();
        prop_assume!(!wide.is_empty());
        let found = choose(&stages, cores, overhead);
        let by_number = |buckets| seconds_by_number(&wide, cores, overhead, buckets);
        let least = (1..=3).map(by_number).fold(f64::INFINITY, f64::min);
        prop_assert!(by_number(found.buckets_per_core.get()) <= least * (1.0 + 1e-9));
        // The best real number, rounded up: the best whole number is this one or the one before.
        let max_size = wide.iter().map(|stage| stage.instances.div_ceil(cores)).max().unwrap();
        let by_size = |size| seconds_by_size(&wide, cores, overhead, size);
        let least = (1..=max_size).map(by_size).fold(f64::INFINITY, f64::min);
        let size = found.bucket_size.get();
        prop_assert!(size <= max_size, "{size} of {max_size}");
        let nearest = by_size(size).min(by_size((size - 1).max(1)));
        prop_assert!(nearest <= least * (1.0 + 1e-9), "{found:?}: {nearest} of {least}");
    }
}
