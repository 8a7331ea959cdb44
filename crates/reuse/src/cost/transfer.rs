//! Transfer or recompute: whether a worker receives an output that another worker has, or runs its task again.
//!
//! Predictions and running workers decide by the same rule. Only a clear gain leads to a repeated task, because times are
//! estimates and a repeated task takes a slot from others.

use serde::{Deserialize, Serialize};

/// A transfer that takes at most this factor longer than running the task again is made.
const TOLERANCE: f64 = 1.25;

/// Seconds that a repeated task gains at least.
const MIN_GAIN_SECONDS: f64 = 0.05;

/// Cost of moving an output between workers.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct TransferCost {
    /// Bytes per second, above 0. Infinite if outputs need no transfer.
    pub bytes_per_second: f64,
    /// Latency per output in seconds, independent of its size.
    pub latency_seconds: f64,
}

impl TransferCost {
    /// Transfers that take no time.
    pub const FREE: Self = Self { bytes_per_second: f64::INFINITY, latency_seconds: 0.0 };

    /// Returns the seconds to transfer `bytes`.
    pub fn seconds(&self, bytes: u64) -> f64 {
        self.latency_seconds + bytes as f64 / self.bytes_per_second
    }
}

/// Returns whether a worker runs tasks of `recompute_seconds` again rather than wait for a transfer of `transfer_seconds`.
#[must_use]
pub fn is_recompute_cheaper(transfer_seconds: f64, recompute_seconds: f64) -> bool {
    transfer_seconds > (recompute_seconds * TOLERANCE).max(recompute_seconds + MIN_GAIN_SECONDS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_gain_repeats_a_task() {
        assert!(!is_recompute_cheaper(0.04, 0.0), "gains less than 50 ms");
        assert!(is_recompute_cheaper(0.06, 0.0));
        assert!(!is_recompute_cheaper(1.2, 1.0), "gains less than a quarter");
        assert!(is_recompute_cheaper(1.3, 1.0));
        assert!(!is_recompute_cheaper(f64::INFINITY, f64::INFINITY));
    }

    #[test]
    fn transfer_takes_its_latency_and_its_bytes() {
        let link = TransferCost { bytes_per_second: 1e6, latency_seconds: 0.5 };
        assert_eq!(link.seconds(2_000_000), 2.5);
        assert_eq!(TransferCost::FREE.seconds(u64::MAX), 0.0);
    }
}
