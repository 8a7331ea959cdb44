//! Initial state of a study: a whole plan, or the open rest of it after earlier runs.

use super::throughput::StageThroughput;
use super::{Bucket, Effect, Instance, State, Study};
use crate::plan::{ExecutionPlan, PlanError};
use crate::{BucketId, InstanceId};
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
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
        let open = plan.open(finished);
        let mut users: HashMap<RegionKey, usize> = HashMap::new();
        let mut instances: Vec<Instance> = Vec::with_capacity(plan.instances.len());
        for (number, (instance, bucket)) in plan.instances.iter().zip(bucket_of).enumerate() {
            let state = match instance.parents.iter().filter(|parent| open[parent.index()]).count() {
                _ if !open[number] => State::Done,
                0 => State::Ready,
                parents => State::Waiting(parents),
            };
            instances.push(Instance { state, bucket, children: Vec::new() });
            if open[number] {
                instance.used().into_iter().for_each(|key| *users.entry(key).or_default() += 1);
            }
        }
        for (child, instance) in (0u32..).map(InstanceId).zip(&plan.instances) {
            for parent in &instance.parents {
                instances[parent.index()].children.push(child);
            }
        }
        let buckets = plan.buckets.iter().map(|bucket| {
            let open: BTreeSet<InstanceId> =
                bucket.instances.iter().copied().filter(|id| open[id.index()]).collect();
            let waits = |id: &&InstanceId| matches!(instances[id.index()].state, State::Waiting(_));
            Bucket {
                waiting: open.iter().filter(waits).count(),
                open,
                alone: false,
                ready_since: Duration::ZERO,
            }
        });
        let buckets = buckets.collect();
        let stored = |instance: &crate::plan::InstancePlan| {
            instance
                .outputs
                .iter()
                .filter(|output| output.stored)
                .map(|output| output.key)
                .collect::<Vec<_>>()
        };
        let by_instance = (0u32..).map(InstanceId).zip(&plan.instances);
        let producers = by_instance.flat_map(|(id, plan)| stored(plan).into_iter().map(move |key| (key, id)));
        let producers = producers.collect();
        let pace = plan.stages.iter().map(|stage| StageThroughput::of(stage.tasks.len())).collect();
        let mut study = Self {
            unfinished: open.iter().filter(|open| **open).count(),
            plan,
            instances,
            buckets,
            ready: BTreeSet::new(),
            ready_alone: BTreeSet::new(),
            alone_since: BTreeMap::new(),
            leases: BTreeMap::new(),
            granted: BTreeMap::new(),
            users,
            producers,
            holders: HashMap::new(),
            causes: BTreeMap::new(),
            losses: HashMap::new(),
            lacked: HashMap::new(),
            pace,
            is_halted: false,
            now: Duration::ZERO,
            effects: VecDeque::new(),
        };
        for bucket in (0..study.buckets.len() as u32).map(BucketId) {
            study.queue_if_ready(bucket);
        }
        if study.unfinished == 0 {
            study.effects.push_back(Effect::Complete);
        }
        Ok(study)
    }
}
