//! Writes a synthetic slide and its nuclei, row by row of blocks.

use super::{CELL_PX, GLASS, MICRONS_PER_PX, NucleusOutline, Parallel, SlideTissue, TissueRow};
use crate::image_io::{
    ImageFileError, PYRAMID_TILE_PX, Pyramid, PyramidFormat, cut, reduce, replace_with, write_pyramid,
};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Content of a written slide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlideSummary {
    /// Length of the slide's file.
    pub bytes: u64,
    /// Nuclei with a visible part on the slide. 0 without annotations, which count them.
    pub nuclei: u64,
    /// Pixels of the blocks with tissue.
    pub rendered_px: u64,
}

/// A rendered block.
struct Block {
    width: usize,
    height: usize,
    /// Encoded tiles with column and row within the block.
    tiles: Vec<([usize; 2], Vec<u8>)>,
    reduced: Vec<u8>,
    /// Number of nuclei, and their features as text.
    nuclei: (u64, String),
}

/// Writes a slide as a pyramid, and with `annotations` the outlines of its nuclei as GeoJSON in pixels of the slide. Replaces
/// existing files with atomic publish. `done` receives the share of the rows after each.
///
/// # Errors
/// Returns [`ImageFileError::Unwritable`].
pub fn write_slide(
    slide: &SlideTissue,
    (path, annotations): (&Path, Option<&Path>),
    format: PyramidFormat,
    parallel: &impl Parallel,
    mut done: impl FnMut(f64),
) -> Result<SlideSummary, ImageFileError> {
    let mut summary = SlideSummary::default();
    let mut write = |outlines: Option<&File>| -> Result<u64, ImageFileError> {
        let kind = (format, GLASS, MICRONS_PER_PX);
        write_pyramid(path, slide.size_px, kind, |pyramid| {
            let mut features = outlines.map(|file| Features { file: BufWriter::new(file), is_first: true });
            if let Some(features) = &mut features {
                features.file.write_all(b"{\"type\":\"FeatureCollection\",\"features\":[")?;
            }
            let (mut state, [_, rows]) = (TissueRow::default(), slide.blocks());
            for row in 0..rows {
                slide.enter(&mut state, row, parallel);
                let found = write_row(slide, &state, row, format, pyramid, features.as_mut(), parallel)?;
                summary.nuclei += found.nuclei;
                summary.rendered_px += found.rendered_px;
                done((row + 1) as f64 / rows as f64);
            }
            if let Some(features) = &mut features {
                features.file.write_all(b"\n]}\n")?;
                features.file.flush()?;
            }
            Ok(())
        })
    };
    summary.bytes = match annotations {
        None => write(None)?,
        // The annotations are complete before the slide is published, and published after it.
        Some(path) => {
            let mut of_slide = None;
            let written = replace_with(path, |file| {
                write(Some(file)).map_err(|error| {
                    of_slide = Some(error);
                    io::Error::other("the slide cannot be written")
                })
            });
            of_slide.map_or(written, Err)?
        }
    };
    Ok(summary)
}

struct Features<'a> {
    file: BufWriter<&'a File>,
    is_first: bool,
}

fn write_row(
    slide: &SlideTissue,
    state: &TissueRow,
    row: usize,
    format: PyramidFormat,
    pyramid: &mut Pyramid<'_>,
    mut features: Option<&mut Features<'_>>,
    parallel: &impl Parallel,
) -> io::Result<SlideSummary> {
    let [columns, _] = slide.blocks();
    let has_outlines = features.is_some();
    let made = parallel.map(columns, |column| block(slide, state, [column, row], format, has_outlines));
    let height = CELL_PX.min(slide.size_px[1] as usize - row * CELL_PX);
    let reduced_width = pyramid.reduced_size_px()[0];
    // Rows of a coarser level that have no tissue below them stay glass.
    let mut reduced = GLASS.repeat(reduced_width * height.div_ceil(4));
    let mut summary = SlideSummary::default();
    for (column, block) in made.into_iter().enumerate() {
        let Some(Block { width, height, tiles, reduced: part, nuclei }) = block? else { continue };
        summary.rendered_px += (width * height) as u64;
        summary.nuclei += nuclei.0;
        let first = [column, row].map(|at| at * (CELL_PX / PYRAMID_TILE_PX));
        for ([x, y], bytes) in tiles {
            pyramid.tile(first[0] + x, first[1] + y, &bytes)?;
        }
        let part_width = width / 4;
        if reduced_width > 0 && part_width > 0 {
            for (y, pixels) in part.chunks_exact(3 * part_width).enumerate() {
                let start = 3 * (y * reduced_width + column * CELL_PX / 4);
                reduced[start..start + pixels.len()].copy_from_slice(pixels);
            }
        }
        if let Some(features) = features.as_mut().filter(|_| nuclei.0 > 0) {
            let skipped = usize::from(std::mem::take(&mut features.is_first));
            // Each feature begins with a comma.
            features.file.write_all(&nuclei.1.as_bytes()[skipped..])?;
        }
    }
    pyramid.reduced(&reduced)?;
    Ok(summary)
}

/// Renders and encodes a block. `None` for glass.
fn block(
    slide: &SlideTissue,
    state: &TissueRow,
    [column, row]: [usize; 2],
    format: PyramidFormat,
    has_outlines: bool,
) -> io::Result<Option<Block>> {
    let Some((width, height, pixels)) = slide.block(state, column, row) else { return Ok(None) };
    let mut tiles = Vec::new();
    for y in 0..height.div_ceil(PYRAMID_TILE_PX) {
        for x in 0..width.div_ceil(PYRAMID_TILE_PX) {
            if let Some(tile) = cut(&pixels, width, [x, y].map(|at| at * PYRAMID_TILE_PX), GLASS) {
                tiles.push(([x, y], format.encode(tile)?));
            }
        }
    }
    let reduced = reduce(&pixels, width, width / 4);
    let outlines = if has_outlines { slide.outlines(state, column, row) } else { Vec::new() };
    let mut text = String::new();
    outlines.iter().for_each(|outline| feature(outline, &mut text));
    Ok(Some(Block { width, height, tiles, reduced, nuclei: (outlines.len() as u64, text) }))
}

/// Appends a nucleus as QuPath writes one: a comma, then the feature.
fn feature(outline: &NucleusOutline, text: &mut String) {
    text.push_str(",\n{\"type\":\"Feature\",\"geometry\":{\"type\":\"Polygon\",\"coordinates\":[[");
    for [x, y] in outline {
        // Writing to a string never fails.
        let _ = write!(text, "[{x},{y}],");
    }
    if let Some([x, y]) = outline.first() {
        let _ = write!(text, "[{x},{y}]");
    }
    text.push_str(
        "]]},\"properties\":{\"objectType\":\"annotation\",\"classification\":{\"name\":\"Nucleus\"}}}",
    );
}
