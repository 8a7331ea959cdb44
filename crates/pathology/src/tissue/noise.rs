//! Smooth random fields that are pure functions of position (gradient noise on a hashed lattice).
//!
//! A pure field needs no memory and gives the same value in every band of rows.
//! Source: K. Perlin, "Improving noise", SIGGRAPH 2002. The hash is an integer finalizer of the murmur family.

/// Sixteen directions, 22.5 degrees apart.
const GRADIENTS: [[f32; 2]; 16] = {
    const C: f32 = 0.923_879_5;
    const S: f32 = 0.382_683_43;
    const D: f32 = std::f32::consts::FRAC_1_SQRT_2;
    [
        [1.0, 0.0],
        [C, S],
        [D, D],
        [S, C],
        [0.0, 1.0],
        [-S, C],
        [-D, D],
        [-C, S],
        [-1.0, 0.0],
        [-C, -S],
        [-D, -D],
        [-S, -C],
        [0.0, -1.0],
        [S, -C],
        [D, -D],
        [C, -S],
    ]
};

/// Scales gradient noise with unit gradients to a standard deviation of 1 (measured, see the test below).
const UNIT_DEVIATION: f32 = 4.63;

/// Returns 32 well-mixed bits of a lattice point.
pub(super) fn hash(x: i32, y: i32, seed: u32) -> u32 {
    let mut h =
        seed ^ (x as u32).wrapping_mul(0x9E37_79B1) ^ (y as u32).wrapping_mul(0x85EB_CA77).rotate_left(15);
    h = (h ^ (h >> 16)).wrapping_mul(0x7FEB_352D);
    h = (h ^ (h >> 15)).wrapping_mul(0x846C_A68B);
    h ^ (h >> 16)
}

/// Returns an approximately normal value of a lattice point: mean 0, standard deviation 1, within ±3.5.
pub(super) fn white(x: i32, y: i32, seed: u32) -> f32 {
    let bytes = hash(x, y, seed).to_le_bytes();
    let sum: u32 = bytes.iter().map(|b| u32::from(*b)).sum();
    // Four bytes: mean 510, variance 4·(256² − 1)/12.
    (sum as f32 - 510.0) / 147.8
}

/// A random field of mean 0 and standard deviation 1 whose features are about one unit wide.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field(u32);

impl Field {
    /// Creates the field of this seed.
    pub(super) fn new(seed: u32) -> Self {
        Self(seed)
    }

    /// Returns the value at a position.
    pub(super) fn at(self, x: f32, y: f32) -> f32 {
        let (left, top) = (x.floor(), y.floor());
        let (fx, fy) = (x - left, y - top);
        let (ix, iy) = (left as i32, top as i32);
        let corner = |dx: i32, dy: i32| {
            let [gx, gy] = GRADIENTS[(hash(ix + dx, iy + dy, self.0) >> 28) as usize];
            gx * (fx - dx as f32) + gy * (fy - dy as f32)
        };
        let (u, v) = (fade(fx), fade(fy));
        let upper = corner(0, 0) + u * (corner(1, 0) - corner(0, 0));
        let lower = corner(0, 1) + u * (corner(1, 1) - corner(0, 1));
        UNIT_DEVIATION * (upper + v * (lower - upper))
    }

    /// Returns the sum of octaves with halving feature size. The first is `size` wide. Each has `gain` times the
    /// amplitude of the previous one. The sum is scaled to a standard deviation of 1.
    pub(super) fn octaves(self, x: f32, y: f32, size: [f32; 2], gains: &[f32]) -> f32 {
        let (mut sum, mut square, mut scale) = (0.0, 0.0, 1.0);
        for (octave, gain) in gains.iter().enumerate() {
            let field = Self(self.0.wrapping_add(octave as u32 * 0x51ED_270B));
            sum += gain * field.at(x * scale / size[0], y * scale / size[1]);
            square += gain * gain;
            scale *= 2.0;
        }
        // Variances of independent octaves add, so the quotient has deviation 1 for any gains.
        sum / f32::sqrt(square)
    }
}

/// Perlin's quintic: first and second derivative vanish at 0 and 1.
fn fade(t: f32) -> f32 {
    t * t * t * (t * (t * 6.0 - 15.0) + 10.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(values: &[f32]) -> (f32, f32) {
        let mean = values.iter().sum::<f32>() / values.len() as f32;
        (mean, (values.iter().map(|v| (v - mean).powi(2)).sum::<f32>() / values.len() as f32).sqrt())
    }

    #[test]
    fn fields_have_unit_deviation() {
        let field = Field::new(11);
        let points = (0..40_000).map(|i| ((i % 200) as f32 * 0.53, (i / 200) as f32 * 0.47));
        let (mean, deviation) = moments(&points.clone().map(|(x, y)| field.at(x, y)).collect::<Vec<_>>());
        assert!(mean.abs() < 0.06 && (deviation - 1.0).abs() < 0.06, "{mean} {deviation}");
        let sums: Vec<f32> = points.map(|(x, y)| field.octaves(x, y, [1.0, 1.0], &[1.0, 0.6])).collect();
        let (mean, deviation) = moments(&sums);
        assert!(mean.abs() < 0.06 && (deviation - 1.0).abs() < 0.06, "{mean} {deviation}");
        let (mean, deviation) = moments(&(0..40_000).map(|i| white(i, 3, 5)).collect::<Vec<_>>());
        assert!(mean.abs() < 0.03 && (deviation - 1.0).abs() < 0.03, "{mean} {deviation}");
    }

    #[test]
    fn fields_are_continuous_across_lattice_lines() {
        let field = Field::new(3);
        for i in -5..5 {
            let x = i as f32;
            assert!((field.at(x - 1e-4, 0.3) - field.at(x + 1e-4, 0.3)).abs() < 1e-2);
        }
    }
}
