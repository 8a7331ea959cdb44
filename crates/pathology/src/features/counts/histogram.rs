//! Statistics of bytes from their histogram.

use super::{Entropy, PowerSums};

/// Number of occurrences of each byte.
#[derive(Clone, Debug)]
pub(crate) struct Histogram(pub(crate) [u32; 256]);

/// Statistics of the bytes of one object. All are 0 without pixels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ByteStatistics {
    pub(crate) mean: f64,
    pub(crate) max: f64,
    pub(crate) min: f64,
    /// Mean of the two middle bytes for an even number of them.
    pub(crate) median: f64,
    /// Standard deviation of the population.
    pub(crate) sd: f64,
    /// −Σ p·log₂ p over 256 bins.
    pub(crate) entropy: f64,
    /// Σ p² over 256 bins.
    pub(crate) energy: f64,
    /// m₃ / σ³. 0 if all bytes are equal.
    pub(crate) skewness: f64,
    /// m₄ / σ⁴: 3 for a normal distribution. 0 if all bytes are equal.
    pub(crate) kurtosis: f64,
}

impl Histogram {
    pub(crate) const EMPTY: Self = Self([0; 256]);

    /// Computes all statistics, and empties the histogram of `count` bytes, whose entropy `of_count` computes.
    pub(crate) fn take(&mut self, count: u64, of_count: Entropy) -> ByteStatistics {
        let Some((low, high)) = self.bounds() else { return ByteStatistics::default() };
        let bins = &mut self.0[low..=high];
        let (sums, total) = (PowerSums::of(bins), count as f64);
        let central = sums.central();
        let variance = central.second / total;
        let sd = variance.sqrt();
        let over_sd = |moment: f64, power: f64| if sd > 0.0 { moment / total / power } else { 0.0 };
        let squares: u64 = bins.iter().map(|bin| u64::from(*bin) * u64::from(*bin)).sum();
        let statistics = ByteStatistics {
            // From the sum of the bytes themselves, so that it is correctly rounded.
            mean: (sums.first() as f64 + total * low as f64) / total,
            max: high as f64,
            min: low as f64,
            median: low as f64 + median(bins, count),
            sd,
            entropy: of_count.of(bins),
            energy: squares as f64 / (total * total),
            skewness: over_sd(central.third, variance * sd),
            kurtosis: over_sd(central.fourth, variance * variance),
        };
        bins.fill(0);
        statistics
    }

    /// Returns the smallest and the largest byte.
    fn bounds(&self) -> Option<(usize, usize)> {
        const BLOCK: usize = 16;
        let blocks = self.0.as_chunks::<BLOCK>().0;
        let is_used = |block: &[u32; BLOCK]| block.iter().fold(0, |all, bin| all | bin) > 0;
        let (first, last) = (blocks.iter().position(is_used)?, blocks.iter().rposition(is_used)?);
        let low = blocks[first].iter().position(|bin| *bin > 0)?;
        let high = blocks[last].iter().rposition(|bin| *bin > 0)?;
        Some((first * BLOCK + low, last * BLOCK + high))
    }
}

/// Returns the median of the `count` values in the bins.
fn median(bins: &[u32], count: u64) -> f64 {
    let (mut below, mut lower) = (0, None);
    for (number, bin) in bins.iter().enumerate() {
        below += u64::from(*bin);
        if below > (count - 1) / 2 && lower.is_none() {
            lower = Some(number);
        }
        if below > count / 2 {
            return f64::midpoint(lower.unwrap_or(number) as f64, number as f64);
        }
    }
    0.0
}
