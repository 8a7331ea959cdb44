//! Shape of each object, with its outline.
//!
//! Axes are those of the ellipse with the object's second moments, where a pixel is a square, as in MATLAB. In scikit-image's
//! `regionprops` it is a point: squares of axes are 4/3 px² less there. The perimeter is that of the reference application: it
//! adds the length of the border within each 2 × 2 px cell.

use super::{OBJECTS, columns, invalid};
use crate::objects::{BoundingBox, ObjectSet, PixelObjects};
use crate::outline::{Traced, trace_bordered};
use crate::typed_operation::{Arguments, Inputs, TypedOperation, port};
use pleach_regions::{AnnotatedObjects, DataRegion, ElementType, Position};
use pleach_workflow::OperationError;
use std::f64::consts::{FRAC_1_SQRT_2, PI, SQRT_2};

/// Class of the objects.
pub(super) const CLASS: &str = "nucleus";

/// Outlines with label, centroid and shape.
pub(crate) const SHAPE: TypedOperation = TypedOperation {
    name: "features.shape",
    version: 1,
    arguments: &[],
    inputs: &[OBJECTS],
    outputs: &[port("shapes", ElementType::Objects)],
    nanoseconds_a_pixel: 10.0,
    bytes_a_pixel: 0.85,
    fixed_bytes: 0,
    within_core: None,
    device: None,
    run,
};

fn run(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let objects = inputs.objects(0)?;
    let mut shapes = AnnotatedObjects::new(columns::SHAPE).map_err(invalid)?;
    let mut plane = Vec::new();
    for (object, bounds) in objects.bounds().into_iter().enumerate() {
        let window = Window::of(bounds);
        let moments = window.draw(&objects, object, &mut plane);
        let traced = trace_bordered(&mut plane, window.width + 2);
        let label = match (inputs.labels(0), objects.pixels_of(object).next()) {
            (Some(labels), Some(first)) => labels[first.start],
            _ => object as u32 + 1,
        };
        let numbers = Shape::of(&moments, &traced, &window).numbers(label);
        shapes.push_polygon(&window.rings(&traced), CLASS, &numbers).map_err(invalid)?;
    }
    Ok(vec![DataRegion::Objects(Box::new(shapes))])
}

/// Traces the rings of an object along the edges of its pixels, in pixels of the image. `plane` is scratch memory.
pub(super) fn outline(
    objects: &PixelObjects,
    object: usize,
    bounds: BoundingBox,
    plane: &mut Vec<u8>,
) -> Vec<Vec<Position>> {
    let window = Window::of(bounds);
    window.draw(objects, object, plane);
    window.rings(&trace_bordered(plane, window.width + 2))
}

/// The bounding box of an object.
struct Window {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
}

impl Window {
    fn of(bounds: BoundingBox) -> Self {
        let [left, top] = bounds.low.map(|low| low as usize);
        let [right, bottom] = bounds.high.map(|high| high as usize + 1);
        Self { left, top, width: right - left, height: bottom - top }
    }

    /// Draws the object alone, with 1 px of background on each side. Returns its moments.
    fn draw(&self, objects: &PixelObjects, object: usize, plane: &mut Vec<u8>) -> Moments {
        plane.clear();
        plane.resize((self.width + 2) * (self.height + 2), 0);
        let mut moments = Moments::default();
        for ([x, y], length) in objects.pixels(object) {
            let (x, y) = (x as usize - self.left, y as usize - self.top);
            plane[(y + 1) * (self.width + 2) + x + 1..][..length as usize].fill(1);
            moments.add_run(x as i128, y as i128, i128::from(length));
        }
        moments
    }

    /// Returns the outlines along the edges of pixels, in pixels of the image.
    fn rings(&self, traced: &Traced) -> Vec<Vec<Position>> {
        let (left, top) = (self.left as f64 - 1.0, self.top as f64 - 1.0);
        let position = |[x, y]: &[i32; 2]| [left + f64::from(*x), top + f64::from(*y)];
        traced.loops.iter().map(|corners| corners.iter().map(position).collect()).collect()
    }
}

/// Numbers of one object.
struct Shape {
    /// Centroid, pixels. The center of the first pixel is at 0.5.
    centroid: [f64; 2],
    area_px: f64,
    perimeter_px: f64,
    major_px: f64,
    minor_px: f64,
    /// Area of the bounding box, pixels.
    box_px: f64,
}

impl Shape {
    fn of(moments: &Moments, traced: &Traced, window: &Window) -> Self {
        let (xx, yy, xy) = moments.central();
        let spread = ((xx - yy).powi(2) + 4.0 * xy * xy).sqrt();
        let axis = |sum: f64| 8_f64.sqrt() * sum.max(0.0).sqrt();
        Self {
            centroid: moments.centroid(window),
            area_px: moments.pixels as f64,
            perimeter_px: perimeter(traced),
            major_px: axis(xx + yy + spread),
            minor_px: axis(xx + yy - spread),
            box_px: (window.width * window.height) as f64,
        }
    }

    /// Returns the numbers in the order of [`columns::SHAPE`].
    fn numbers(&self, label: u32) -> [f64; 10] {
        let (area, perimeter) = (self.area_px, self.perimeter_px);
        let (major, minor) = (self.major_px, self.minor_px);
        let eccentricity = (major * major - minor * minor).max(0.0).sqrt() / major;
        let (extent, circularity) = (area / self.box_px, 4.0 * PI * area / (perimeter * perimeter));
        let [x, y] = self.centroid;
        [f64::from(label), x, y, area, perimeter, major, minor, eccentricity, extent, circularity]
    }
}

/// Sums over the pixels of an object, with coordinates relative to its bounding box. Their multiples are whole for each run, so
/// that nothing is divided before the end.
#[derive(Default)]
struct Moments {
    pixels: i128,
    twice_x: i128,
    y: i128,
    six_xx: i128,
    yy: i128,
    twice_xy: i128,
}

impl Moments {
    fn add_run(&mut self, start: i128, y: i128, pixels: i128) {
        // Twice the sum of x, and 6 times that of x², below a coordinate.
        let below = |x: i128| (x * (x - 1), x * (x - 1) * (2 * x - 1));
        let ((first, first_squares), (last, last_squares)) = (below(start), below(start + pixels));
        self.pixels += pixels;
        self.twice_x += last - first;
        self.y += pixels * y;
        self.six_xx += last_squares - first_squares;
        self.yy += pixels * y * y;
        self.twice_xy += (last - first) * y;
    }

    /// Returns the central moments of the second order per pixel, with the 1/12 of a square pixel itself. Differences are
    /// taken in integers, so that nothing cancels.
    fn central(&self) -> (f64, f64, f64) {
        let Self { pixels, twice_x, y, six_xx, yy, twice_xy } = *self;
        let (x, xx, xy) = (twice_x / 2, six_xx / 6, twice_xy / 2);
        let square = (pixels * pixels) as f64;
        let of = |product: i128, a: i128, b: i128| (pixels * product - a * b) as f64 / square;
        (of(xx, x, x) + 1.0 / 12.0, of(yy, y, y) + 1.0 / 12.0, of(xy, x, y))
    }

    fn centroid(&self, window: &Window) -> [f64; 2] {
        let pixels = 2 * self.pixels;
        let center = |sum: i128, origin: usize| {
            (2 * sum + self.pixels + pixels * origin as i128) as f64 / pixels as f64
        };
        [center(self.twice_x / 2, window.left), center(self.y, window.top)]
    }
}

/// Returns the perimeter, pixels. A cell with 1 or 3 pixels of the object adds ½√2, two side by side add 1, two on a diagonal √2.
fn perimeter(traced: &Traced) -> f64 {
    let Traced { corners, sides, diagonals, .. } = *traced;
    corners as f64 * FRAC_1_SQRT_2 + sides as f64 + diagonals as f64 * SQRT_2
}
