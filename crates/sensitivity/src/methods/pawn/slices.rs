//! Slices of a parameter's values, and the distances between the response within them and overall.

use crate::statistics::estimate::{interpolate, quantile};
use crate::statistics::ranks::{order, pair_at};

/// Number of statistics of a parameter.
pub(super) const STATISTICS: usize = 6;

/// One parameter's values in the rows used.
pub(super) struct Input {
    values: Vec<f64>,
    order: Vec<u32>,
    /// Distinct values, if their number is at most that of slices.
    levels: Option<Vec<f64>>,
}

/// Slice number of a row outside all slices.
const NOWHERE: usize = usize::MAX;

impl Input {
    pub(super) fn new(values: Vec<f64>, slices: usize) -> Self {
        let order = order(&values);
        let mut levels: Vec<f64> = order.iter().map(|&row| values[row as usize]).collect();
        levels.dedup();
        let levels = (levels.len() <= slices).then_some(levels);
        Self { values, order, levels }
    }

    /// Returns the slice of each row in a resample.
    pub(super) fn slices_of(&self, slices: usize, weights: &[f64]) -> Vec<usize> {
        let mut cut = vec![NOWHERE; self.values.len()];
        if let Some(levels) = &self.levels {
            for (slice, value) in cut.iter_mut().zip(&self.values) {
                *slice = levels.partition_point(|level| level < value);
            }
            return cut;
        }
        let last = weights.iter().sum::<f64>() - 1.0;
        let edge = |slice: usize| {
            // The steps and their rounding are SALib's: an edge equal to a value decides the slice of that
            // value.
            let place = slice as f64 * (1.0 / slices as f64) * last;
            let (from, to) = pair_at(&self.values, &self.order, weights, place.floor() as usize);
            interpolate(from, to, place - place.floor())
        };
        let edges: Vec<f64> = (0..=slices).map(edge).collect();
        for (slice, &value) in cut.iter_mut().zip(&self.values) {
            let below = edges.partition_point(|&edge| edge <= value);
            if (1..=slices).contains(&below) {
                *slice = below - 1;
            }
        }
        cut
    }
}

/// Returns the Kolmogorov–Smirnov distance of each non-empty slice.
///
/// One pass over the responses in ascending order: the share of a slice rises at its own rows only, so the distance
/// is largest just before or at one of them.
pub(super) fn distances(values: &[f64], order: &[u32], cut: &[usize], weights: &[f64]) -> Vec<f64> {
    let slices = cut.iter().filter(|&&slice| slice != NOWHERE).max().map_or(0, |last| last + 1);
    let mut sizes = vec![0.0; slices];
    let mut all = 0.0;
    for (&slice, &weight) in cut.iter().zip(weights) {
        all += weight;
        if slice != NOWHERE {
            sizes[slice] += weight;
        }
    }
    let mut within = vec![0.0; slices];
    let mut largest = vec![0.0_f64; slices];
    let (mut before, mut start) = (0.0, 0);
    while start < order.len() {
        let value = values[order[start] as usize];
        let mut end = start;
        let mut up_to = before;
        while end < order.len() && values[order[end] as usize] == value {
            let row = order[end] as usize;
            up_to += weights[row];
            let slice = cut[row];
            if slice != NOWHERE && weights[row] > 0.0 {
                // Measures just before the first of these equal responses. Later ones of the slice are at
                // most as distant.
                largest[slice] = largest[slice].max(before / all - within[slice] / sizes[slice]);
                within[slice] += weights[row];
            }
            end += 1;
        }
        for &row in &order[start..end] {
            let slice = cut[row as usize];
            if slice != NOWHERE && weights[row as usize] > 0.0 {
                largest[slice] = largest[slice].max(within[slice] / sizes[slice] - up_to / all);
            }
        }
        before = up_to;
        start = end;
    }
    largest.into_iter().zip(sizes).filter(|(_, size)| *size > 0.0).map(|(distance, _)| distance).collect()
}

/// Returns median, mean, smallest, largest, deviation and coefficient of variation. NaN without distances.
pub(super) fn summary(mut distances: Vec<f64>) -> [f64; STATISTICS] {
    if distances.is_empty() {
        return [f64::NAN; STATISTICS];
    }
    // Sorted for the quantile. Sums in this order do not depend on the numbering of slices.
    distances.sort_unstable_by(f64::total_cmp);
    let count = distances.len() as f64;
    let mean = distances.iter().sum::<f64>() / count;
    let deviation = (distances.iter().map(|distance| (distance - mean).powi(2)).sum::<f64>() / count).sqrt();
    let (minimum, maximum) = (distances[0], distances[distances.len() - 1]);
    [quantile(&distances, 0.5), mean, minimum, maximum, deviation, deviation / mean]
}
