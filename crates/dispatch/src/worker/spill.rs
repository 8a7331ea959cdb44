//! Room below memory: slower tiers that take what no bucket under way reads, and files that can be read again.
//!
//! What is moved, and where to, is the storage's; here is only how much of it there is to count on.

use super::Worker;
use crate::memory_model::BucketDemand;

/// What storage could do for a task that does not fit.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SpillRoom {
    /// Stored bytes that could leave memory.
    pub(super) movable_bytes: u64,
    /// Bytes that can still be stored below it.
    pub(super) free_bytes: u64,
    /// Storage was asked to make room, and has not answered yet.
    pub(super) is_asked: bool,
    /// What was stored when that was of no use.
    pub(super) in_vain: Option<u64>,
}

impl SpillRoom {
    /// What could leave memory if this bucket's next task ran: not what the bucket itself reads.
    pub(super) fn movable_for(&self, demand: &BucketDemand) -> u64 {
        // Of a bucket under way it has been left out already.
        let own = if demand.started { 0 } else { demand.here_bytes };
        self.movable_bytes.saturating_sub(own)
    }

    /// What can still be stored below memory when `moved` bytes have gone there.
    pub(super) fn free_after(&self, moved: u64) -> u64 {
        self.free_bytes.saturating_sub(moved)
    }
}

impl Worker {
    /// A second copy of another worker's region is to come into memory: only where nothing that this worker has, or may
    /// have to begin, needs the room. It counts as held from now on, until [`handle_copy_over`](Self::handle_copy_over).
    pub fn handle_copy(&mut self, bytes: u64) -> bool {
        let needed = self.needed_bytes().saturating_add(self.budget.least_bytes);
        let fits = needed.saturating_add(bytes) <= self.budget.bytes;
        if fits {
            self.coming_bytes = self.coming_bytes.saturating_add(bytes);
        }
        fits
    }

    /// It has come, and counts as stored, or has not.
    pub fn handle_copy_over(&mut self, bytes: u64) {
        self.coming_bytes = self.coming_bytes.saturating_sub(bytes);
        self.balance();
    }
}
