//! Many outlines in little memory, with an index of their positions: the annotations of a slide.
//!
//! Positions are in three arrays, 16 bytes each, and 4 bytes for each ring and outline. An R-tree of bounding boxes finds
//! the outlines of a window. Outlines are numbered in the order of the file, on every window alike, so the label map of a
//! window is a part of the label map of the whole.

use super::rasterize::{View, covers_a_pixel, draw, labels};
use pleach_regions::{LabelMap, PixelRectangle, ShapeError};
use rstar::primitives::{GeomWithData, Rectangle};
use rstar::{AABB, RTree};
use std::ops::{ControlFlow, Range};

/// Closed rings of positions for each outline, by the even-odd rule.
#[derive(Debug, Default)]
pub struct Outlines {
    positions: Vec<[f64; 2]>,
    /// End of each ring in `positions`.
    ring_ends: Vec<u32>,
    /// End of each outline in `ring_ends`.
    ends: Vec<u32>,
    index: RTree<Indexed>,
}

/// Bounding box and number of an outline.
type Indexed = GeomWithData<Rectangle<[f64; 2]>, u32>;

impl Outlines {
    /// Adds an outline. [`finish`](Self::finish) must follow the last one. Returns `false`, and adds nothing, if there
    /// would be more than 2^32 positions.
    pub(crate) fn push(&mut self, rings: &[Vec<[f64; 2]>]) -> bool {
        let positions = self.positions.len() + rings.iter().map(Vec::len).sum::<usize>();
        if u32::try_from(positions).is_err() {
            return false;
        }
        for ring in rings {
            self.positions.extend_from_slice(ring);
            self.ring_ends.push(self.positions.len() as u32);
        }
        self.ends.push(self.ring_ends.len() as u32);
        true
    }

    /// Indexes the outlines.
    pub(crate) fn finish(&mut self) {
        self.positions.shrink_to_fit();
        let boxes = (0..self.len()).filter_map(|outline| {
            let [low, high] = self.bounds(outline)?;
            Some(GeomWithData::new(Rectangle::from_corners(low, high), outline as u32))
        });
        self.index = RTree::bulk_load(boxes.collect());
    }

    /// Returns the number of outlines.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether there is no outline.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the bytes in use.
    #[must_use]
    pub fn bytes(&self) -> usize {
        // A leaf of the tree has a box and a number. Inner nodes add about a fifth.
        let of_index = self.ends.len() * size_of::<Indexed>() * 6 / 5;
        self.positions.len() * 16 + (self.ring_ends.len() + self.ends.len()) * 4 + of_index
    }

    /// Returns the rings of an outline.
    pub fn rings(&self, outline: usize) -> impl Iterator<Item = &[[f64; 2]]> + Clone {
        range(&self.ends, outline).map(|ring| &self.positions[range(&self.ring_ends, ring)])
    }

    /// Returns the lowest and the highest position of an outline. `None` without a position.
    #[must_use]
    pub fn bounds(&self, outline: usize) -> Option<[[f64; 2]; 2]> {
        let mut positions = self.rings(outline).flatten();
        let first = *positions.next()?;
        Some(positions.fold([first; 2], |[low, high], [x, y]| {
            [[low[0].min(*x), low[1].min(*y)], [high[0].max(*x), high[1].max(*y)]]
        }))
    }

    /// Returns the outlines whose bounding box is in the window, in ascending order.
    fn within(&self, view: &View) -> Vec<usize> {
        let [x, y] = view.positions();
        let window = AABB::from_corners([x[0], y[0]], [x[1], y[1]]);
        let found = self.index.locate_in_envelope_intersecting(window);
        let mut found: Vec<usize> = found.map(|outline| outline.data as usize).collect();
        found.sort_unstable();
        found
    }

    /// Draws the label map of a view: outline 0 has label 1. Later outlines cover earlier ones.
    ///
    /// # Errors
    /// [`ShapeError`] if a side is zero.
    pub fn labels(&self, view: &View) -> Result<LabelMap, ShapeError> {
        labels(self.within(view).into_iter().map(|outline| (outline as u32 + 1, self.rings(outline))), view)
    }

    /// Returns the pixels of a view that an outline covers, as 255, and all others as 0.
    #[must_use]
    pub fn mask(&self, view: &View) -> Vec<u8> {
        let PixelRectangle { width_px, height_px, .. } = view.window;
        let mut mask = vec![0; width_px as usize * height_px as usize];
        for outline in self.within(view) {
            draw(self.rings(outline), view, |row, columns| {
                let start = row as usize * width_px as usize;
                mask[start + columns.start as usize..start + columns.end as usize].fill(255);
                ControlFlow::Continue(())
            });
        }
        mask
    }

    /// Returns whether an outline covers a pixel of a view.
    #[must_use]
    pub fn covers(&self, outline: usize, view: &View) -> bool {
        covers_a_pixel(self.rings(outline), view)
    }

    /// Returns whether any outline covers a pixel of a view.
    #[must_use]
    pub fn cover_any(&self, view: &View) -> bool {
        self.within(view).into_iter().any(|outline| self.covers(outline, view))
    }

    /// Returns whether an outline may cover a pixel beyond the window: it reaches the centers of the first pixels
    /// outside.
    #[must_use]
    pub fn reaches_beyond(&self, outline: usize, view: &View) -> bool {
        let half = view.positions_a_px / 2.0;
        let [x, y] = view.positions();
        let within = |of: f64, [start, end]: [f64; 2]| (start - half..=end + half).contains(&of);
        self.bounds(outline).is_some_and(|[low, high]| {
            !(within(low[0], x) && within(high[0], x) && within(low[1], y) && within(high[1], y))
        })
    }

    /// Returns whether a ring of an outline crosses itself. Rings that touch themselves do not.
    #[must_use]
    pub fn crosses_itself(&self, outline: usize) -> bool {
        self.rings(outline).any(crosses_itself)
    }
}

/// Returns the entries of number `index`, whose ends are listed.
fn range(ends: &[u32], index: usize) -> Range<usize> {
    let start = index.checked_sub(1).map_or(0, |before| ends[before] as usize);
    start..ends[index] as usize
}

/// Returns whether two edges of a ring cross, each with its ends on both sides of the other. A sweep along x compares
/// only edges whose extents overlap.
fn crosses_itself(ring: &[[f64; 2]]) -> bool {
    let next = ring.iter().cycle().skip(1);
    let mut edges: Vec<[[f64; 2]; 2]> =
        ring.iter().zip(next).map(|(a, b)| if a[0] <= b[0] { [*a, *b] } else { [*b, *a] }).collect();
    edges.sort_unstable_by(|a, b| a[0][0].total_cmp(&b[0][0]));
    let side =
        |[a, b]: &[[f64; 2]; 2], p: &[f64; 2]| (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]);
    let splits = |edge: &[[f64; 2]; 2], [p, q]: &[[f64; 2]; 2]| side(edge, p) * side(edge, q) < 0.0;
    edges.iter().enumerate().any(|(number, edge)| {
        let later = edges[number + 1..].iter().take_while(|other| other[0][0] < edge[1][0]);
        later.into_iter().any(|other| splits(edge, other) && splits(other, edge))
    })
}
