//! Memory of a worker, as far as it is known: the budget, the bytes in storage, and the bytes that can be spilled.
//!
//! With a spill tier, slower tiers take regions that no running bucket reads, and file inputs can be reread. Storage
//! decides which regions to spill and where. This module only tracks how many bytes can be spilled.
//!
//! Invariants: at most one request to free memory is pending. Until it is answered, no other is sent. Replicas on
//! their way count from their admission to the end of their fetch.

use crate::memory_model::{BucketDemand, MemoryBudget};

/// Budget and known bytes.
#[derive(Debug)]
pub(crate) struct Memory {
    budget: MemoryBudget,
    /// Bytes of the processes that run external operations.
    process_bytes: u64,
    /// These have become fewer since the last update of the stored bytes.
    has_fewer_processes: bool,
    /// Bytes of regions in this worker's storage.
    stored_bytes: u64,
    /// Bytes of replicas of other workers' regions that are being fetched.
    coming_bytes: u64,
    spill: SpillRoom,
    /// Maximum of the bytes held and reserved at once.
    peak_bytes: u64,
}

/// Memory that storage can free for a task that does not fit.
#[derive(Debug, Default)]
struct SpillRoom {
    /// Stored bytes that can be spilled.
    movable_bytes: u64,
    /// Free bytes of the spill tier.
    free_bytes: u64,
    /// Storage was asked to free memory and has not answered.
    is_requested: bool,
    /// Stored bytes at the last request that freed nothing.
    in_vain: Option<u64>,
}

impl SpillRoom {
    /// Returns the bytes that can be spilled for this bucket's next task: without the bucket's own inputs.
    fn movable_for(&self, demand: &BucketDemand) -> u64 {
        // Storage excludes the inputs of a started bucket already.
        let own = if demand.started { 0 } else { demand.local_bytes };
        self.movable_bytes.saturating_sub(own)
    }
}

impl Memory {
    pub(crate) fn of(budget: MemoryBudget) -> Self {
        let spill = SpillRoom::default();
        Self {
            budget,
            process_bytes: 0,
            has_fewer_processes: false,
            stored_bytes: 0,
            coming_bytes: 0,
            spill,
            peak_bytes: 0,
        }
    }

    /// Returns the bytes of the budget that processes leave, at least the minimum memory of the studies.
    pub(crate) fn budget_bytes(&self) -> u64 {
        let left_bytes = self.budget.bytes.saturating_sub(self.process_bytes);
        left_bytes.max(self.budget.min_bytes.min(self.budget.bytes))
    }

    /// Updates the bytes of processes.
    pub(crate) fn set_processes(&mut self, bytes: u64) {
        self.has_fewer_processes |= bytes < std::mem::replace(&mut self.process_bytes, bytes);
    }

    /// Returns the bytes with which all known studies can be finished one task at a time.
    pub(crate) fn min_bytes(&self) -> u64 {
        self.budget.min_bytes
    }

    pub(crate) fn set_min_bytes(&mut self, bytes: u64) {
        self.budget.min_bytes = bytes;
    }

    pub(crate) fn stored_bytes(&self) -> u64 {
        self.stored_bytes
    }

    /// Updates the stored bytes. Returns whether they, or those of processes, are fewer than before.
    pub(crate) fn set_stored(&mut self, bytes: u64) -> bool {
        let is_fewer = bytes < std::mem::replace(&mut self.stored_bytes, bytes);
        std::mem::take(&mut self.has_fewer_processes) || is_fewer
    }

    /// Returns the bytes of stored regions and of replicas on their way.
    pub(crate) fn region_bytes(&self) -> u64 {
        self.stored_bytes.saturating_add(self.coming_bytes)
    }

    pub(crate) fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// Records bytes that are held and reserved at once.
    pub(crate) fn record_needed(&mut self, bytes: u64) {
        self.peak_bytes = self.peak_bytes.max(bytes);
    }

    /// Admits a replica if it fits beside `needed_bytes` and those that may be needed to start a bucket. Returns
    /// whether it does.
    pub(crate) fn begin_copy(&mut self, needed_bytes: u64, bytes: u64) -> bool {
        let needed = needed_bytes.saturating_add(self.budget.min_bytes);
        let fits = needed.saturating_add(bytes) <= self.budget_bytes();
        // The manager reports the bytes. Their sum is exact, so that the ends of all fetches leave 0.
        let coming_bytes = self.coming_bytes.checked_add(bytes).filter(|_| fits);
        if let Some(coming_bytes) = coming_bytes {
            let budget_bytes = self.budget.bytes;
            assert!(
                coming_bytes <= budget_bytes,
                "{coming_bytes} bytes of replicas are admitted, the budget is {budget_bytes}"
            );
            self.coming_bytes = coming_bytes;
        }
        coming_bytes.is_some()
    }

    /// Ends the fetch of a replica.
    pub(crate) fn end_copy(&mut self, bytes: u64) {
        let coming_bytes = self.coming_bytes;
        assert!(coming_bytes >= bytes, "the fetch of {bytes} bytes ends, {coming_bytes} were admitted");
        self.coming_bytes -= bytes;
    }

    /// Updates the stored bytes that can be spilled and the free bytes of the spill tier.
    pub(crate) fn set_spillable(&mut self, movable_bytes: u64, free_bytes: u64) {
        (self.spill.movable_bytes, self.spill.free_bytes) = (movable_bytes, free_bytes);
    }

    /// Returns the bytes that can be spilled for a bucket's next task. 0 if the last request freed nothing and the
    /// stored bytes are the same.
    pub(crate) fn movable_for(&self, demand: &BucketDemand) -> u64 {
        let is_in_vain = self.spill.in_vain == Some(self.stored_bytes);
        if is_in_vain { 0 } else { self.spill.movable_for(demand) }
    }

    /// Excludes the inputs of a bucket that starts from the bytes that can be spilled.
    pub(crate) fn pin_inputs(&mut self, demand: &BucketDemand) {
        self.spill.movable_bytes = self.spill.movable_for(demand);
    }

    /// Returns the free bytes of the spill tier after `moved` bytes have been spilled.
    pub(crate) fn free_after(&self, moved: u64) -> u64 {
        self.spill.free_bytes.saturating_sub(moved)
    }

    /// Returns whether storage was asked to free memory and has not answered.
    pub(crate) fn is_freeing(&self) -> bool {
        self.spill.is_requested
    }

    /// Records a request to free memory.
    pub(crate) fn request_free(&mut self) {
        assert!(!self.spill.is_requested, "storage is asked to free memory, and has a pending request");
        self.spill.is_requested = true;
    }

    /// Records the answer to a request to free memory. Ignores an answer without a request.
    pub(crate) fn end_free(&mut self, bytes: u64) {
        if std::mem::replace(&mut self.spill.is_requested, false) {
            // A request that freed nothing is not repeated until something else has changed.
            self.spill.in_vain = (bytes == 0).then_some(self.stored_bytes);
        }
    }
}
