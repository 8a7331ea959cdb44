//! Resources that the tasks of a worker share: slots, task results and memory estimates.
//!
//! Invariants:
//! - A slot has at most one task. It is occupied from the grant until the stage of the same lease frees it. Two tasks
//!   in a slot would exceed the memory reserved for it.
//! - The number of slots is fixed once the actor has started.

use crate::directory::DirectoryHandle;
use crate::exchange::Exchange;
use crate::task::{DeviceExclusions, TaskActor};
use crate::task_cache::InputIdentities;
use crate::task_results::TaskResults;
use actix::prelude::*;
use parking_lot::{Mutex, MutexGuard};
use pleach_dispatch::directory::MemberId;
use pleach_dispatch::memory_estimates::MemoryEstimates;
use pleach_dispatch::{LeaseId, SlotId};
use pleach_regions::{RegionIdentity, RegionKey};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Resources shared by the tasks of a worker.
#[derive(Default)]
pub(crate) struct TaskResources {
    slots: Vec<Addr<TaskActor>>,
    /// The first slots are cores, the others accelerators.
    cores: usize,
    /// Remarks on closed slots of accelerators.
    closed_slots: Vec<String>,
    /// Operations that the accelerators cannot run.
    exclusions: Arc<DeviceExclusions>,
    /// Lease of the task in each slot.
    occupants: Vec<Option<LeaseId>>,
    /// By accelerator and number of the download: lease of the task whose outputs are being downloaded.
    downloads: BTreeMap<(SlotId, u64), LeaseId>,
    results: Arc<Mutex<TaskResults>>,
    estimates: Arc<Mutex<MemoryEstimates>>,
    /// Result directory, for a worker of a cluster.
    directory: Option<DirectoryHandle>,
    input_identities: Arc<InputIdentities>,
}

impl TaskResources {
    /// Starts the actors of the slots. The first `cores` of them are cores.
    pub(crate) fn start_slots(&mut self, slots: Vec<TaskActor>, cores: usize) {
        assert!(self.slots.is_empty(), "slots start once");
        self.slots = slots.into_iter().map(Actor::start).collect();
        self.cores = cores;
        self.occupants = vec![None; self.slots.len()];
    }

    /// Returns the actors of the slots, by slot number.
    pub(crate) fn slots(&self) -> &[Addr<TaskActor>] {
        &self.slots
    }

    /// Counts the slots of cores. Their numbers come before those of accelerators.
    pub(crate) fn cores(&self) -> usize {
        self.cores
    }

    /// Counts occupied slots of cores, and of accelerators.
    pub(crate) fn occupied_by_kind(&self) -> (usize, usize) {
        let (cores, accelerators) = self.occupants.split_at(self.cores);
        (cores.iter().flatten().count(), accelerators.iter().flatten().count())
    }

    /// Records that the slot of an accelerator is closed.
    pub(crate) fn close_slot(&mut self, remark: String) {
        self.closed_slots.push(remark);
    }

    /// Returns the remarks on closed slots.
    pub(crate) fn closed_slots(&self) -> &[String] {
        &self.closed_slots
    }

    /// Returns the operations that accelerators cannot run, for stage actors.
    pub(crate) fn exclusions(&self) -> &Arc<DeviceExclusions> {
        &self.exclusions
    }

    /// Occupies a slot with a task of a lease.
    pub(crate) fn occupy(&mut self, slot: SlotId, lease: LeaseId) {
        let before = self.occupants[slot.index()].replace(lease);
        assert_eq!(before, None, "{slot} is granted to {lease} while it is occupied");
    }

    /// Frees the slot of a task of a lease.
    pub(crate) fn free(&mut self, slot: SlotId, lease: LeaseId) {
        let before = self.occupants[slot.index()].take();
        assert_eq!(before, Some(lease), "{slot} is freed by {lease}");
    }

    /// Frees the slot of a task whose outputs are being downloaded.
    pub(crate) fn begin_download(&mut self, slot: SlotId, number: u64) {
        let lease = self.occupants[slot.index()].take();
        assert!(lease.is_some(), "{slot} downloads, and has no task");
        let before = lease.and_then(|lease| self.downloads.insert((slot, number), lease));
        assert_eq!(before, None, "download {number} of {slot} begins twice");
    }

    /// Ends the download of a task of a lease.
    pub(crate) fn end_download(&mut self, slot: SlotId, number: u64, lease: LeaseId) {
        let before = self.downloads.remove(&(slot, number));
        assert_eq!(before, Some(lease), "{slot} has downloaded for {lease}");
    }

    /// Counts tasks that have a slot, or whose outputs are being downloaded.
    pub(crate) fn occupied(&self) -> usize {
        self.occupants.iter().flatten().count() + self.downloads.len()
    }

    /// Locks the task results. Held only for lookups and updates in memory, never across a send or a wait: stage actors
    /// and the threads that spill results lock them as well.
    pub(crate) fn results(&self) -> MutexGuard<'_, TaskResults> {
        self.results.lock()
    }

    /// Returns the task results, for stage actors and spills.
    pub(crate) fn shared_results(&self) -> &Arc<Mutex<TaskResults>> {
        &self.results
    }

    /// Starts the worker's part of the result directory.
    pub(crate) fn start_directory(&mut self, me: MemberId, exchange: &Exchange) {
        self.directory = Some(DirectoryHandle::start(me, exchange, &self.results));
    }

    /// Returns the result directory.
    pub(crate) fn directory(&self) -> Option<&DirectoryHandle> {
        self.directory.as_ref()
    }

    /// Adds identities of input files.
    pub(crate) fn add_input_identities(&self, known: impl Iterator<Item = (RegionKey, RegionIdentity)>) {
        self.input_identities.lock().extend(known);
    }

    /// Returns the identities of input files, for stage actors.
    pub(crate) fn input_identities(&self) -> &Arc<InputIdentities> {
        &self.input_identities
    }

    /// Returns the memory estimates, for stage actors.
    pub(crate) fn estimates(&self) -> &Arc<Mutex<MemoryEstimates>> {
        &self.estimates
    }
}
