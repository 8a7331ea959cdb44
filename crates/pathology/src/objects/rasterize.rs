//! Rasterizes polygons to a label map or mask of a window.
//!
//! A pixel belongs to a polygon if its center is inside by the even-odd rule. A center on an outline belongs to the
//! side to its right or below it. Edges are not smoothed. Crossings are computed in the pixels of the whole image, so a
//! window has exactly the pixels of the whole.

use super::Polygon;
use pleach_regions::{LabelMap, PixelRectangle, ShapeError};
use pleach_workflow::AnnotationRules;
use std::ops::{ControlFlow, Range};

/// A window of an image on which polygons are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// Length of a pixel in the unit of the polygons' positions: 4 for a slide read at a quarter of its magnification.
    pub positions_a_px: f64,
    /// The window, pixels.
    pub window: PixelRectangle,
}

impl View {
    /// Returns the view of a whole image whose pixels are the unit of positions.
    #[must_use]
    pub fn whole(width_px: u32, height_px: u32) -> Self {
        let window = PixelRectangle { x_px: 0, y_px: 0, width_px, height_px };
        Self { positions_a_px: 1.0, window }
    }

    /// Returns the view of a whole tile, in the unit of its annotations. A tile states no size of its pixels.
    #[must_use]
    pub fn of_tile(width_px: u32, height_px: u32, rules: &AnnotationRules) -> Self {
        let positions_a_px = rules.positions_a_px(None).unwrap_or(1.0);
        Self { positions_a_px, ..Self::whole(width_px, height_px) }
    }

    /// Returns the window's first and last position on each axis.
    pub(super) fn positions(&self) -> [[f64; 2]; 2] {
        let PixelRectangle { x_px, y_px, width_px, height_px } = self.window;
        let range = |start: u32, length: u32| {
            let start = f64::from(start);
            [start, start + f64::from(length)].map(|side| side * self.positions_a_px)
        };
        [range(x_px, width_px), range(y_px, height_px)]
    }

    fn px(&self, position: [f64; 2]) -> [f64; 2] {
        position.map(|coordinate| coordinate / self.positions_a_px)
    }
}

/// Returns the label map of an image of this size. Pixels of the first polygon are 1, of the second 2, and so on. Where
/// polygons overlap, the later one covers the earlier. Parts outside the image are cut off.
///
/// # Errors
/// Returns [`ShapeError`] if a side is zero.
pub fn rasterize(polygons: &[Polygon], width_px: u32, height_px: u32) -> Result<LabelMap, ShapeError> {
    let view = View::whole(width_px, height_px);
    labels((1..).zip(polygons.iter().map(|polygon| polygon.rings.iter().map(Vec::as_slice))), &view)
}

/// Returns the label map of a view. Each polygon has its label. Later ones cover earlier ones.
pub(super) fn labels<'a, R: Iterator<Item = &'a [[f64; 2]]>>(
    polygons: impl Iterator<Item = (u32, R)>,
    view: &View,
) -> Result<LabelMap, ShapeError> {
    let PixelRectangle { width_px, height_px, .. } = view.window;
    let mut labels = vec![0; width_px as usize * height_px as usize];
    for (label, rings) in polygons {
        draw(rings, view, |row, columns| {
            let start = row as usize * width_px as usize;
            labels[start + columns.start as usize..start + columns.end as usize].fill(label);
            ControlFlow::Continue(())
        });
    }
    LabelMap::new(width_px, height_px, labels)
}

/// Returns whether a polygon covers a pixel of a view, regardless of other polygons.
pub(super) fn covers_a_pixel<'a>(rings: impl Iterator<Item = &'a [[f64; 2]]>, view: &View) -> bool {
    let mut covers = false;
    draw(rings, view, |_, _| {
        covers = true;
        ControlFlow::Break(())
    });
    covers
}

/// Calls `found` with each row of the window and its columns inside a polygon, until it breaks.
pub(super) fn draw<'a>(
    rings: impl Iterator<Item = &'a [[f64; 2]]>,
    view: &View,
    found: impl FnMut(u32, Range<u32>) -> ControlFlow<()>,
) {
    let edges = rings.flat_map(|ring| {
        let next = ring.iter().cycle().skip(1);
        ring.iter().zip(next).filter_map(|(from, to)| Edge::new(view.px(*from), view.px(*to), view))
    });
    spans(&mut edges.collect::<Vec<Edge>>(), view, found);
}

/// An edge that crosses the centers of rows `first..end` of a window.
struct Edge {
    first: u32,
    end: u32,
    /// Upper end, and the change in x with every row (`slope`), in pixels of the image.
    top: [f64; 2],
    slope: f64,
}

impl Edge {
    /// Creates an edge. Returns `None` if it crosses no row of the window.
    fn new(from: [f64; 2], to: [f64; 2], view: &View) -> Option<Self> {
        let (top, bottom) = if from[1] <= to[1] { (from, to) } else { (to, from) };
        // Half open, so that a row through a corner is crossed once.
        let row = |y: f64| index(y, view.window.y_px, view.window.height_px);
        let (first, end) = (row(top[1]), row(bottom[1]));
        let slope = (bottom[0] - top[0]) / (bottom[1] - top[1]);
        (first < end).then_some(Self { first, end, top, slope })
    }

    fn crossing(&self, row: u32, first_row: u32) -> f64 {
        self.top[0] + (f64::from(first_row) + f64::from(row) + 0.5 - self.top[1]) * self.slope
    }
}

/// Returns the first of `count` pixels from `start` whose center is at `coordinate` or beyond, counted from `start`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn index(coordinate: f64, start: u32, count: u32) -> u32 {
    ((coordinate - 0.5).ceil() - f64::from(start)).clamp(0.0, f64::from(count)) as u32
}

/// Calls `found` with each row and its columns inside the polygon. The scan holds only the edges that cross the current
/// row, so memory does not grow with the number of rows that edges span.
fn spans(edges: &mut [Edge], view: &View, mut found: impl FnMut(u32, Range<u32>) -> ControlFlow<()>) {
    let PixelRectangle { x_px, y_px, width_px, .. } = view.window;
    // Sorted by first row: the scan activates each edge once.
    edges.sort_unstable_by_key(|edge| edge.first);
    let mut waiting = edges.iter().peekable();
    let mut active: Vec<&Edge> = Vec::new();
    let mut crossings: Vec<f64> = Vec::new();
    let Some(mut row) = waiting.peek().map(|edge| edge.first) else { return };
    while !active.is_empty() || waiting.peek().is_some() {
        while let Some(edge) = waiting.next_if(|edge| edge.first <= row) {
            active.push(edge);
        }
        active.retain(|edge| edge.end > row);
        crossings.clear();
        crossings.extend(active.iter().map(|edge| edge.crossing(row, y_px)));
        // Even-odd rule: after sorting, pairs of crossings bound the inside.
        crossings.sort_unstable_by(f64::total_cmp);
        for inside in crossings.chunks_exact(2) {
            let (left, right) = (index(inside[0], x_px, width_px), index(inside[1], x_px, width_px));
            if left < right && found(row, left..right).is_break() {
                return;
            }
        }
        row += 1;
    }
}
