//! Power spectrum of a real series: the first frequencies by the definition of the Fourier transform, or all
//! by a fast one.
//!
//! Lengths are users' sample sizes and arbitrary. Powers of two are transformed directly, others by
//! Bluestein's algorithm (Bluestein, "A linear filtering approach to the computation of discrete Fourier
//! transform", IEEE Transactions on Audio and Electroacoustics 18 (1970)). Phases are not computed.

use std::f64::consts::TAU;

/// A complex number: real and imaginary part.
type Complex = (f64, f64);

fn product(a: Complex, b: Complex) -> Complex {
    (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0)
}

/// Returns exp(−2πi · at/of).
fn turn(at: usize, of: usize) -> Complex {
    let phase = TAU * at as f64 / of as f64;
    (phase.cos(), -phase.sin())
}

/// Precomputed factors for transforms of series of one length.
pub(crate) struct Spectrum {
    length: usize,
    /// exp(−2πi·j/m) for each j, where the power of two m is the transformed length.
    turns: Vec<Complex>,
    /// Bluestein's factors exp(−πi·j²/n), and the transform of the convolution kernel. `None` for powers of
    /// two.
    chirp: Option<(Vec<Complex>, Vec<Complex>)>,
}

impl Spectrum {
    /// Creates the transform for series of `length` values, at least 1.
    pub(crate) fn new(length: usize) -> Self {
        if length.is_power_of_two() {
            let turns = (0..length).map(|at| turn(at, length)).collect();
            return Self { length, turns, chirp: None };
        }
        // A cyclic convolution of this length does not wrap around the 2n − 1 entries of the kernel.
        let padded = (2 * length).next_power_of_two();
        let turns: Vec<Complex> = (0..padded).map(|at| turn(at, padded)).collect();
        // Squares are reduced modulo 2n, which keeps the angles exact for long series.
        let chirp: Vec<Complex> = (0..length).map(|at| turn(at * at % (2 * length), 2 * length)).collect();
        let mut kernel = vec![(0.0, 0.0); padded];
        for (at, &(real, imaginary)) in chirp.iter().enumerate() {
            kernel[at] = (real, -imaginary);
            kernel[(padded - at) % padded] = (real, -imaginary);
        }
        transform(&mut kernel, &turns);
        Self { length, turns, chirp: Some((chirp, kernel)) }
    }

    /// Returns |Σⱼ yⱼ exp(−2πi·jf/n)|²/n² for each frequency f from 0 to n/2, of a series y of this length.
    pub(crate) fn powers(&self, series: &[f64]) -> Vec<f64> {
        let mut values: Vec<Complex> = series.iter().map(|&value| (value, 0.0)).collect();
        if let Some((chirp, kernel)) = &self.chirp {
            values.iter_mut().zip(chirp).for_each(|(value, &factor)| *value = product(*value, factor));
            values.resize(kernel.len(), (0.0, 0.0));
            transform(&mut values, &self.turns);
            // The inverse transform is the conjugate of the transform of the conjugate. The last conjugation
            // is omitted, because the powers need absolute values only.
            values.iter_mut().zip(kernel).for_each(|(value, &factor)| {
                let (real, imaginary) = product(*value, factor);
                *value = (real, -imaginary);
            });
            transform(&mut values, &self.turns);
            let scale = 1.0 / kernel.len() as f64;
            values.iter_mut().for_each(|value| *value = (value.0 * scale, value.1 * scale));
        } else {
            transform(&mut values, &self.turns);
        }
        let squared = (self.length * self.length) as f64;
        let power = |&(real, imaginary): &Complex| (real * real + imaginary * imaginary) / squared;
        values[..=self.length / 2].iter().map(power).collect()
    }
}

/// Transforms a power of two of values in place (Cooley and Tukey). `turns` are its roots of unity.
fn transform(values: &mut [Complex], turns: &[Complex]) {
    let length = values.len();
    let bits = length.trailing_zeros();
    for at in 1..length {
        let mirrored = at.reverse_bits() >> (usize::BITS - bits);
        if at < mirrored {
            values.swap(at, mirrored);
        }
    }
    let mut half = 1;
    while half < length {
        let stride = length / (2 * half);
        for pair in values.chunks_exact_mut(2 * half) {
            let (lower, upper) = pair.split_at_mut(half);
            for (at, (one, other)) in lower.iter_mut().zip(upper).enumerate() {
                let turned = product(*other, turns[at * stride]);
                *other = (one.0 - turned.0, one.1 - turned.1);
                *one = (one.0 + turned.0, one.1 + turned.1);
            }
        }
        half *= 2;
    }
}

/// Returns the powers of the frequencies 1 to `count`, as [`Spectrum::powers`], of a series of any length.
/// Its cost grows with `count`.
pub(crate) fn first_powers(series: &[f64], count: usize) -> Vec<f64> {
    // Turns all frequencies by one step at a time, so that compilers can process several in one instruction.
    // For samples of 1 million values, roundings add up to less than 10⁻⁹ of the power.
    let steps: Vec<Complex> = (1..=count).map(|frequency| turn(frequency, series.len())).collect();
    let mut turns = vec![(1.0, 0.0); count];
    let mut sums = vec![(0.0, 0.0); count];
    for value in series {
        for ((sum, at), step) in sums.iter_mut().zip(&mut turns).zip(&steps) {
            *sum = (sum.0 + value * at.0, sum.1 + value * at.1);
            *at = product(*at, *step);
        }
    }
    let squared = (series.len() * series.len()) as f64;
    sums.iter().map(|(real, imaginary)| (real * real + imaginary * imaginary) / squared).collect()
}

/// Returns the population variance of a series: the sum of the powers of frequencies 1 to n − 1 (Parseval).
pub(crate) fn variance(series: &[f64]) -> f64 {
    let count = series.len() as f64;
    let mean = series.iter().sum::<f64>() / count;
    series.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Powers agree with the definition for every kind of length: powers of two, primes, squares, products.
    #[test]
    fn fast_powers_are_those_of_the_definition() {
        for length in [1, 2, 3, 8, 9, 30, 61, 128, 257, 1000] {
            let series: Vec<f64> = (0..length).map(|at| ((at * at * 7 + at) % 11) as f64).collect();
            let powers = Spectrum::new(length).powers(&series);
            assert_eq!(powers.len(), length / 2 + 1);
            for (frequency, found) in powers.iter().enumerate() {
                let sum = series.iter().enumerate().fold((0.0, 0.0), |sum, (at, value)| {
                    let (real, imaginary) = turn(at * frequency % length, length);
                    (sum.0 + value * real, sum.1 + value * imaginary)
                });
                let expected = (sum.0 * sum.0 + sum.1 * sum.1) / (length * length) as f64;
                assert!((found - expected).abs() < 1e-12, "{length}, {frequency}: {found} {expected}");
                if frequency > 0 {
                    assert!((first_powers(&series, frequency)[frequency - 1] - expected).abs() < 1e-12);
                }
            }
            let sum: f64 = (1..length).map(|at| powers[at.min(length - at)]).sum();
            assert!((sum - variance(&series)).abs() < 1e-12);
        }
    }
}
