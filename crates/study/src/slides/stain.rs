//! Fits the stain normalization of a study: to the tissue of each slide, and to a target image.
//!
//! A slide is read once, block by block, at the magnification of the study: statistics of a coarser pyramid level differ,
//! because averaging mixes nuclei with their surroundings. Blocks are a systematic sample of the study's tiles, so that the
//! time does not grow with the slide. Counts of colors are exact, and the same blocks give the same bits everywhere.

use crate::error::PrepareError;
use pleach_pathology::{ColorCounts, image_io};
use pleach_regions::{DataRegion, ElementType, PixelRectangle};
use pleach_slides::{Scale, Slide, SlideError};
use pleach_workflow::{FitScope, Real, StainFit, StainStatistics, Study, StudyTile};
use std::path::Path;

/// Side of a block, pixels: a piece of most scanners' files.
const BLOCK_PX: u32 = 256;

/// Maximum number of blocks of a slide: 67 megapixels, read in some seconds. On the slide of the test data, half of its 108
/// blocks differ from all by 3 % of a deviation in means and 1 % in deviations; a quarter of the magnification by 22 % and 29 %
/// (`stain/tests.rs`).
const MAX_BLOCKS: usize = 1_024;

/// Maximum number of blocks that cannot be decoded before the fit ends with those that were read. Each reopens the slide.
const MAX_CORRUPT: usize = 16;

/// Fits the normalization of a study whose slides have been cut. Does nothing without fitted values.
///
/// # Errors
/// [`PrepareError`] if the target image or a slide cannot be read, or if the target has no tissue.
pub(crate) fn fit(file: &Path, study: &mut Study) -> Result<(), PrepareError> {
    let Some(normalization) = &study.normalization else { return Ok(()) };
    let target = match &normalization.target {
        None => None,
        Some(path) => Some(target(file, path)?),
    };
    let mut fits = Vec::new();
    match normalization.scope {
        FitScope::Tile => {
            fits.push(StainFit { target, source: None });
            study.tiles.iter_mut().for_each(|tile| tile.fit = Some(0));
        }
        FitScope::Slide => {
            // Tiles of a slide are consecutive.
            for tiles in study.tiles.chunk_by_mut(|a, b| a.path == b.path) {
                let source = of_slide(tiles).map_err(|cause| PrepareError::StainFit {
                    file: file.to_owned(),
                    field: "slides",
                    cause: cause.to_string(),
                })?;
                let fit = StainFit { target, source };
                let index = fits.iter().position(|known| *known == fit).unwrap_or(fits.len());
                if index == fits.len() {
                    fits.push(fit);
                }
                tiles.iter_mut().for_each(|tile| tile.fit = Some(index));
            }
        }
    }
    if let Some(normalization) = &mut study.normalization {
        normalization.fits = fits;
    }
    Ok(())
}

/// Returns the statistics of a target image.
fn target(file: &Path, path: &Path) -> Result<StainStatistics, PrepareError> {
    let fail =
        |cause: String| PrepareError::StainFit { file: file.to_owned(), field: "normalize.target", cause };
    let image = image_io::read_bgr(path).map_err(|error| {
        let is_slide = super::is_slide(path, &error);
        fail(if is_slide {
            format!("{}: a slide is not allowed; an image (PNG, JPEG or TIFF) is allowed", path.display())
        } else {
            error.to_string()
        })
    })?;
    let pixels = image.raster(ElementType::Bgr8).map_err(|error| fail(error.to_string()))?;
    let mut counts = ColorCounts::default();
    counts.add(pixels.data());
    let none = || fail(format!("{}: no tissue; an image with stained tissue is allowed", path.display()));
    counts.statistics().ok_or_else(none)
}

/// Returns the statistics of the tissue of one slide, within its tiles. `None` without tissue.
fn of_slide(tiles: &[StudyTile]) -> Result<Option<StainStatistics>, SlideError> {
    let blocks = Blocks::new(tiles, BLOCK_PX);
    let sampled = sample(tiles, &blocks, MAX_BLOCKS)?;
    if sampled.is_some() || blocks.count <= MAX_BLOCKS {
        return Ok(sampled);
    }
    // Very little tissue: a block between the sampled ones may have it.
    sample(tiles, &blocks, usize::MAX)
}

/// Returns the statistics of at most `max_blocks` blocks.
fn sample(
    tiles: &[StudyTile],
    blocks: &Blocks,
    max_blocks: usize,
) -> Result<Option<StainStatistics>, SlideError> {
    let Some(first) = tiles.first() else { return Ok(None) };
    let open = || -> Result<(Slide, Scale), SlideError> {
        let slide = Slide::open(&first.path)?;
        let scale = slide.scale(first.slide.as_ref().and_then(|part| part.magnification).map(Real::get))?;
        Ok((slide, scale))
    };
    let (mut slide, scale) = open()?;
    let (mut counts, mut corrupt) = (ColorCounts::default(), 0);
    for block in blocks.sample(max_blocks) {
        match slide.read(&scale, block) {
            Ok(pixels) => counts.add(pixels.data()),
            // Runs on this part of the slide fail and name the cause. All others have a fit.
            Err(_) if corrupt < MAX_CORRUPT => {
                corrupt += 1;
                (slide, _) = open()?;
            }
            Err(_) => break,
        }
    }
    Ok(counts.statistics())
}

/// Blocks of the cores of a slide's tiles, tile by tile and row by row.
struct Blocks {
    cores: Vec<PixelRectangle>,
    /// Number of blocks before each core.
    before: Vec<usize>,
    count: usize,
    side_px: u32,
}

impl Blocks {
    fn new(tiles: &[StudyTile], side_px: u32) -> Self {
        let core =
            |[x_px, y_px, width_px, height_px]: [u32; 4]| PixelRectangle { x_px, y_px, width_px, height_px };
        let cores: Vec<_> = tiles.iter().filter_map(|tile| Some(core(tile.slide.as_ref()?.core))).collect();
        let (mut before, mut count) = (Vec::with_capacity(cores.len()), 0);
        for core in &cores {
            before.push(count);
            let [columns, rows] = [core.width_px, core.height_px].map(|side| side.div_ceil(side_px) as usize);
            count += columns * rows;
        }
        Self { cores, before, count, side_px }
    }

    /// Returns at most `max` blocks with equal distances in the list of all.
    fn sample(&self, max: usize) -> impl Iterator<Item = PixelRectangle> {
        let taken = self.count.min(max);
        (0..taken).map(move |number| {
            // 128 bits: `max` may be as large as the count.
            self.block((number as u128 * self.count as u128 / taken as u128) as usize)
        })
    }

    fn block(&self, number: usize) -> PixelRectangle {
        let tile = self.before.partition_point(|before| *before <= number) - 1;
        let (core, number) = (self.cores[tile], number - self.before[tile]);
        let columns = core.width_px.div_ceil(self.side_px) as usize;
        let [column, row] = [number % columns, number / columns].map(|at| at as u32 * self.side_px);
        PixelRectangle {
            x_px: core.x_px + column,
            y_px: core.y_px + row,
            width_px: self.side_px.min(core.width_px - column),
            height_px: self.side_px.min(core.height_px - row),
        }
    }
}

/// Returns the table of a tile's fit. `None` for a tile without one.
pub fn fit_table(study: &Study, tile: usize) -> Option<DataRegion> {
    let fits = &study.normalization.as_ref()?.fits;
    Some(DataRegion::Table(fits.get(study.tiles.get(tile)?.fit?)?.table()))
}

/// Returns a line about the normalization of a study. `None` without fitted values.
pub fn fit_note(study: &Study) -> Option<String> {
    let normalization = study.normalization.as_ref()?;
    let scope = match normalization.scope {
        FitScope::Tile => "fitted to each tile",
        FitScope::Slide => "fitted to the tissue of each slide",
    };
    let target = match &normalization.target {
        Some(path) => format!("; the target is {}", path.display()),
        None => String::new(),
    };
    Some(format!("stain normalization: {scope}{target}"))
}

#[cfg(test)]
mod tests;
