//! Pseudo-random numbers that depend on a seed and a name only, not on the order of the draws.

/// Weyl increment of SplitMix64 (Steele, Lea and Flood 2014): 2^64 divided by the golden ratio.
const INCREMENT: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns a number from 0 to below 1 for a seed and the numbers that name the draw (SplitMix64, Steele, Lea and Flood 2014).
pub(crate) fn unit(seed: u64, name: &[u64]) -> f64 {
    let mut state = seed;
    for number in name {
        state = mix(state) ^ number.wrapping_mul(INCREMENT);
    }
    // The upper 53 bits: an f64 has as many, so every result is exact and below 1.
    (mix(state) >> 11) as f64 / (1_u64 << 53) as f64
}

fn mix(state: u64) -> u64 {
    let mut word = state.wrapping_add(INCREMENT);
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Returns a number of a log-normal distribution of mean 1 with a coefficient of variation (Box and Muller 1958).
///
/// Functions of `libm` give the same bits on every machine.
pub(crate) fn factor(seed: u64, name: [u64; 2], variation: f64) -> f64 {
    if variation <= 0.0 {
        return 1.0;
    }
    let variance = libm::log1p(variation * variation);
    let radius = (-2.0 * libm::log1p(-unit(seed, &[name[0], name[1], 0]))).sqrt();
    let normal = radius * libm::cos(std::f64::consts::TAU * unit(seed, &[name[0], name[1], 1]));
    libm::exp(variance.sqrt() * normal - variance / 2.0)
}
