//! Memory estimates of operations: declared bytes, corrected by measurements.

use std::collections::HashMap;

/// Measurements after which an operation's estimate may fall below its declaration: the first images of a study may be
/// empty glass, on which most operations do nothing.
const TRUSTED_RUNS: u32 = 16;

/// An operation by name and version.
type Key = (String, u32);

#[derive(Clone, Copy, Debug)]
struct Seen {
    runs: u32,
    /// Maximum ratio of measured to declared bytes.
    ratio: f64,
}

/// Corrections of declared bytes, by operation. All stages of a worker share one instance.
#[derive(Clone, Debug, Default)]
pub struct MemoryEstimates(HashMap<Key, Seen>);

impl MemoryEstimates {
    /// Learns from one run of an operation. `measured_bytes` and `declared_bytes` are its peak memory beyond its
    /// inputs.
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    pub fn observe(&mut self, operation: &str, version: u32, declared_bytes: u64, measured_bytes: u64) {
        if declared_bytes == 0 {
            return;
        }
        let ratio = measured_bytes as f64 / declared_bytes as f64;
        let seen = self.0.entry((operation.to_owned(), version)).or_insert(Seen { runs: 0, ratio });
        seen.runs = seen.runs.saturating_add(1);
        seen.ratio = seen.ratio.max(ratio);
    }

    /// Returns the bytes to reserve: the declared bytes times the largest ratio seen. The result falls below the declaration
    /// only after a number of runs.
    #[must_use]
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a positive estimate, rounded up"
    )]
    pub fn bytes(&self, operation: &str, version: u32, declared_bytes: u64) -> u64 {
        match self.0.get(&(operation.to_owned(), version)) {
            Some(seen) if seen.ratio > 1.0 || seen.runs >= TRUSTED_RUNS => {
                (declared_bytes as f64 * seen.ratio).ceil() as u64
            }
            _ => declared_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimate_grows_at_once_and_shrinks_after_many_runs() {
        let mut estimates = MemoryEstimates::default();
        assert_eq!(estimates.bytes("op", 1, 100), 100);
        for _ in 0..TRUSTED_RUNS - 1 {
            estimates.observe("op", 1, 100, 50);
            assert_eq!(estimates.bytes("op", 1, 100), 100);
        }
        estimates.observe("op", 1, 1000, 600);
        assert_eq!(estimates.bytes("op", 1, 100), 60);
        estimates.observe("op", 1, 100, 130);
        assert_eq!(estimates.bytes("op", 1, 1000), 1300);
        assert_eq!(estimates.bytes("op", 2, 1000), 1000);
    }
}
