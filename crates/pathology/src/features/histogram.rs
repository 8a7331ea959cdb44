//! Statistics of bytes from their histogram.

/// Number of occurrences of each byte.
#[derive(Clone, Debug)]
pub(super) struct Histogram(pub(super) [u32; 256]);

/// Statistics of the bytes of one object. All are 0 without pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ByteStatistics {
    pub(super) mean: f64,
    pub(super) max: f64,
    pub(super) min: f64,
    /// Mean of the two middle bytes for an even number of them.
    pub(super) median: f64,
    /// Standard deviation of the population.
    pub(super) sd: f64,
    /// −Σ p·log₂ p over 256 bins.
    pub(super) entropy: f64,
    /// Σ p² over 256 bins.
    pub(super) energy: f64,
    /// m₃ / σ³. 0 if all bytes are equal.
    pub(super) skewness: f64,
    /// m₄ / σ⁴: 3 for a normal distribution. 0 if all bytes are equal.
    pub(super) kurtosis: f64,
}

impl Histogram {
    pub(super) const EMPTY: Self = Self([0; 256]);

    /// Computes all statistics. Sums run in the order of the bytes, so that they do not depend on that of the pixels.
    pub(super) fn statistics(&self) -> ByteStatistics {
        let bins = &self.0;
        let Some(low) = bins.iter().position(|bin| *bin > 0) else { return ByteStatistics::default() };
        let high = bins.iter().rposition(|bin| *bin > 0).unwrap_or(low);
        let used = || bins[low..=high].iter().enumerate().filter(|(_, bin)| **bin > 0);
        let (mut count, mut sum) = (0_u64, 0_u64);
        for (offset, bin) in used() {
            count += u64::from(*bin);
            sum += u64::from(*bin) * (low + offset) as u64;
        }
        let total = count as f64;
        let mean = sum as f64 / total;
        let (mut second, mut third, mut fourth) = (0.0, 0.0, 0.0);
        let (mut entropy, mut energy) = (0.0, 0.0);
        for (offset, bin) in used() {
            let (weight, beyond) = (f64::from(*bin), (low + offset) as f64 - mean);
            let square = beyond * beyond;
            second += weight * square;
            third += weight * square * beyond;
            fourth += weight * square * square;
            let share = weight / total;
            entropy -= share * share.log2();
            energy += share * share;
        }
        let variance = second / total;
        let sd = variance.sqrt();
        let over_sd = |moment: f64, power: f64| if sd > 0.0 { moment / total / power } else { 0.0 };
        ByteStatistics {
            mean,
            max: high as f64,
            min: low as f64,
            median: f64::midpoint(self.ranked((count - 1) / 2), self.ranked(count / 2)),
            sd,
            entropy: entropy.max(0.0),
            energy,
            skewness: over_sd(third, variance * sd),
            kurtosis: over_sd(fourth, variance * variance),
        }
    }

    /// Returns the byte of this rank, from 0.
    fn ranked(&self, rank: u64) -> f64 {
        let mut below = 0;
        let at = self.0.iter().position(|bin| {
            below += u64::from(*bin);
            below > rank
        });
        at.unwrap_or_default() as f64
    }
}
