//! Cholesky factor of a correlation matrix of at most a few dozen parameters.
//!
//! Uses plain loops: at this size a matrix library costs more compile time than it saves run time.

/// Lower triangle L with L·Lᵀ = matrix, packed by rows: entry (i, j) at i(i + 1)/2 + j.
#[derive(Clone, Debug)]
pub(crate) struct Cholesky {
    size: usize,
    lower: Vec<f64>,
}

/// Minimum share of a column's variance that earlier columns leave unexplained. A column with a smaller share
/// depends on them: rounding leaves such remainders of a correlation of 1.
const DEPENDENT: f64 = 1e-10;

/// Returns the index of entry (i, j), j ≤ i, in a packed lower triangle.
pub(crate) fn packed(i: usize, j: usize) -> usize {
    i * (i + 1) / 2 + j
}

impl Cholesky {
    /// Factors a correlation matrix, given as its packed lower triangle.
    ///
    /// # Errors
    /// The index of the first column that depends on earlier ones.
    pub(crate) fn of(mut matrix: Vec<f64>, size: usize) -> Result<Self, usize> {
        for i in 0..size {
            for j in 0..=i {
                let sum: f64 = (0..j).map(|k| matrix[packed(i, k)] * matrix[packed(j, k)]).sum();
                let rest = matrix[packed(i, j)] - sum;
                matrix[packed(i, j)] = if i == j {
                    // A NaN compares false with every bound and would pass as a pivot.
                    if rest.is_nan() || rest < DEPENDENT {
                        return Err(i);
                    }
                    rest.sqrt()
                } else {
                    rest / matrix[packed(j, j)]
                };
            }
        }
        Ok(Self { size, lower: matrix })
    }

    /// Solves matrix · x = `right` in place.
    pub(crate) fn solve(&self, right: &mut [f64]) {
        for i in 0..self.size {
            let sum: f64 = (0..i).map(|k| self.lower[packed(i, k)] * right[k]).sum();
            right[i] = (right[i] - sum) / self.lower[packed(i, i)];
        }
        for i in (0..self.size).rev() {
            let sum: f64 = (i + 1..self.size).map(|k| self.lower[packed(k, i)] * right[k]).sum();
            right[i] = (right[i] - sum) / self.lower[packed(i, i)];
        }
    }

    /// Returns the diagonal of the inverse matrix.
    pub(crate) fn inverse_diagonal(&self) -> Vec<f64> {
        let column = |place: usize| {
            // The squares of a column of L⁻¹ sum to the entry of the diagonal.
            let mut unit = vec![0.0; self.size];
            for i in place..self.size {
                let sum: f64 = (place..i).map(|k| self.lower[packed(i, k)] * unit[k]).sum();
                unit[i] = (f64::from(i == place) - sum) / self.lower[packed(i, i)];
            }
            unit.iter().map(|entry| entry * entry).sum()
        };
        (0..self.size).map(column).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_system_is_solved() {
        // The matrix 1, ½; ½, 1 has the inverse 4/3, −2/3; −2/3, 4/3.
        let factor = Cholesky::of(vec![1.0, 0.5, 1.0], 2).unwrap();
        let mut right = [3.0, 0.0];
        factor.solve(&mut right);
        assert!((right[0] - 4.0).abs() < 1e-14 && (right[1] + 2.0).abs() < 1e-14);
        assert!(factor.inverse_diagonal().iter().all(|entry| (entry - 4.0 / 3.0).abs() < 1e-14));
    }

    #[test]
    fn dependent_parameter_is_named() {
        assert_eq!(Cholesky::of(vec![1.0, 1.0, 1.0], 2).unwrap_err(), 1);
        assert_eq!(Cholesky::of(vec![1.0, 0.0, 1.0, 0.6, 0.8, 1.0], 3).unwrap_err(), 2);
        assert_eq!(Cholesky::of(vec![f64::NAN], 1).unwrap_err(), 0);
    }
}
