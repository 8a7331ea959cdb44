//! Texture of each nucleus: Haralick's 13 features of its amount of hematoxylin.
//!
//! Gray levels are divided into `levels` classes of equal width. A co-occurrence matrix counts pairs of neighbors, both of the
//! same object, in both directions of a line: 4 matrices, for 0°, 45°, 90° and 135°, at a distance of 1 px. Each feature is the
//! mean over the matrices that have a pair, and 0 without any pair.
//!
//! Two definitions of the paper are ambiguous. As in mahotas, logarithms are of base 2, and the correlation of a single class
//! is 1. The difference variance is the variance of |i − j|.

use super::entropy::Entropy;
use super::{CHANNELS, OBJECTS, columns, invalid, plane, rows};
use crate::objects::PixelObjects;
use crate::typed_operation::{Arguments, Inputs, TypedOperation, argument, port};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::{Accepts, OperationError};

/// Numbers of features.
const FEATURES: usize = columns::TEXTURE.len();

/// Steps to the second pixel of a pair: right, down left, down, down right.
const STEPS: [[isize; 2]; 4] = [[1, 0], [-1, 1], [0, 1], [1, 1]];

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

/// Level of a pixel that is not of the object.
const OUTSIDE: u16 = u16::MAX;

/// The object at hand, and its matrices.
struct Texture {
    image_width: usize,
    levels: usize,
    /// Level of each pixel of the bounding box, above the lowest one of the object, with 1 px of [`OUTSIDE`] around it.
    plane: Vec<u16>,
    width: usize,
    /// Levels of the object: those of a nucleus are few, and the matrix has only these.
    low: usize,
    count: usize,
    matrix: Vec<u32>,
}

impl Texture {
    fn new(image_width: usize, levels: usize) -> Self {
        Self { image_width, levels, plane: Vec::new(), width: 0, low: 0, count: 0, matrix: Vec::new() }
    }

    /// Draws the levels of an object. `None` if it has no pixels.
    fn draw(&mut self, objects: &PixelObjects, object: usize, channels: &[[u8; CHANNELS]]) -> Option<()> {
        let image_width = self.image_width;
        let level = |pixel: &[u8; CHANNELS]| usize::from(pixel[CHANNELS - 1]) * self.levels / 256;
        let (mut low, mut high) = (usize::MAX, 0);
        let (mut left, mut right, mut top, mut bottom) = (usize::MAX, 0, usize::MAX, 0);
        for run in objects.pixels_of(object) {
            let (x, y) = (run.start % image_width, run.start / image_width);
            (left, right) = (left.min(x), right.max(x + run.len()));
            (top, bottom) = (top.min(y), bottom.max(y + 1));
            for pixel in &channels[run] {
                let level = level(pixel);
                (low, high) = (low.min(level), high.max(level));
            }
        }
        let width = right.checked_sub(left)? + 2;
        self.plane.clear();
        self.plane.resize(width * (bottom - top + 2), OUTSIDE);
        for run in objects.pixels_of(object) {
            let (x, y) = (run.start % image_width - left + 1, run.start / image_width - top + 1);
            let to = &mut self.plane[y * width + x..][..run.len()];
            for (to, pixel) in to.iter_mut().zip(&channels[run]) {
                *to = (level(pixel) - low) as u16;
            }
        }
        (self.width, self.low, self.count) = (width, low, high - low + 1);
        Some(())
    }

    /// Returns the features of the drawn object.
    fn features(&mut self) -> [f64; FEATURES] {
        let (mut sums, mut matrices) = ([0.0; FEATURES], 0);
        for [dx, dy] in STEPS {
            let pairs = self.count_pairs(dy * self.width as isize + dx);
            if pairs > 0 {
                let features = Features::of(&self.matrix, self.count, self.low, f64::from(pairs));
                sums.iter_mut().zip(features).for_each(|(sum, feature)| *sum += feature);
                matrices += 1;
            }
        }
        sums.map(|sum| if matrices == 0 { 0.0 } else { sum / f64::from(matrices) })
    }

    /// Fills the matrix with the pairs of pixels at this distance in the plane, in both orders. Returns their number.
    fn count_pairs(&mut self, step: isize) -> u32 {
        self.matrix.clear();
        self.matrix.resize(self.count * self.count, 0);
        let mut pairs = 0;
        // Pixels beyond the last pair are outside: the plane has a border.
        let step = step.unsigned_abs();
        for (one, other) in self.plane.iter().zip(&self.plane[step..]) {
            if *one != OUTSIDE && *other != OUTSIDE {
                let (one, other) = (usize::from(*one), usize::from(*other));
                self.matrix[one * self.count + other] += 1;
                self.matrix[other * self.count + one] += 1;
                pairs += 2;
            }
        }
        pairs
    }
}

/// Sums over one matrix.
struct Features;

impl Features {
    /// Returns the features of a symmetric matrix of the levels from `low`.
    fn of(matrix: &[u32], count: usize, low: usize, pairs: f64) -> [f64; FEATURES] {
        let (mut margin, mut sums, mut differences) =
            (vec![0_u32; count], vec![0_u32; 2 * count - 1], vec![0_u32; count]);
        let (mut energy, mut product) = (0.0, 0.0);
        for (i, row) in matrix.chunks_exact(count).enumerate() {
            for (j, pairs_of_levels) in row.iter().enumerate().filter(|(_, pairs)| **pairs > 0) {
                margin[i] += pairs_of_levels;
                sums[i + j] += pairs_of_levels;
                differences[i.abs_diff(j)] += pairs_of_levels;
                let share = f64::from(*pairs_of_levels) / pairs;
                energy += share * share;
                product += share * ((low + i) * (low + j)) as f64;
            }
        }
        let share = |pairs_of_levels: &u32| f64::from(*pairs_of_levels) / pairs;
        let moments = |list: &[u32], first: usize| {
            let number = |index: usize| (first + index) as f64;
            let mean: f64 = list.iter().enumerate().map(|(index, n)| share(n) * number(index)).sum();
            let spread = list.iter().enumerate().map(|(index, n)| share(n) * (number(index) - mean).powi(2));
            (mean, spread.sum::<f64>())
        };
        let bits = Entropy::of_total(pairs);
        let entropy = bits.of(matrix);
        let (mean, variance) = moments(&margin, low);
        let (sum_mean, sum_variance) = moments(&sums, 2 * low);
        let (_, difference_variance) = moments(&differences, 0);
        let weighted = |weight: fn(f64) -> f64| -> f64 {
            differences.iter().enumerate().map(|(index, n)| share(n) * weight(index as f64)).sum()
        };
        // Both margins are equal. The entropy of the product of the margins is the sum of theirs, and so is the cross entropy
        // of the matrix and that product.
        let of_margin = bits.of(&margin);
        let independent = 2.0 * of_margin;
        let excess = (independent - entropy).max(0.0);
        [
            energy,
            weighted(|difference| difference * difference),
            if variance > 0.0 { (product - mean * mean) / variance } else { 1.0 },
            variance,
            weighted(|difference| 1.0 / (1.0 + difference * difference)),
            sum_mean,
            sum_variance,
            bits.of(&sums),
            entropy,
            difference_variance,
            bits.of(&differences),
            if of_margin > 0.0 { -excess / of_margin } else { 0.0 },
            (1.0 - (-2.0 * excess).exp()).max(0.0).sqrt(),
        ]
    }
}
