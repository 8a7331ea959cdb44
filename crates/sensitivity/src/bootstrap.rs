//! Bootstrap resamples: rows (or blocks, or trajectories) drawn with replacement, as how often each was drawn.
//!
//! A resample is a vector of weights, whose sum is the number of rows. Means over a resample are then weighted means in
//! the order of memory, and ranks and quantiles follow from an order that is sorted once. Each resample has its own
//! random numbers, so that results depend neither on the number of threads nor on how many resamples there are.

use crate::rng::{self, RngStream};
use rand::RngExt;
use rayon::prelude::*;

/// How confidence intervals are resampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    /// Number of resamples; 0 gives no intervals, and below 40 there are no percentile intervals.
    pub resamples: u32,
    /// Seed of the resamples. Indices themselves do not depend on it, unless their method says so.
    pub seed: u64,
}

impl Bootstrap {
    /// Applies `statistics` to the weights of each resample of `units`, in parallel, results in order.
    pub(crate) fn over<T: Send>(self, units: usize, statistics: impl Fn(&[f64]) -> T + Sync) -> Vec<T> {
        self.over_some(units, units, statistics)
    }

    /// The same, where each resample draws `size` times only.
    pub(crate) fn over_some<T: Send>(
        self,
        units: usize,
        size: usize,
        statistics: impl Fn(&[f64]) -> T + Sync,
    ) -> Vec<T> {
        let one = |weights: &mut Vec<f64>, index| {
            draw(weights, size, self.seed, index);
            statistics(weights)
        };
        (0..self.resamples).into_par_iter().map_init(|| vec![0.0; units], one).collect()
    }
}

/// Counts how often each unit is drawn in the resample of this index.
fn draw(weights: &mut [f64], size: usize, seed: u64, index: u32) {
    let mut generator = rng::generator(seed, RngStream::Resample(index));
    weights.fill(0.0);
    // Designs have at most ten million rows. 32 bits draw the same on every platform, and twice as fast.
    let units = weights.len() as u32;
    for _ in 0..size {
        weights[generator.random_range(0..units) as usize] += 1.0;
    }
}

/// The rows that have weights, each with how often it was drawn, in the order given.
pub(crate) fn drawn<'a>(order: &'a [u32], weights: &'a [f64]) -> impl Iterator<Item = (usize, f64)> + 'a {
    order.iter().map(|&row| (row as usize, weights[row as usize])).filter(|(_, weight)| *weight > 0.0)
}

/// Weighted means of the columns of a table of `width` columns, stored row after row.
///
/// One pass over the table in the order of memory, whose rows are short: the sums stay in the innermost cache.
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
        let drawn = bootstrap.over(50, |weights| weights.to_vec());
        assert!(drawn.iter().all(|weights| weights.iter().sum::<f64>() == 50.0));
        // The variance of a count is 1 − 1/n, and its mean 1.
        let squares: f64 = drawn.iter().flatten().map(|weight| (weight - 1.0).powi(2)).sum();
        assert!((squares / 10_000.0 - 0.98).abs() < 0.05, "{squares}");
        assert_eq!(drawn[..20], Bootstrap { resamples: 20, seed: 3 }.over(50, |weights| weights.to_vec()));
        assert_ne!(drawn[0], drawn[1]);
    }
}
