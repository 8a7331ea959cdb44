//! Densities made of Gaussian blobs, from the pixels of a tile.

use super::alignment::Affine;

/// Number of blobs: enough structure at every resolution, and cheap to sample.
const BLOBS: usize = 16;

struct Blob {
    center: [f64; 3],
    /// 1 / (2 σ²).
    sharpness: f64,
    height: f64,
}

/// A density in three dimensions.
pub(super) struct Phantom {
    blobs: Vec<Blob>,
}

/// SplitMix64: the next number of a sequence.
fn next(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut bits = *state;
    bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    // 53 bits: all that an f64 between 0 and 1 has.
    ((bits ^ bits >> 31) >> 11) as f64 / (1_u64 << 53) as f64
}

impl Phantom {
    /// Creates the density of an image. Different pixels give different blobs.
    pub(super) fn from_pixels(pixels: &[u8]) -> Self {
        let hash = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        let mut state = pixels.iter().fold(0xcbf2_9ce4_8422_2325, hash);
        let blobs = (0..BLOBS).map(|_| {
            let center = [0; 3].map(|_| 0.6 * next(&mut state) - 0.3);
            let sigma = 0.06 + 0.08 * next(&mut state);
            Blob { center, sharpness: 0.5 / (sigma * sigma), height: 0.3 + 0.7 * next(&mut state) }
        });
        Self { blobs: blobs.collect() }
    }

    /// Returns the density at a position.
    pub(super) fn density(&self, position: [f64; 3]) -> f64 {
        let density = |blob: &Blob| {
            let distance: f64 = (0..3).map(|axis| (position[axis] - blob.center[axis]).powi(2)).sum();
            blob.height * (-distance * blob.sharpness).exp()
        };
        self.blobs.iter().map(density).sum()
    }

    /// Returns the transform from positions in the moving volume to those in the fixed one: a rotation by about 6 degrees, a
    /// scaling by a few percent, and a translation by about 5 % of the side.
    pub(super) fn transform(&self) -> Affine {
        let (sin, cos) = (0.1_f64).sin_cos();
        Affine([1.04 * cos, -sin, 0.02, 0.06, sin, 0.97 * cos, 0.0, -0.04, -0.02, 0.01, 1.0, 0.05])
    }
}
