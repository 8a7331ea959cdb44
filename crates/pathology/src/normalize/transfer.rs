//! The color transfer: statistics of tissue in l, α, β, and the mapping of one color.

use super::color_table::ColorTable;
use pleach_workflow::{Real, StainFit, StainStatistics};

/// Built-in target: mean and standard deviation of l, α, β of the tissue.
const TARGET_MEAN: [f64; 3] = [-0.632356, -0.0516004, 0.0376543];
const TARGET_DEVIATION: [f64; 3] = [0.26235, 0.0514831, 0.0114217];

type Matrix = [[f64; 3]; 3];

const LMS_FROM_RGB: Matrix = [[0.3811, 0.5783, 0.0402], [0.1967, 0.7244, 0.0782], [0.0241, 0.1288, 0.8444]];
const RGB_FROM_LMS: Matrix =
    [[4.4687, -3.5887, 0.1196], [-1.2197, 2.3831, -0.1626], [0.0585, -0.2611, 1.2057]];
const OPPONENT: Matrix = [[1.0, 1.0, 1.0], [1.0, 1.0, -2.0], [1.0, -1.0, 0.0]];
const FROM_OPPONENT: Matrix = [[1.0, 1.0, 1.0], [1.0, 1.0, -1.0], [1.0, -2.0, 0.0]];

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

/// Counts of the colors of any number of images, for the statistics of their tissue.
///
/// Counts are whole numbers, so the statistics do not depend on the order of the images. Memory is at most 64 MiB.
#[derive(Debug)]
pub struct ColorCounts(ColorTable);

impl Default for ColorCounts {
    fn default() -> Self {
        Self(ColorTable::empty())
    }
}

impl ColorCounts {
    /// Counts the pixels of an image: B, G, R.
    pub fn add(&mut self, image: &[u8]) {
        let (pixels, _) = image.as_chunks::<3>();
        self.0.grow(pixels);
        for pixel in pixels {
            let count = self.0.entry(pixel);
            // 2^32 pixels of one color: far beyond the samples of slides.
            *count = count.saturating_add(1);
        }
    }

    /// Returns the statistics of the tissue. `None` without tissue.
    pub fn statistics(&mut self) -> Option<StainStatistics> {
        statistics(&mut self.0)
    }
}

/// Returns mean and population deviation over tissue with l·α·β above 0, as in the original program (96–99 % of the
/// tissue). `None` without tissue.
pub(super) fn statistics(counts: &mut ColorTable) -> Option<StainStatistics> {
    let mut values = Vec::with_capacity(counts.colors());
    counts.for_each(|rgb, count| {
        let lab = lab(rgb);
        if is_tissue(rgb) && lab.iter().product::<f64>() > 0.0 {
            values.push((f64::from(*count), lab));
        }
    });
    let total: f64 = values.iter().map(|(count, _)| count).sum();
    if total == 0.0 {
        return None;
    }
    let average = |of: &dyn Fn(f64) -> f64, axis: usize| {
        values.iter().map(|(count, lab)| count * of(lab[axis])).sum::<f64>() / total
    };
    let mean: [f64; 3] = std::array::from_fn(|axis| average(&|value| value, axis));
    let deviation: [f64; 3] = std::array::from_fn(|axis| {
        average(&|value| (value - mean[axis]) * (value - mean[axis]), axis).sqrt()
    });
    let all = |[l, alpha, beta]: [f64; 3]| {
        let real = |value: f64| Real::try_from(value).ok();
        Some([real(l)?, real(alpha)?, real(beta)?])
    };
    // All values are finite: tissue is never black.
    Some(StainStatistics { mean: all(mean)?, deviation: all(deviation)? })
}

/// Color transfer from the statistics of tissue to those of the target.
pub(super) struct Transfer {
    mean: [f64; 3],
    /// Target deviation divided by the tissue's deviation. 0 on an axis without deviation, whose only value becomes the
    /// target mean.
    gain: [f64; 3],
    target_mean: [f64; 3],
}

impl Transfer {
    /// Creates the transfer of a fit. `None` without statistics of the tissue: colors stay unchanged.
    pub(super) fn new(fit: &StainFit) -> Option<Self> {
        let get = |values: [Real; 3]| values.map(Real::get);
        let source = fit.source?;
        let (target_mean, target_deviation) = match fit.target {
            Some(target) => (get(target.mean), get(target.deviation)),
            None => (TARGET_MEAN, TARGET_DEVIATION),
        };
        let deviation = get(source.deviation);
        let gain = std::array::from_fn(|axis| {
            // Rounding leaves a deviation of about 1e-17 for a single value.
            if deviation[axis] > 1e-12 { target_deviation[axis] / deviation[axis] } else { 0.0 }
        });
        Some(Self { mean: get(source.mean), gain, target_mean })
    }

    /// Returns the new B, G, R of a color.
    pub(super) fn apply(&self, rgb: [f64; 3]) -> [u8; 3] {
        let mut lab = lab(rgb);
        if is_tissue(rgb) {
            lab = std::array::from_fn(|axis| {
                (lab[axis] - self.mean[axis]) * self.gain[axis] + self.target_mean[axis]
            });
        }
        to_bgr(lab)
    }
}

/// Returns the B, G, R of a color after a conversion to l, α, β and back.
pub(super) fn converted(rgb: [f64; 3]) -> [u8; 3] {
    to_bgr(lab(rgb))
}

fn to_bgr(lab: [f64; 3]) -> [u8; 3] {
    let scales = scales();
    let opponent = std::array::from_fn(|axis| lab[axis] * scales[axis]);
    let lms = multiply(&FROM_OPPONENT, opponent).map(|value| 10_f64.powf(value));
    let [r, g, b] = multiply(&RGB_FROM_LMS, lms).map(to_byte);
    [b, g, r]
}

/// Converts 0..=1 to 0..=255, clamped, half rounded up. NaN becomes 0.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn to_byte(channel: f64) -> u8 {
    (channel * 255.0 + 0.5).floor().clamp(0.0, 255.0) as u8
}
