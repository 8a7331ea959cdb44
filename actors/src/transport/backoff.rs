//! Retry delays that double up to a limit.
//!
//! Each delay is a random value between half of it and all, so that 1,000 workers that lost their manager together do not
//! reconnect together. This module only computes delays. The caller waits, with its own clock.

use rand::RngExt;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::time::Duration;

/// Retry delays of one connection.
#[derive(Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
    random: ChaCha8Rng,
}

impl Backoff {
    /// Starts with `first` and never exceeds `longest`. Each node has its own seed.
    #[must_use]
    pub fn new(first: Duration, longest: Duration, seed: u64) -> Self {
        Self { first, longest, next: first.min(longest), random: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// Returns the delay after another failure.
    pub fn failed(&mut self) -> Duration {
        let wait = self.next;
        // Doubles the unrandomized delay, so that the limit does not depend on chance.
        self.next = wait.saturating_mul(2).min(self.longest);
        wait.mul_f64(self.random.random_range(0.5..=1.0))
    }

    /// Resets the delay after a success.
    pub fn succeeded(&mut self) {
        self.next = self.first.min(self.longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn backoff(seed: u64) -> Backoff {
        Backoff::new(Duration::from_millis(100), Duration::from_secs(5), seed)
    }

    proptest! {
        #[test]
        fn delay_doubles_up_to_the_limit(seed: u64) {
            let mut backoff = backoff(seed);
            for round in 0..2 {
                let mut most = Duration::from_millis(100);
                for _ in 0..12 {
                    let wait = backoff.failed();
                    prop_assert!(wait >= most / 2 && wait <= most, "round {round}: {wait:?} of {most:?}");
                    most = (most * 2).min(Duration::from_secs(5));
                }
                backoff.succeeded();
            }
        }
    }

    #[test]
    fn delays_differ_by_node_and_repeat_per_seed() {
        let waits = |seed| {
            let mut backoff = backoff(seed);
            std::iter::repeat_with(|| backoff.failed()).take(8).collect::<Vec<_>>()
        };
        assert_eq!(waits(1), waits(1));
        assert_ne!(waits(1), waits(2));
    }
}
