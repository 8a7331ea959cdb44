//! Erosion, dilation and the two openings of the segmentation, by OpenCV.
//!
//! Structuring elements are flat and symmetric. The caller chooses the value outside the image: 255 never lowers an
//! erosion, 0 never raises a dilation.

use super::height;
use opencv::core::{BORDER_CONSTANT, Mat, Point, Scalar, Size};
use opencv::imgproc::{self, MORPH_CROSS, MORPH_RECT};
use std::sync::Once;

/// Half the side of [`open_octagon`]'s element, pixels.
pub const OCTAGON_RADIUS_PX: usize = 9;

/// Flat structuring elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StructuringElement {
    /// The pixel and its four neighbors.
    Cross,
    /// The octagon |dx| ≤ 9, |dy| ≤ 9, |dx| + |dy| ≤ 14: 321 px.
    Octagon,
}

/// Shape, side in pixels, and number of repetitions.
type Step = (i32, i32, i32);

impl StructuringElement {
    /// Returns the decomposition of the element. An octagon is a square, then a diamond, which is a repeated cross.
    /// These steps connect any two pixels of the octagon without leaving the rectangle between them, so cutting each
    /// step at the image's edge is exact.
    fn steps(self) -> &'static [Step] {
        match self {
            Self::Cross => &[(MORPH_CROSS, 3, 1)],
            Self::Octagon => &[(MORPH_RECT, 11, 1), (MORPH_CROSS, 3, 4)],
        }
    }
}

/// Returns the smallest value under `element`, with the value `outside` beyond the edges.
///
/// # Errors
/// Returns OpenCV's error, for example when memory runs out.
pub fn erode(
    plane: &[u8],
    width: usize,
    element: StructuringElement,
    outside: u8,
) -> opencv::Result<Vec<u8>> {
    apply(plane, width, element, |from, to, kernel, times| {
        let anchor = Point::new(-1, -1);
        imgproc::erode(from, to, kernel, anchor, times, BORDER_CONSTANT, Scalar::all(f64::from(outside)))
    })
}

/// Returns the largest value under `element`. Pixels outside the image do not count.
///
/// # Errors
/// Returns OpenCV's error, for example when memory runs out.
pub fn dilate(plane: &[u8], width: usize, element: StructuringElement) -> opencv::Result<Vec<u8>> {
    apply(plane, width, element, |from, to, kernel, times| {
        let anchor = Point::new(-1, -1);
        imgproc::dilate(from, to, kernel, anchor, times, BORDER_CONSTANT, Scalar::all(0.0))
    })
}

type Ref<'a> = opencv::boxed_ref::BoxedRef<'a, Mat>;
type RefMut<'a> = opencv::boxed_ref::BoxedRefMut<'a, Mat>;

fn apply(
    plane: &[u8],
    width: usize,
    element: StructuringElement,
    step: impl Fn(&Ref<'_>, &mut RefMut<'_>, &Mat, i32) -> opencv::Result<()>,
) -> opencv::Result<Vec<u8>> {
    one_thread()?;
    let (rows, columns) = (side(height(plane.len(), width))?, side(width)?);
    let mut current: Option<Vec<u8>> = None;
    for &(shape, size, times) in element.steps() {
        let kernel = imgproc::get_structuring_element(shape, Size::new(size, size), Point::new(-1, -1))?;
        let mut next = vec![0; plane.len()];
        let from = Mat::new_rows_cols_with_bytes::<u8>(rows, columns, current.as_deref().unwrap_or(plane))?;
        let mut to = Mat::new_rows_cols_with_bytes_mut::<u8>(rows, columns, &mut next)?;
        step(&from, &mut to, &kernel, times)?;
        drop((from, to));
        current = Some(next);
    }
    Ok(current.unwrap_or_else(|| plane.to_vec()))
}

fn side(pixels: usize) -> opencv::Result<i32> {
    i32::try_from(pixels).map_err(|_| opencv::Error::new(opencv::core::StsBadSize, "side beyond 2^31 px"))
}

/// Keeps OpenCV from starting threads and from searching for OpenCL devices: the runtime schedules all work.
pub(crate) fn one_thread() -> opencv::Result<()> {
    static DONE: Once = Once::new();
    let mut result = Ok(());
    DONE.call_once(|| {
        result = opencv::core::set_num_threads(1).and_then(|()| opencv::core::set_use_opencl(false));
    });
    result
}

/// Opens with the cross. The erosion counts the outside as 0: it removes every pixel on the image's edge, and the
/// dilation restores those beside a remaining pixel.
///
/// # Errors
/// Returns OpenCV's error.
pub fn open_cross(mask: &[u8], width: usize) -> opencv::Result<Vec<u8>> {
    dilate(&erode(mask, width, StructuringElement::Cross, 0)?, width, StructuringElement::Cross)
}

/// Opens a gray plane with the octagon, and returns it with a margin of 1 px on every side.
///
/// The plane is padded with 9 px of 255 and both steps run on the padded plane, so the margin holds the opened padding.
/// Shape: `(width + 2) × (height + 2)`.
///
/// # Errors
/// Returns OpenCV's error.
pub fn open_octagon(plane: &[u8], width: usize) -> opencv::Result<Vec<u8>> {
    let padded_width = width + 2 * OCTAGON_RADIUS_PX;
    let padded = pad(plane, width, OCTAGON_RADIUS_PX, 255);
    let eroded = erode(&padded, padded_width, StructuringElement::Octagon, 255)?;
    let opened = dilate(&eroded, padded_width, StructuringElement::Octagon)?;
    Ok(crop(&opened, padded_width, OCTAGON_RADIUS_PX - 1))
}

/// Returns `plane` with `margin` pixels of `value` on every side.
#[must_use]
pub fn pad<T: Copy>(plane: &[T], width: usize, margin: usize, value: T) -> Vec<T> {
    let padded_width = width + 2 * margin;
    let rows = height(plane.len(), width);
    let mut padded = Vec::with_capacity(padded_width * (rows + 2 * margin));
    padded.resize(padded_width * margin, value);
    for row in plane.chunks_exact(width) {
        padded.resize(padded.len() + margin, value);
        padded.extend_from_slice(row);
        padded.resize(padded.len() + margin, value);
    }
    padded.resize(padded_width * (rows + 2 * margin), value);
    padded
}

/// Returns `plane` without `margin` pixels on every side. Both sides must be longer than twice the margin.
#[must_use]
pub fn crop<T: Copy>(plane: &[T], width: usize, margin: usize) -> Vec<T> {
    let rows = height(plane.len(), width);
    let mut inner = Vec::with_capacity((rows - 2 * margin) * (width - 2 * margin));
    for row in plane[margin * width..(rows - margin) * width].chunks_exact(width) {
        inner.extend_from_slice(&row[margin..width - margin]);
    }
    inner
}
