//! Densities of weighted values on a regular grid: Gaussian kernels with Silverman's bandwidth, as scipy's
//! `gaussian_kde`.

/// Number of grid points, as in SALib.
const POINTS: usize = 100;

/// Equally spaced points from the smallest to the largest response.
pub(super) struct Grid {
    low: f64,
    step: f64,
}

impl Grid {
    pub(super) fn spanning(values: &[f64]) -> Self {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Self { low, step: (high - low) / (POINTS - 1) as f64 }
    }

    /// Returns the density of weighted values at the grid points. `None` if all values are equal or none is
    /// given.
    ///
    /// Along a regular grid, the quotient of neighboring values of a Gaussian changes by a constant factor,
    /// so a value costs three exponentials instead of one per point. The recurrence runs outward from the
    /// value, so it never divides by a vanished number. After k points the error is of the order of k²
    /// roundings, at most 10⁻¹² where the density is large.
    pub(super) fn density(&self, values: &[(f64, f64)]) -> Option<[f64; POINTS]> {
        let (first, _) = values.first()?;
        if values.iter().all(|(value, _)| value == first) {
            return None;
        }
        let count: f64 = values.iter().map(|(_, weight)| weight).sum();
        let mean = values.iter().map(|(value, weight)| value * weight).sum::<f64>() / count;
        let squares: f64 = values.iter().map(|(value, weight)| weight * (value - mean).powi(2)).sum();
        let factor = (count * 3.0 / 4.0).powf(-0.2);
        let variance = squares / (count - 1.0) * factor * factor;
        let curvature = (-self.step * self.step / variance).exp();
        let mut sums = [0.0; POINTS];
        for &(value, weight) in values {
            let nearest = ((value - self.low) / self.step).round().clamp(0.0, (POINTS - 1) as f64);
            let distance = self.low + nearest * self.step - value;
            let height = weight * (-distance * distance / (2.0 * variance)).exp();
            let (up, down) = sums.split_at_mut(nearest as usize);
            // exp(−(d + h)²/2v) = exp(−d²/2v) · exp(−(2dh + h²)/2v)
            let quotient = |step: f64| (-(2.0 * distance * step + step * step) / (2.0 * variance)).exp();
            outwards(down.iter_mut(), height, quotient(self.step), curvature);
            let below = quotient(-self.step);
            outwards(up.iter_mut().rev(), height * below, below * curvature, curvature);
        }
        let norm = 1.0 / (count * (2.0 * std::f64::consts::PI * variance).sqrt());
        Some(sums.map(|sum| sum * norm))
    }

    /// Returns the area between two densities, by the trapezoidal rule.
    pub(super) fn area_between(&self, one: &[f64; POINTS], other: &[f64; POINTS]) -> f64 {
        let apart = |at: usize| (one[at] - other[at]).abs();
        let inner: f64 = (1..POINTS - 1).map(apart).sum();
        self.step * (inner + (apart(0) + apart(POINTS - 1)) / 2.0)
    }
}

fn outwards<'a>(sums: impl Iterator<Item = &'a mut f64>, mut height: f64, mut quotient: f64, curvature: f64) {
    for sum in sums {
        *sum += height;
        height *= quotient;
        quotient *= curvature;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Densities agree with the definition, a sum of Gaussians at each point.
    #[test]
    fn densities_are_sums_of_gaussians() {
        let values: Vec<(f64, f64)> =
            (0..60).map(|at| ((f64::from(at) * 0.7).sin() * 3.0, f64::from(at % 3 + 1))).collect();
        let listed: Vec<f64> =
            values.iter().flat_map(|&(value, weight)| vec![value; weight as usize]).collect();
        let count = listed.len() as f64;
        let mean = listed.iter().sum::<f64>() / count;
        let variance = listed.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
        let width = variance.sqrt() * (count * 0.75).powf(-0.2);
        let grid = Grid::spanning(&listed);
        let found = grid.density(&values).unwrap();
        for (at, found) in found.iter().enumerate() {
            let point = grid.low + at as f64 * grid.step;
            let gaussian = |value: &f64| (-((point - value) / width).powi(2) / 2.0).exp();
            let expected = listed.iter().map(gaussian).sum::<f64>()
                / (count * width * (2.0 * std::f64::consts::PI).sqrt());
            assert!((found / expected - 1.0).abs() < 1e-11, "{found} {expected}");
        }
        assert_eq!(grid.density(&[(1.0, 2.0), (1.0, 1.0)]), None);
        assert_eq!(grid.density(&[]), None);
        let apart = grid.area_between(&[0.0; POINTS], &[0.5; POINTS]);
        assert!((apart - 0.5 * grid.step * 99.0).abs() < 1e-12);
    }
}
