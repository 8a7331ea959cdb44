//! Byte counter of a process: tiers and running buckets add to the same ledger.

use std::sync::atomic::{AtomicU64, Ordering};

/// Current and peak bytes. Relaxed ordering suffices: the numbers are sums, and no other memory access
/// depends on them.
#[derive(Debug, Default)]
pub struct MemoryCounter {
    held_bytes: AtomicU64,
    peak_bytes: AtomicU64,
}

impl MemoryCounter {
    /// Adds `bytes`.
    pub fn add(&self, bytes: u64) {
        let now = self.held_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak_bytes.fetch_max(now, Ordering::Relaxed);
    }

    /// Subtracts `bytes`, which must have been added before.
    pub fn subtract(&self, bytes: u64) {
        let before = self.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "{bytes} bytes are subtracted, {before} were counted");
    }

    /// Returns the current bytes.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// Returns the peak of the bytes.
    #[must_use]
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes.load(Ordering::Relaxed)
    }
}
