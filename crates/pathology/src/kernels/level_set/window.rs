//! Means of the gray values inside and outside a changing contour, within square windows.
//!
//! Sums are integers, so they stay exact while pixels change sides, in whatever order that happens. Each row has the
//! sums of its stretches of 11 pixels. A change updates 11 of them, and a query adds 11 of them. They are stored column by
//! column: queries outnumber changes, and read neighbors in memory.

use crate::kernels::height;

/// Half of a window's side without its middle: windows are 11 × 11 px.
pub(super) const REACH: usize = 5;

/// Keeps a mean's denominator from being 0.
const EPSILON: f64 = 1e-10;

/// Sums over windows around each pixel, clipped to the image. A sum holds the number of pixels in its upper 16 bits (at
/// most 121) and the sum of their gray values in its lower 16 bits (at most 121 · 255 = 30,855).
pub(super) struct WindowSums<'a> {
    gray: &'a [u8],
    width: usize,
    rows: usize,
    /// Inside pixels of each stretch of a row, at column · rows + row.
    inside: Vec<u32>,
    /// All pixels of each window.
    all: Vec<u32>,
}

/// Returns the sum of one pixel.
fn one(gray: u8) -> u32 {
    1 << 16 | u32::from(gray)
}

/// Splits a sum into number of pixels and sum of gray values.
fn split(sum: u32) -> (f64, f64) {
    (f64::from(sum >> 16), f64::from(sum & 0xffff))
}

/// Returns a plane column by column.
fn transposed(plane: &[u32], width: usize) -> Vec<u32> {
    let rows = plane.len() / width;
    let mut columns = vec![0; plane.len()];
    for (y, row) in plane.chunks_exact(width).enumerate() {
        row.iter().enumerate().for_each(|(x, value)| columns[x * rows + y] = *value);
    }
    columns
}

impl<'a> WindowSums<'a> {
    /// Sums up the pixels of `gray` that are inside, by pixel number.
    pub(super) fn new(gray: &'a [u8], width: usize, is_inside: impl Fn(usize) -> bool) -> Self {
        let rows = height(gray.len(), width);
        let stretches = |counts: &dyn Fn(usize) -> bool| {
            let mut sums = vec![0; gray.len()];
            for (y, row) in sums.chunks_exact_mut(width).enumerate() {
                let value = |x: usize| {
                    let pixel = y * width + x;
                    if counts(pixel) { one(gray[pixel]) } else { 0 }
                };
                let mut sum: u32 = (0..width.min(REACH)).map(value).sum();
                for (x, stretch) in row.iter_mut().enumerate() {
                    sum += if x + REACH < width { value(x + REACH) } else { 0 };
                    sum -= x.checked_sub(REACH + 1).map_or(0, value);
                    *stretch = sum;
                }
            }
            sums
        };
        let inside = transposed(&stretches(&is_inside), width);
        // Vertical running sums over one column of stretches at a time would jump through memory: the sums of one row of
        // windows are kept instead.
        let of_rows = stretches(&|_| true);
        let mut all = vec![0; gray.len()];
        let mut sums: Vec<u32> = vec![0; width];
        let row = |y: usize| &of_rows[y * width..][..width];
        for y in 0..rows.min(REACH) {
            sums.iter_mut().zip(row(y)).for_each(|(sum, stretch)| *sum += stretch);
        }
        for (y, windows) in all.chunks_exact_mut(width).enumerate() {
            if y + REACH < rows {
                sums.iter_mut().zip(row(y + REACH)).for_each(|(sum, stretch)| *sum += stretch);
            }
            if let Some(left) = y.checked_sub(REACH + 1) {
                sums.iter_mut().zip(row(left)).for_each(|(sum, stretch)| *sum -= stretch);
            }
            windows.copy_from_slice(&sums);
        }
        Self { gray, width, rows, inside, all }
    }

    /// Moves pixel (x, y) inside or outside. The pixel must be on the opposite side.
    pub(super) fn set(&mut self, x: usize, y: usize, inside: bool) {
        let value = one(self.gray[y * self.width + x]);
        for column in x.saturating_sub(REACH)..(x + REACH + 1).min(self.width) {
            let sum = &mut self.inside[column * self.rows + y];
            *sum = if inside { *sum + value } else { *sum - value };
        }
    }

    /// Returns the data term at pixel (x, y): (H − m_in)² − (H − m_out)², negative if the pixel resembles the inside of
    /// its window more than the outside. The mean of no pixels is 0.
    pub(super) fn data_term(&self, x: usize, y: usize) -> f64 {
        let column = &self.inside[x * self.rows..][..self.rows];
        let inside: u32 = column[y.saturating_sub(REACH)..(y + REACH + 1).min(self.rows)].iter().sum();
        let pixel = y * self.width + x;
        let mean = |sum: u32| {
            let (pixels, gray) = split(sum);
            gray / (pixels + EPSILON)
        };
        let gray = f64::from(self.gray[pixel]);
        let (to_inside, to_outside) = (gray - mean(inside), gray - mean(self.all[pixel] - inside));
        to_inside * to_inside - to_outside * to_outside
    }
}
