//! Centered L2 discrepancy: how evenly points fill the unit cube, with all corners treated alike.
//!
//! Source: Hickernell, "A generalized discrepancy and quadrature error bound", Mathematics of Computation 67 (1998),
//! equation (5.1b), as SciPy's `qmc.discrepancy(method="CD")`: the squared discrepancy.

use super::points::UnitPoints;

/// Returns the squared centered L2 discrepancy of the points. 0 means perfectly even. Takes n² steps for n
/// points.
#[must_use]
pub fn centered_l2(points: &UnitPoints) -> f64 {
    let count = points.rows() as f64;
    let whole = (13.0_f64 / 12.0).powi(points.columns() as i32);
    let off = |x: f64| (x - 0.5).abs();
    let alone =
        |point: &[f64]| point.iter().map(|&x| 1.0 + 0.5 * off(x) - 0.5 * off(x) * off(x)).product::<f64>();
    let pair = |one: &[f64], other: &[f64]| {
        let factors = one.iter().zip(other);
        factors.map(|(&x, &y)| 1.0 + 0.5 * off(x) + 0.5 * off(y) - 0.5 * (x - y).abs()).product::<f64>()
    };
    let single: f64 = points.iter().map(alone).sum();
    let mut double = 0.0;
    for (index, one) in points.iter().enumerate() {
        // Pairs are symmetric, so each pair with a later point counts twice.
        let later: f64 = points.iter().skip(index + 1).map(|other| pair(one, other)).sum();
        double += 2.0 * later + pair(one, one);
    }
    whole - 2.0 / count * single + double / (count * count)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of SciPy 1.17's `qmc.discrepancy` for the two examples of its documentation.
    #[test]
    fn values_are_those_of_scipy() {
        let points = |rows: [[f64; 2]; 6]| {
            UnitPoints::from_rows(
                2,
                rows.into_iter().flat_map(|row| row.map(|x| (2.0 * x - 1.0) / 12.0)).collect(),
            )
            .unwrap()
        };
        let even = points([[1.0, 3.0], [2.0, 6.0], [3.0, 2.0], [4.0, 5.0], [5.0, 1.0], [6.0, 4.0]]);
        assert!((centered_l2(&even) - 0.008_142_039_609_053_464).abs() < 1e-15, "{}", centered_l2(&even));
        let odd = points([[1.0, 5.0], [2.0, 4.0], [3.0, 3.0], [4.0, 2.0], [5.0, 1.0], [6.0, 6.0]]);
        assert!((centered_l2(&odd) - 0.010_456_854_423_869_011).abs() < 1e-15, "{}", centered_l2(&odd));
    }
}
