//! Resamples pixels of a level to a magnification: the mean of the covered area, on white.
//!
//! The value of a pixel depends on its position in the slide, not on the requested rectangle, so tiles agree where
//! their halos overlap. Pixels are read in strips, so that only the result grows with the rectangle.

use crate::error::SlideError;
use crate::scale::Scale;
use crate::slide::Slide;
use pleach_regions::{PixelRectangle, Raster};

/// 16 MiB: bytes of a level read at once. A strip of a 4K tile then has 1,000 rows: several rows of pieces, so that few
/// pieces are decoded twice.
const STRIP_BYTES: usize = 16 << 20;

/// Values of a pixel: B, G, R.
const CHANNELS: usize = 3;

impl Slide {
    /// Reads the pixels of a rectangle of the slide at a scale, as B, G, R. Unscanned areas are white.
    ///
    /// # Errors
    /// Returns [`SlideError::Outside`] if the rectangle exceeds the slide at that scale, [`SlideError::Memory`] if
    /// memory is insufficient, or [`SlideError::Damaged`] if its pixels cannot be decoded.
    pub fn read(&self, scale: &Scale, part: PixelRectangle) -> Result<Raster, SlideError> {
        scale.check(part).map_err(|cause| SlideError::Outside { path: self.path().to_owned(), cause })?;
        read(self, scale, part)
    }
}

/// Reads the pixels of a rectangle within the slide at this scale.
fn read(slide: &Slide, scale: &Scale, part: PixelRectangle) -> Result<Raster, SlideError> {
    let PixelRectangle { x_px, y_px, width_px, height_px } = part;
    let memory = || SlideError::Memory { path: slide.path().to_owned(), width_px, height_px };
    let level = slide.levels()[scale.level];
    let bytes = (width_px as usize).checked_mul(height_px as usize).and_then(|px| px.checked_mul(CHANNELS));
    let mut data: Vec<u8> = Vec::new();
    data.try_reserve_exact(bytes.ok_or_else(memory)?).map_err(|_| memory())?;

    let columns = Covers::of(x_px, width_px, scale.level_px_a_px, level.width_px);
    let first_column = columns.first_level_px();
    let strip_width = columns.end_level_px() - first_column;
    let level_rows = (STRIP_BYTES / (strip_width as usize * 4)).max(1);
    let rows_a_strip = ((level_rows as f64 / scale.level_px_a_px) as u32).max(1);
    let mut row = 0;
    while row < height_px {
        let rows = rows_a_strip.min(height_px - row);
        let covers = Covers::of(y_px + row, rows, scale.level_px_a_px, level.height_px);
        let strip = PixelRectangle {
            x_px: first_column,
            y_px: covers.first_level_px(),
            width_px: strip_width,
            height_px: covers.end_level_px() - covers.first_level_px(),
        };
        let pixels = slide.level_pixels(scale.level, strip)?;
        // Exact: `Scale` sets 1 for a level that needs no resampling.
        if scale.level_px_a_px == 1.0 {
            data.extend(
                pixels.chunks_exact(4).flat_map(|pixel| on_white([pixel[0], pixel[1], pixel[2], pixel[3]])),
            );
        } else {
            average(&pixels, strip_width as usize, &columns, &covers, &mut data);
        }
        row += rows;
    }
    Raster::new(width_px, height_px, CHANNELS as u8, data)
        .map_err(|error| SlideError::Damaged { path: slide.path().to_owned(), cause: error.to_string() })
}

/// Returns B, G, R of a premultiplied pixel on white.
fn on_white(pixel: [u8; 4]) -> [u8; CHANNELS] {
    let [_, red, green, blue] = u32::from_ne_bytes(pixel).to_be_bytes();
    let white = 255 - u32::from_ne_bytes(pixel).to_be_bytes()[0];
    // Premultiplied values do not exceed the opacity. Saturates for pixels that break this rule.
    [blue, green, red].map(|value| value.saturating_add(white))
}

/// Level pixels covered by each pixel of a row or column, with their weights.
struct Covers {
    /// First level pixel of each, and the weights of this and the following level pixels.
    covers: Vec<(u32, Vec<f64>)>,
}

impl Covers {
    /// Computes the coverage of `count` pixels from `start`, with `ratio` pixels of a level of `level_px` each.
    fn of(start: u32, count: u32, ratio: f64, level_px: u32) -> Self {
        let cover = |pixel: u32| {
            let (from, to) = (f64::from(pixel) * ratio, f64::from(pixel + 1) * ratio);
            let first = (from.floor() as u32).min(level_px - 1);
            let end = (to.ceil() as u32).clamp(first + 1, level_px);
            let weight = |px: u32| (to.min(f64::from(px + 1)) - from.max(f64::from(px))).max(0.0);
            (first, (first..end).map(weight).collect())
        };
        Self { covers: (start..start + count).map(cover).collect() }
    }

    fn first_level_px(&self) -> u32 {
        self.covers.first().map_or(0, |(first, _)| *first)
    }

    fn end_level_px(&self) -> u32 {
        self.covers.last().map_or(0, |(first, weights)| first + weights.len() as u32)
    }
}

/// Appends the rows of a strip, averaged over the covered level pixels.
fn average(strip: &[u8], strip_width: usize, columns: &Covers, rows: &Covers, data: &mut Vec<u8>) {
    let (left, top) = (columns.first_level_px(), rows.first_level_px());
    let mut sums = vec![[0.0_f64; CHANNELS]; columns.covers.len()];
    for (first_row, row_weights) in &rows.covers {
        sums.fill([0.0; CHANNELS]);
        let height: f64 = row_weights.iter().sum();
        for (row, row_weight) in (first_row - top..).zip(row_weights) {
            let pixels = &strip[row as usize * strip_width * 4..][..strip_width * 4];
            for (sum, (first, weights)) in sums.iter_mut().zip(&columns.covers) {
                let covered = pixels[(first - left) as usize * 4..].chunks_exact(4).zip(weights);
                for (pixel, weight) in covered {
                    let values = on_white([pixel[0], pixel[1], pixel[2], pixel[3]]);
                    for (sum, value) in sum.iter_mut().zip(values) {
                        *sum += row_weight * weight * f64::from(value);
                    }
                }
            }
        }
        for (sum, (_, weights)) in sums.iter().zip(&columns.covers) {
            let area = height * weights.iter().sum::<f64>();
            // The mean of bytes is within 0–255. Rounds half up.
            data.extend(sum.map(|sum| (sum / area + 0.5) as u8));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn transparent_pixels_are_white() {
        let argb = |a: u8, r: u8, g: u8, b: u8| u32::from_be_bytes([a, r, g, b]).to_ne_bytes();
        assert_eq!(on_white(argb(255, 1, 2, 3)), [3, 2, 1]);
        assert_eq!(on_white(argb(0, 0, 0, 0)), [255; 3]);
        // Half-transparent red: premultiplied it is 128, and 127 of white show through.
        assert_eq!(on_white(argb(128, 128, 0, 0)), [127, 127, 255]);
        // A color above the opacity is invalid, and must not wrap around.
        assert_eq!(on_white(argb(1, 255, 255, 255)), [255; 3]);
    }

    #[test]
    fn a_pixel_is_the_mean_of_what_it_covers() {
        // 2.5 of 4 level pixels make one pixel. The remaining 1.5 make none.
        let columns = Covers::of(0, 1, 2.5, 4);
        assert_eq!(columns.covers, [(0, vec![1.0, 1.0, 0.5])]);
        let rows = Covers::of(0, 1, 2.0, 2);
        let gray = |value: u8| u32::from_be_bytes([255, value, value, value]).to_ne_bytes();
        let strip: Vec<u8> = [10, 20, 40, 30, 50, 80].into_iter().flat_map(gray).collect();
        let mut data = Vec::new();
        average(&strip, 3, &columns, &rows, &mut data);
        // (10 + 20 + 20 + 30 + 50 + 40) / 5 = 34.
        assert_eq!(data, [34; 3]);
    }

    /// Neighbors share a level pixel, and the last one ends with the level.
    #[test]
    fn covers_are_those_of_the_slide() {
        let all = Covers::of(0, 40, 2.5, 100);
        for start in [0, 7, 39] {
            assert_eq!(Covers::of(start, 1, 2.5, 100).covers[0], all.covers[start as usize]);
        }
        assert_eq!(all.end_level_px(), 100);
        let weight: f64 = all.covers.iter().flat_map(|(_, weights)| weights).sum();
        assert!((weight - 100.0).abs() < 1e-9);
    }
}
