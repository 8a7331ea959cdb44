//! The shape of the tissue on a slide: islands with ragged outlines on glass.

use super::super::arithmetic::{Draw, smoothstep};
use super::super::noise::Field;

/// Number of islands: sections of one block, or pieces of a biopsy.
const ISLANDS: usize = 4;
/// Half width of the edge of the tissue, pixels.
const EDGE_PX: f32 = 4.0;
/// Amplitude of the outline's roughness as a share of the shorter half axis of an island.
const ROUGHNESS: f32 = 0.06;
/// Features of the outline per shorter half axis.
const FEATURES: f32 = 5.0;
/// Bound of the roughness field, which has deviation 1.
const FIELD_BOUND: f32 = 2.0;

/// An ellipse with a rough outline.
#[derive(Clone, Copy, Debug)]
struct Island {
    center: [f32; 2],
    axis: [f32; 2],
    half_axes_px: [f32; 2],
}

/// Tissue content of a rectangle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Glass,
    Tissue,
    /// Possibly both: the bounds exclude neither.
    Both,
}

/// The share of tissue at each position of a slide. A pure function of the position.
#[derive(Clone, Debug)]
pub(super) struct Coverage {
    islands: Vec<Island>,
    rough: Field,
}

impl Coverage {
    /// Draws the islands of a slide. Together they cover a quarter of it, less where they overlap.
    pub(super) fn draw(size_px: [u32; 2], draw: &mut Draw) -> Self {
        let [width, height] = size_px.map(|side| side as f32);
        let shorter = width.min(height);
        let island = |number: usize| {
            // One in each quarter, so that they rarely merge.
            let quarter = [(number % 2) as f32, (number / 2 % 2) as f32];
            let at = |side: f32, part: f32, draw: &mut Draw| side * (0.5 * part + draw.range(0.2, 0.3));
            let center = [at(width, quarter[0], draw), at(height, quarter[1], draw)];
            let half_axes_px = [draw.range(0.14, 0.18), draw.range(0.1, 0.14)].map(|share| share * shorter);
            Island { center, axis: draw.direction(), half_axes_px }
        };
        let islands = (0..ISLANDS).map(island).collect();
        Self { islands, rough: Field::new(draw.bits()) }
    }

    /// Returns the share of tissue, 0 to 1.
    pub(super) fn at(&self, x: f32, y: f32) -> f32 {
        self.islands.iter().map(|island| island.share(x, y, self.rough)).fold(0.0, f32::max)
    }

    /// Returns the content of a square from its center and half its diagonal, pixels.
    pub(super) fn content(&self, center: [f32; 2], reach_px: f32) -> Content {
        // The depth changes by at most 1 px per pixel.
        let certain = |island: &Island| reach_px + EDGE_PX + 1.0 + island.roughness_px() * FIELD_BOUND;
        let depths = || self.islands.iter().map(|island| (island, island.depth_px(center[0], center[1])));
        if depths().any(|(island, depth)| depth > certain(island)) {
            Content::Tissue
        } else if depths().all(|(island, depth)| depth < -certain(island)) {
            Content::Glass
        } else {
            Content::Both
        }
    }
}

impl Island {
    fn roughness_px(&self) -> f32 {
        ROUGHNESS * self.half_axes_px[1]
    }

    /// Returns a depth inside the ellipse, pixels, that never exceeds the distance to its outline.
    fn depth_px(&self, x: f32, y: f32) -> f32 {
        let (dx, dy) = (x - self.center[0], y - self.center[1]);
        let [ax, ay] = self.axis;
        let (u, v) = ((dx * ax + dy * ay) / self.half_axes_px[0], (dy * ax - dx * ay) / self.half_axes_px[1]);
        // `half_axes_px[1]` is the shorter one, so the gradient is at most 1.
        (1.0 - (u * u + v * v).sqrt()) * self.half_axes_px[1]
    }

    fn share(&self, x: f32, y: f32, rough: Field) -> f32 {
        let depth = self.depth_px(x, y);
        let bound = self.roughness_px() * FIELD_BOUND + EDGE_PX;
        if depth > bound || depth < -bound {
            return if depth > 0.0 { 1.0 } else { 0.0 };
        }
        let size = self.half_axes_px[1] / FEATURES;
        let field = rough.octaves(x, y, [size, size], &[1.0, 0.6, 0.4, 0.2]);
        let ragged = self.roughness_px() * field.clamp(-FIELD_BOUND, FIELD_BOUND);
        smoothstep(-EDGE_PX, EDGE_PX, depth + ragged)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_bounds_the_shares_of_a_square() {
        let coverage = Coverage::draw([9_000, 7_000], &mut Draw::new(5, 0));
        let mut seen = [0; 3];
        for cell in 0..18 * 14 {
            let (left, top) = ((cell % 18 * 500) as f32, (cell / 18 * 500) as f32);
            let content = coverage.content([left + 250.0, top + 250.0], 354.0);
            seen[content as usize] += 1;
            for step in 0..100 {
                let share = coverage.at(left + (step % 10 * 50) as f32, top + (step / 10 * 50) as f32);
                match content {
                    Content::Glass => assert_eq!(share, 0.0),
                    Content::Tissue => assert_eq!(share, 1.0),
                    Content::Both => {}
                }
            }
        }
        assert!(seen.iter().all(|count| *count > 5), "{seen:?}");
    }
}
