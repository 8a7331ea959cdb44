//! Multinomial logistic regression with a quadratic penalty.
//!
//! Minimizes Σ −log p(label of the row) + ½ Σ w², without a penalty on intercepts: scikit-learn's `LogisticRegression` with
//! C = 1 and three labels or more. The sum is convex, and Nesterov's accelerated gradient descent with restarts (B. O'Donoghue
//! and E. Candès, Adaptive restart for accelerated gradient schemes, 2015) finds its minimum from 0, the same on every run.

use super::Row;

/// A gradient this small is that of the minimum, for standard scores.
const TOLERANCE: f64 = 1e-9;

/// Well-conditioned features need some hundreds of steps.
const MAX_STEPS: usize = 50_000;

/// Weights of each label: one per feature, then the intercept.
#[derive(Clone, Debug)]
pub(super) struct Model(Vec<Row>);

impl Model {
    /// Learns from standard scores and the index of each row's label.
    pub(super) fn learn(rows: &[Row], labels: &[usize], count: usize) -> Self {
        let features = rows.first().map_or(0, Vec::len);
        // The Hessian of softmax is at most half the sum of squares, and the penalty adds 1.
        let squares: f64 = rows.iter().map(|row| 1.0 + row.iter().map(|x| x * x).sum::<f64>()).sum();
        let step = 1.0 / (0.5 * squares + 1.0);
        let mut weights = vec![vec![0.0; features + 1]; count];
        let (mut ahead, mut momentum) = (weights.clone(), 1.0_f64);
        for _ in 0..MAX_STEPS {
            let gradient = gradient(&ahead, rows, labels);
            if gradient.iter().flatten().all(|slope| slope.abs() < TOLERANCE) {
                break;
            }
            let mut next = ahead.clone();
            let pairs = next.iter_mut().flatten().zip(gradient.iter().flatten());
            pairs.for_each(|(weight, slope)| *weight -= step * slope);
            // Steps against the gradient have too much momentum, which starts again from 1.
            let moved = next.iter().flatten().zip(weights.iter().flatten());
            let uphill: f64 = moved
                .zip(gradient.iter().flatten())
                .map(|((next, weight), slope)| slope * (next - weight))
                .sum();
            let following =
                if uphill > 0.0 { 1.0 } else { 0.5 * (1.0 + (1.0 + 4.0 * momentum * momentum).sqrt()) };
            let share = if uphill > 0.0 { 0.0 } else { (momentum - 1.0) / following };
            ahead.clone_from(&next);
            for (ahead, (next, before)) in
                ahead.iter_mut().flatten().zip(next.iter().flatten().zip(weights.iter().flatten()))
            {
                *ahead += share * (next - before);
            }
            (weights, momentum) = (next, following);
        }
        Self(ahead)
    }

    /// Returns the probability of each label.
    pub(super) fn probabilities(&self, row: &[f64]) -> Row {
        probabilities(&self.0, row)
    }
}

fn probabilities(weights: &[Row], row: &[f64]) -> Row {
    let score = |weights: &Row| {
        let sum: f64 = weights.iter().zip(row).map(|(weight, x)| weight * x).sum();
        sum + weights.last().copied().unwrap_or_default()
    };
    let scores: Row = weights.iter().map(score).collect();
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let shares: Row = scores.iter().map(|score| (score - largest).exp()).collect();
    let total: f64 = shares.iter().sum();
    shares.into_iter().map(|share| share / total).collect()
}

fn gradient(weights: &[Row], rows: &[Row], labels: &[usize]) -> Vec<Row> {
    let mut gradient: Vec<Row> = weights.to_vec();
    gradient.iter_mut().filter_map(|slopes| slopes.last_mut()).for_each(|intercept| *intercept = 0.0);
    for (row, label) in rows.iter().zip(labels) {
        for (index, (share, slopes)) in probabilities(weights, row).into_iter().zip(&mut gradient).enumerate()
        {
            let beyond = share - f64::from(u8::from(index == *label));
            let Some((intercept, slopes)) = slopes.split_last_mut() else { continue };
            slopes.iter_mut().zip(row).for_each(|(slope, x)| *slope += beyond * x);
            *intercept += beyond;
        }
    }
    gradient
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn one_feature_of_two_labels_has_the_solution_by_hand() {
        // By symmetry, intercepts are 0 and weights ±w with w = 4 (1 − p), p = 1 / (1 + e^−2w).
        let model = Model::learn(&[vec![1.0], vec![1.0], vec![-1.0], vec![-1.0]], &[0, 0, 1, 1], 2);
        let (weight, intercept) = (model.0[0][0], model.0[0][1]);
        assert!((model.0[1][0] + weight).abs() < 1e-8 && intercept.abs() < 1e-8);
        let share = 1.0 / (1.0 + (-2.0 * weight).exp());
        assert!((weight - 4.0 * (1.0 - share)).abs() < 1e-8, "{weight} {share}");
        assert!((model.probabilities(&[1.0])[0] - share).abs() < 1e-8);
    }

    proptest! {
        /// No step in any direction lowers the penalized sum.
        #[test]
        fn learned_weights_are_the_minimum(
            rows in prop::collection::vec((prop::collection::vec(-3.0..3.0, 3), 0..3_usize), 2..12),
            direction in prop::collection::vec(-1.0..1.0, 12),
        ) {
            let (rows, labels): (Vec<Row>, Vec<usize>) = rows.into_iter().unzip();
            let model = Model::learn(&rows, &labels, 3);
            let sum = |weights: &[Row]| {
                let penalty: f64 = weights.iter().flat_map(|of| &of[..3]).map(|w| w * w / 2.0).sum();
                let loss = |(row, label): (&Row, &usize)| -probabilities(weights, row)[*label].ln();
                penalty + rows.iter().zip(&labels).map(loss).sum::<f64>()
            };
            let mut moved = model.0.clone();
            moved.iter_mut().flatten().zip(&direction).for_each(|(weight, by)| *weight += 1e-3 * by);
            prop_assert!(sum(&model.0) <= sum(&moved) + 1e-9);
            let shares: f64 = model.probabilities(&rows[0]).iter().sum();
            prop_assert!((shares - 1.0).abs() < 1e-12);
        }
    }
}
