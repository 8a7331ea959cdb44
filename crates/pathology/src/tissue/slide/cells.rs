//! Structures of a slide, cell by cell.
//!
//! Each cell of a square grid is laid out alone, from random numbers of its own. Near a border, a nucleus gives way to the
//! candidates of neighboring cells that come first in a fixed order, so that nuclei do not overlap across borders. The
//! structures of a cell depend on its eight neighbors only, whatever part of the slide is rendered.

use super::super::appearance::TileAppearance;
use super::super::arithmetic::Draw;
use super::super::layout::Layout;
use super::coverage::{Content, Coverage};
use super::{CELL_PX, REACH_PX};

/// Distance within which structures of two cells can touch, pixels: twice the largest radius of a nucleus.
const CONTACT_PX: f32 = 96.0;
/// Spacing of nuclei across the border of two cells, as a multiple of the touching distance: as within clusters.
const SPACING: f32 = 0.84;
/// Minimum share of tissue at the center of a nucleus or blood cell.
const MIN_SHARE: f32 = 0.9;

/// Column and row of a cell.
pub(super) type Cell = [i32; 2];

/// Returns the position of the upper left corner of a cell.
pub(super) fn origin([column, row]: Cell) -> [f32; 2] {
    [column, row].map(|at| (at * CELL_PX as i32) as f32)
}

/// Returns the tissue content of a cell and of all that structures of it reach.
pub(super) fn content(coverage: &Coverage, cell: Cell) -> Content {
    let half = CELL_PX as f32 / 2.0;
    coverage.content(origin(cell).map(|at| at + half), half * std::f32::consts::SQRT_2 + REACH_PX)
}

/// Returns the candidates of a cell in positions of the slide: structures with their center in the cell and in tissue.
pub(super) fn candidates(recipe: &TileAppearance, coverage: &Coverage, seed: u64, cell: Cell) -> Layout {
    let mut layout = Layout { nuclei: Vec::new(), blood: Vec::new(), holes: Vec::new() };
    if content(coverage, cell) == Content::Glass {
        return layout;
    }
    let origin = origin(cell);
    // Stream 0 is the appearance of the slide. Cells number less than 2^15 on each axis.
    let stream = ((cell[1] + 1) as u32) << 16 | (cell[0] + 1) as u32;
    let drawn = Layout::draw_at(recipe, origin, CELL_PX as u32, &mut Draw::new(seed, stream));
    let is_here = |center: [f32; 2]| {
        let is_inside = center.iter().all(|at| (0.0..CELL_PX as f32).contains(at));
        is_inside && coverage.at(origin[0] + center[0], origin[1] + center[1]) >= MIN_SHARE
    };
    let place = |center: [f32; 2]| [origin[0] + center[0], origin[1] + center[1]];
    for mut nucleus in drawn.nuclei.into_iter().filter(|nucleus| is_here(nucleus.center)) {
        nucleus.center = place(nucleus.center);
        layout.nuclei.push(nucleus);
    }
    for (from, to) in [(drawn.blood, &mut layout.blood), (drawn.holes, &mut layout.holes)] {
        for mut disc in from.into_iter().filter(|disc| is_here(disc.center)) {
            disc.center = place(disc.center);
            to.push(disc);
        }
    }
    layout
}

/// Returns the order of cells, which differs for all neighbors.
fn order([column, row]: Cell) -> i32 {
    2 * (row & 1) + (column & 1)
}

/// Returns the structures of a cell: its candidates, without nuclei that overlap candidates of earlier neighbors or the
/// blood of any neighbor. `of` returns the candidates of a cell.
pub(super) fn survivors<'a>(cell: Cell, of: impl Fn(Cell) -> Option<&'a Layout>) -> Layout {
    let Some(own) = of(cell) else {
        return Layout { nuclei: Vec::new(), blood: Vec::new(), holes: Vec::new() };
    };
    let neighbors: Vec<(Cell, &Layout)> =
        around(cell).filter(|at| *at != cell).filter_map(|at| Some((at, of(at)?))).collect();
    let (low, high) = (origin(cell), origin(cell.map(|at| at + 1)));
    let mut layout = own.clone();
    layout.nuclei.retain(|nucleus| {
        let is_inner = (0..2)
            .all(|axis| (low[axis] + CONTACT_PX..high[axis] - CONTACT_PX).contains(&nucleus.center[axis]));
        let near =
            |center: [f32; 2]| (0..2).all(|axis| (center[axis] - nucleus.center[axis]).abs() < CONTACT_PX);
        is_inner
            || neighbors.iter().all(|(at, other)| {
                let gives_way = order(*at) < order(cell);
                let overlaps =
                    |of: &super::super::nucleus::Nucleus| near(of.center) && !nucleus.is_apart(of, SPACING);
                !(gives_way && other.nuclei.iter().any(overlaps))
                    && other.blood.iter().all(|blood| blood.is_clear_of(nucleus))
            })
    });
    layout
}

/// Returns a cell and its neighbors, row by row. Any two cells keep their order in all results.
pub(super) fn around([column, row]: Cell) -> impl Iterator<Item = Cell> {
    (-1..=1).flat_map(move |dy| (-1..=1).map(move |dx| [column + dx, row + dy]))
}
