//! Bootstrap resamples: rows, blocks or trajectories drawn with replacement, as draw counts.
//!
//! A resample is a vector of weights that sum to the number of draws. Means over a resample are weighted
//! means in memory order, and ranks and quantiles follow from an order that is sorted once. Each resample has
//! its own random stream, so results depend neither on the number of threads nor on the number of resamples.

use crate::statistics::rng::{self, RngStream};
use rand::RngExt;
use rayon::prelude::*;

/// Settings of the bootstrap for confidence intervals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    /// Number of resamples. 0 gives no intervals. Fewer than 40 give no percentile intervals.
    pub resamples: u32,
    /// Seed of the resamples. Indices do not depend on it unless their method's documentation states so.
    pub seed: u64,
}

impl Bootstrap {
    /// Applies `statistics` to the weights of each resample of `units` in parallel. Returns the results in
    /// order.
    pub(crate) fn resample<T: Send>(self, units: usize, statistics: impl Fn(&[f64]) -> T + Sync) -> Vec<T> {
        self.resample_with_size(units, units, statistics)
    }

    /// Applies `statistics` as [`Bootstrap::resample`], with `size` draws per resample.
    pub(crate) fn resample_with_size<T: Send>(
        self,
        units: usize,
        size: usize,
        statistics: impl Fn(&[f64]) -> T + Sync,
    ) -> Vec<T> {
        let one = |weights: &mut Vec<f64>, index| {
            draw(weights, size, self.seed, index);
            statistics(weights)
        };
        // An indexed parallel iterator collects in order. Resamples reuse a buffer, because `draw` overwrites it.
        (0..self.resamples).into_par_iter().map_init(|| vec![0.0; units], one).collect()
    }
}

/// Counts how often each unit is drawn in the resample of this index.
fn draw(weights: &mut [f64], size: usize, seed: u64, index: u32) {
    let mut generator = rng::generator(seed, RngStream::Resample(index));
    weights.fill(0.0);
    // `random_range` of a `u32` gives the same numbers on every platform at half the cost of a `u64`. It is
    // wide enough for designs, which have at most 10 million rows.
    let units = weights.len() as u32;
    for _ in 0..size {
        weights[generator.random_range(0..units) as usize] += 1.0;
    }
}

/// Returns the rows with a weight above 0 and their weights, in the given order.
pub(crate) fn drawn<'a>(order: &'a [u32], weights: &'a [f64]) -> impl Iterator<Item = (usize, f64)> + 'a {
    order.iter().map(|&row| (row as usize, weights[row as usize])).filter(|(_, weight)| *weight > 0.0)
}

/// Returns the weighted means of the columns of a table of `width` columns, stored row by row.
///
/// Makes one pass in memory order. Rows are short, so the sums stay in the innermost cache.
pub(crate) fn means(table: &[f64], width: usize, weights: &[f64]) -> Vec<f64> {
    let mut sums = vec![0.0; width];
    for (row, &weight) in table.chunks_exact(width).zip(weights) {
        for (sum, term) in sums.iter_mut().zip(row) {
            *sum += weight * term;
        }
    }
    let count: f64 = weights.iter().sum();
    sums.iter_mut().for_each(|sum| *sum /= count);
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_resample_draws_as_many_as_there_are() {
        let bootstrap = Bootstrap { resamples: 200, seed: 3 };
        let drawn = bootstrap.resample(50, |weights| weights.to_vec());
        assert!(drawn.iter().all(|weights| weights.iter().sum::<f64>() == 50.0));
        // The variance of a count is 1 − 1/n, and its mean 1.
        let squares: f64 = drawn.iter().flatten().map(|weight| (weight - 1.0).powi(2)).sum();
        assert!((squares / 10_000.0 - 0.98).abs() < 0.05, "{squares}");
        assert_eq!(
            drawn[..20],
            Bootstrap { resamples: 20, seed: 3 }.resample(50, |weights| weights.to_vec())
        );
        assert_ne!(drawn[0], drawn[1]);
    }
}
