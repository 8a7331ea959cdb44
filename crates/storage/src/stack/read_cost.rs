//! Time of reads from a level, as a latency and a rate that are fitted to the measured reads.
//!
//! A demoted region costs this time at each further read. By the latency, small regions cost more per byte than large ones.

use std::time::Duration;

/// Reads that are assumed before the first one: an empty region in 5 ms and one of 1 MB in 15 ms, a slow disk. They stay in the
/// fit, which needs two sizes.
const ASSUMED: [(f64, f64); 2] = [(0.0, 0.005), (1e6, 0.015)];

/// Weight of a measured read after each later one: a tier may become faster or slower.
const DECAY: f64 = 0.98;

/// Weighted sums of reads, for a least-squares line of seconds by bytes.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    weight: f64,
    bytes: f64,
    seconds: f64,
    bytes_squared: f64,
    product: f64,
}

impl Sums {
    fn add(&mut self, bytes: f64, seconds: f64) {
        self.weight += 1.0;
        self.bytes += bytes;
        self.seconds += seconds;
        self.bytes_squared += bytes * bytes;
        self.product += bytes * seconds;
    }

    fn decay(&mut self) {
        for sum in
            [&mut self.weight, &mut self.bytes, &mut self.seconds, &mut self.bytes_squared, &mut self.product]
        {
            *sum *= DECAY;
        }
    }
}

/// Expected time of a read: a latency, and a time for each byte.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadTime {
    /// Seconds of a read of no bytes.
    pub latency_seconds: f64,
    /// Seconds of each byte.
    pub seconds_per_byte: f64,
}

/// Cost of reads from one level.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReadCost {
    measured: Sums,
}

impl ReadCost {
    /// Records a read.
    pub(super) fn observe(&mut self, bytes: u64, time: Duration) {
        self.measured.decay();
        self.measured.add(bytes as f64, time.as_secs_f64());
    }

    /// Returns the expected seconds of a read. Never negative.
    pub(super) fn seconds(&self, bytes: u64) -> f64 {
        let ReadTime { latency_seconds, seconds_per_byte } = self.time();
        latency_seconds + seconds_per_byte * bytes as f64
    }

    /// Returns the expected time of reads. `None` before the first read.
    pub(super) fn measured(&self) -> Option<ReadTime> {
        (self.measured.weight > 0.0).then(|| self.time())
    }

    /// Returns the fitted time of reads. No part is negative.
    fn time(&self) -> ReadTime {
        let mut all = self.measured;
        ASSUMED.into_iter().for_each(|(bytes, seconds)| all.add(bytes, seconds));
        let Sums { weight, bytes: sum, seconds, bytes_squared, product } = all;
        // Positive, because the assumed reads have two sizes.
        let spread = weight * bytes_squared - sum * sum;
        let seconds_per_byte = ((weight * product - sum * seconds) / spread).max(0.0);
        let latency_seconds = ((seconds - seconds_per_byte * sum) / weight).max(0.0);
        ReadTime { latency_seconds, seconds_per_byte }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(latency: f64, per_byte: f64, sizes: &[u64]) -> ReadCost {
        let mut cost = ReadCost::default();
        for bytes in sizes.iter().cycle().take(400) {
            cost.observe(*bytes, Duration::from_secs_f64(latency + per_byte * *bytes as f64));
        }
        cost
    }

    #[test]
    fn latency_and_rate_are_those_of_the_reads() {
        let cost = measured(0.03, 2e-8, &[1_000, 3_000_000, 50_000]);
        for (bytes, expected) in [(0, 0.03), (1_000_000, 0.05), (5_000_000, 0.13)] {
            let seconds = cost.seconds(bytes);
            assert!((seconds / expected - 1.0).abs() < 0.1, "{bytes} bytes: {seconds} s");
        }
        let same = measured(0.02, 0.0, &[100_000]);
        assert!((same.seconds(100_000) / 0.02 - 1.0).abs() < 0.1, "one size: {}", same.seconds(100_000));
    }

    #[test]
    fn reads_that_become_slower_are_followed() {
        let mut cost = measured(0.001, 0.0, &[1_000, 1_000_000]);
        let before = cost.seconds(1_000);
        for _ in 0..200 {
            cost.observe(1_000, Duration::from_millis(100));
        }
        assert!(before < 0.002 && cost.seconds(1_000) > 0.09, "{before}, {}", cost.seconds(1_000));
        // Larger regions that were faster give no negative cost.
        cost.observe(50_000_000, Duration::ZERO);
        assert!([0, 1_000, 1 << 40].iter().all(|bytes| cost.seconds(*bytes) >= 0.0));
    }
}
