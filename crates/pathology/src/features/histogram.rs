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

/// Lanes of [`Sums`]: one of each four neighboring bins, so that additions need not wait for each other and are vectorized.
const LANES: usize = 4;

/// Sums over the bins of each lane.
#[derive(Default)]
struct Sums {
    second: [f64; LANES],
    third: [f64; LANES],
    fourth: [f64; LANES],
    squares: [f64; LANES],
}

impl Sums {
    /// Adds neighboring bins, at most one for each lane, with their distances from the mean.
    fn add(&mut self, bins: &[u32], beyond: &[f64; LANES]) {
        for (lane, (bin, beyond)) in bins.iter().zip(beyond).enumerate() {
            let count = f64::from(*bin);
            let weighted = count * beyond * beyond;
            self.second[lane] += weighted;
            self.third[lane] += weighted * beyond;
            self.fourth[lane] += weighted * beyond * beyond;
            self.squares[lane] += count * count;
        }
    }

    fn of(bins: &[u32], mean: f64) -> Self {
        let mut sums = Self::default();
        let (chunks, rest) = bins.as_chunks::<LANES>();
        let mut offsets = [0.0, 1.0, 2.0, 3.0];
        for chunk in chunks {
            sums.add(chunk, &offsets.map(|offset| offset - mean));
            offsets = offsets.map(|offset| offset + LANES as f64);
        }
        sums.add(rest, &offsets.map(|offset| offset - mean));
        sums
    }
}

impl Histogram {
    pub(super) const EMPTY: Self = Self([0; 256]);

    /// Computes all statistics, and empties the histogram of `count` bytes, whose entropy `of_count` computes. Sums run in the
    /// order of the bytes, so that they do not depend on that of the pixels.
    pub(super) fn take(&mut self, count: u64, of_count: Entropy) -> ByteStatistics {
        let Some((low, high)) = self.bounds() else { return ByteStatistics::default() };
        let bins = &mut self.0[low..=high];
        let sum: u64 = bins.iter().zip(0..).map(|(bin, offset)| u64::from(*bin) * offset).sum();
        let (total, beyond_low) = (count as f64, sum as f64);
        let mean = beyond_low / total;
        let sums = Sums::of(bins, mean);
        let sum = |lanes: &[f64; LANES]| lanes[0] + lanes[1] + (lanes[2] + lanes[3]);
        let variance = sum(&sums.second) / total;
        let sd = variance.sqrt();
        let over_sd = |moment: f64, power: f64| if sd > 0.0 { moment / total / power } else { 0.0 };
        let statistics = ByteStatistics {
            // From the sum of the bytes themselves, so that it is correctly rounded.
            mean: (beyond_low + total * low as f64) / total,
            max: high as f64,
            min: low as f64,
            median: low as f64 + median(bins, count),
            sd,
            entropy: of_count.of(bins),
            energy: sum(&sums.squares) / (total * total),
            skewness: over_sd(sum(&sums.third), variance * sd),
            kurtosis: over_sd(sum(&sums.fourth), variance * variance),
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
