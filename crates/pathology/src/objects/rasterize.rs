//! Rasterizes polygons to a label map.
//!
//! A pixel belongs to a polygon if its center is inside by the even-odd rule. A center on an outline belongs to the
//! side to its right or below it. Edges are not smoothed.

use super::Polygon;
use pleach_regions::{LabelMap, ShapeError};
use std::ops::Range;

/// Returns the label map of an image of this size. Pixels of the first polygon are 1, of the second 2, and so on. Where
/// polygons overlap, the later one covers the earlier. Parts outside the image are cut off.
///
/// # Errors
/// Returns [`ShapeError`] if a side is zero.
pub fn rasterize(polygons: &[Polygon], width_px: u32, height_px: u32) -> Result<LabelMap, ShapeError> {
    let mut labels = vec![0; width_px as usize * height_px as usize];
    let mut edges = Vec::new();
    for (label, polygon) in (1..).zip(polygons) {
        edges.clear();
        edges.extend(edges_of(polygon, height_px));
        spans(&mut edges, width_px, |row, columns| {
            let start = row as usize * width_px as usize;
            labels[start + columns.start as usize..start + columns.end as usize].fill(label);
        });
    }
    LabelMap::new(width_px, height_px, labels)
}

/// Returns whether a polygon covers a pixel of an image of this size, regardless of other polygons.
pub(crate) fn covers_a_pixel(polygon: &Polygon, width_px: u32, height_px: u32) -> bool {
    let mut covers = false;
    let mut edges: Vec<Edge> = edges_of(polygon, height_px).collect();
    spans(&mut edges, width_px, |_, _| covers = true);
    covers
}

impl Polygon {
    /// Returns whether the polygon may cover a pixel beyond the sides of an image: it reaches the centers of the first
    /// pixels outside.
    pub(crate) fn reaches_beyond(&self, width_px: u32, height_px: u32) -> bool {
        let within = |coordinate: f64, side: u32| (-0.5..=f64::from(side) + 0.5).contains(&coordinate);
        let is_within = |[x, y]: &[f64; 2]| within(*x, width_px) && within(*y, height_px);
        !self.rings.iter().flatten().all(is_within)
    }
}

/// Returns the edges of a polygon that cross rows of an image.
fn edges_of(polygon: &Polygon, height_px: u32) -> impl Iterator<Item = Edge> {
    polygon.rings.iter().flat_map(move |ring| {
        let next = ring.iter().cycle().skip(1);
        ring.iter().zip(next).filter_map(move |(from, to)| Edge::new(*from, *to, height_px))
    })
}

/// An edge that crosses the centers of rows `first..end`.
struct Edge {
    first: u32,
    end: u32,
    /// Upper end, and the change in x with every row (`slope`).
    top: [f64; 2],
    slope: f64,
}

impl Edge {
    /// Creates an edge. Returns `None` if it crosses no row of the image.
    fn new(from: [f64; 2], to: [f64; 2], rows: u32) -> Option<Self> {
        let (top, bottom) = if from[1] <= to[1] { (from, to) } else { (to, from) };
        // Half open, so that a row through a corner is crossed once.
        let (first, end) = (index(top[1], rows), index(bottom[1], rows));
        let slope = (bottom[0] - top[0]) / (bottom[1] - top[1]);
        (first < end).then_some(Self { first, end, top, slope })
    }

    fn crossing(&self, row: u32) -> f64 {
        self.top[0] + (f64::from(row) + 0.5 - self.top[1]) * self.slope
    }
}

/// Returns the first of `count` pixels whose center is at `coordinate` or beyond.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped")]
fn index(coordinate: f64, count: u32) -> u32 {
    (coordinate - 0.5).ceil().clamp(0.0, f64::from(count)) as u32
}

/// Calls `found` with each row and its columns inside the polygon. The scan holds only the edges that cross the current
/// row, so memory does not grow with the number of rows that edges span.
fn spans(edges: &mut [Edge], width_px: u32, mut found: impl FnMut(u32, Range<u32>)) {
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
        crossings.extend(active.iter().map(|edge| edge.crossing(row)));
        // Even-odd rule: after sorting, pairs of crossings bound the inside.
        crossings.sort_unstable_by(f64::total_cmp);
        for inside in crossings.chunks_exact(2) {
            let (left, right) = (index(inside[0], width_px), index(inside[1], width_px));
            if left < right {
                found(row, left..right);
            }
        }
        row += 1;
    }
}
