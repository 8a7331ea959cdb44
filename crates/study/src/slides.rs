//! Slides of a study: splits them into tiles, and skips tiles without tissue.
//!
//! Opens a slide's header and the smallest level that suffices for an overview. Storage sources call [`read`] for each
//! tile, and `core_measurement.rs` in `pleach-workflow` describes the purpose of a tile's halo.

mod regions;
pub(crate) mod stain;

use crate::{SlideTilesError, SlideTilesProblem};
use pleach_pathology::image_io::ImageFileError;
use pleach_regions::{Partition, PartitionError, Raster, SpatialBounds};
use pleach_slides::{Scale, Slide, SlideError, Tissue, files_of};
use pleach_workflow::{Real, SlideTile, Slides, Study, StudyTile, TileWeights, Tiling, TissueRule};
pub use stain::{fit_note, fit_table};
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Maximum side in pixels of the overview for tissue detection. For a slide of 120,000 px, one pixel covers
/// about 60 px.
const TISSUE_PX: u32 = 2_048;

/// Maximum number of tiles of a study. The plan covers each tile, and the results have a row for each tile of
/// each evaluation.
const MAX_TILES: u64 = 1 << 20;

/// First bytes of slides in a single file: TIFF and BigTIFF of either byte order, and SQLite.
const ONE_FILE: [&[u8]; 5] = [b"II\x2a\0", b"MM\0\x2a", b"II\x2b\0", b"MM\0\x2b", b"SQLite format 3\0"];

/// Returns the tiles with enough tissue, slide by slide and row by row, and the tissue of each in pixels if the study weighs
/// tiles by it.
///
/// # Errors
/// [`SlideTilesError`] if a slide cannot be read, does not have the magnification or yields too many
/// tiles, or if no tile remains.
pub(crate) fn cut(
    file: &Path,
    study: &Study,
    slides: &Slides,
) -> Result<(Vec<StudyTile>, Vec<f64>), SlideTilesError> {
    let fail = |problem| SlideTilesError { file: file.to_owned(), problem: Box::new(problem) };
    let is_weighed = study.weights == TileWeights::Tissue;
    let (mut tiles, mut weights, mut parts_seen) = (Vec::new(), Vec::new(), 0);
    for (number, named) in slides.files.iter().enumerate() {
        let slide = opened(&named.path).map_err(fail)?;
        let scale = slide
            .scale(slides.magnification.map(Real::get))
            .map_err(|cause| fail(SlideTilesProblem::Magnification(cause)))?;
        let room = MAX_TILES - tiles.len() as u64;
        let parts = parts(study, slides, (number, &scale), room).map_err(fail)?;
        parts_seen += parts.len();
        let tissue = match slides.tissue {
            None if !is_weighed => None,
            rule => Some(tissue_of(&slide, rule).map_err(fail)?),
        };
        // Store the slide's own magnification if the study names none, so that an omitted and an explicit
        // magnification give the same key.
        let magnification =
            slides.magnification.or_else(|| slide.magnification().and_then(|own| Real::try_from(own).ok()));
        for Part { core, window } in parts {
            let share = tissue.as_ref().map(|(least, tissue)| {
                let share = |start: u32, length: u32, all: u32| {
                    [start, start + length].map(|edge| f64::from(edge) / f64::from(all))
                };
                let columns = share(core[0], core[2], scale.width_px);
                let rows = share(core[1], core[3], scale.height_px);
                (tissue.share(columns, rows), *least)
            });
            if share.is_none_or(|(share, least)| share >= least) {
                let tissue_px = share.map(|(share, _)| share * f64::from(core[2]) * f64::from(core[3]));
                weights.extend(tissue_px.filter(|_| is_weighed));
                tiles.push(StudyTile {
                    name: format!("{}/{}_{}", named.name, core[0], core[1]),
                    path: named.path.clone(),
                    slide: Some(SlideTile { magnification, core, window }),
                    block: None,
                    fit: None,
                });
            }
        }
    }
    if parts_seen == 0 {
        let names = study.annotation_rules.regions.clone();
        return Err(fail(SlideTilesProblem::NoRegions { slides: slides.files.len(), names }));
    }
    if tiles.is_empty() {
        let study = study.name.clone();
        return Err(fail(SlideTilesProblem::NoTissue { slides: slides.files.len(), study }));
    }
    Ok((tiles, weights))
}

/// Opens a file of the formats that are allowed.
fn opened(path: &Path) -> Result<Slide, SlideTilesProblem> {
    let is_known = is_in_several_files(path).and_then(|several| Ok(several || is_one_file(path)?));
    if !is_known.map_err(SlideTilesProblem::Unreadable)? {
        return Err(SlideTilesProblem::NoSlide(path.to_owned()));
    }
    Slide::open(path).map_err(SlideTilesProblem::Unreadable)
}

/// Returns the minimum tissue fraction of a tile, and the tissue of a slide by its overview. A minimum of 0 accepts every tile.
fn tissue_of(slide: &Slide, rule: Option<TissueRule>) -> Result<(f64, Tissue), SlideTilesProblem> {
    let overview = slide.overview(TISSUE_PX).map_err(|cause| match cause {
        SlideError::NoOverview { .. } => SlideTilesProblem::NoOverview(cause),
        _ => SlideTilesProblem::Unreadable(cause),
    })?;
    let (least, saturation) = rule.map_or((0.0, None), |rule| (rule.least.get(), rule.saturation));
    Ok((least, Tissue::of(&overview, saturation)))
}

/// Left, top, width and height of a core and of its window.
struct Part {
    core: [u32; 4],
    window: [u32; 4],
}

/// Returns the parts of a slide of the study: `room` at most, with those without tissue, because each of them is examined.
fn parts(
    study: &Study,
    slides: &Slides,
    (number, scale): (usize, &Scale),
    room: u64,
) -> Result<Vec<Part>, SlideTilesProblem> {
    let Tiling::Grid(tile_px) = slides.tiling else {
        return regions::parts(study, slides, number, scale);
    };
    let grid = grid(tile_px, slides.halo_px, scale)?;
    if grid.count() > room {
        return Err(SlideTilesProblem::TooManyTiles { given: tile_px, max: MAX_TILES });
    }
    Ok(grid.tiles().map(|part| Part { core: sides(&part.core), window: sides(&part.window) }).collect())
}

/// Partitions a slide into the tiles of a grid.
///
/// # Errors
/// [`PartitionError`] if the tiles do not fit the slide.
pub fn grid(tile_px: u32, halo_px: u32, scale: &Scale) -> Result<Partition, PartitionError> {
    let region = SpatialBounds::of_image(scale.width_px, scale.height_px, None);
    Partition::new(region, &[tile_px.into(); 2], &[halo_px.into(); 2])
}

/// Returns left, top, width and height of a two-dimensional bounding box.
pub fn sides(bounds: &SpatialBounds) -> [u32; 4] {
    // The casts cannot truncate: the bounds are within an image with sides of 32 bits.
    let start = |axis: usize| bounds.axes()[axis].start() as u32;
    let length = |axis: usize| bounds.axes()[axis].length() as u32;
    [start(0), start(1), length(0), length(1)]
}

/// Returns whether a file is the index file of a slide in several files (MIRAX, VMS, VMU).
///
/// # Errors
/// [`SlideError::Files`] if the slide's files cannot be determined.
fn is_in_several_files(path: &Path) -> Result<bool, SlideError> {
    Ok(files_of(path)?.len() > 1)
}

/// Returns whether a file is a slide in a single file. Slides of other formats may have further files, which
/// pleach cannot determine.
fn is_one_file(path: &Path) -> Result<bool, SlideError> {
    let mut first = Vec::new();
    let fail = |cause| SlideError::Unreadable { path: path.to_owned(), cause };
    File::open(path).and_then(|file| file.take(16).read_to_end(&mut first)).map_err(fail)?;
    Ok(ONE_FILE.iter().any(|magic| first.starts_with(magic)))
}

/// Extensions of slide files. TIFF is missing because a TIFF file may be a tile.
const ENDINGS: [&str; 8] = ["svs", "ndpi", "scn", "bif", "svslide", "mrxs", "vms", "vmu"];

/// Extensions of index files, which name the other files of a slide. The index file of a MIRAX slide is
/// itself an image, a thumbnail.
const NAMING_OTHERS: [&str; 3] = ["mrxs", "vms", "vmu"];

/// Returns whether a file has an extension of slides. TIFF files do not.
pub(crate) fn has_slide_ending(path: &Path) -> bool {
    has_ending(path, &ENDINGS)
}

/// Returns whether a file is a slide: by its extension, or for a TIFF file by its tiles.
pub(crate) fn is_slide_file(path: &Path) -> bool {
    has_slide_ending(path) || (has_ending(path, &["tif", "tiff"]) && Slide::open(path).is_ok())
}

pub(crate) fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase());
    ending.is_some_and(|ending| endings.contains(&ending.as_str()))
}

/// Returns whether a file has the extension of a slide in several files.
pub fn has_name_of_several_files(path: &Path) -> bool {
    has_ending(path, &NAMING_OTHERS)
}

/// Returns whether a file that cannot be read as a tile is a slide, by its name or its content.
pub fn is_slide(path: &Path, error: &ImageFileError) -> bool {
    let is_of_another_kind =
        !matches!(error, ImageFileError::Unreadable { .. } | ImageFileError::Empty { .. });
    is_of_another_kind && (has_ending(path, &ENDINGS) || Slide::open(path).is_ok())
}

/// Reads the pixels of a tile's window.
///
/// # Errors
/// [`SlideError`] if they cannot be read.
pub fn read(path: &Path, tile: &SlideTile) -> Result<Raster, SlideError> {
    // Opens the slide for each tile, which takes about 20 ms, so that a corrupt tile does not affect others.
    let slide = Slide::open(path)?;
    let scale = slide.scale(tile.magnification.map(Real::get));
    // Without a magnification, the slide is read at its own.
    slide.read(&scale?, tile.window())
}

#[cfg(test)]
mod tests;
