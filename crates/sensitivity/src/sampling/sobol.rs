//! Sobol' points, Owen-scrambled.
//!
//! Sources: Joe and Kuo, "Constructing Sobol sequences with better two-dimensional projections", SIAM J. Sci.
//! Comput. 30 (2008), for the directions. Burley, "Practical hash-based Owen scrambling", JCGT 9 (2020), for the
//! scrambling. The crate `sobol_burley` implements both. Its parts are combined here because its own sampler ends
//! at 65,536 points and distinguishes 2²³ positions in the unit interval, instead of 2³².
//!
//! Each interval [j/2^m, (j+1)/2^m) of every dimension holds one of the first 2^m points, m ≤ 16. Beyond 65,536
//! points the sequence restarts with a new scrambling: such parts are independent of each other, and each has the
//! property.

use super::points::{Sequence, UnitPoints};
use super::{Design, SampleError, plain};
use crate::statistics::rng::{self, RngStream};
use pleach_workflow::Parameter;
use rand::Rng;
use sobol_burley::parts::{owen_scramble_rev, sobol_rev};

/// Settings of a Sobol' sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SobolPoints {
    /// Number of parameter sets, at least 1. Powers of two are best.
    pub samples: u32,
    /// Seed of the scrambling.
    pub seed: u64,
}

/// Draws the parameter sets. A longer sample extends a shorter one.
///
/// # Errors
/// [`SampleError`] if no set is requested, no parameter varies, a range cannot be sampled, or the sample is too
/// large.
pub fn sample(parameters: &[Parameter], sobol: &SobolPoints) -> Result<Design, SampleError> {
    plain(parameters, Sequence::Sobol, sobol.samples, sobol.seed)
}

/// Returns the first points, each in the middle of its cell of 2⁻³².
pub(super) fn points(rows: usize, columns: usize, seed: u64) -> UnitPoints {
    let mut sobol = Sobol::new(columns, seed);
    let mut cells = vec![0; columns];
    let mut points = UnitPoints::zeros(rows, columns);
    for (index, point) in (0..).zip(points.iter_mut()) {
        sobol.fill(index, &mut cells);
        for (coordinate, &cell) in point.iter_mut().zip(&cells) {
            *coordinate = (f64::from(cell) + 0.5) / CELLS;
        }
    }
    points
}

/// Number of cells of the unit interval: the resolution of 32 bits.
const CELLS: f64 = 4_294_967_296.0;

/// Maximum number of dimensions with directions.
pub(super) const MAX_DIMENSIONS: usize = sobol_burley::NUM_DIMENSIONS as usize;

/// Number of index bits that have directions.
const INDEX_BITS: u32 = 16;

/// Sobol' points of one seed. Coordinates depend only on the index of the point, not on earlier requests.
#[derive(Debug)]
pub(super) struct Sobol {
    seed: u64,
    part: u32,
    /// One scramble per dimension, for the points of `part`.
    scrambles: Vec<u32>,
}

impl Sobol {
    /// Creates the points. `dimensions` is at most [`MAX_DIMENSIONS`].
    pub(super) fn new(dimensions: usize, seed: u64) -> Self {
        let mut points = Self { seed, part: 0, scrambles: vec![0; dimensions] };
        points.scramble(0);
        points
    }

    fn scramble(&mut self, part: u32) {
        let mut generator = rng::generator(self.seed, RngStream::Scrambling(part));
        self.scrambles.fill_with(|| generator.next_u32());
        self.part = part;
    }

    /// Writes the coordinates of point `index`, from 0: one per dimension, in units of 2⁻³².
    pub(super) fn fill(&mut self, index: u32, point: &mut [u32]) {
        if self.part != index >> INDEX_BITS {
            self.scramble(index >> INDEX_BITS);
        }
        // The crate's numbers have reversed bits, the most significant one last. It reads the last 16 bits of the
        // index.
        let reversed = index.reverse_bits();
        for ((dimension, &scramble), coordinate) in (0..).zip(&self.scrambles).zip(point) {
            *coordinate = owen_scramble_rev(sobol_rev(reversed, dimension), scramble).reverse_bits();
        }
    }
}
