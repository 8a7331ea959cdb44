//! Memory pressure: frees memory in order of cost.
//!
//! 1. Unreferenced task results are encoded in memory, all but the most recent ones, before they are in the way. Beyond that
//!    they are spilled to a tier where finding them is faster than recomputing them.
//! 2. On request of the state machine, the storage actor drops or spills stored regions that no running bucket reads.
//! 3. Without a spill tier, replicas of other workers' regions are dropped, and regions that only queries read. With one, the
//!    latter are dropped once the tier is full.
//! 4. Tasks wait.
//!
//! Work that does not fit into an empty worker was refused before it started.

use super::WorkerActor;
use crate::storage::FreeMemory;
use crate::task_results::{spawn_encoding, spill_evicted};
use actix::prelude::*;
use pleach_dispatch::LeaseId;
use pleach_dispatch::message::ToManager;
use pleach_regions::RegionKey;
use std::collections::HashSet;
use std::sync::atomic::Ordering;

impl WorkerActor {
    /// Evicts unreferenced task results beyond the free memory, and has older ones encoded.
    pub(super) fn evict_results(&self) {
        // Each bound alone suffices. The ledger counts shared regions once. It also counts the outputs of a finished
        // task whose stage has not reported the end yet, so that its reservation still counts too.
        let counted = self.setup.ledger.held_bytes().saturating_add(self.core.reserved_bytes());
        let needed = counted.min(self.core.needed_bytes());
        let mut results = self.tasks.results();
        let budget = self.setup.resources.memory_bytes;
        let memory = (self.setup.resources.process_bytes)();
        let process_bytes = memory.map(|memory| memory.own_bytes + memory.external_bytes);
        let free_bytes = budget.saturating_sub(needed);
        let capacity = result_capacity(budget, free_bytes, results.shelf.idle_bytes(), process_bytes);
        let target = results.eviction_target(capacity);
        let evicted = results.shelf.shrink_to(target);
        let jobs = results.start_encoding(capacity, budget);
        self.counters.pressure.shelf.increment(evicted.len() as u64);
        let all = needed.saturating_add(results.shelf.idle_bytes());
        self.setup.peak_bytes.fetch_max(all, Ordering::Relaxed);
        // With a task cache, results worth keeping are already on disk.
        let below = self.setup.spill.as_ref().filter(|_| self.setup.prior.cache.is_none());
        if below.is_none() {
            let tasks = evicted.iter().flat_map(|evicted| &evicted.tasks).map(|task| task.key);
            results.drop_tasks(tasks);
        }
        // Unlocked before the jobs start, whose threads lock the results.
        drop(results);
        spawn_encoding(self.tasks.shared_results(), &self.setup.pool, jobs);
        if !evicted.is_empty() {
            self.announce_dropped();
        }
        if let Some(below) = below {
            spill_evicted(self.tasks.shared_results(), below, evicted);
        }
    }

    /// Reports the bytes that could leave memory, limited by the free space of the spill tiers.
    pub(super) fn report_spillable(&mut self) {
        let read = self.inputs_in_use(None);
        let bytes = |key: RegionKey| self.setup.ram.bytes(key);
        let Some(below) = &self.setup.spill else {
            let idle = self.replication.replicas().chain(self.retained.released());
            let idle = idle.filter(|key| !read.contains(key));
            let movable_bytes = idle.filter_map(bytes).sum();
            return self.core.handle_spillable(movable_bytes, 0);
        };
        let read: u64 = read.into_iter().filter_map(bytes).sum();
        let free_bytes = below.free_bytes();
        let movable_bytes = self.setup.ram.held_bytes().saturating_sub(read).min(free_bytes);
        self.core.handle_spillable(movable_bytes, free_bytes);
    }

    /// Returns the regions read by started buckets and by this one.
    fn inputs_in_use(&self, also: Option<LeaseId>) -> HashSet<RegionKey> {
        self.running.inputs_of(self.core.started().chain(also))
    }

    /// Has the storage actor free memory for the next task of a lease.
    pub(super) fn free_memory(&mut self, bytes: u64, lease: LeaseId, ctx: &mut Context<Self>) {
        self.counters.pressure.room.increment(1);
        let but = self.inputs_in_use(Some(lease));
        let mut replicas: Vec<RegionKey> =
            self.replication.replicas().filter(|key| !but.contains(key)).collect();
        assert!(
            replicas.is_empty() || self.setup.spill.is_none(),
            "replicas go to a spill tier if there is one"
        );
        match &self.setup.spill {
            None => replicas.extend(self.retained.released().filter(|key| !but.contains(key))),
            Some(below) if below.free_bytes() < bytes => self.drop_released(&but),
            Some(_) => {}
        }
        let request = self.setup.storage.send(FreeMemory { bytes, but, replicas }).into_actor(self);
        ctx.spawn(request.map(|freed, actor, ctx| {
            let freed = freed.unwrap_or_default();
            for key in freed.removed {
                actor.retained.remove(key);
                // Released meanwhile, if it is no replica any more: then the manager expects no message.
                if let Some(study) = actor.replication.remove_replica(key) {
                    actor.counters.pressure.replica.increment(1);
                    actor.send(&ToManager::ReplicaDropped { study, key }, ctx);
                }
            }
            // The new size of storage first: the state machine compares it with the freed bytes.
            actor.observe_storage();
            actor.core.handle_memory_freed(freed.bytes);
            actor.apply_effects(ctx);
        }));
    }
}

/// Returns the bytes that task results may take; they have `idle_bytes` now. These are the free bytes of the budget, less the
/// bytes of the process beyond the budget, such as plans. At least half of the free bytes are left.
fn result_capacity(budget: u64, free_bytes: u64, idle_bytes: u64, process_bytes: Option<u64>) -> u64 {
    let Some(process_bytes) = process_bytes else { return free_bytes };
    let left = budget.saturating_add(idle_bytes).saturating_sub(process_bytes);
    // A process that has much more than its worker must still reuse results.
    left.clamp(free_bytes / 2, free_bytes)
}

#[cfg(test)]
mod tests {
    use super::result_capacity;

    #[test]
    fn results_give_way_to_other_memory_of_the_process_down_to_half_of_the_free_bytes() {
        let capacity = |process_bytes| result_capacity(1000, 900, 300, process_bytes);
        assert_eq!(capacity(None), 900);
        // 300 of results and 100 of tasks: nothing else.
        assert_eq!(capacity(Some(400)), 900);
        // 200 besides.
        assert_eq!(capacity(Some(600)), 700);
        // The process has the whole budget, and then more.
        assert_eq!(capacity(Some(1000)), 450);
        assert_eq!(capacity(Some(5000)), 450);
        assert_eq!(result_capacity(u64::MAX, u64::MAX, 300, Some(1000)), u64::MAX - 1000);
    }
}
