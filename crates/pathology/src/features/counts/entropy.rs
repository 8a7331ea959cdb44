//! Entropy of counts, by a table of logarithms: most counts of an object are small.

use std::sync::LazyLock;

/// Number of counts with an entry: 32 KiB, which stay in the cache of a core.
const ENTRIES: usize = 4096;

static TABLE: LazyLock<[f64; ENTRIES]> =
    LazyLock::new(|| std::array::from_fn(|count| weighted_logarithm(count as u32)));

/// Returns n·log₂ n, 0 for 0.
fn weighted_logarithm(count: u32) -> f64 {
    let count = f64::from(count);
    if count > 0.0 { count * count.log2() } else { 0.0 }
}

/// Entropy of counts with a known sum, in bits.
#[derive(Clone, Copy)]
pub(crate) struct Entropy {
    table: &'static [f64; ENTRIES],
    total: f64,
    log_total: f64,
}

impl Entropy {
    pub(crate) fn of_total(total: f64) -> Self {
        Self { table: &TABLE, total, log_total: total.log2() }
    }

    /// Returns −Σ p·log₂ p, as log₂ N − Σ n·log₂ n / N. It is 0, and not a rounding error, if there is only one count.
    pub(crate) fn of(&self, counts: &[u32]) -> f64 {
        self.of_weighted(self.weighted_sum(counts))
    }

    /// Returns Σ n·log₂ n.
    pub(crate) fn weighted_sum(&self, counts: &[u32]) -> f64 {
        if self.total < ENTRIES as f64 {
            // Each count has an entry: the mask only spares the comparison.
            sum_by(counts, |count| self.table[count as usize % ENTRIES])
        } else {
            sum_by(counts, |count| {
                self.table.get(count as usize).copied().unwrap_or_else(|| weighted_logarithm(count))
            })
        }
    }

    /// Returns the entropy for Σ n·log₂ n.
    pub(crate) fn of_weighted(&self, sum: f64) -> f64 {
        let entropy = self.log_total - sum / self.total;
        // Counts other than 0 and the total add 1/N bits or more.
        if entropy * self.total < 0.5 { 0.0 } else { entropy }
    }
}

/// Returns the sum over all counts, in four lanes so that additions need not wait for each other.
fn sum_by(counts: &[u32], weighted: impl Fn(u32) -> f64) -> f64 {
    let mut sums = [0.0; 4];
    let (chunks, rest) = counts.as_chunks::<4>();
    for chunk in chunks {
        for (sum, count) in sums.iter_mut().zip(chunk) {
            *sum += weighted(*count);
        }
    }
    let rest: f64 = rest.iter().map(|count| weighted(*count)).sum();
    sums[0] + sums[1] + (sums[2] + sums[3]) + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entropy_equals_its_definition(counts in prop::collection::vec(prop_oneof![0..9_u32, 4000..9000_u32], 1..40)) {
            let total: f64 = counts.iter().map(|count| f64::from(*count)).sum();
            prop_assume!(total > 0.0);
            let shares = counts.iter().map(|count| f64::from(*count) / total).filter(|share| *share > 0.0);
            let expected: f64 = shares.map(|share| -share * share.log2()).sum();
            prop_assert!((Entropy::of_total(total).of(&counts) - expected).abs() < 1e-12);
        }

        #[test]
        fn one_count_has_no_entropy(count in 1..100_000_u32) {
            prop_assert_eq!(Entropy::of_total(f64::from(count)).of(&[0, count, 0]), 0.0);
            let pair = Entropy::of_total(f64::from(count) + 1.0).of(&[1, count]);
            prop_assert!(pair > 0.0);
        }
    }
}
