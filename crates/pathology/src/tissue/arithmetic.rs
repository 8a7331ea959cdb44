//! Random draws and powers that give the same bits on every platform.
//!
//! No function calls the platform's mathematical library, whose last digits differ between systems.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::f32::consts::{LN_2, LOG2_10, LOG2_E};

/// The random source of one tile.
pub(super) struct Draw(ChaCha8Rng);

impl Draw {
    /// Creates the stream of tile `index` under `seed`.
    pub(super) fn new(seed: u64, index: u32) -> Self {
        // Not `seed_from_u64`: the library may change its expansion.
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        let mut source = ChaCha8Rng::from_seed(key);
        source.set_stream(u64::from(index));
        Self(source)
    }

    /// Returns 32 random bits.
    pub(super) fn bits(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// Returns a uniform number in `[0, 1)`, with the 24 bits that an `f32` holds exactly.
    pub(super) fn unit(&mut self) -> f32 {
        (self.bits() >> 8) as f32 / 16_777_216.0
    }

    /// Returns a uniform number in `[low, high)`.
    pub(super) fn range(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.unit()
    }

    /// Returns a uniform number in `0..bound`. `bound` must not be 0.
    pub(super) fn uniform_below(&mut self, bound: usize) -> usize {
        // Multiply and shift: one draw for any bound, so later draws stay in step. The bias is below bound/2³².
        ((u64::from(self.bits()) * bound as u64) >> 32) as usize
    }

    /// Returns true with this probability.
    pub(super) fn chance(&mut self, probability: f32) -> bool {
        self.unit() < probability
    }

    /// Returns a standard normal number with tails that end at ±6: the sum of 12 uniforms (Irwin–Hall).
    pub(super) fn normal(&mut self) -> f32 {
        // Twelve uniform numbers have variance 1, and their sum needs no function of the platform's library.
        (0..12).map(|_| self.unit()).sum::<f32>() - 6.0
    }

    /// Returns a unit vector of uniform direction, by rejection from the disc.
    pub(super) fn direction(&mut self) -> [f32; 2] {
        loop {
            let (x, y) = (self.range(-1.0, 1.0), self.range(-1.0, 1.0));
            let square = x * x + y * y;
            if square > 0.01 && square <= 1.0 {
                let length = square.sqrt();
                return [x / length, y / length];
            }
        }
    }

    /// Returns a log-normal number with this median. `sigma` is the standard deviation of the logarithm.
    pub(super) fn log_normal(&mut self, median: f32, sigma: f32) -> f32 {
        median * exp2(sigma * self.normal() * LOG2_E)
    }
}

/// Returns `2^x` with a relative error of about 1e-5, for |x| ≤ 100.
pub(super) fn exp2(x: f32) -> f32 {
    let x = x.clamp(-100.0, 100.0);
    let whole = x.floor();
    let f = x - whole;
    // Taylor's coefficients ln(2)^k / k!, the last one raised so that f = 1 gives exactly 2, without a step between
    // integers.
    let fraction =
        1.0 + f * (LN_2 + f * (0.240_226_5 + f * (0.055_504_1 + f * (0.009_618_1 + f * 0.001_504_1))));
    // The exponent field holds the power of two. The clamp above keeps it within 27–227.
    fraction * f32::from_bits(((whole as i32 + 127) as u32) << 23)
}

/// Returns `10^x`, as [`exp2`].
pub(super) fn exp10(x: f32) -> f32 {
    exp2(x * LOG2_10)
}

/// Returns 0 below `low`, 1 above `high`, a cubic between.
pub(super) fn smoothstep(low: f32, high: f32, x: f32) -> f32 {
    let t = ((x - low) / (high - low)).clamp(0.0, 1.0);
    t * t * (3.0 - 2.0 * t)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_agree_with_the_library() {
        for step in -300..=300 {
            let x = step as f32 / 100.0;
            assert!((exp2(x) / x.exp2() - 1.0).abs() < 3e-5, "2^{x}");
            assert!((exp10(x) / 10f32.powf(x) - 1.0).abs() < 3e-5, "10^{x}");
        }
    }

    #[test]
    fn draws_have_the_moments_they_promise() {
        let mut draw = Draw::new(1, 2);
        let sample: Vec<f32> = (0..20_000).map(|_| draw.normal()).collect();
        let mean = sample.iter().sum::<f32>() / 20_000.0;
        let variance = sample.iter().map(|v| (v - mean).powi(2)).sum::<f32>() / 20_000.0;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
        let [x, y] = draw.direction();
        assert!((x * x + y * y - 1.0).abs() < 1e-5);
        assert!((0..1000).all(|_| draw.uniform_below(3) < 3));
    }
}
