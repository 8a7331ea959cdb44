//! Shape of each object, with its outline.
//!
//! Axes are those of the ellipse with the object's second moments, where a pixel is a square, as in MATLAB. In scikit-image's
//! `regionprops` it is a point: squares of axes are 4/3 px² less there. The perimeter is that of the reference application: it
//! adds the length of the border within each 2 × 2 px cell.

use super::{OBJECTS, columns, invalid};
use crate::objects::{BoundingBox, ObjectSet, PixelObjects};
use crate::outline::trace;
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
    run,
};

fn run(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let objects = inputs.objects(0)?;
    let mut shapes = AnnotatedObjects::new(columns::SHAPE).map_err(invalid)?;
    let mut plane = Vec::new();
    for (object, bounds) in objects.bounds().into_iter().enumerate() {
        let window = Window::of(bounds);
        window.draw(&objects, object, inputs.width(), &mut plane);
        let label = match (inputs.labels(0), objects.pixels_of(object).next()) {
            (Some(labels), Some(first)) => labels[first.start],
            _ => object as u32 + 1,
        };
        let numbers = Shape::of(&objects, object, &window, &plane, inputs.width()).numbers(label);
        shapes.push_polygon(&window.rings(&plane), CLASS, &numbers).map_err(invalid)?;
    }
    Ok(vec![DataRegion::Objects(Box::new(shapes))])
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

    /// Draws the object alone, with 1 px of background on each side.
    fn draw(&self, objects: &PixelObjects, object: usize, width: usize, plane: &mut Vec<u8>) {
        plane.clear();
        plane.resize((self.width + 2) * (self.height + 2), 0);
        for run in objects.pixels_of(object) {
            let (x, y) = (run.start % width - self.left + 1, run.start / width - self.top + 1);
            plane[y * (self.width + 2) + x..][..run.len()].fill(1);
        }
    }

    /// Returns the outlines along the edges of pixels, in pixels of the image.
    fn rings(&self, plane: &[u8]) -> Vec<Vec<Position>> {
        let (left, top) = (self.left as f64 - 1.0, self.top as f64 - 1.0);
        let position = |[x, y]: [i32; 2]| [left + f64::from(x), top + f64::from(y)];
        let loops = trace(plane, self.width + 2).into_iter();
        loops.map(|corners| corners.into_iter().map(position).collect()).collect()
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
    fn of(objects: &PixelObjects, object: usize, window: &Window, plane: &[u8], width: usize) -> Self {
        let moments = Moments::of(objects, object, window, width);
        let (xx, yy, xy) = moments.central();
        let spread = ((xx - yy).powi(2) + 4.0 * xy * xy).sqrt();
        let axis = |sum: f64| 8_f64.sqrt() * sum.max(0.0).sqrt();
        Self {
            centroid: moments.centroid(window),
            area_px: moments.pixels as f64,
            perimeter_px: perimeter(plane, window.width + 2),
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

/// Sums over the pixels of an object, with coordinates relative to its bounding box.
#[derive(Default)]
struct Moments {
    pixels: i128,
    x: i128,
    y: i128,
    xx: i128,
    yy: i128,
    xy: i128,
}

impl Moments {
    fn of(objects: &PixelObjects, object: usize, window: &Window, width: usize) -> Self {
        let mut sums = Self::default();
        // Sums of x and x² below a coordinate.
        let below = |x: i128| (x * (x - 1) / 2, x * (x - 1) * (2 * x - 1) / 6);
        for run in objects.pixels_of(object) {
            let (start, y) =
                ((run.start % width - window.left) as i128, (run.start / width - window.top) as i128);
            let pixels = run.len() as i128;
            let ((first, first_squares), (last, last_squares)) = (below(start), below(start + pixels));
            let x = last - first;
            sums.pixels += pixels;
            sums.x += x;
            sums.y += pixels * y;
            sums.xx += last_squares - first_squares;
            sums.yy += pixels * y * y;
            sums.xy += x * y;
        }
        sums
    }

    /// Returns the central moments of the second order per pixel, with the 1/12 of a square pixel itself. Differences are
    /// taken in integers, so that nothing cancels.
    fn central(&self) -> (f64, f64, f64) {
        let Self { pixels, x, y, xx, yy, xy } = *self;
        let square = (pixels * pixels) as f64;
        let of = |product: i128, a: i128, b: i128| (pixels * product - a * b) as f64 / square;
        (of(xx, x, x) + 1.0 / 12.0, of(yy, y, y) + 1.0 / 12.0, of(xy, x, y))
    }

    fn centroid(&self, window: &Window) -> [f64; 2] {
        let pixels = 2 * self.pixels;
        let center = |sum: i128, origin: usize| {
            (2 * sum + self.pixels + pixels * origin as i128) as f64 / pixels as f64
        };
        [center(self.x, window.left), center(self.y, window.top)]
    }
}

/// Returns the perimeter, pixels, of an object drawn with background around it. A cell with 1 or 3 pixels of the object adds
/// ½√2, two side by side add 1, two on a diagonal √2.
fn perimeter(plane: &[u8], width: usize) -> f64 {
    let (mut corners, mut sides, mut diagonals) = (0_u32, 0_u32, 0_u32);
    for (above, below) in plane.chunks_exact(width).zip(plane.chunks_exact(width).skip(1)) {
        for (above, below) in above.windows(2).zip(below.windows(2)) {
            match (above[0] + above[1] + below[0] + below[1], above[0] == below[1]) {
                (1 | 3, _) => corners += 1,
                (2, true) => diagonals += 1,
                (2, false) => sides += 1,
                _ => {}
            }
        }
    }
    f64::from(corners) * FRAC_1_SQRT_2 + f64::from(sides) + f64::from(diagonals) * SQRT_2
}
