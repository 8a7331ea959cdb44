//! k-means clusters (S. P. Lloyd, Least squares quantization in PCM, 1982).
//!
//! The first center is a row, and each further one the row most distant from the centers before it. Of several first rows, the one
//! with the smallest sum of squared distances counts. Clusters therefore do not depend on random numbers.

use super::{Row, squared_distance};

/// Assignments cannot repeat before they are stable. The limit is for equal distances that differ by rounding.
const MAX_STEPS: usize = 1_000;

/// Number of first rows to try: as many as restarts are usual with random centers.
const STARTS: usize = 20;

/// Centers of the clusters.
#[derive(Debug)]
pub(super) struct Clusters(Vec<Row>);

impl Clusters {
    /// Finds `count` clusters, at most one per row: those of the smallest sum of squared distances over several starts.
    pub(super) fn find(rows: &[Row], count: usize) -> Self {
        let stride = rows.len().div_ceil(STARTS).max(1);
        let starts = (0..rows.len()).step_by(stride).map(|first| Self::from_start(rows, count, first));
        let spread = |clusters: &Self| -> f64 {
            rows.iter().map(|row| squared_distance(row, &clusters.0[clusters.assign(row)])).sum()
        };
        // The first of equal sums.
        let best = starts
            .map(|clusters| (spread(&clusters), clusters))
            .reduce(|best, next| if next.0 < best.0 { next } else { best });
        best.map_or_else(|| Self(Vec::new()), |(_, clusters)| clusters)
    }

    /// Improves the clusters that start from row `first` until they are stable.
    fn from_start(rows: &[Row], count: usize, first: usize) -> Self {
        let mut clusters = Self(spread_out(rows, count, first));
        let mut assigned = clusters.assign_all(rows);
        for _ in 0..MAX_STEPS {
            for (cluster, center) in clusters.0.iter_mut().enumerate() {
                let members = rows.iter().zip(&assigned).filter(|(_, of)| **of == cluster);
                let members: Vec<&Row> = members.map(|(row, _)| row).collect();
                if !members.is_empty() {
                    *center = mean(&members);
                }
            }
            let next = clusters.assign_all(rows);
            if next == assigned {
                break;
            }
            assigned = next;
        }
        clusters
    }

    fn assign_all(&self, rows: &[Row]) -> Vec<usize> {
        rows.iter().map(|row| self.assign(row)).collect()
    }

    /// Returns the cluster of the nearest center, the first of equal distances.
    pub(super) fn assign(&self, row: &[f64]) -> usize {
        let distance = |cluster: usize| squared_distance(row, &self.0[cluster]);
        (1..self.0.len())
            .fold(0, |best, cluster| if distance(cluster) < distance(best) { cluster } else { best })
    }
}

/// Returns row `first` and rows that are each the most distant from those before it.
fn spread_out(rows: &[Row], count: usize, first: usize) -> Vec<Row> {
    let mut centers = vec![rows[first].clone()];
    let mut nearest: Vec<f64> = rows.iter().map(|row| squared_distance(row, &centers[0])).collect();
    while centers.len() < count.min(rows.len()) {
        // The first of equal distances, so that the order of the rows decides.
        let farthest =
            (1..rows.len()).fold(0, |best, row| if nearest[row] > nearest[best] { row } else { best });
        let center = rows[farthest].clone();
        for (nearest, row) in nearest.iter_mut().zip(rows) {
            *nearest = nearest.min(squared_distance(row, &center));
        }
        centers.push(center);
    }
    centers
}

fn mean(rows: &[&Row]) -> Row {
    let columns = rows.first().map_or(0, |row| row.len());
    (0..columns).map(|column| rows.iter().map(|row| row[column]).sum::<f64>() / rows.len() as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every row is nearest to the center of its cluster, and every center is the mean of its rows.
        #[test]
        fn clusters_are_stable(
            rows in prop::collection::vec(prop::collection::vec(-5..5_i32, 2), 1..20),
            count in 1..5_usize,
        ) {
            let rows: Vec<Row> = rows.iter().map(|row| row.iter().map(|x| f64::from(*x)).collect()).collect();
            let clusters = Clusters::find(&rows, count);
            prop_assert_eq!(clusters.0.len(), count.min(rows.len()));
            for cluster in 0..clusters.0.len() {
                let members: Vec<&Row> = rows.iter().filter(|row| clusters.assign(row) == cluster).collect();
                if !members.is_empty() {
                    prop_assert!(squared_distance(&mean(&members), &clusters.0[cluster]) < 1e-20);
                }
            }
        }

        #[test]
        fn distant_heaps_are_found(
            heaps in 2..5_usize,
            noise in prop::collection::vec((-1.0..1.0, -1.0..1.0), 12..24),
        ) {
            let center = |heap: usize| [20.0 * heap as f64, if heap.is_multiple_of(2) { 0.0 } else { 30.0 }];
            let row = |(index, (x, y)): (usize, &(f64, f64))| {
                let [cx, cy] = center(index % heaps);
                vec![cx + x, cy + y]
            };
            let rows: Vec<Row> = noise.iter().enumerate().map(row).collect();
            let clusters = Clusters::find(&rows, heaps);
            let of = |index: usize| clusters.assign(&rows[index]);
            for one in 0..rows.len() {
                for other in 0..rows.len() {
                    prop_assert_eq!(of(one) == of(other), one % heaps == other % heaps);
                }
            }
        }
    }
}
