//! Cytoplasm: a ring around each nucleus.
//!
//! The ring is the dilation of the nucleus by a disk of [`RADIUS_PX`], without the pixels of all nuclei. The original program
//! leaves out only those of the nucleus itself, so that its cytoplasm covers close neighbors. Rings of close nuclei may
//! overlap each other.
//!
//! Rows are bits, 64 pixels in a word, and words of an object begin where those of the image begin. A row of the nucleus is
//! widened once to each reach of the disk, and added to the 17 rows around it.

mod bit_rows;

use super::{OBJECTS, invalid};
use crate::objects::{BoundingBox, ObjectSet, PixelObjects};
use crate::typed_operation::{Arguments, Inputs, TypedOperation, port};
use bit_rows::{BitRows, WORD_PX, append_runs, widen};
use pleach_regions::{DataRegion, ElementType, RaggedArray};
use pleach_workflow::OperationError;
use std::ops::Range;

/// Radius of the disk. The offsets (x, y) with x² + y² ≤ 64 are exactly the table of the original program.
const RADIUS_PX: usize = 8;

/// Largest x of the disk for each y.
const REACHES_PX: [usize; RADIUS_PX + 1] = {
    let mut reaches = [0; RADIUS_PX + 1];
    let mut y = 0;
    while y <= RADIUS_PX {
        reaches[y] = (RADIUS_PX * RADIUS_PX - y * y).isqrt();
        y += 1;
    }
    reaches
};

/// Returns for each object the runs of its cytoplasm, as pairs of their first pixel and the one after the last.
pub(crate) const RINGS: TypedOperation = TypedOperation {
    name: "features.rings",
    version: 1,
    arguments: &[],
    inputs: &[OBJECTS],
    outputs: &[port("rings", ElementType::RaggedI32)],
    nanoseconds_a_pixel: 10.0,
    bytes_a_pixel: 0.6,
    fixed_bytes: 0,
    within_core: None,
    device: None,
    run,
};

fn run(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let objects = inputs.objects(0)?;
    let (width, height) = (inputs.width(), inputs.height());
    let mut nuclei = BitRows::new(0..width.div_ceil(WORD_PX), height);
    for object in 0..objects.count() {
        objects.pixels(object).for_each(|([x, y], length)| nuclei.mark(y as usize, x as usize, length));
    }
    // No ring has pixels beyond the image.
    nuclei.mark_from(width);
    let (mut ends, mut runs) = (Vec::with_capacity(objects.count()), Vec::new());
    let mut ring = Ring::default();
    for (object, bounds) in objects.bounds().into_iter().enumerate() {
        let window = Window::around(bounds, width, height);
        ring.cover(&objects, object, &window);
        for (y, covered) in window.rows.clone().zip(ring.covered.rows()) {
            let free = covered.iter().zip(&nuclei.row(y)[window.words.clone()]);
            append_runs(
                free.map(|(covered, nuclei)| covered & !nuclei),
                y * width,
                window.words.start,
                &mut runs,
            );
        }
        ends.push(runs.len() as u64);
    }
    Ok(vec![DataRegion::Ragged(RaggedArray::new(ends, runs.into()).map_err(invalid)?)])
}

/// The part of the image that the ring of an object may cover.
struct Window {
    /// Words of each row.
    words: Range<usize>,
    rows: Range<usize>,
    /// Rows of the object itself.
    own_rows: Range<usize>,
}

impl Window {
    fn around(bounds: BoundingBox, width: usize, height: usize) -> Self {
        let ([left, top], [right, bottom]) =
            (bounds.low.map(|low| low as usize), bounds.high.map(|high| high as usize + 1));
        let first = left.saturating_sub(RADIUS_PX) / WORD_PX;
        let words = first..(right + RADIUS_PX).min(width).div_ceil(WORD_PX);
        let rows = top.saturating_sub(RADIUS_PX)..(bottom + RADIUS_PX).min(height);
        Self { words, rows, own_rows: top..bottom }
    }
}

/// The dilation of an object, and its scratch.
#[derive(Default)]
struct Ring {
    /// Pixels of the object.
    own: BitRows,
    /// Pixels within the radius.
    covered: BitRows,
    /// One row of the object, widened by 0 to [`RADIUS_PX`] px.
    widened: Vec<u64>,
}

impl Ring {
    /// Marks the pixels of the window within the radius of the object.
    fn cover(&mut self, objects: &PixelObjects, object: usize, window: &Window) {
        let (words, top) = (window.words.len(), window.own_rows.start);
        self.own.clear(window.words.clone(), window.own_rows.len());
        for ([x, y], length) in objects.pixels(object) {
            self.own.mark(y as usize - top, x as usize, length);
        }
        self.covered.clear(window.words.clone(), window.rows.len());
        for (y, row) in window.own_rows.clone().zip(self.own.rows()) {
            self.widened.clear();
            self.widened.extend_from_slice(row);
            for px in 0..RADIUS_PX {
                widen(&mut self.widened, px * words, words);
            }
            for (distance, reach) in REACHES_PX.into_iter().enumerate() {
                let from = &self.widened[reach * words..][..words];
                let above = y.checked_sub(distance).filter(|_| distance > 0);
                for y in above.into_iter().chain([y + distance]).filter(|y| window.rows.contains(y)) {
                    let to = self.covered.row_mut(y - window.rows.start);
                    to.iter_mut().zip(from).for_each(|(to, from)| *to |= from);
                }
            }
        }
    }
}
