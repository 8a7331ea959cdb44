//! Halton's sequence and Hammersley's points: radical inverses of a point's number in prime bases.
//!
//! Sources: Halton, "Algorithm 247: radical-inverse quasi-random point sequence", CACM 7 (1964), as in paper 001.
//! Hammersley, "Monte Carlo methods for solving multivariable problems", Ann. New York Acad. Sci. 86 (1960).
//! Scrambled points permute the digits at each position of each base at random, leading zeros included: Owen, "A
//! randomized Halton algorithm in R", arXiv:1706.02808 (2017), as SciPy's `qmc.Halton`.
//!
//! Unscrambled points are numbered from 1, which excludes the corner. Scrambled points are numbered from 0.
//! In high dimensions the first b unscrambled points of base b are collinear. Scrambled points are not.

use super::points::{Sequence, UnitPoints};
use super::{Design, SampleError, plain};
use crate::statistics::rng::{self, RngStream};
use pleach_workflow::Parameter;
use rand::seq::SliceRandom;

/// Maximum number of dimensions of Halton's sequence, the same as for Sobol' points. The base of the last is
/// 1619, whose digits 10⁵ points hardly cover.
pub const MAX_DIMENSIONS: usize = 256;

/// Settings of a low-discrepancy sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LowDiscrepancy {
    /// Number of parameter sets, at least 1.
    pub samples: u32,
    /// Whether digits are permuted at random.
    pub scrambled: bool,
    /// Seed of the permutations. Unused by unscrambled points.
    pub seed: u64,
}

/// Returns Halton's points as parameter sets. A longer sample extends a shorter one.
///
/// # Errors
/// [`SampleError`] if no set is requested, no parameter varies, a range cannot be sampled, or the sample is too
/// large.
pub fn sample(parameters: &[Parameter], halton: &LowDiscrepancy) -> Result<Design, SampleError> {
    let &LowDiscrepancy { samples, scrambled, seed } = halton;
    plain(parameters, Sequence::Halton { scrambled }, samples, seed)
}

/// Returns Hammersley's points as parameter sets. A different number of points gives different sets.
///
/// # Errors
/// As [`sample`].
pub fn sample_hammersley(
    parameters: &[Parameter],
    hammersley: &LowDiscrepancy,
) -> Result<Design, SampleError> {
    let &LowDiscrepancy { samples, scrambled, seed } = hammersley;
    plain(parameters, Sequence::Hammersley { scrambled }, samples, seed)
}

/// Returns the digits of `number` in base `base`, mirrored at the point: 6 = 110₂ gives 0.011₂ = 3/8. Within
/// `[0, 1)`.
#[must_use]
pub fn radical_inverse(number: u64, base: u32) -> f64 {
    let base = u64::from(base.max(2));
    // Collecting the digits in one integer rounds only once. A u128 holds 64 mirrored bits in any base.
    let (mut left, mut mirrored, mut scale) = (number, 0_u128, 1_u128);
    while left > 0 {
        mirrored = mirrored * u128::from(base) + u128::from(left % base);
        scale *= u128::from(base);
        left /= base;
    }
    (mirrored as f64 / scale as f64).min(BELOW_ONE)
}

/// Largest number below 1, used if rounding would reach 1.
const BELOW_ONE: f64 = 1.0 - f64::EPSILON / 2.0;

/// Halton's sequence in a number of dimensions.
#[derive(Debug)]
pub(super) struct Halton {
    bases: Vec<Base>,
    /// Number of the first point.
    first: u64,
}

/// One dimension.
#[derive(Debug)]
struct Base {
    base: u32,
    /// Weights of the digits at each permuted position. Empty without permutations.
    places: Vec<Vec<f64>>,
    /// Total weight of zeros at this position and all following ones.
    zeros_from: Vec<f64>,
}

impl Halton {
    /// Creates the sequence. `columns` is at most [`MAX_DIMENSIONS`]. A seed enables permutations.
    pub(super) fn new(columns: usize, seed: Option<u64>) -> Self {
        let bases = primes().take(columns).zip(0..).map(|(base, dimension)| match seed {
            None => Base { base, places: Vec::new(), zeros_from: Vec::new() },
            Some(seed) => Base::permuted(base, seed, dimension),
        });
        Self { bases: bases.collect(), first: u64::from(seed.is_none()) }
    }

    /// Writes point `index`, from 0.
    pub(super) fn fill(&self, index: u64, point: &mut [f64]) {
        for (base, coordinate) in self.bases.iter().zip(point) {
            *coordinate = base.at(index + self.first);
        }
    }

    /// Returns the first `rows` points.
    pub(super) fn points(&self, rows: usize) -> UnitPoints {
        let mut points = UnitPoints::zeros(rows, self.bases.len());
        for (index, point) in (0..).zip(points.iter_mut()) {
            self.fill(index, point);
        }
        points
    }
}

impl Base {
    fn permuted(base: u32, seed: u64, dimension: u32) -> Self {
        let mut generator = rng::generator(seed, RngStream::Digits(dimension));
        // As many digit positions as the mantissa of a number below 1 has bits for.
        let count = (f64::from(f64::MANTISSA_DIGITS) / f64::from(base).log2()).ceil() as usize;
        let mut unit = 1.0;
        let places: Vec<Vec<f64>> = (0..count)
            .map(|_| {
                unit /= f64::from(base);
                let mut digits: Vec<u32> = (0..base).collect();
                digits.shuffle(&mut generator);
                digits.into_iter().map(|digit| f64::from(digit) * unit).collect()
            })
            .collect();
        let mut zeros_from = vec![0.0; count + 1];
        for place in (0..count).rev() {
            zeros_from[place] = zeros_from[place + 1] + places[place][0];
        }
        Self { base, places, zeros_from }
    }

    fn at(&self, number: u64) -> f64 {
        if self.places.is_empty() {
            return radical_inverse(number, self.base);
        }
        let base = u64::from(self.base);
        let (mut left, mut place, mut sum) = (number, 0, 0.0);
        while left > 0 && place < self.places.len() {
            // A table per position turns a permuted digit into its weight without a power.
            sum += self.places[place][(left % base) as usize];
            left /= base;
            place += 1;
        }
        (sum + self.zeros_from[place]).min(BELOW_ONE)
    }
}

/// Returns Hammersley's points: (i + ½)/n in the first dimension, and Halton's in the others.
pub(super) fn hammersley(rows: usize, columns: usize, seed: Option<u64>) -> UnitPoints {
    let halton = Halton::new(columns - 1, seed);
    let mut points = UnitPoints::zeros(rows, columns);
    for (index, point) in (0_u32..).zip(points.iter_mut()) {
        point[0] = (f64::from(index) + 0.5) / rows as f64;
        halton.fill(u64::from(index), &mut point[1..]);
    }
    points
}

/// Returns the primes 2, 3, 5, …. Trial division suffices for the at most few hundred requested.
fn primes() -> impl Iterator<Item = u32> {
    (2_u32..).filter(|&number| {
        (2..).take_while(|divisor| divisor * divisor <= number).all(|d| !number.is_multiple_of(d))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Radical inverses equal Halton's own example and textbook digits: 1 … 8 in bases 2, 3 and 5.
    #[test]
    fn radical_inverses_mirror_the_digits() {
        let of = |base: u32| (1..9).map(|number| radical_inverse(number, base)).collect::<Vec<_>>();
        assert_eq!(of(2), [0.5, 0.25, 0.75, 0.125, 0.625, 0.375, 0.875, 0.0625]);
        assert_eq!(of(3), [3.0, 6.0, 1.0, 4.0, 7.0, 2.0, 5.0, 8.0].map(|ninths: f64| ninths / 9.0));
        assert_eq!(of(5)[..6], [5.0, 10.0, 15.0, 20.0, 1.0, 6.0].map(|parts: f64| parts / 25.0));
        // 2026 = 31101₅. Mirrored it is 10113₅ = 658, divided by 5⁵.
        assert_eq!(radical_inverse(2026, 5), 658.0 / 3125.0);
        assert_eq!(radical_inverse(0, 7), 0.0);
        assert!(radical_inverse(u64::MAX, 2) < 1.0);
        assert!(radical_inverse(u64::MAX, 1619) < 1.0);
    }

    #[test]
    fn the_first_points_are_those_of_the_textbook() {
        let points = Halton::new(3, None).points(3);
        let expected = [0.5, 1.0 / 3.0, 0.2, 0.25, 2.0 / 3.0, 0.4, 0.75, 1.0 / 9.0, 0.6]
            .map(|x: f64| (x * 1e15).round());
        assert_eq!(points.data().iter().map(|x| (x * 1e15).round()).collect::<Vec<_>>(), expected);
        let points = hammersley(4, 2, None);
        assert_eq!(points.data(), [0.125, 0.5, 0.375, 0.25, 0.625, 0.75, 0.875, 0.125]);
    }

    #[test]
    fn bases_are_the_primes() {
        assert_eq!(primes().take(10).collect::<Vec<_>>(), [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]);
        assert_eq!(primes().nth(MAX_DIMENSIONS - 1), Some(1619));
    }

    /// Slow reference implementation: permutes digit by digit over all positions.
    #[test]
    fn permuted_digits_are_those_of_every_place() {
        let halton = Halton::new(5, Some(11));
        let mut point = [0.0; 5];
        for index in [0_u64, 1, 2, 17, 12_345, 1 << 40] {
            halton.fill(index, &mut point);
            for (base, &found) in halton.bases.iter().zip(&point) {
                let mut left = index;
                let mut sum = 0.0;
                for place in &base.places {
                    sum += place[(left % u64::from(base.base)) as usize];
                    left /= u64::from(base.base);
                }
                assert!((sum - found).abs() < 1e-15, "{sum} {found}");
            }
        }
    }
}
