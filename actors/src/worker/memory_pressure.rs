//! Memory pressure: frees memory in order of cost.
//!
//! 1. Unreferenced task results are spilled to a tier where finding them is faster than recomputing them.
//! 2. On request of the state machine, the storage actor drops or spills stored regions that no running bucket reads.
//! 3. Without a spill tier, replicas of other workers' regions are dropped.
//! 4. Tasks wait.
//!
//! Work that does not fit into an empty worker was refused before it started.

use super::WorkerActor;
use crate::stage::input_bytes;
use crate::storage::FreeMemory;
use crate::task_results::spill_evicted;
use actix::prelude::*;
use pleach_dispatch::LeaseId;
use pleach_dispatch::memory_model::BucketDemand;
use pleach_dispatch::message::ToManager;
use pleach_regions::RegionKey;
use std::collections::HashSet;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

impl WorkerActor {
    /// Evicts unreferenced task results beyond the free memory.
    pub(super) fn make_room(&self) {
        // Each bound alone suffices. The ledger counts shared regions once. It also counts the outputs of a finished task
        // whose stage has not reported the end yet, so that its reservation still counts too.
        let counted = self.setup.ledger.held_bytes().saturating_add(self.core.reserved_bytes());
        let needed = counted.min(self.core.needed_bytes());
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let fallen = results.shelf.shrink_to(self.setup.resources.memory_bytes.saturating_sub(needed));
        self.meters.steps.shelf.increment(fallen.len() as u64);
        let all = needed.saturating_add(results.shelf.idle_bytes());
        self.setup.peak_bytes.fetch_max(all, Ordering::Relaxed);
        drop(results);
        // With a task cache, results worth keeping are already on disk.
        if let Some(below) = self.setup.below.as_ref().filter(|_| self.setup.past.cache.is_none()) {
            spill_evicted(&self.results, below, fallen);
        }
    }

    /// Reports the bytes that could leave memory, limited by the free space of the spill tiers.
    pub(super) fn report_spillable(&mut self) {
        let Some(below) = &self.setup.below else {
            let read = self.read(None);
            let idle = self.replicas.keys().filter(|key| !read.contains(*key));
            let movable_bytes = idle.filter_map(|key| self.setup.ram.bytes(*key)).sum();
            return self.core.handle_spillable(movable_bytes, 0);
        };
        let read: u64 = self.read(None).into_iter().filter_map(|key| self.setup.ram.bytes(key)).sum();
        let free_bytes = below.free_bytes();
        let movable_bytes = self.setup.ram.held_bytes().saturating_sub(read).min(free_bytes);
        self.core.handle_spillable(movable_bytes, free_bytes);
    }

    /// Returns the regions read by running buckets and by this one.
    fn read(&self, also: Option<LeaseId>) -> HashSet<RegionKey> {
        let is_read = |lease: &LeaseId| self.core.is_under_way(*lease) || also == Some(*lease);
        let read = self.running.iter().filter(|(lease, _)| is_read(lease));
        read.flat_map(|(_, bucket)| bucket.inputs.iter().map(|(key, _)| *key)).collect()
    }

    pub(super) fn free_memory(&mut self, bytes: u64, lease: LeaseId, ctx: &mut Context<Self>) {
        self.meters.steps.room.increment(1);
        let but = self.read(Some(lease));
        let replicas = self.replicas.keys().copied().filter(|key| !but.contains(key)).collect();
        let made = self.setup.storage.send(FreeMemory { bytes, but, replicas }).into_actor(self);
        ctx.spawn(made.map(|made, actor, ctx| {
            let made = made.unwrap_or_default();
            for key in made.gone {
                if let Some(study) = actor.replicas.remove(&key) {
                    actor.meters.steps.replica.increment(1);
                    actor.send(&ToManager::ReplicaDropped { study, key }, ctx);
                }
            }
            actor.look();
            actor.core.handle_memory_freed(made.bytes);
            actor.perform(ctx);
        }));
    }

    /// Updates the demand of a waiting bucket, whose inputs may have left memory since it was computed.
    pub(super) fn as_it_is(&self, lease: LeaseId, demand: BucketDemand) -> BucketDemand {
        let may_leave = self.setup.below.is_some() || self.setup.remote.is_some();
        let waits = may_leave && !demand.started;
        let Some(bucket) = self.running.get(&lease).filter(|_| waits) else { return demand };
        let (here_bytes, load_bytes) = input_bytes(&self.setup.ram, &bucket.inputs);
        BucketDemand { here_bytes, load_bytes, ..demand }
    }
}
