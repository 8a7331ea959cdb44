//! Operations on arrays and points.

mod maxima;
mod numbers;
mod points;
mod smooth;

use pleach_regions::{DataRegion, DenseArray, ElementType, Points};
use pleach_workflow::{Operation, OperationError, Value};
use std::sync::Arc;

/// Returns the operations of this crate.
#[must_use]
pub fn operations() -> Vec<Arc<dyn Operation>> {
    let all = [
        numbers::OF_IMAGE,
        numbers::OF_U8,
        numbers::OF_U16,
        numbers::OF_F32,
        smooth::SMOOTH,
        maxima::MAXIMA,
        points::COUNT,
        points::LINK,
        points::LINK_UM,
    ];
    all.into_iter().map(|operation| Arc::new(operation) as Arc<dyn Operation>).collect()
}

/// Seconds of so many pixels, at these nanoseconds of a pixel on one core.
fn seconds(nanoseconds_a_pixel: f64, pixels: u64) -> f64 {
    pixels as f64 * nanoseconds_a_pixel * 1e-9
}

/// Outputs and scratch alive at the same time, at these bytes of a pixel, and a table or a few points more.
fn bytes(bytes_a_pixel: u64, pixels: u64) -> u64 {
    pixels.saturating_mul(bytes_a_pixel).saturating_add(4096)
}

fn fail(cause: impl std::error::Error + Send + Sync + 'static) -> OperationError {
    OperationError::Library { library: "volumes", cause: Box::new(cause) }
}

/// Sides of an array along x, y and z, with 1 for missing axes.
fn sides(array: &DenseArray) -> [usize; 3] {
    let mut sides = [1; 3];
    sides.iter_mut().zip(array.extents()).for_each(|(side, extent)| *side = *extent as usize);
    sides
}

/// Returns an array of reals of one channel.
fn reals(region: &DataRegion) -> Result<(&DenseArray, &[f32]), OperationError> {
    let array = region.array(ElementType::ArrayF32)?;
    if array.channels() != 1 {
        let cause = format!("an array of {} channels; 1 is allowed", array.channels());
        return Err(OperationError::Library { library: "volumes", cause: cause.into() });
    }
    Ok((array, array.samples().map_err(fail)?))
}

fn points_of(region: &DataRegion) -> Result<&Points, OperationError> {
    match region {
        DataRegion::Points(points) => Ok(points),
        other => {
            let wrong =
                pleach_regions::WrongElement { expected: ElementType::Points, found: other.element() };
            Err(wrong.into())
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "declared as integers from 0 to 255"
)]
fn small(value: Value) -> usize {
    value.as_f64() as usize
}
