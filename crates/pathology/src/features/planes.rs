//! Operations on the tile alone, which a study runs once per tile.

use super::{CHANNELS, canny, channels, gradient, plane};
use crate::typed_operation::{Inputs, TypedOperation, port};
use pleach_regions::ElementType;
use pleach_workflow::OperationError;

/// B, G, R and hematoxylin.
pub(crate) const CHANNELS_OF_TILE: TypedOperation = TypedOperation {
    name: "features.channels",
    version: 1,
    arguments: &[],
    inputs: &[port("tile", ElementType::Bgr8)],
    outputs: &[plane("channels")],
    nanoseconds_a_pixel: 10.0,
    bytes_a_pixel: 4.0,
    fixed_bytes: 0,
    within_core: None,
    device: None,
    run: |inputs, _| Ok(vec![inputs.array_u8(CHANNELS, channels::channels(inputs.pixels(0)?))?]),
};

/// Magnitude of the central differences.
pub(crate) const GRADIENT: TypedOperation = TypedOperation {
    name: "features.gradient",
    version: 1,
    arguments: &[],
    inputs: &[plane("channels")],
    outputs: &[plane("gradient")],
    nanoseconds_a_pixel: 8.0,
    bytes_a_pixel: 4.0,
    fixed_bytes: 0,
    within_core: None,
    device: None,
    run: |inputs, _| {
        Ok(vec![inputs.array_u8(CHANNELS, gradient::gradient(planes(inputs)?, inputs.width()))?])
    },
};

/// Magnitude by Sobel's kernels.
pub(crate) const SOBEL: TypedOperation = TypedOperation {
    name: "features.sobel",
    outputs: &[plane("sobel")],
    run: |inputs, _| Ok(vec![inputs.array_u8(CHANNELS, gradient::sobel(planes(inputs)?, inputs.width()))?]),
    ..GRADIENT
};

/// Canny's edges.
pub(crate) const CANNY: TypedOperation = TypedOperation {
    name: "features.canny",
    outputs: &[plane("edges")],
    run: |inputs, _| Ok(vec![inputs.array_u8(CHANNELS, canny::edges(planes(inputs)?, inputs.width()))?]),
    ..GRADIENT
};

fn planes<'a>(inputs: &Inputs<'a>) -> Result<&'a [u8], OperationError> {
    inputs.array(0, CHANNELS)
}
