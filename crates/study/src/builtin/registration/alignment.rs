//! Affine transforms, and steps of the Levenberg–Marquardt method on the sum of squared differences.

use super::volume::Volume;

/// Rows of a 3 × 4 matrix: the transform of a position `(x, y, z, 1)`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Affine(pub(super) [f64; 12]);

/// Parameters of a transform that a step may change.
#[derive(Clone, Copy, Debug)]
pub(super) enum Model {
    /// The last column.
    Translation,
    /// All numbers.
    Affine,
}

/// Result of one step.
pub(super) struct Step {
    pub(super) transform: Affine,
    /// Mean squared difference of the volumes under the transform.
    pub(super) error: f64,
    /// Mean length by which the step moves the corners of the volume, in voxels.
    pub(super) change_voxels: f64,
}

impl Affine {
    pub(super) fn translation([x, y, z]: [f64; 3]) -> Self {
        Self([1.0, 0.0, 0.0, x, 0.0, 1.0, 0.0, y, 0.0, 0.0, 1.0, z])
    }

    pub(super) fn apply(&self, [x, y, z]: [f64; 3]) -> [f64; 3] {
        let row = |row: usize| {
            let [a, b, c, d] = [0, 1, 2, 3].map(|column| self.0[4 * row + column]);
            a * x + b * y + c * z + d
        };
        [row(0), row(1), row(2)]
    }
}

/// Returns the mean distance between the images of the eight corners of a volume under two transforms, in voxels.
pub(super) fn displacement_voxels(one: &Affine, other: &Affine, side: usize) -> f64 {
    let corner = |corner: usize| [0, 1, 2].map(|axis| if corner >> axis & 1 == 1 { 0.5 } else { -0.5 });
    let distance = |position| {
        let (one, other) = (one.apply(position), other.apply(position));
        let squares = (0..3).map(|axis| (one[axis] - other[axis]).powi(2));
        squares.sum::<f64>().sqrt()
    };
    (0..8).map(|number| distance(corner(number))).sum::<f64>() / 8.0 * side as f64
}

/// Returns the mean squared difference of the volumes. Outside of the fixed volume its density is 0, so that no step gains by
/// leaving it.
fn mean_squares(fixed: &Volume, moving: &Volume, transform: &Affine) -> f64 {
    let mut squares = 0.0;
    for (position, density) in moving.voxels() {
        let found = fixed.interpolate(transform.apply(position)).map_or(0.0, |(found, _)| found);
        squares += (found - density).powi(2);
    }
    squares / moving.side().pow(3) as f64
}

/// Improves a transform by one damped step of Gauss and Newton. A step that does not reduce the difference is not taken: few
/// voxels do not determine all parameters.
pub(super) fn step(fixed: &Volume, moving: &Volume, before: &Affine, model: Model, damping: f64) -> Step {
    let mut normal = [[0.0; 13]; 12];
    for (position, density) in moving.voxels() {
        let Some((found, gradient)) = fixed.interpolate(before.apply(position)) else { continue };
        let difference = found - density;
        let [x, y, z] = position;
        let derivatives: [f64; 12] =
            std::array::from_fn(|number| gradient[number / 4] * [x, y, z, 1.0][number % 4]);
        for (row, derivative) in normal.iter_mut().zip(&derivatives) {
            for (entry, other) in row.iter_mut().zip(&derivatives) {
                *entry += derivative * other;
            }
            row[12] -= derivative * difference;
        }
    }
    let free: Vec<usize> = match model {
        Model::Translation => vec![3, 7, 11],
        Model::Affine => (0..12).collect(),
    };
    let mut transform = before.clone();
    for (parameter, change) in free.iter().zip(solve(&normal, &free, damping)) {
        transform.0[*parameter] += change;
    }
    let (error, error_before) =
        (mean_squares(fixed, moving, &transform), mean_squares(fixed, moving, before));
    // Also if the error is not a number.
    if error.partial_cmp(&error_before) != Some(std::cmp::Ordering::Less) {
        return Step { transform: before.clone(), error: error_before, change_voxels: 0.0 };
    }
    let change_voxels = displacement_voxels(&transform, before, moving.side());
    Step { transform, error, change_voxels }
}

/// Solves the normal equations of the free parameters by elimination, with the diagonal raised by the damping.
fn solve(normal: &[[f64; 13]; 12], free: &[usize], damping: f64) -> Vec<f64> {
    let count = free.len();
    let mut rows: Vec<Vec<f64>> = free
        .iter()
        .map(|row| free.iter().chain([&12]).map(|column| normal[*row][*column]).collect())
        .collect();
    // Few voxels determine few parameters: the smallest damping keeps the matrix regular.
    let floor = 1e-9 * rows.iter().enumerate().map(|(number, row)| row[number]).fold(1e-9, f64::max);
    for (number, row) in rows.iter_mut().enumerate() {
        row[number] += damping * row[number] + floor;
    }
    // The matrix is symmetric and positive definite, so its pivots need no exchange.
    for pivot in 0..count {
        let (above, below) = rows.split_at_mut(pivot + 1);
        let pivot_row = &above[pivot];
        for row in below {
            let factor = row[pivot] / pivot_row[pivot];
            for (entry, known) in row.iter_mut().zip(pivot_row).skip(pivot) {
                *entry -= factor * known;
            }
        }
    }
    let mut solution = vec![0.0; count];
    for row in (0..count).rev() {
        let known: f64 = (row + 1..count).map(|column| rows[row][column] * solution[column]).sum();
        solution[row] = (rows[row][count] - known) / rows[row][row];
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equations_are_solved() {
        let mut normal = [[0.0; 13]; 12];
        for (row, numbers) in
            [[4.0, 1.0, 0.0, 6.0], [1.0, 3.0, 1.0, 10.0], [0.0, 1.0, 2.0, 8.0]].iter().enumerate()
        {
            normal[row][..3].copy_from_slice(&numbers[..3]);
            normal[row][12] = numbers[3];
        }
        let found = solve(&normal, &[0, 1, 2], 0.0);
        for (found, expected) in found.iter().zip([1.0, 2.0, 3.0]) {
            assert!((found - expected).abs() < 1e-6, "{found}");
        }
    }
}
