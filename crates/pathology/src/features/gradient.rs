//! Magnitudes of the gradient, for interleaved channels, rounded to bytes.
//!
//! Both take sums of integers, so that the result is the same on every platform.

use super::CHANNELS;

/// Rounds to the nearest integer, halves to the even one, for numbers of 0 to 2^22: adding 2^23 leaves no bits for a
/// fraction. Unlike the library's function it is vectorized on every processor.
fn rounded(value: f32) -> f32 {
    const SHIFT: f32 = 8_388_608.0;
    (value + SHIFT) - SHIFT
}

/// Returns the magnitude of differences `a` and `b` along both axes, times `scale`.
fn magnitude(a: i32, b: i32, scale: f32) -> u8 {
    // Sums of squares are below 2^24 and therefore exact.
    rounded(((a * a + b * b) as f32).sqrt() * scale).min(255.0) as u8
}

/// Returns √(x² + y²) of the central differences x and y, with half the distance of both neighbors as the unit. At the
/// image's border it is the difference to the only neighbor, and 0 along a side of 1 px.
pub(super) fn gradient(plane: &[u8], width: usize) -> Vec<u8> {
    let row = width * CHANNELS;
    let height = plane.len() / row;
    let at = |y: usize| &plane[y * row..][..row];
    let mut magnitudes = vec![0; plane.len()];
    for (y, out) in magnitudes.chunks_exact_mut(row).enumerate() {
        let (above, here, below) = (at(y.saturating_sub(1)), at(y), at((y + 1).min(height - 1)));
        let doubled = if y == 0 || y + 1 == height { 2 } else { 1 };
        let vertical = |i: usize| doubled * (i32::from(below[i]) - i32::from(above[i]));
        for i in (0..CHANNELS.min(row)).chain(row.saturating_sub(CHANNELS)..row) {
            let left = i.checked_sub(CHANNELS).unwrap_or(i);
            let right = if i + CHANNELS < row { i + CHANNELS } else { i };
            out[i] = magnitude(2 * (i32::from(here[right]) - i32::from(here[left])), vertical(i), 0.5);
        }
        for i in CHANNELS..row.saturating_sub(CHANNELS) {
            let horizontal = i32::from(here[i + CHANNELS]) - i32::from(here[i - CHANNELS]);
            out[i] = magnitude(horizontal, vertical(i), 0.5);
        }
    }
    magnitudes
}

/// Returns the magnitude by Sobel's 3 × 3 kernels, as scikit-image's `sobel`: each kernel divided by 4, the root of the mean
/// square of both. Pixels beyond the border repeat those at it.
pub(super) fn sobel(plane: &[u8], width: usize) -> Vec<u8> {
    let row = width * CHANNELS;
    let height = plane.len() / row;
    let at = |y: usize| &plane[y * row..][..row];
    // 1/4 for the kernel, and the root of 1/2 for the mean of two squares.
    let scale = 0.125_f32.sqrt() * 0.5;
    // Sums of a column with weights 1, 2, 1, and its differences, with a pixel repeated on either side.
    let (mut sums, mut differences) = (vec![0_i32; row + 2 * CHANNELS], vec![0_i32; row + 2 * CHANNELS]);
    let mut magnitudes = vec![0; plane.len()];
    for (y, out) in magnitudes.chunks_exact_mut(row).enumerate() {
        let (above, here, below) = (at(y.saturating_sub(1)), at(y), at((y + 1).min(height - 1)));
        for i in 0..row {
            let (up, down) = (i32::from(above[i]), i32::from(below[i]));
            sums[i + CHANNELS] = up + 2 * i32::from(here[i]) + down;
            differences[i + CHANNELS] = down - up;
        }
        for list in [&mut sums, &mut differences] {
            list.copy_within(CHANNELS..2 * CHANNELS, 0);
            list.copy_within(row..row + CHANNELS, row + CHANNELS);
        }
        for i in 0..row {
            let horizontal = sums[i + 2 * CHANNELS] - sums[i];
            let vertical = differences[i] + 2 * differences[i + CHANNELS] + differences[i + 2 * CHANNELS];
            out[i] = magnitude(horizontal, vertical, scale);
        }
    }
    magnitudes
}
