//! One count of bytes for everything that a process holds: tiers and running buckets add to the same ledger.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes held now and at most. Relaxed ordering: the numbers are sums, and order nothing else.
#[derive(Debug, Default)]
pub struct MemoryCounter {
    held_bytes: AtomicU64,
    peak_bytes: AtomicU64,
}

impl MemoryCounter {
    /// Counts `bytes` as held from now on.
    pub fn add(&self, bytes: u64) {
        let now = self.held_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak_bytes.fetch_max(now, Ordering::Relaxed);
    }

    /// Counts `bytes` as given back; they must have been added before.
    pub fn subtract(&self, bytes: u64) {
        self.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Bytes held now.
    #[must_use]
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// The most bytes ever held.
    #[must_use]
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes.load(Ordering::Relaxed)
    }
}
