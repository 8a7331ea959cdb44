//! Cytoplasm: a ring around each nucleus.
//!
//! The ring is the dilation of the nucleus by a disk of [`RADIUS_PX`], without the pixels of all nuclei. The original program
//! leaves out only those of the nucleus itself, so that its cytoplasm covers close neighbors. Rings of close nuclei may
//! overlap each other.

use super::{OBJECTS, invalid};
use crate::objects::{BoundingBox, ObjectSet, PixelObjects};
use crate::typed_operation::{Arguments, Inputs, TypedOperation, port};
use pleach_regions::{DataRegion, ElementType, RaggedArray};
use pleach_workflow::OperationError;

/// Radius of the disk. The offsets (x, y) with x² + y² ≤ 64 are exactly the table of the original program.
const RADIUS_PX: usize = 8;

/// Returns for each object the runs of its cytoplasm, as pairs of their first pixel and the one after the last.
pub(crate) const RINGS: TypedOperation = TypedOperation {
    name: "features.rings",
    version: 1,
    arguments: &[],
    inputs: &[OBJECTS],
    outputs: &[port("rings", ElementType::RaggedI32)],
    nanoseconds_a_pixel: 10.0,
    bytes_a_pixel: 1.6,
    fixed_bytes: 0,
    within_core: None,
    run,
};

fn run(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let objects = inputs.objects(0)?;
    let (width, height) = (inputs.width(), inputs.height());
    let mut is_object = vec![false; width * height];
    for object in 0..objects.count() {
        objects.pixels_of(object).for_each(|pixels| is_object[pixels].fill(true));
    }
    let (mut ends, mut runs) = (Vec::with_capacity(objects.count()), Vec::new());
    let mut dilated = Vec::new();
    for (object, bounds) in objects.bounds().into_iter().enumerate() {
        let window = Window::around(bounds, width, height);
        dilate(&objects, object, &window, width, &mut dilated);
        for (row, covered) in dilated.chunks_exact(window.width).enumerate() {
            let first = (window.top + row) * width + window.left;
            append_runs(covered, &is_object[first..][..window.width], first, &mut runs);
        }
        ends.push(runs.len() as u64);
    }
    Ok(vec![DataRegion::Ragged(RaggedArray::new(ends, runs.into()).map_err(invalid)?)])
}

/// The part of the image that the ring of an object may cover.
struct Window {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
}

impl Window {
    fn around(bounds: BoundingBox, width: usize, height: usize) -> Self {
        let [left, top] = bounds.low.map(|low| (low as usize).saturating_sub(RADIUS_PX));
        let [right, bottom] = bounds.high.map(|high| high as usize + RADIUS_PX + 1);
        Self { left, top, width: right.min(width) - left, height: bottom.min(height) - top }
    }
}

/// Marks the pixels of the window within the radius of the object.
fn dilate(objects: &PixelObjects, object: usize, window: &Window, width: usize, dilated: &mut Vec<bool>) {
    dilated.clear();
    dilated.resize(window.width * window.height, false);
    for run in objects.pixels_of(object) {
        let (y, start) = (run.start / width - window.top, run.start % width);
        let end = start + run.len();
        for row in y.saturating_sub(RADIUS_PX)..(y + RADIUS_PX + 1).min(window.height) {
            let reach = (RADIUS_PX.pow(2) - row.abs_diff(y).pow(2)).isqrt();
            let left = start.saturating_sub(reach).max(window.left) - window.left;
            let right = (end + reach - window.left).min(window.width);
            dilated[row * window.width + left..row * window.width + right].fill(true);
        }
    }
}

/// Appends the runs of covered pixels that are no object. `first` is the number of the row's first pixel.
fn append_runs(covered: &[bool], is_object: &[bool], first: usize, runs: &mut Vec<i32>) {
    let mut start = None;
    for x in 0..=covered.len() {
        let is_ring = x < covered.len() && covered[x] && !is_object[x];
        match (start, is_ring) {
            (None, true) => start = Some(x),
            (Some(from), false) => {
                // Fewer than 2^31 pixels, as the reader of images ensures.
                runs.extend([(first + from) as i32, (first + x) as i32]);
                start = None;
            }
            _ => {}
        }
    }
}
