//! Draws random numbers with additions, multiplications and divisions only, which are equal on every machine.

/// Quantiles of a distribution at the levels [`LEVELS`].
pub(super) type Quantiles = [f64; 8];

/// Levels of quantiles. Those near 1 keep the mean of distributions with few large values.
const LEVELS: Quantiles = [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0];

/// A source of random numbers (SplitMix64, Steele, Lea and Flood 2014).
#[derive(Debug)]
pub(super) struct Draw(u64);

impl Draw {
    /// Creates the source of a seed.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Returns a number from 0 to below 1.
    pub(super) fn unit(&mut self) -> f64 {
        // The upper 53 bits: an f64 holds as many exactly.
        (self.word() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a whole number from `low` to `high`.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + (self.unit() * (high - low + 1) as f64) as u64
    }

    /// Returns a number of a distribution, linear between its quantiles.
    pub(super) fn quantile(&mut self, quantiles: &Quantiles) -> f64 {
        let level = self.unit();
        let right = LEVELS.iter().position(|other| *other > level).unwrap_or(LEVELS.len() - 1);
        let (low, high) = (LEVELS[right - 1], LEVELS[right]);
        let (from, to) = (quantiles[right - 1], quantiles[right]);
        from + (to - from) * ((level - low) / (high - low))
    }

    /// Cuts `total` into as many random parts of 1 or more, in proportion to weights that `weight` draws. `total` is at least
    /// `parts`.
    pub(super) fn parts(
        &mut self,
        total: usize,
        parts: usize,
        mut weight: impl FnMut(&mut Self) -> f64,
    ) -> Vec<usize> {
        let mut ends = Vec::with_capacity(parts);
        let mut sum = 0.0;
        for _ in 0..parts {
            sum += weight(self);
            ends.push(sum);
        }
        let rest = (total - parts) as f64;
        let mut start = 0;
        let mut cut = Vec::with_capacity(parts);
        for end in ends {
            // The last part ends at the total: a sum divided by itself is 1.
            let end = (rest * (end / sum)).round() as usize;
            cut.push(1 + end - start);
            start = end;
        }
        cut
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_draws() {
        let quantiles = [1.0, 2.0, 4.0, 8.0, 9.0, 10.0, 20.0, 30.0];
        let mut draw = Draw::new(7);
        let mut values: Vec<f64> = (0..20_000).map(|_| draw.quantile(&quantiles)).collect();
        values.sort_by(f64::total_cmp);
        assert!((values[5_000] - 4.0).abs() < 0.2 && (values[10_000] - 8.0).abs() < 0.2);
        assert!(values[0] >= 1.0 && values[19_999] <= 30.0 && values[19_990] > 20.0);
    }

    #[test]
    fn parts_have_the_total() {
        let mut draw = Draw::new(3);
        for (total, parts) in [(1, 1), (5, 5), (191, 18), (100_000, 7)] {
            let cut = draw.parts(total, parts, |draw| draw.unit() * draw.unit());
            assert_eq!((cut.len(), cut.iter().sum::<usize>()), (parts, total));
            assert!(cut.iter().all(|part| *part >= 1));
        }
    }

    #[test]
    fn whole_numbers_reach_both_ends() {
        let mut draw = Draw::new(1);
        let values: std::collections::BTreeSet<u64> = (0..200).map(|_| draw.between(3, 6)).collect();
        assert_eq!(values.into_iter().collect::<Vec<_>>(), [3, 4, 5, 6]);
    }
}
