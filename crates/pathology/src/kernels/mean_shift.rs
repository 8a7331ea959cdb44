//! Mean shift of pixel positions with a flat kernel, which splits an object into parts.
//!
//! Comaniciu & Meer, "Mean shift: a robust approach toward feature space analysis" (2002). Seeds are pixels, so the sums
//! of their positions are exact, and seeds that reach one position stay together: each iteration moves every distinct
//! position once.

/// A position in pixels: column, row.
type Position = [f64; 2];

/// Maximum number of seeds of an object.
const MAX_SEEDS: usize = 1000;

/// Maximum number of iterations of one pass.
const MAX_ITERATIONS: usize = 100;

/// Smallest movement that continues a pass, pixels.
const MIN_MOVEMENT: f64 = 1e-6;

/// Radius of the passes that gather moved seeds, pixels.
const GATHER_RADIUS: f64 = 3.0;

/// Returns the part of each pixel of an object, from 0.
///
/// `pixels` are columns and rows in raster order, and `radius` is that of the kernel, pixels. Every ⌈n/1000⌉-th pixel is a
/// seed. Seeds move to the mean of the seeds within the radius until none moves, at most 100 times. Two more passes with
/// a radius of 3 px move them toward the moved seeds. Moved seeds at least `radius` from all earlier centers are centers.
/// A seed belongs to the center nearest to its end, and a pixel to the part of its nearest seed, the earlier of two at one
/// distance.
#[must_use]
pub fn parts(pixels: &[[u32; 2]], radius: f64) -> Vec<u32> {
    let seeds: Vec<[u32; 2]> =
        pixels.iter().step_by(pixels.len().div_ceil(MAX_SEEDS).max(1)).copied().collect();
    let grid = SeedGrid::new(&seeds);
    let start = seeds.iter().map(|seed| seed.map(f64::from));
    let mut moved = converge(Positions::new(start), |from| grid.mean(from, radius));
    for _ in 0..2 {
        let targets = moved.counted();
        moved = converge(moved, |from| mean_of(&targets, from, GATHER_RADIUS));
    }
    let ends: Vec<Position> = moved.of_seed.iter().map(|&place| moved.distinct[place as usize]).collect();
    let mut centers: Vec<Position> = Vec::new();
    for &end in &ends {
        if centers.iter().all(|center| squared(*center, end) >= radius * radius) {
            centers.push(end);
        }
    }
    if centers.len() < 2 {
        return vec![0; pixels.len()];
    }
    let part_of_seed: Vec<u32> = ends.iter().map(|end| nearest(&centers, *end)).collect();
    pixels.iter().map(|pixel| part_of_seed[grid.nearest(*pixel) as usize]).collect()
}

fn squared([ax, ay]: Position, [bx, by]: Position) -> f64 {
    (ax - bx) * (ax - bx) + (ay - by) * (ay - by)
}

/// Returns the index of the nearest of `centers`, the first of several at one distance.
fn nearest(centers: &[Position], from: Position) -> u32 {
    let mut best = (f64::INFINITY, 0);
    for (center, index) in centers.iter().zip(0..) {
        let distance = squared(*center, from);
        if distance < best.0 {
            best = (distance, index);
        }
    }
    best.1
}

/// Positions of seeds: the distinct ones, and the one of each seed.
struct Positions {
    distinct: Vec<Position>,
    of_seed: Vec<u32>,
}

impl Positions {
    /// Numbers distinct positions in the order of their first seeds.
    fn new(seeds: impl Iterator<Item = Position>) -> Self {
        let mut known = std::collections::HashMap::new();
        let (mut distinct, mut of_seed) = (Vec::new(), Vec::new());
        for position in seeds {
            let place = *known.entry(position.map(f64::to_bits)).or_insert_with(|| {
                distinct.push(position);
                distinct.len() as u32 - 1
            });
            of_seed.push(place);
        }
        Self { distinct, of_seed }
    }

    /// Returns the distinct positions with their numbers of seeds.
    fn counted(&self) -> Vec<(Position, f64)> {
        let mut counted: Vec<(Position, f64)> =
            self.distinct.iter().map(|position| (*position, 0.0)).collect();
        self.of_seed.iter().for_each(|&place| counted[place as usize].1 += 1.0);
        counted
    }
}

/// Moves all positions until none moves, at most [`MAX_ITERATIONS`] times.
fn converge(mut positions: Positions, mean: impl Fn(Position) -> Position) -> Positions {
    for _ in 0..MAX_ITERATIONS {
        let moved: Vec<Position> = positions.distinct.iter().map(|from| mean(*from)).collect();
        let farthest = positions.distinct.iter().zip(&moved).map(|(from, to)| squared(*from, *to));
        let farthest = farthest.fold(0.0, f64::max);
        let merged = Positions::new(moved.into_iter());
        let of_seed = positions.of_seed.iter().map(|&place| merged.of_seed[place as usize]).collect();
        positions = Positions { distinct: merged.distinct, of_seed };
        if farthest < MIN_MOVEMENT * MIN_MOVEMENT {
            break;
        }
    }
    positions
}

/// Returns the mean of the counted positions within the radius.
fn mean_of(counted: &[(Position, f64)], from: Position, radius: f64) -> Position {
    let (mut sum, mut total) = ([0.0; 2], 0.0);
    for (position, count) in counted {
        if squared(*position, from) <= radius * radius {
            sum = [sum[0] + count * position[0], sum[1] + count * position[1]];
            total += count;
        }
    }
    if total > 0.0 { sum.map(|sum| sum / total) } else { from }
}

/// Seeds by row, with running sums of their columns.
struct SeedGrid {
    first_row: u32,
    /// Start of each row in the lists below, and the end of the last row.
    starts: Vec<usize>,
    columns: Vec<u32>,
    /// Sum of the columns before each seed.
    sums: Vec<u64>,
}

impl SeedGrid {
    /// Creates the grid of seeds in raster order.
    fn new(seeds: &[[u32; 2]]) -> Self {
        let first_row = seeds.first().map_or(0, |[_, row]| *row);
        let last_row = seeds.last().map_or(0, |[_, row]| *row);
        let starts = (first_row..=last_row + 1).map(|row| seeds.partition_point(|[_, y]| *y < row));
        let mut sums = vec![0];
        for [x, _] in seeds {
            sums.push(sums[sums.len() - 1] + u64::from(*x));
        }
        let (starts, columns) = (starts.collect(), seeds.iter().map(|[x, _]| *x).collect());
        Self { first_row, starts, columns, sums }
    }

    /// Returns the mean of the seeds within the radius, or `from` without any.
    #[expect(clippy::cast_precision_loss, reason = "sums of at most 1,000 columns are exact")]
    fn mean(&self, from: Position, radius: f64) -> Position {
        let [x, y] = from;
        let (mut count, mut sum_x, mut sum_y) = (0, 0, 0);
        for row in self.rows(y, radius) {
            let across = f64::from(self.first_row + row as u32) - y;
            let is_within = |column: &u32| {
                let along = f64::from(*column) - x;
                along * along + across * across <= radius * radius
            };
            let seeds = &self.columns[self.starts[row]..self.starts[row + 1]];
            // Columns ascend, so the distance falls up to x and rises from there.
            let middle = seeds.partition_point(|column| f64::from(*column) < x);
            let start = seeds[..middle].partition_point(|column| !is_within(column));
            let end = middle + seeds[middle..].partition_point(is_within);
            if start < end {
                let found = (end - start) as u64;
                count += found;
                sum_y += found * u64::from(self.first_row + row as u32);
                let offset = self.starts[row];
                sum_x += self.sums[offset + end] - self.sums[offset + start];
            }
        }
        if count == 0 {
            return from;
        }
        [sum_x as f64 / count as f64, sum_y as f64 / count as f64]
    }

    /// Returns the rows of the grid within the radius of row `y`.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped; a cast saturates")]
    fn rows(&self, y: f64, radius: f64) -> std::ops::Range<usize> {
        let (count, first) = (self.starts.len() - 1, f64::from(self.first_row));
        let low = (y - radius - first).floor().max(0.0) as usize;
        let high = (y + radius - first).ceil().max(-1.0) + 1.0;
        low.min(count)..(high as usize).clamp(low.min(count), count)
    }

    /// Returns the number of the seed nearest to a pixel, the smallest of several.
    fn nearest(&self, [x, y]: [u32; 2]) -> u32 {
        let (count, middle) = (self.starts.len() - 1, (y - self.first_row) as usize);
        let mut best = (u64::MAX, 0);
        for away in 0..count {
            let across = (away * away) as u64;
            if across > best.0 {
                break;
            }
            for row in [middle.checked_sub(away), Some(middle + away)].into_iter().flatten() {
                if row >= count {
                    continue;
                }
                let seeds = &self.columns[self.starts[row]..self.starts[row + 1]];
                let at = seeds.partition_point(|column| *column < x);
                for place in [at.checked_sub(1), Some(at)].into_iter().flatten().filter(|p| *p < seeds.len())
                {
                    let along = u64::from(seeds[place].abs_diff(x));
                    let found = (along * along + across, self.starts[row] + place);
                    best = best.min(found);
                }
            }
        }
        best.1 as u32
    }
}
