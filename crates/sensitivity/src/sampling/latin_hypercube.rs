//! Latin hypercubes: every dimension is divided into n equal intervals, and each interval holds one of the n
//! points.
//!
//! Source: McKay, Beckman and Conover, "A comparison of three methods for selecting values of input variables in
//! the analysis of output from a computer code", Technometrics 21 (1979). [`Placement::Maximin`] spreads points by
//! swapping coordinates within columns, which preserves the hypercube, as long as a swap lowers Morris and
//! Mitchell's φ_p (J. Statistical Planning and Inference 43, 1995), a smooth substitute for the smallest distance.
//! It climbs without annealing, so it may miss the best hypercube.

use super::points::{PointsError, Sequence, UnitPoints};
use super::{Design, SampleError, plain};
use crate::statistics::rng::{self, RngStream};
use pleach_workflow::Parameter;
use rand::RngExt;
use rand::seq::SliceRandom;

/// Maximum number of points of a maximin hypercube. A swap visits every point, and tens of swaps per point
/// are useful, so larger hypercubes take more than seconds.
pub const MAX_SPREAD: usize = 2_000;

/// Position of points within their intervals, and combination of intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Placement {
    /// At random within the interval. Intervals are combined at random.
    #[default]
    Random,
    /// At the center of the interval. Intervals are combined at random.
    Centered,
    /// At random within the interval. Intervals are combined to keep points far from each other.
    Maximin {
        /// Number of attempted swaps. Tens per point are useful.
        swaps: u32,
    },
}

/// Settings of a Latin hypercube.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatinHypercube {
    /// Number of parameter sets n, at least 1. A different n gives different sets.
    pub samples: u32,
    /// Position of the points.
    pub placement: Placement,
    /// Seed of the study.
    pub seed: u64,
}

/// Draws the parameter sets.
///
/// # Errors
/// [`SampleError`] if no set is requested, no parameter varies, a range cannot be sampled, or the sample is too
/// large.
pub fn sample(parameters: &[Parameter], hypercube: &LatinHypercube) -> Result<Design, SampleError> {
    let &LatinHypercube { samples, placement, seed } = hypercube;
    plain(parameters, Sequence::LatinHypercube(placement), samples, seed)
}

/// Draws a hypercube. Each column has its own generator, so its values do not depend on other columns.
pub(super) fn points(
    rows: usize,
    columns: usize,
    placement: Placement,
    seed: u64,
) -> Result<UnitPoints, PointsError> {
    if matches!(placement, Placement::Maximin { .. }) && rows > MAX_SPREAD {
        return Err(PointsError::TooManyToSpread { samples: rows });
    }
    // The number of rows of a design fits in a `u32`.
    let mut stretches: Vec<u32> = Vec::with_capacity(rows);
    let mut points = UnitPoints::zeros(rows, columns);
    let width = 1.0 / rows as f64;
    for (column, number) in (0..columns).zip(0..) {
        let mut generator = rng::generator(seed, RngStream::Column(number));
        stretches.clear();
        stretches.extend(0..rows as u32);
        stretches.shuffle(&mut generator);
        for (&stretch, cell) in stretches.iter().zip(points.data_mut()[column..].iter_mut().step_by(columns))
        {
            let within = match placement {
                Placement::Centered => 0.5,
                Placement::Random | Placement::Maximin { .. } => generator.random::<f64>(),
            };
            *cell = inside(stretch, within, width);
        }
    }
    if let Placement::Maximin { swaps } = placement {
        points = spread(points, swaps, seed);
    }
    Ok(points)
}

/// Returns a position within an interval. If rounding reaches the next interval, returns the last number before it.
fn inside(stretch: u32, within: f64, width: f64) -> f64 {
    let place = (f64::from(stretch) + within) * width;
    let end = (f64::from(stretch) + 1.0) * width;
    if place < end { place } else { end.next_down() }
}

/// Swaps pairs of coordinates if this spreads the points. The result is never less spread than the input.
fn spread(points: UnitPoints, swaps: u32, seed: u64) -> UnitPoints {
    let (rows, columns) = (points.rows() as u32, points.columns() as u32);
    if rows < 3 {
        return points;
    }
    let mut generator = rng::generator(seed, RngStream::Swaps);
    let mut better = points.clone();
    for _ in 0..swaps {
        let column = generator.random_range(0..columns) as usize;
        let one = generator.random_range(0..rows);
        // An offset of at least 1 never swaps a point with itself, and takes one draw.
        let other = (one + generator.random_range(1..rows)) % rows;
        if lowers(&better, column, one as usize, other as usize) {
            let (one, other) = (one as usize * points.columns(), other as usize * points.columns());
            better.data_mut().swap(one + column, other + column);
        }
    }
    // φ_p weighs all distances, but only the smallest is guaranteed not to shrink.
    if smallest_distance(&better) >= smallest_distance(&points) { better } else { points }
}

/// Returns whether swapping the coordinates of two points in a column lowers φ_p. The distance between the
/// two points does not change.
fn lowers(points: &UnitPoints, column: usize, one: usize, other: usize) -> bool {
    let (a, b) = (points.row(one), points.row(other));
    let mut change = 0.0;
    for (index, point) in points.iter().enumerate() {
        if index == one || index == other {
            continue;
        }
        let to = |from: &[f64]| squared_distance(from, point);
        let (to_a, to_b) = (to(a), to(b));
        let (in_a, in_b) = ((a[column] - point[column]).powi(2), (b[column] - point[column]).powi(2));
        // Rounding may leave 0 or less for two points that are close in all other columns.
        let swapped = |to: f64, from: f64, with: f64| (to - from + with).max(f64::MIN_POSITIVE);
        change += penalty(swapped(to_a, in_a, in_b)) + penalty(swapped(to_b, in_b, in_a));
        change -= penalty(to_a) + penalty(to_b);
    }
    change < 0.0
}

/// Returns d^-p with p = 20, from d². A large p lets the smallest distances decide, and 20 is small enough
/// for an `f64`.
fn penalty(squared: f64) -> f64 {
    squared.powi(-10)
}

fn squared_distance(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(x, y)| (x - y) * (x - y)).sum()
}

/// Returns the distance of the two closest points. Infinite for a single point.
#[must_use]
pub fn smallest_distance(points: &UnitPoints) -> f64 {
    let pairs = points.iter().enumerate().flat_map(|(index, one)| {
        points.iter().skip(index + 1).map(move |other| squared_distance(one, other))
    });
    pairs.fold(f64::INFINITY, f64::min).sqrt()
}
