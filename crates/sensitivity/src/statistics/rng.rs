//! Random number generators: one ChaCha8 stream per purpose, all derived from the study's seed.
//!
//! ChaCha8 gives the same numbers on every platform. Streams of one seed are independent, so more
//! trajectories, samples or resamples never change the numbers drawn for earlier ones.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// Purpose of a stream of random numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RngStream {
    /// Base point, directions and order of the Morris trajectory of this index.
    Trajectory(u32),
    /// Resampling of trajectories for confidence intervals.
    Bootstrap,
    /// The two points of the base sample of this index.
    BaseSample(u32),
    /// Scrambling of the Sobol' points of this part of the sequence.
    Scrambling(u32),
    /// The bootstrap resample of this index.
    Resample(u32),
    /// Phase of the search curve of this index.
    Curve(u32),
    /// Independent random points, in their order.
    RandomPoints,
    /// Strata of this column of a Latin hypercube, and positions within them.
    Column(u32),
    /// Swaps that spread a Latin hypercube.
    Swaps,
    /// Permutations of the digits of this dimension of Halton's sequence.
    Digits(u32),
    /// Order and directions of the Morris trajectory of this index, with a base point from another sequence.
    Order(u32),
}

/// Returns the generator of `seed` for `purpose`.
pub(crate) fn generator(seed: u64, purpose: RngStream) -> ChaCha8Rng {
    let mut generator = ChaCha8Rng::seed_from_u64(seed);
    generator.set_stream(match purpose {
        RngStream::Trajectory(index) => u64::from(index),
        // Beyond every u32, so no trajectory shares it.
        RngStream::Bootstrap => 1 << 32,
        RngStream::BaseSample(index) => (2 << 32) | u64::from(index),
        RngStream::Scrambling(part) => (3 << 32) | u64::from(part),
        RngStream::Resample(index) => (16 << 32) | u64::from(index),
        RngStream::Curve(index) => (17 << 32) | u64::from(index),
        RngStream::RandomPoints => 4 << 32,
        RngStream::Column(column) => (5 << 32) | u64::from(column),
        RngStream::Swaps => 6 << 32,
        RngStream::Digits(dimension) => (7 << 32) | u64::from(dimension),
        RngStream::Order(index) => (8 << 32) | u64::from(index),
    });
    generator
}
