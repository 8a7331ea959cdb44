//! Objects given by their outlines, as annotation tools write them.
//!
//! Overlaps are computed on outlines, not on pixels, to the precision of 64-bit coordinates. Objects of one set may
//! overlap each other. The area that two of them share with one object of the other set then counts twice, as in the
//! reference application, so Dice may exceed 1.

use super::{BoundingBox, ObjectSet};
use i_overlay::core::fill_rule::FillRule;
use i_overlay::core::overlay_rule::OverlayRule;
use i_overlay::float::simplify::SimplifyShape;
use i_overlay::float::single::SingleFloatOverlay;

/// One object: closed rings of `[x, y]`, in pixels from the image's top left corner. A point is inside if a ray from it
/// crosses the rings an odd number of times (even-odd rule). Rings may therefore be holes and parts, of either
/// direction. The first position need not be repeated at the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Polygon {
    /// The rings.
    pub rings: Vec<Vec<[f64; 2]>>,
}

/// The objects of one annotation.
#[derive(Clone, Debug)]
pub struct PolygonObjects {
    /// Each object as shapes of clean rings: outlines in one direction, holes in the other.
    shapes: Vec<Shapes>,
    areas: Vec<f64>,
}

type Shapes = Vec<Vec<Vec<[f64; 2]>>>;

impl PolygonObjects {
    /// Creates one object for each polygon, without those that enclose no area.
    #[must_use]
    pub fn new(polygons: &[Polygon]) -> Self {
        let clean = polygons.iter().map(|polygon| polygon.rings.simplify_shape_as::<i64>(FillRule::EvenOdd));
        let shapes: Vec<Shapes> = clean.filter(|shapes| area(shapes) > 0.0).collect();
        let areas = shapes.iter().map(area).collect();
        Self { shapes, areas }
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn count(&self) -> usize {
        self.shapes.len()
    }
}

/// Returns the area by the shoelace formula. Holes run in the other direction and therefore subtract.
fn area(shapes: &Shapes) -> f64 {
    let ring = |ring: &Vec<[f64; 2]>| -> f64 {
        let next = ring.iter().cycle().skip(1);
        ring.iter().zip(next).map(|(a, b)| a[0] * b[1] - b[0] * a[1]).sum::<f64>() / 2.0
    };
    shapes.iter().flatten().map(ring).sum::<f64>().abs()
}

impl ObjectSet for PolygonObjects {
    fn bounds(&self) -> Vec<BoundingBox> {
        let empty = BoundingBox { low: [f64::INFINITY; 2], high: [f64::NEG_INFINITY; 2] };
        let bounds = |shapes: &Shapes| {
            shapes.iter().flatten().flatten().fold(empty, |bounds, [x, y]| BoundingBox {
                low: [bounds.low[0].min(*x), bounds.low[1].min(*y)],
                high: [bounds.high[0].max(*x), bounds.high[1].max(*y)],
            })
        };
        self.shapes.iter().map(bounds).collect()
    }

    fn area(&self, object: usize) -> f64 {
        self.areas[object]
    }

    fn shared_area(&self, object: usize, other: &Self, of_other: usize) -> f64 {
        let (one, other) = (&self.shapes[object], &other.shapes[of_other]);
        area(&one.overlay_as::<i64>(other, OverlayRule::Intersect, FillRule::EvenOdd))
    }
}
