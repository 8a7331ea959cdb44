//! Initial state of a study: a whole plan, or the open rest of it after earlier runs.

use super::state::{Failures, Instances, Leases, Positions, ReadyQueue, Regions, SlotClocks, Throughput};
use super::{Effect, Study};
use crate::plan::{ExecutionPlan, PlanError};
use crate::{BucketId, InstanceId};
use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::time::Duration;

impl Study {
    /// Creates the state of a plan. An empty plan is complete at once.
    ///
    /// # Errors
    /// [`PlanError`] when the plan breaks one of its rules.
    pub fn new(plan: ExecutionPlan) -> Result<Self, PlanError> {
        Self::resume(plan, &BTreeSet::new())
    }

    /// Creates the state of a plan whose `finished` instances have reported their results before. They are done, and so are
    /// ancestors that only they read from. Ancestors of an open instance are executed again.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn resume(plan: ExecutionPlan, finished: &BTreeSet<InstanceId>) -> Result<Self, PlanError> {
        let bucket_of = plan.validate()?;
        let open = plan.unfinished(finished);
        let mut study = Self {
            instances: Instances::of(&plan, bucket_of, &open),
            positions: Positions::of(&plan),
            ready: ReadyQueue::default(),
            released: VecDeque::new(),
            leases: Leases::default(),
            regions: Regions::of(&plan, &open),
            failures: Failures::default(),
            begun: BTreeMap::new(),
            throughput: Throughput::of(&plan),
            clocks: SlotClocks::default(),
            read_files: HashSet::new(),
            plan,
            is_halted: false,
            now: Duration::ZERO,
            effects: VecDeque::new(),
        };
        let (planned, buckets) = (study.plan.buckets.len(), study.instances.bucket_count());
        assert!(planned == buckets, "{planned} buckets are planned, and {buckets} have a state");
        for bucket in (0..buckets as u32).map(BucketId) {
            study.queue_if_ready(bucket);
        }
        if study.unfinished() == 0 {
            assert!(study.ready.is_empty(), "no instance is open, and buckets are queued: {:?}", study.ready);
            assert!(
                study.regions.is_empty(),
                "no instance is open, and regions are used: {:?}",
                study.regions
            );
            study.effects.push_back(Effect::Complete);
        }
        Ok(study)
    }
}
