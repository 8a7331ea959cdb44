//! Canny's edges of interleaved channels, with the bits of OpenCV's `Canny` for an aperture of 5 and the sum of both absolute
//! differences as the magnitude.
//!
//! Rows are in 16 bits and in blocks of fixed length, and selections have no branches, so that the compiler vectorizes them. One
//! pass finds the maxima along the gradient. Hysteresis then visits pixels between both thresholds only: these are few, where
//! OpenCV's stack holds all edges.

use super::CHANNELS;

/// Thresholds of the hysteresis. Magnitudes are at most 24,480, so that 16 bits suffice.
const LOW: i16 = 70;
const HIGH: i16 = 90;

/// A maximum above the lower threshold only. It becomes an edge if a path of such pixels connects it to one.
const WEAK: u8 = 128;
const EDGE: u8 = 255;

/// Tangent of 22.5°, times 2^15, as in OpenCV.
const TANGENT: u32 = 13_573;

/// Directions of the gradient, as the positions of the two pixels beside the center.
const HORIZONTAL: i16 = 0;
const VERTICAL: i16 = 1;
const RISING: i16 = 2;
const FALLING: i16 = 3;

/// Values that are computed together. Rows are padded to whole blocks.
const BLOCK: usize = 64;

type Block = [i16; BLOCK];

/// Returns 255 at edge pixels of each channel, else 0.
pub(super) fn edges(plane: &[u8], width: usize) -> Vec<u8> {
    let row = width * CHANNELS;
    let height = plane.len() / row;
    let mut edges = vec![0; plane.len()];
    let mut kernels = Kernels::new(row);
    let [mut above, mut here, mut below] = [(); 3].map(|()| Gradient::new(row));
    kernels.measure(plane, 0, row, &mut below);
    for (y, out) in edges.chunks_exact_mut(row).enumerate() {
        (above, here, below) = (here, below, above);
        if y + 1 < height {
            kernels.measure(plane, y + 1, row, &mut below);
        } else {
            below.magnitudes.fill(0);
        }
        mark_maxima(&above.magnitudes, &here, &below.magnitudes, out);
    }
    follow_edges(&mut edges, row);
    edges.iter_mut().for_each(|value| *value = if *value == EDGE { EDGE } else { 0 });
    edges
}

/// Gradient of a row.
struct Gradient {
    /// Sum of the absolute differences along both axes, with a pixel of 0 on each side.
    magnitudes: Vec<i16>,
    directions: Vec<i16>,
}

impl Gradient {
    fn new(row: usize) -> Self {
        let padded = row.next_multiple_of(BLOCK);
        Self { magnitudes: vec![0; padded + 2 * CHANNELS], directions: vec![0; padded] }
    }
}

/// Returns the values from `start` of a padded row.
fn block(row: &[i16], start: usize) -> &Block {
    const ZEROS: Block = [0; BLOCK];
    row[start..].first_chunk().unwrap_or(&ZEROS)
}

/// Sobel's kernels of 5 × 5 px. Pixels beyond the border repeat those at it.
struct Kernels {
    /// Columns with weights 1, 4, 6, 4, 1, and with weights −1, −2, 0, 2, 1. Two pixels are repeated on each side.
    sums: Vec<i16>,
    differences: Vec<i16>,
}

impl Kernels {
    fn new(row: usize) -> Self {
        let padded = row.next_multiple_of(BLOCK) + 4 * CHANNELS;
        Self { sums: vec![0; padded], differences: vec![0; padded] }
    }

    /// Computes the gradient of row `y`, of `row` values.
    fn measure(&mut self, plane: &[u8], y: usize, row: usize, gradient: &mut Gradient) {
        self.add_columns(plane, y, row);
        for (number, directions) in gradient.directions.as_chunks_mut().0.iter_mut().enumerate() {
            let start = number * BLOCK;
            let at = |pixels: usize| start + pixels * CHANNELS;
            let sums = [0, 1, 3, 4].map(|pixels| block(&self.sums, at(pixels)));
            let differences = [0, 1, 2, 3, 4].map(|pixels| block(&self.differences, at(pixels)));
            let magnitudes = measure_block(sums, differences, directions);
            gradient.magnitudes[at(1)..][..BLOCK].copy_from_slice(&magnitudes);
        }
        gradient.magnitudes[row + CHANNELS..].fill(0);
    }

    /// Adds up the columns around row `y`.
    fn add_columns(&mut self, plane: &[u8], y: usize, row: usize) {
        let last = plane.len() / row - 1;
        let at = |y: usize| &plane[y.min(last) * row..][..row];
        let (a, b) = (at(y.saturating_sub(2)), at(y.saturating_sub(1)));
        let (c, d, e) = (at(y), at(y + 1), at(y + 2));
        let sums = &mut self.sums[2 * CHANNELS..][..row];
        let differences = &mut self.differences[2 * CHANNELS..][..row];
        for i in 0..row {
            let [a, b, c, d, e] = [a[i], b[i], c[i], d[i], e[i]].map(i16::from);
            sums[i] = (a + e) + 4 * (b + d) + 6 * c;
            differences[i] = (e - a) + 2 * (d - b);
        }
        for list in [&mut self.sums, &mut self.differences] {
            for pixel in [0, 1] {
                list.copy_within(2 * CHANNELS..3 * CHANNELS, pixel * CHANNELS);
                list.copy_within(row + CHANNELS..row + 2 * CHANNELS, row + (2 + pixel) * CHANNELS);
            }
        }
    }
}

/// Computes the gradient of a block from columns beside it: the sums at −2, −1, 1 and 2 px, and the differences at −2 to 2 px.
/// Writes the directions and returns the magnitudes.
fn measure_block(sums: [&Block; 4], differences: [&Block; 5], directions: &mut Block) -> Block {
    let ([a, b, c, d], [e, f, g, h, i]) = (sums, differences);
    let mut magnitudes = [0; BLOCK];
    for n in 0..BLOCK {
        let dx = (d[n] - a[n]) + 2 * (c[n] - b[n]);
        let dy = (e[n] + i[n]) + 4 * (f[n] + h[n]) + 6 * g[n];
        magnitudes[n] = dx.abs() + dy.abs();
        directions[n] = direction(dx, dy);
    }
    magnitudes
}

/// Returns the direction of a gradient. OpenCV compares |dy|·2^15 with |dx|·[`TANGENT`]. The quotient rounded down gives the same
/// answers for integers: the product is a multiple of 2^15 for dx = 0 only, and then a pixel with dy = 0 as well is no edge.
fn direction(dx: i16, dy: i16) -> i16 {
    let (x, y) = (dx.abs(), dy.abs());
    let flat = (((2 * x) as u16 as u32 * TANGENT) >> 16) as i16;
    let diagonal = if (dx ^ dy) < 0 { RISING } else { FALLING };
    let steep = if y > 2 * x + flat { VERTICAL } else { diagonal };
    if y <= flat { HORIZONTAL } else { steep }
}

/// Writes [`EDGE`] and [`WEAK`] at the maxima along the gradient, and 0 elsewhere.
fn mark_maxima(above: &[i16], here: &Gradient, below: &[i16], out: &mut [u8]) {
    for (number, out) in out.chunks_mut(BLOCK).enumerate() {
        let start = number * BLOCK;
        let neighbors = |row| [0, 1, 2].map(|pixels| block(row, start + pixels * CHANNELS));
        let rows = [above, &here.magnitudes, below].map(neighbors);
        let marks = maxima_of_block(rows, block(&here.directions, start));
        out.copy_from_slice(&marks[..out.len()]);
    }
}

/// Returns the marks of a block from the magnitudes in three rows, of each the block 1 px to the left, at, and to the right.
fn maxima_of_block([above, here, below]: [[&Block; 3]; 3], directions: &Block) -> [u8; BLOCK] {
    let mut marks = [0; BLOCK];
    for i in 0..BLOCK {
        let (magnitude, direction) = (here[1][i], directions[i]);
        let (left, right, up, down) = (here[0][i], here[2][i], above[1][i], below[1][i]);
        let (up_left, up_right) = (above[0][i], above[2][i]);
        let (down_left, down_right) = (below[0][i], below[2][i]);
        let select = |is_first: bool, first: i16, second: i16| if is_first { first } else { second };
        let (is_horizontal, is_vertical) = (direction == HORIZONTAL, direction == VERTICAL);
        let is_rising = direction == RISING;
        let first = select(is_rising, up_right, up_left);
        let first = select(is_horizontal, left, select(is_vertical, up, first));
        let second = select(is_rising, down_left, down_right);
        // Of two equal neighbors along an axis, the first one is the maximum.
        let second = select(is_horizontal, right - 1, select(is_vertical, down - 1, second));
        let is_maximum = magnitude > first.max(second).max(LOW);
        let strong = select(magnitude > HIGH, i16::from(EDGE), i16::from(WEAK));
        marks[i] = select(is_maximum, strong, 0) as u8;
    }
    marks
}

/// Turns weak pixels into edges if a path of weak pixels, with 8 neighbors each, leads to an edge.
fn follow_edges(edges: &mut [u8], row: usize) {
    let mut stack = Vec::new();
    for start in (0..edges.len()).step_by(8) {
        let mut weak = weak_bytes(&edges[start..]);
        while weak != 0 {
            let index = start + weak.trailing_zeros() as usize / 8;
            weak &= weak - 1;
            // A path from an earlier pixel may have passed here.
            if edges[index] == WEAK && neighbors(index, row, edges.len()).any(|at| edges[at] == EDGE) {
                edges[index] = EDGE;
                stack.push(index);
            }
            while let Some(index) = stack.pop() {
                for at in neighbors(index, row, edges.len()) {
                    if edges[at] == WEAK {
                        edges[at] = EDGE;
                        stack.push(at);
                    }
                }
            }
        }
    }
}

/// Returns the highest bit of each of the first 8 bytes that is [`WEAK`]: it has this bit and not the lowest, and
/// [`EDGE`] has both.
fn weak_bytes(values: &[u8]) -> u64 {
    let word = values.first_chunk::<8>().map_or_else(
        || values.iter().rev().fold(0, |word, value| word << 8 | u64::from(*value)),
        |chunk| u64::from_le_bytes(*chunk),
    );
    word & !(word << 7) & 0x8080_8080_8080_8080
}

/// Returns the neighbors of a value in its channel.
fn neighbors(index: usize, row: usize, length: usize) -> impl Iterator<Item = usize> {
    let x = index % row;
    let step = |is_inside| if is_inside { CHANNELS } else { 0 };
    let (left, right) = (step(x >= CHANNELS), step(x + CHANNELS < row));
    let above = (index >= row).then(|| index - row);
    let below = (index + row < length).then(|| index + row);
    let rows = [above, Some(index), below].into_iter().flatten();
    let columns = move |center: usize| (center - left..=center + right).step_by(CHANNELS);
    rows.flat_map(columns).filter(move |at| *at != index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::morphology::one_thread;
    use crate::tissue;
    use opencv::core::Mat;
    use opencv::imgproc;
    use proptest::prelude::*;

    /// Returns the edges of one channel by OpenCV.
    fn of_opencv(channel: &[u8], width: usize) -> Vec<u8> {
        one_thread().unwrap();
        let (rows, columns) = ((channel.len() / width) as i32, width as i32);
        let mut found = vec![0; channel.len()];
        let from = Mat::new_rows_cols_with_bytes::<u8>(rows, columns, channel).unwrap();
        let mut to = Mat::new_rows_cols_with_bytes_mut::<u8>(rows, columns, &mut found).unwrap();
        imgproc::canny(&from, &mut to, f64::from(LOW), f64::from(HIGH), 5, false).unwrap();
        drop((from, to));
        found
    }

    fn channel(plane: &[u8], channel: usize) -> Vec<u8> {
        plane.iter().skip(channel).step_by(CHANNELS).copied().collect()
    }

    fn check(plane: &[u8], width: usize) {
        let found = edges(plane, width);
        for index in 0..CHANNELS {
            assert!(channel(&found, index) == of_opencv(&channel(plane, index), width), "channel {index}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn edges_equal_those_of_opencv(
            width in 1..24_usize,
            values in prop::collection::vec(any::<u8>(), 4..1600),
            divisor in prop::sample::select(vec![1_u8, 16, 40, 80, 120]),
        ) {
            let mut plane: Vec<u8> = values.iter().map(|value| 90 + value / divisor / 2).collect();
            plane.resize(plane.len().next_multiple_of(width * CHANNELS), 90);
            check(&plane, width);
        }
    }

    /// Smooth slopes have long paths of weak pixels.
    #[test]
    fn weak_edges_of_tissue_equal_those_of_opencv() {
        let tile = tissue::generate(3, 0, 200).unwrap();
        let plane = super::super::channels::channels(tile.image.data());
        check(&plane, 200);
        let faint: Vec<u8> = plane.iter().map(|value| 100 + value / 40).collect();
        check(&faint, 200);
        let weak = edges(&faint, 200).iter().filter(|value| **value == EDGE).count();
        assert!(weak > 0 && weak < plane.len() / 2, "{weak}");
    }
}
