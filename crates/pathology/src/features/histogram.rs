//! Statistics of bytes from their histogram.

use super::entropy::Entropy;

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

/// Sums over neighboring bins, one of each four in a lane of its own, so that additions need not wait for each other.
#[derive(Default)]
struct Sums {
    second: f64,
    third: f64,
    fourth: f64,
    squares: f64,
}

impl Sums {
    fn add(&mut self, count: u32, beyond: f64) {
        let count = f64::from(count);
        let weighted = count * beyond * beyond;
        self.second += weighted;
        self.third += weighted * beyond;
        self.fourth += weighted * beyond * beyond;
        self.squares += count * count;
    }
}

impl Histogram {
    pub(super) const EMPTY: Self = Self([0; 256]);

    /// Computes all statistics. Sums run in the order of the bytes, so that they do not depend on that of the pixels.
    pub(super) fn statistics(&self) -> ByteStatistics {
        let Some(low) = self.0.iter().position(|bin| *bin > 0) else { return ByteStatistics::default() };
        let high = self.0.iter().rposition(|bin| *bin > 0).unwrap_or(low);
        let bins = &self.0[low..=high];
        let (mut count, mut sum) = (0_u64, 0_u64);
        for (offset, bin) in bins.iter().enumerate() {
            count += u64::from(*bin);
            sum += u64::from(*bin) * offset as u64;
        }
        let (total, beyond_low) = (count as f64, sum as f64);
        let mean = beyond_low / total;
        let mut lanes: [Sums; 4] = Default::default();
        for (offset, bin) in bins.iter().enumerate() {
            lanes[offset % 4].add(*bin, offset as f64 - mean);
        }
        let sum = |of: fn(&Sums) -> f64| of(&lanes[0]) + of(&lanes[1]) + (of(&lanes[2]) + of(&lanes[3]));
        let variance = sum(|sums| sums.second) / total;
        let sd = variance.sqrt();
        let over_sd = |moment: f64, power: f64| if sd > 0.0 { moment / total / power } else { 0.0 };
        ByteStatistics {
            // From the sum of the bytes themselves, so that it is correctly rounded.
            mean: (beyond_low + total * low as f64) / total,
            max: high as f64,
            min: low as f64,
            median: low as f64 + median(bins, count),
            sd,
            entropy: Entropy::of_total(total).of(bins),
            energy: sum(|sums| sums.squares) / (total * total),
            skewness: over_sd(sum(|sums| sums.third), variance * sd),
            kurtosis: over_sd(sum(|sums| sums.fourth), variance * variance),
        }
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
