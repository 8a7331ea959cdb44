//! Texture of each nucleus: Haralick's 13 features of its amount of hematoxylin.
//!
//! Gray levels are divided into `levels` classes of equal width. A co-occurrence matrix counts pairs of neighbors, both of the
//! same object, in both directions of a line: 4 matrices, for 0°, 45°, 90° and 135°, at a distance of 1 px. Each feature is the
//! mean over the matrices that have a pair, and 0 without any pair.
//!
//! Two definitions of the paper are ambiguous. As in mahotas, logarithms are of base 2, and the correlation of a single class
//! is 1. The difference variance is the variance of |i − j|.

use super::counts::{Entropy, PowerSums};
use super::{CHANNELS, OBJECTS, columns, invalid, plane, rows};
use crate::objects::PixelObjects;
use crate::typed_operation::{Arguments, Inputs, TypedOperation, argument, port};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::{Accepts, OperationError};

/// Numbers of features.
const FEATURES: usize = columns::TEXTURE.len();

/// Matrices, one for each step to the second pixel of a pair: right, down left, down, down right.
const MATRICES: usize = 4;

/// Texture of the nuclei.
pub(crate) const TEXTURE: TypedOperation = TypedOperation {
    name: "features.texture",
    version: 1,
    arguments: &[argument("levels", Accepts::OneOf(&[8, 16, 32, 64, 128, 256]))],
    inputs: &[OBJECTS, plane("channels")],
    outputs: &[port("texture", ElementType::RaggedF64)],
    nanoseconds_a_pixel: 20.0,
    bytes_a_pixel: 0.32,
    fixed_bytes: 0,
    within_core: None,
    device: None,
    run,
};

fn run(inputs: &Inputs<'_>, arguments: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let objects = inputs.objects(0)?;
    let channels: &[[u8; CHANNELS]] = inputs.array(1, CHANNELS)?.as_chunks().0;
    let levels = arguments.real(0) as usize;
    let mut texture = Texture::new(inputs.width(), levels);
    let mut values = Vec::with_capacity(objects.count() * FEATURES);
    for object in 0..objects.count() {
        texture.draw(&objects, object, channels).ok_or_else(|| invalid("an object without pixels"))?;
        values.extend(texture.features());
    }
    Ok(vec![DataRegion::Ragged(rows(FEATURES, values)?)])
}

/// Class of a pixel that is not of the object. Pairs with such a pixel are counted too, so that the count has no branches, and not
/// read.
const OUTSIDE: u16 = 0;

/// The object at hand, and its matrices.
struct Texture {
    image_width: usize,
    levels: usize,
    /// Class of each pixel of the bounding box: the number of its level from 1, the lowest one of the object. The box has 1 px of
    /// [`OUTSIDE`] around it.
    plane: Vec<u16>,
    width: usize,
    /// Runs of the object in the plane: x, y and the number of pixels.
    runs: Vec<[usize; 3]>,
    /// Levels of the runs, one after the other.
    gathered: Vec<u16>,
    /// Levels of the object: those of a nucleus are few, and the matrices have only these.
    low: usize,
    count: usize,
    /// Pairs of each step in the order of the pixels, by both classes.
    pairs: [Vec<u32>; MATRICES],
    sums: Sums,
}

impl Texture {
    fn new(image_width: usize, levels: usize) -> Self {
        let (plane, runs, gathered) = (Vec::new(), Vec::new(), Vec::new());
        let (pairs, sums) = ([const { Vec::new() }; MATRICES], Sums::default());
        Self { image_width, levels, plane, width: 0, runs, gathered, low: 0, count: 0, pairs, sums }
    }

    /// Draws the levels of an object. `None` if it has no pixels.
    fn draw(&mut self, objects: &PixelObjects, object: usize, channels: &[[u8; CHANNELS]]) -> Option<()> {
        let image_width = self.image_width;
        let level = |pixel: &[u8; CHANNELS]| (usize::from(pixel[CHANNELS - 1]) * self.levels / 256) as u16;
        let (mut left, mut right, mut top, mut bottom) = (usize::MAX, 0, usize::MAX, 0);
        self.gathered.clear();
        self.runs.clear();
        for run in objects.pixels_of(object) {
            let (x, y) = (run.start % image_width, run.start / image_width);
            (left, right) = (left.min(x), right.max(x + run.len()));
            (top, bottom) = (top.min(y), bottom.max(y + 1));
            self.runs.push([x, y, run.len()]);
            self.gathered.extend(channels[run].iter().map(level));
        }
        let low = *self.gathered.iter().min()?;
        let high = *self.gathered.iter().max()?;
        let width = right - left + 2;
        self.plane.clear();
        self.plane.resize(width * (bottom - top + 2), OUTSIDE);
        let mut gathered = &self.gathered[..];
        for [x, y, length] in &mut self.runs {
            (*x, *y) = (*x - left + 1, *y - top + 1);
            let (levels, rest) = gathered.split_at(*length);
            let place = &mut self.plane[*y * width + *x..][..*length];
            place.iter_mut().zip(levels).for_each(|(to, level)| *to = level - low + 1);
            gathered = rest;
        }
        let (low, high) = (usize::from(low), usize::from(high));
        (self.width, self.low, self.count) = (width, low, high - low + 1);
        Some(())
    }

    /// Returns the features of the drawn object.
    fn features(&mut self) -> [f64; FEATURES] {
        self.count_pairs();
        let (mut sums, mut matrices) = ([0.0; FEATURES], 0);
        for pairs in &self.pairs {
            let total = self.sums.add(pairs, self.count);
            if total > 0 {
                let features = self.sums.features(self.low, f64::from(total));
                sums.iter_mut().zip(features).for_each(|(sum, feature)| *sum += feature);
                matrices += 1;
            }
        }
        sums.map(|sum| if matrices == 0 { 0.0 } else { sum / f64::from(matrices) })
    }

    /// Counts the pairs of each pixel of the object and the pixel at each step.
    fn count_pairs(&mut self) {
        let (classes, width) = (self.count + 1, self.width);
        for pairs in &mut self.pairs {
            pairs.clear();
            pairs.resize(classes * classes, 0);
        }
        let [right, down_left, down, down_right] = &mut self.pairs;
        for [x, y, length] in self.runs.iter().copied() {
            let here = &self.plane[y * width + x..][..length + 1];
            let below = &self.plane[(y + 1) * width + x - 1..][..length + 2];
            for (here, below) in here.windows(2).zip(below.windows(3)) {
                let row = usize::from(here[0]) * classes;
                right[row + usize::from(here[1])] += 1;
                down_left[row + usize::from(below[0])] += 1;
                down[row + usize::from(below[1])] += 1;
                down_right[row + usize::from(below[2])] += 1;
            }
        }
    }
}

/// A symmetric matrix of pairs: its upper triangle, and its sums.
#[derive(Default)]
struct Sums {
    /// Rows from the diagonal on, one after the other. Cells beside the diagonal occur twice in the matrix.
    diagonal: Vec<u32>,
    beside: Vec<u32>,
    /// Pairs by the first level, by the sum of both, and by their difference.
    margin: Vec<u32>,
    sums: Vec<u32>,
    differences: Vec<u32>,
}

impl Sums {
    /// Takes the pairs of `count` levels in both orders. Returns their number.
    fn add(&mut self, pairs: &[u32], count: usize) -> u32 {
        let lengths = [count, 2 * count - 1, count];
        let lists = [&mut self.margin, &mut self.sums, &mut self.differences];
        for (list, length) in lists.into_iter().zip(lengths) {
            list.clear();
            list.resize(length, 0);
        }
        self.diagonal.clear();
        self.beside.clear();
        let classes = count + 1;
        for i in 0..count {
            let row = &pairs[(i + 1) * classes + 1..][..count];
            self.diagonal.push(2 * row[i]);
            let first = self.beside.len();
            let column = pairs[(i + 1) * classes..].iter().skip(classes + i + 1).step_by(classes);
            self.beside.extend(row[i + 1..].iter().zip(column).map(|(one, other)| one + other));
            let beside = &self.beside[first..];
            for (margin, both) in self.margin[i + 1..].iter_mut().zip(beside) {
                *margin += both;
            }
            for (sum, both) in self.sums[2 * i + 1..].iter_mut().zip(beside) {
                *sum += 2 * both;
            }
            for (difference, both) in self.differences[1..].iter_mut().zip(beside) {
                *difference += 2 * both;
            }
            self.margin[i] += 2 * row[i] + beside.iter().sum::<u32>();
            self.sums[2 * i] += 2 * row[i];
        }
        self.differences[0] = self.diagonal.iter().sum();
        self.margin.iter().sum()
    }

    /// Returns the features of the matrix. Its levels begin at `low`, and it has this number of pairs.
    fn features(&self, low: usize, pairs: f64) -> [f64; FEATURES] {
        let Self { diagonal, beside, margin, sums, differences } = self;
        let squares = |cells: &[u32]| cells.iter().map(|n| u64::from(*n) * u64::from(*n)).sum::<u64>();
        let [of_margin, of_sums, of_differences] =
            [margin, sums, differences].map(|list| PowerSums::of(list));
        let variance = |list: &PowerSums| list.central().second / pairs;
        // 4·i·j = (i + j)² − (i − j)², and differences in both directions have a mean of 0.
        let covariance = (of_sums.central().second - of_differences.second() as f64) / (4.0 * pairs);
        let of_levels = variance(&of_margin);
        let homogeneity: f64 = differences
            .iter()
            .enumerate()
            .map(|(difference, n)| f64::from(*n) / (1.0 + (difference * difference) as f64))
            .sum();
        let bits = Entropy::of_total(pairs);
        let entropy = bits.of_weighted(bits.weighted_sum(diagonal) + 2.0 * bits.weighted_sum(beside));
        // Both margins are equal. The entropy of the product of the margins is the sum of theirs, and so is the cross entropy
        // of the matrix and that product.
        let margin_entropy = bits.of(margin);
        let excess = (2.0 * margin_entropy - entropy).max(0.0);
        [
            (squares(diagonal) + 2 * squares(beside)) as f64 / (pairs * pairs),
            of_differences.second() as f64 / pairs,
            if of_levels > 0.0 { covariance / of_levels } else { 1.0 },
            of_levels,
            homogeneity / pairs,
            of_sums.mean() + 2.0 * low as f64,
            variance(&of_sums),
            bits.of(sums),
            entropy,
            variance(&of_differences),
            bits.of(differences),
            if margin_entropy > 0.0 { -excess / margin_entropy } else { 0.0 },
            (1.0 - (-2.0 * excess).exp()).max(0.0).sqrt(),
        ]
    }
}
