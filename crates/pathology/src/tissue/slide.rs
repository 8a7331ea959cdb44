//! Synthetic slides: islands of tissue on glass, of any size, rendered in blocks.
//!
//! A block is a function of the slide's seed, size and the block's position. Its pixels equal those of any larger
//! rendering, so blocks join without seams. Nuclei are placed by cells of a grid (`slide/cells.rs`).

mod cells;
mod coverage;
mod write;

use super::appearance::TileAppearance;
use super::arithmetic::Draw;
use super::labels;
use super::layout::Layout;
use super::optics;
use super::paint::Area;
use crate::outline;
use cells::Cell;
use coverage::{Content, Coverage};
use std::collections::HashMap;
use std::ops::Range;
pub use write::{SlideSummary, write_slide};

/// Side of a block and of a cell, pixels.
pub const CELL_PX: usize = 512;
/// Largest side of a slide, pixels: 262,144. Positions are `f32`, which are exact to 1/64 px there.
pub const MAX_SLIDE_PX: u32 = 1 << 18;
/// B, G, R of glass: all blocks without tissue have this color, so that they cost one tile in a file.
pub const GLASS: [u8; 3] = [246; 3];
/// Microns per pixel: 40×.
pub const MICRONS_PER_PX: f64 = 0.25;

/// Reach of a structure beyond its center, pixels: the longest nucleus with its cytoplasm (47 + 5 + 11), or lumen.
const REACH_PX: f32 = 80.0;

/// A synthetic slide.
#[derive(Clone, Debug)]
pub struct SlideTissue {
    recipe: TileAppearance,
    coverage: Coverage,
    seed: u64,
    size_px: [u32; 2],
}

/// Structures of a row of blocks and its neighbors. Rows are visited in order, from 0.
#[derive(Clone, Debug, Default)]
pub struct TissueRow {
    candidates: HashMap<Cell, Layout>,
    placed: HashMap<Cell, Layout>,
}

/// Applies a function to 0..count, in any order and on any threads, and returns the results in order.
pub trait Parallel {
    /// Applies the function.
    fn map<T: Send>(&self, count: usize, of: impl Fn(usize) -> T + Sync) -> Vec<T>;
}

/// Outline of a nucleus in pixels of the slide.
pub type NucleusOutline = outline::Loop;

impl SlideTissue {
    /// Draws the slide of a seed.
    #[must_use]
    pub fn new(seed: u64, size_px: [u32; 2]) -> Self {
        let mut draw = Draw::new(seed, 0);
        let recipe = TileAppearance::draw(&mut draw);
        let coverage = Coverage::draw(size_px, &mut draw);
        Self { recipe, coverage, seed, size_px }
    }

    /// Returns the number of columns and rows of blocks.
    #[must_use]
    pub fn blocks(&self) -> [usize; 2] {
        self.size_px.map(|side| (side as usize).div_ceil(CELL_PX))
    }

    /// Advances to a row of blocks: adds the structures that it needs, and drops those of rows that have passed.
    pub fn enter(&self, state: &mut TissueRow, row: usize, parallel: &impl Parallel) {
        let row = row as i32;
        let columns = -2..self.blocks()[0] as i32 + 2;
        let missing = |of: &HashMap<Cell, Layout>, rows: Range<i32>, columns: Range<i32>| -> Vec<Cell> {
            let cells = rows.flat_map(|row| columns.clone().map(move |column| [column, row]));
            cells.filter(|cell| !of.contains_key(cell)).collect()
        };
        state.candidates.retain(|cell, _| cell[1] >= row - 2);
        let cells = missing(&state.candidates, row - 2..row + 3, columns.clone());
        let made = parallel
            .map(cells.len(), |n| cells::candidates(&self.recipe, &self.coverage, self.seed, cells[n]));
        state.candidates.extend(cells.into_iter().zip(made));
        state.placed.retain(|cell, _| cell[1] >= row - 1);
        let cells = missing(&state.placed, row - 1..row + 2, columns.start + 1..columns.end - 1);
        let candidates = &state.candidates;
        let made = parallel.map(cells.len(), |n| cells::survivors(cells[n], |cell| candidates.get(&cell)));
        state.placed.extend(cells.into_iter().zip(made));
    }

    /// Renders a block of the entered row: width, height, and pixels in B, G, R. `None` for a block of glass.
    #[must_use]
    pub fn block(&self, state: &TissueRow, column: usize, row: usize) -> Option<(usize, usize, Vec<u8>)> {
        let cell = [column, row].map(|at| at as i32);
        let [width, height] = [0, 1].map(|axis| {
            let start = cell[axis] as usize * CELL_PX;
            CELL_PX.min(self.size_px[axis] as usize - start)
        });
        if cells::content(&self.coverage, cell) == Content::Glass {
            return None;
        }
        let [left, top] = cell.map(|at| at * CELL_PX as i32);
        let area = Area { left, top, width, height };
        let layout = gather(state, cell);
        let is_full = cells::content(&self.coverage, cell) == Content::Tissue;
        // Margins of the blur are beyond the bound of a full block, and may have less tissue.
        let coverage = |x: f32, y: f32| {
            let is_inside = |at: f32, start: i32| (0.0..CELL_PX as f32).contains(&(at - start as f32));
            if is_full && is_inside(x, left) && is_inside(y, top) { 1.0 } else { self.coverage.at(x, y) }
        };
        let mut pixels = optics::render_part(&self.recipe, &layout, area, coverage);
        self.clear_glass(area, &mut pixels);
        Some((width, height, pixels))
    }

    /// Sets pixels far from tissue to [`GLASS`], as in blocks without tissue: the camera's noise would end at a block's
    /// border.
    fn clear_glass(&self, Area { left, top, width, .. }: Area, pixels: &mut [u8]) {
        for (index, pixel) in pixels.as_chunks_mut::<3>().0.iter_mut().enumerate() {
            // Only bright pixels: the coverage costs more than the comparison.
            if pixel.iter().all(|value| *value > 232) {
                let [x, y] = [left + (index % width) as i32, top + (index / width) as i32];
                if self.coverage.at(x as f32, y as f32) == 0.0 {
                    *pixel = GLASS;
                }
            }
        }
    }

    /// Returns the outlines of the nuclei whose centers are in a block of the entered row. Where nuclei overlap, a pixel
    /// belongs to one of them.
    #[must_use]
    pub fn outlines(&self, state: &TissueRow, column: usize, row: usize) -> Vec<NucleusOutline> {
        let cell = [column, row].map(|at| at as i32);
        let [left, top] = cells::origin(cell);
        let mut layout = gather(state, cell);
        // Pixels around the cell that its nuclei reach.
        let margin = REACH_PX.ceil();
        let side = CELL_PX + 2 * margin as usize;
        for nucleus in &mut layout.nuclei {
            nucleus.center = [nucleus.center[0] - left + margin, nucleus.center[1] - top + margin];
        }
        let labels = labels::rasterize(&mut layout.nuclei, side as u32);
        let shift = [left, top].map(|at| at as i32 - margin as i32);
        let is_own =
            |center: &[f32; 2]| center.iter().all(|at| (margin..margin + CELL_PX as f32).contains(at));
        let outline = |(index, nucleus): (usize, &super::nucleus::Nucleus)| {
            let reach = nucleus.reach_px() as i32 + 1;
            let start = nucleus.center.map(|at| (at as i32 - reach).max(0));
            let end = nucleus.center.map(|at| (at as i32 + reach + 1).min(side as i32));
            let width = (end[0] - start[0]) as usize;
            let mut mask = Vec::with_capacity(width * width);
            for y in start[1]..end[1] {
                for x in start[0]..end[0] {
                    let at = [x + shift[0], y + shift[1]];
                    let is_on = (0..2).all(|axis| (0..self.size_px[axis] as i32).contains(&at[axis]));
                    let label = labels.data[y as usize * side + x as usize];
                    mask.push(u8::from(is_on && usize::from(label) == index + 1));
                }
            }
            // One piece by construction. Its outer loop is the longest.
            let longest = outline::trace(&mask, width).into_iter().max_by_key(Vec::len)?;
            let corner = |[x, y]: [i32; 2]| [x + start[0] + shift[0], y + start[1] + shift[1]];
            Some(longest.into_iter().map(corner).collect())
        };
        let nuclei = layout.nuclei.iter().enumerate().filter(|(_, nucleus)| is_own(&nucleus.center));
        nuclei.filter_map(outline).collect()
    }
}

/// Returns all structures that reach into a block, in an order that any two blocks agree on.
fn gather(state: &TissueRow, cell: Cell) -> Layout {
    let (low, high) = (cells::origin(cell), cells::origin(cell.map(|at| at + 1)));
    let reaches = |center: &[f32; 2]| {
        (0..2).all(|axis| (low[axis] - REACH_PX..high[axis] + REACH_PX).contains(&center[axis]))
    };
    let mut all = Layout { nuclei: Vec::new(), blood: Vec::new(), holes: Vec::new() };
    for layout in cells::around(cell).filter_map(|cell| state.placed.get(&cell)) {
        all.nuclei.extend(layout.nuclei.iter().filter(|nucleus| reaches(&nucleus.center)).cloned());
        all.blood.extend(layout.blood.iter().filter(|disc| reaches(&disc.center)));
        all.holes.extend(layout.holes.iter().filter(|disc| reaches(&disc.center)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    struct OneThread;

    impl Parallel for OneThread {
        fn map<T: Send>(&self, count: usize, of: impl Fn(usize) -> T + Sync) -> Vec<T> {
            (0..count).map(of).collect()
        }
    }

    /// Renders an area around the corner of four blocks at once, with all structures of the slide.
    #[test]
    fn blocks_are_parts_of_one_rendering() {
        let slide = SlideTissue::new(3, [2_048, 2_048]);
        let (mut state, mut all) = (TissueRow::default(), HashMap::new());
        let mut blocks: HashMap<Cell, Vec<u8>> = HashMap::new();
        for row in 0..4 {
            slide.enter(&mut state, row, &OneThread);
            all.extend(state.placed.clone());
            for column in 0..4 {
                let block = slide.block(&state, column, row).map(|(_, _, pixels)| pixels);
                let glass = || GLASS.repeat(CELL_PX * CELL_PX);
                blocks.insert([column as i32, row as i32], block.unwrap_or_else(glass));
            }
        }
        let mut cells: Vec<&Cell> = all.keys().collect();
        cells.sort_unstable_by_key(|[column, row]| (*row, *column));
        let mut layout = Layout { nuclei: Vec::new(), blood: Vec::new(), holes: Vec::new() };
        for cell in cells {
            layout.nuclei.extend(all[cell].nuclei.iter().cloned());
            layout.blood.extend(&all[cell].blood);
            layout.holes.extend(&all[cell].holes);
        }
        let mut tissue = 0;
        for corner in [512, 1_536] {
            let area = Area { left: corner - 90, top: corner - 90, width: 180, height: 180 };
            let coverage = |x: f32, y: f32| slide.coverage.at(x, y);
            let mut whole = optics::render_part(&slide.recipe, &layout, area, coverage);
            slide.clear_glass(area, &mut whole);
            for (index, pixel) in whole.as_chunks::<3>().0.iter().enumerate() {
                let at = [corner - 90 + index as i32 % 180, corner - 90 + index as i32 / 180];
                let (cell, inner) = (at.map(|at| at / CELL_PX as i32), at.map(|at| at as usize % CELL_PX));
                let found = &blocks[&cell][3 * (inner[1] * CELL_PX + inner[0])..][..3];
                assert_eq!(found, pixel, "{at:?}");
                tissue += usize::from(*pixel != GLASS);
            }
        }
        assert!(tissue > 10_000, "{tissue} pixels of tissue");
    }
}
