//! Spill tier as seen by admission: slower tiers take regions that no running bucket reads, and file inputs can be reread.
//!
//! Storage decides which regions to spill and where. This module only tracks how many bytes can be spilled.

use super::Worker;
use crate::memory_model::BucketDemand;

/// Memory that storage can free for a task that does not fit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SpillRoom {
    /// Stored bytes that can be spilled.
    pub(super) movable_bytes: u64,
    /// Free bytes of the spill tier.
    pub(super) free_bytes: u64,
    /// Storage was asked to free memory and has not answered.
    pub(super) is_asked: bool,
    /// Stored bytes at the last request that freed nothing.
    pub(super) in_vain: Option<u64>,
}

impl SpillRoom {
    /// Returns the bytes that can be spilled for this bucket's next task: without the bucket's own inputs.
    pub(super) fn movable_for(&self, demand: &BucketDemand) -> u64 {
        // Storage excludes the inputs of a started bucket already.
        let own = if demand.started { 0 } else { demand.here_bytes };
        self.movable_bytes.saturating_sub(own)
    }

    /// Returns the free bytes of the spill tier after `moved` bytes have been spilled.
    pub(super) fn free_after(&self, moved: u64) -> u64 {
        self.free_bytes.saturating_sub(moved)
    }
}

impl Worker {
    /// Admits a replica of another worker's region. Returns false unless it fits beside all bytes that this
    /// worker needs, or may need to start a bucket. The replica counts as held from now on, until
    /// [`handle_copy_over`](Self::handle_copy_over).
    pub fn handle_copy(&mut self, bytes: u64) -> bool {
        let needed = self.needed_bytes().saturating_add(self.budget.least_bytes);
        let fits = needed.saturating_add(bytes) <= self.budget.bytes;
        if fits {
            self.coming_bytes = self.coming_bytes.saturating_add(bytes);
        }
        fits
    }

    /// Ends the fetch of a replica, which counts as stored if it succeeded.
    pub fn handle_copy_over(&mut self, bytes: u64) {
        self.coming_bytes = self.coming_bytes.saturating_sub(bytes);
        self.balance();
    }
}
