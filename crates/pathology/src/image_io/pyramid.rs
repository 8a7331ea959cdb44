//! Writes slides: tiled pyramids in BigTIFF, streamed.
//!
//! The caller delivers the first level in strips from top to bottom. Each coarser level has a quarter of the sides and is the
//! mean of 4 × 4 pixels. It keeps one row of tiles in memory. Tiles of one color are stored once for all places. The
//! resolution is in the tags, where OpenSlide finds it.

mod file;

use super::write::replace_with;
use super::{ImageFileError, jpeg_bytes};
use file::PyramidFile;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use pleach_regions::Raster;
use std::io::{self, Write};
use std::path::Path;

/// Side of a tile in the file, pixels.
pub const PYRAMID_TILE_PX: usize = 256;

/// Sides of a level over those of the next one.
const STEP: usize = 4;
/// Levels are added until no side exceeds this, pixels: an overview then reads about a megapixel.
const COARSEST_PX: usize = 1_024;

/// Encoding of tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PyramidFormat {
    /// JPEG of this quality (1–100).
    Jpeg(u8),
    /// Deflate, without loss.
    Deflate,
}

impl PyramidFormat {
    /// Encodes a tile of [`PYRAMID_TILE_PX`] by [`PYRAMID_TILE_PX`] pixels in B, G, R.
    ///
    /// # Errors
    /// Returns the error of the encoder.
    pub fn encode(self, tile: Vec<u8>) -> io::Result<Vec<u8>> {
        let side = PYRAMID_TILE_PX as u32;
        match self {
            Self::Jpeg(quality) => {
                let raster = Raster::new(side, side, 3, tile).map_err(io::Error::other)?;
                jpeg_bytes(&raster, quality).map_err(io::Error::other)
            }
            Self::Deflate => {
                let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
                for [b, g, r] in tile.as_chunks::<3>().0 {
                    encoder.write_all(&[*r, *g, *b])?;
                }
                encoder.finish()
            }
        }
    }
}

/// A level under construction.
#[derive(Debug)]
struct Level {
    size_px: [usize; 2],
    /// Rows of the present row of tiles, B, G, R. Empty for the first level, whose tiles the caller cuts.
    rows: Vec<u8>,
    /// Rows that have been delivered.
    filled: usize,
}

/// A slide that is being written.
#[derive(Debug)]
pub struct Pyramid<'a> {
    file: PyramidFile<'a>,
    format: PyramidFormat,
    levels: Vec<Level>,
    background: [u8; 3],
}

/// Writes a slide with the strips that `write` delivers. Replaces an existing file with atomic publish. Returns the bytes
/// written.
///
/// # Errors
/// Returns [`ImageFileError::Unwritable`], also with the error of `write`.
pub fn write_pyramid(
    path: &Path,
    size_px: [u32; 2],
    (format, background, microns_per_px): (PyramidFormat, [u8; 3], f64),
    write: impl FnOnce(&mut Pyramid<'_>) -> io::Result<()>,
) -> Result<u64, ImageFileError> {
    replace_with(path, |file| {
        let mut sizes = vec![size_px.map(|side| side as usize)];
        while let Some(last) = sizes.last().filter(|size| size.iter().any(|side| *side > COARSEST_PX)) {
            sizes.push(last.map(|side| (side / STEP).max(1)));
        }
        let levels = sizes.iter().map(|size_px| Level { size_px: *size_px, rows: Vec::new(), filled: 0 });
        let file = PyramidFile::new(file, &sizes)?;
        let mut pyramid = Pyramid { file, format, levels: levels.collect(), background };
        write(&mut pyramid)?;
        pyramid.finish(microns_per_px)
    })
}

impl Pyramid<'_> {
    /// Stores an encoded tile of the first level.
    ///
    /// # Errors
    /// Returns the system's error.
    pub fn tile(&mut self, column: usize, row: usize, bytes: &[u8]) -> io::Result<()> {
        self.file.put(0, [column, row], bytes)
    }

    /// Delivers the next rows of the second level, B, G, R: means of 4 × 4 pixels of the first.
    ///
    /// # Errors
    /// Returns the error of an encoder or of the system.
    pub fn reduced(&mut self, rows: &[u8]) -> io::Result<()> {
        if self.levels.len() > 1 { self.add(1, rows) } else { Ok(()) }
    }

    /// Returns the sides of the second level, pixels.
    #[must_use]
    pub fn reduced_size_px(&self) -> [usize; 2] {
        self.levels.get(1).map_or([0; 2], |level| level.size_px)
    }

    fn add(&mut self, number: usize, rows: &[u8]) -> io::Result<()> {
        let [width, height] = self.levels[number].size_px;
        for row in rows.chunks_exact(3 * width) {
            let level = &mut self.levels[number];
            // Rows beyond the level: its sides are rounded down.
            if level.filled == height {
                break;
            }
            level.rows.extend_from_slice(row);
            level.filled += 1;
            if level.rows.len() == 3 * width * PYRAMID_TILE_PX || level.filled == height {
                self.flush(number)?;
            }
        }
        Ok(())
    }

    /// Stores the row of tiles of a level, and delivers its means to the next level.
    fn flush(&mut self, number: usize) -> io::Result<()> {
        let rows = std::mem::take(&mut self.levels[number].rows);
        let [width, _] = self.levels[number].size_px;
        let tile_row = (self.levels[number].filled - 1) / PYRAMID_TILE_PX;
        for column in 0..width.div_ceil(PYRAMID_TILE_PX) {
            let tile = cut(&rows, width, [column * PYRAMID_TILE_PX, 0], self.background);
            if let Some(tile) = tile {
                self.file.put(number, [column, tile_row], &self.format.encode(tile)?)?;
            }
        }
        match self.levels.get(number + 1) {
            Some(next) => {
                let reduced = reduce(&rows, width, next.size_px[0]);
                self.add(number + 1, &reduced)
            }
            None => Ok(()),
        }
    }

    fn finish(mut self, microns_per_px: f64) -> io::Result<u64> {
        let blank = self.background.repeat(PYRAMID_TILE_PX * PYRAMID_TILE_PX);
        let blank = self.format.encode(blank)?;
        self.file.finish(&blank, self.format, microns_per_px)
    }
}

/// Cuts a tile from rows of `width` pixels. Pixels beyond them have the color of the background. `None` if all pixels have
/// it.
#[must_use]
pub fn cut(rows: &[u8], width: usize, [left, top]: [usize; 2], background: [u8; 3]) -> Option<Vec<u8>> {
    let height = rows.len() / 3 / width;
    let mut tile = Vec::with_capacity(3 * PYRAMID_TILE_PX * PYRAMID_TILE_PX);
    let columns = PYRAMID_TILE_PX.min(width.saturating_sub(left));
    for row in top..top + PYRAMID_TILE_PX {
        if row < height {
            tile.extend_from_slice(&rows[3 * (row * width + left)..][..3 * columns]);
        }
        let missing = if row < height { PYRAMID_TILE_PX - columns } else { PYRAMID_TILE_PX };
        (0..missing).for_each(|_| tile.extend_from_slice(&background));
    }
    (!tile.as_chunks::<3>().0.iter().all(|pixel| *pixel == background)).then_some(tile)
}

/// Returns the means of 4 × 4 pixels, `columns` in each row, rounded half up. The last row may have fewer rows below it.
#[must_use]
pub fn reduce(rows: &[u8], width: usize, columns: usize) -> Vec<u8> {
    let height = rows.len() / 3 / width;
    let mut reduced = Vec::with_capacity(3 * columns * height.div_ceil(STEP));
    for top in (0..height).step_by(STEP) {
        let below = STEP.min(height - top);
        for column in 0..columns {
            let across = STEP.min(width - (column * STEP).min(width - 1));
            let mut sums = [0_u32; 3];
            for row in top..top + below {
                let start = 3 * (row * width + (column * STEP).min(width - 1));
                for pixel in rows[start..start + 3 * across].as_chunks::<3>().0 {
                    (0..3).for_each(|channel| sums[channel] += u32::from(pixel[channel]));
                }
            }
            let count = (below * across) as u32;
            reduced.extend(sums.map(|sum| ((sum + count / 2) / count) as u8));
        }
    }
    reduced
}
