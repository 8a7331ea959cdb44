//! Stain normalization after Reinhard et al., "Color transfer between images" (2001), of the tissue in a tile.
//!
//! The result for a pixel depends only on its color, so each occurring color is computed once. The target statistics
//! are those of the reference application. Other targets cannot be fitted.

use crate::typed_operation::{Arguments, Inputs, TypedOperation, port};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::OperationError;

pub(crate) const NORMALIZE: TypedOperation = TypedOperation {
    name: "nuclei.normalize",
    version: 1,
    arguments: &[],
    inputs: &[port("image", ElementType::Bgr8)],
    outputs: &[port("normalized", ElementType::Bgr8)],
    nanoseconds_a_pixel: 18.0,
    bytes_a_pixel: 3.0,
    // Color table: 20 MB for a large tile of tissue, at most 64 MiB.
    fixed_bytes: 22 << 20,
    within_core: None,
    run,
};

/// Target mean and standard deviation of l, α, β of the tissue.
const TARGET_MEAN: [f64; 3] = [-0.632356, -0.0516004, 0.0376543];
const TARGET_DEVIATION: [f64; 3] = [0.26235, 0.0514831, 0.0114217];

type Matrix = [[f64; 3]; 3];

const LMS_FROM_RGB: Matrix = [[0.3811, 0.5783, 0.0402], [0.1967, 0.7244, 0.0782], [0.0241, 0.1288, 0.8444]];
const RGB_FROM_LMS: Matrix =
    [[4.4687, -3.5887, 0.1196], [-1.2197, 2.3831, -0.1626], [0.0585, -0.2611, 1.2057]];
const OPPONENT: Matrix = [[1.0, 1.0, 1.0], [1.0, 1.0, -2.0], [1.0, -1.0, 0.0]];
const FROM_OPPONENT: Matrix = [[1.0, 1.0, 1.0], [1.0, 1.0, -1.0], [1.0, -2.0, 0.0]];

fn run(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let (pixels, _) = inputs.pixels(0)?.as_chunks::<3>();
    let mut table = ColorTable::of(pixels);
    pixels.iter().for_each(|pixel| *table.entry(pixel) += 1);

    let transfer = Transfer::fit(&mut table);
    // Reuses the table: the counts are no longer needed, and each entry becomes its color's result.
    table.for_each(|rgb, entry| {
        let [b, g, r] = transfer.apply(rgb);
        *entry = u32::from_le_bytes([b, g, r, 0]);
    });
    let mut normalized = vec![0; inputs.pixels(0)?.len()];
    for (result, pixel) in normalized.as_chunks_mut::<3>().0.iter_mut().zip(pixels) {
        let [b, g, r, _] = table.entry(pixel).to_le_bytes();
        *result = [b, g, r];
    }
    Ok(vec![inputs.bgr(normalized)?])
}

/// Table of one number for each of the 2^24 colors, in blocks of 4,096 neighboring colors. Blocks without a color of
/// the image are omitted. A tile's colors are close together, so the table is much smaller than a full one, and faster
/// to visit.
struct ColorTable {
    /// Start of the block for the upper 12 bits of a color (red, and half of green), or [`NO_BLOCK`].
    starts: Vec<u32>,
    entries: Vec<u32>,
}

const BLOCK: usize = 1 << 12;
const NO_BLOCK: u32 = u32::MAX;

/// Returns the block of a color.
fn upper_bits(&[_, g, r]: &[u8; 3]) -> usize {
    usize::from(r) << 4 | usize::from(g >> 4)
}

impl ColorTable {
    /// Creates a table of the colors of `pixels`, with all numbers 0. Like all large buffers here it has its final size
    /// from the start: growing would copy it and take twice the memory.
    fn of(pixels: &[[u8; 3]]) -> Self {
        let mut starts = vec![NO_BLOCK; BLOCK];
        pixels.iter().for_each(|pixel| starts[upper_bits(pixel)] = 0);
        let mut length = 0;
        for start in starts.iter_mut().filter(|start| **start != NO_BLOCK) {
            *start = length as u32;
            length += BLOCK;
        }
        Self { starts, entries: vec![0; length] }
    }

    /// Returns the number of a color. The color must occur in the image.
    fn entry(&mut self, pixel: &[u8; 3]) -> &mut u32 {
        let [b, g, _] = pixel.map(usize::from);
        let start = self.starts[upper_bits(pixel)] as usize;
        &mut self.entries[start + ((g & 15) << 8 | b)]
    }

    /// Returns the number of colors with a nonzero entry.
    fn colors(&self) -> usize {
        self.entries.iter().filter(|entry| **entry != 0).count()
    }

    /// Visits the colors with a nonzero entry, in ascending order, as R, G, B in 0..=255.
    fn for_each(&mut self, mut visit: impl FnMut([f64; 3], &mut u32)) {
        for (upper, &start) in self.starts.iter().enumerate().filter(|(_, start)| **start != NO_BLOCK) {
            let block = &mut self.entries[start as usize..][..BLOCK];
            for (lower, entry) in block.iter_mut().enumerate().filter(|(_, entry)| **entry != 0) {
                let color = upper * BLOCK + lower;
                visit([color >> 16, color >> 8, color].map(|channel| (channel & 0xff) as f64), entry);
            }
        }
    }
}

/// Classifies tissue by two discriminants of the original program, trained once on H&E. Coefficients are in
/// thousandths, so every term is an integer: some colors are exactly on the border, and rounding must not decide their
/// class.
pub(crate) fn is_tissue([r, g, b]: [f64; 3]) -> bool {
    -154.0 * r + 35.0 * g + 549.0 * b - 45_718.0 < -57.0 * r - 817.0 * g + 1_170.0 * b - 49_887.0
}

fn multiply(matrix: &Matrix, vector: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row[0] * vector[0] + row[1] * vector[1] + row[2] * vector[2])
}

/// Returns the scales of the opponent axes: 1/√3, 1/√6, 1/√2.
fn scales() -> [f64; 3] {
    [3.0, 6.0, 2.0].map(|n: f64| 1.0 / n.sqrt())
}

/// Returns l, α, β of a color in 0..=255. Not finite for black, which is never tissue.
fn lab(rgb: [f64; 3]) -> [f64; 3] {
    let lms = multiply(&LMS_FROM_RGB, rgb.map(|channel| channel / 255.0)).map(f64::log10);
    let (opponent, scales) = (multiply(&OPPONENT, lms), scales());
    std::array::from_fn(|axis| opponent[axis] * scales[axis])
}

/// Color transfer fitted to the tissue of one tile.
struct Transfer {
    mean: [f64; 3],
    /// Target deviation divided by the tile's deviation. 0 on an axis without deviation, whose only value becomes the
    /// target mean.
    gain: [f64; 3],
}

impl Transfer {
    /// Fits the transfer to the counts of colors. Mean and population deviation are over tissue with l·α·β above 0, as
    /// in the original program (96–99 % of the tissue). Without tissue, colors stay unchanged.
    fn fit(counts: &mut ColorTable) -> Self {
        let mut values = Vec::with_capacity(counts.colors());
        counts.for_each(|rgb, count| {
            let lab = lab(rgb);
            if is_tissue(rgb) && lab.iter().product::<f64>() > 0.0 {
                values.push((f64::from(*count), lab));
            }
        });
        let total: f64 = values.iter().map(|(count, _)| count).sum();
        if total == 0.0 {
            return Self { mean: TARGET_MEAN, gain: [1.0; 3] };
        }
        let average = |of: &dyn Fn(f64) -> f64, axis: usize| {
            values.iter().map(|(count, lab)| count * of(lab[axis])).sum::<f64>() / total
        };
        let mean = std::array::from_fn(|axis| average(&|value| value, axis));
        let gain = std::array::from_fn(|axis| {
            let deviation = average(&|value| (value - mean[axis]) * (value - mean[axis]), axis).sqrt();
            // Rounding leaves a deviation of about 1e-17 for a single value.
            if deviation > 1e-12 { TARGET_DEVIATION[axis] / deviation } else { 0.0 }
        });
        Self { mean, gain }
    }

    /// Returns the new B, G, R of a color.
    fn apply(&self, rgb: [f64; 3]) -> [u8; 3] {
        let mut lab = lab(rgb);
        if is_tissue(rgb) {
            lab = std::array::from_fn(|axis| {
                (lab[axis] - self.mean[axis]) * self.gain[axis] + TARGET_MEAN[axis]
            });
        }
        let scales = scales();
        let opponent = std::array::from_fn(|axis| lab[axis] * scales[axis]);
        let lms = multiply(&FROM_OPPONENT, opponent).map(|value| 10_f64.powf(value));
        let [r, g, b] = multiply(&RGB_FROM_LMS, lms).map(to_byte);
        [b, g, r]
    }
}

/// Converts 0..=1 to 0..=255, clamped, half rounded up. NaN becomes 0.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn to_byte(channel: f64) -> u8 {
    (channel * 255.0 + 0.5).floor().clamp(0.0, 255.0) as u8
}
