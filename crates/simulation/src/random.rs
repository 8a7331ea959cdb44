//! Pseudo-random numbers from a seed (SplitMix64, Steele, Lea and Flood 2014): good enough to generate
//! scenarios, and the same on every machine.

/// A generator of pseudo-random numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates the generator of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Creates an independent generator for a seed and the numbers that identify its purpose.
    #[must_use]
    pub fn of(seed: u64, names: &[u64]) -> Self {
        let mut random = Self(seed);
        for name in names {
            random.0 = random.word() ^ name.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        random
    }

    /// Returns the next word.
    pub fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        word ^ (word >> 31)
    }

    /// Returns the next number between 0 and 1.
    pub fn unit(&mut self) -> f64 {
        // The upper 53 bits: an f64 has as many, so every result is exact and below 1.
        (self.word() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number of an exponential distribution.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 − unit is never 0, so the logarithm is finite.
        -mean * (1.0 - self.unit()).ln()
    }

    /// Returns a number of a log-normal distribution of mean 1 with this coefficient of variation (Box and Muller 1958).
    pub fn factor(&mut self, variation: f64) -> f64 {
        if variation <= 0.0 {
            return 1.0;
        }
        let variance = (1.0 + variation * variation).ln();
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * self.unit()).cos();
        (variance.sqrt() * normal - variance / 2.0).exp()
    }
}
