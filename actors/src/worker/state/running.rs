//! Running buckets: those with a stage actor, from the assignment until every instance is reported or returned.
//!
//! Invariants:
//! - The regions that a bucket reads do not change while it runs.
//! - The change count of storage never falls, so an equal count means equal content, and the inputs need no new check.

use crate::stage::{
    InstanceSelection, PrefetchTask, SlotGranted, StageActor, TakeInstances, TakeSpare, input_bytes,
};
use actix::dev::Request;
use actix::prelude::*;
use pleach_dispatch::stage::NodeId;
use pleach_dispatch::{LeaseId, PlanId, SlotId};
use pleach_regions::{RamTier, RegionKey};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// A bucket with its stage actor.
pub(crate) struct Bucket {
    study: PlanId,
    stage: Addr<StageActor>,
    /// Regions that the bucket reads, each once, with their bytes.
    inputs: Vec<(RegionKey, u64)>,
}

impl Bucket {
    /// Starts the stage actor of a bucket.
    pub(crate) fn start(study: PlanId, stage: StageActor) -> Self {
        // Copied: after the start, only messages reach the state of the stage actor.
        let inputs = stage.inputs().to_vec();
        Self { study, stage: stage.start(), inputs }
    }

    pub(crate) fn study(&self) -> PlanId {
        self.study
    }

    /// Grants a slot to one task of the bucket.
    pub(crate) fn grant(&self, slot: SlotId, node: NodeId) {
        self.stage.do_send(SlotGranted { slot, node });
    }

    /// Uploads the inputs of a task that an accelerator takes next.
    pub(crate) fn prefetch(&self, slot: SlotId, node: NodeId) {
        self.stage.do_send(PrefetchTask { slot, node });
    }

    /// Requests instances with a longer path that other workers can continue.
    pub(crate) fn take_spare(&self, longer_than: Duration) -> Request<StageActor, TakeSpare> {
        self.stage.send(TakeSpare { longer_than })
    }

    /// Requests instances of the bucket from its stage actor.
    pub(crate) fn take(&self, which: InstanceSelection) -> Request<StageActor, TakeInstances> {
        self.stage.send(TakeInstances(which))
    }

    /// Returns the bytes of the bucket's inputs that are in memory, and those that are missing.
    pub(crate) fn input_bytes(&self, ram: &RamTier) -> (u64, u64) {
        input_bytes(ram, &self.inputs)
    }
}

/// Buckets of a worker, by lease.
#[derive(Default)]
pub(crate) struct RunningBuckets {
    buckets: HashMap<LeaseId, Bucket>,
    /// Change count of the storage at the last check for missing inputs.
    storage_changes_seen: u64,
}

impl RunningBuckets {
    pub(crate) fn insert(&mut self, lease: LeaseId, bucket: Bucket) {
        self.buckets.insert(lease, bucket);
    }

    pub(crate) fn remove(&mut self, lease: LeaseId) {
        self.buckets.remove(&lease);
    }

    pub(crate) fn get(&self, lease: LeaseId) -> Option<&Bucket> {
        self.buckets.get(&lease)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    pub(crate) fn leases(&self) -> impl Iterator<Item = LeaseId> {
        self.buckets.keys().copied()
    }

    /// Returns the leases of a study.
    pub(crate) fn leases_of(&self, study: PlanId) -> Vec<LeaseId> {
        let of_study = self.buckets.iter().filter(|(_, bucket)| bucket.study == study);
        of_study.map(|(lease, _)| *lease).collect()
    }

    /// Returns the regions read by the buckets of these leases.
    pub(crate) fn inputs_of(&self, leases: impl Iterator<Item = LeaseId>) -> HashSet<RegionKey> {
        let read = leases.filter_map(|lease| self.buckets.get(&lease));
        read.flat_map(|bucket| bucket.inputs.iter().map(|(key, _)| *key)).collect()
    }

    /// Returns the present and the missing input bytes of each bucket, or nothing if storage is unchanged since the
    /// last call.
    pub(crate) fn changed_inputs(&mut self, ram: &RamTier) -> impl Iterator<Item = (LeaseId, (u64, u64))> {
        let changes = ram.changes();
        assert!(changes >= self.storage_changes_seen, "the change count of storage has fallen");
        let has_changed = std::mem::replace(&mut self.storage_changes_seen, changes) != changes;
        let buckets = has_changed.then_some(&self.buckets).into_iter().flatten();
        buckets.map(|(lease, bucket)| (*lease, bucket.input_bytes(ram)))
    }
}
