//! Masks by thresholds, selection by seeds, hole filling, and the opening with a cross.
//!
//! Selection is the reconstruction of the seeds under the mask. Hole filling is the reconstruction of the background on the image's
//! edge under all background: Vincent, "Morphological grayscale reconstruction in image analysis" (1993), sections 3.1 and 3.4.

use super::reconstruct::reconstruct;
use super::{ImageSize, ROW_GROUP};
use crate::kernel::{Argument, Program};
use crate::{Buffer, DeviceError, Task};

const MASKS: Program = Program { name: "masks.cl", source: include_str!("masks.cl"), definitions: "" };

/// A difference of two planes, and a mask of its large values.
#[derive(Debug)]
pub struct Difference {
    /// How far the first plane exceeds the second one, or 0.
    pub difference: Buffer,
    /// Pixels with a difference above the threshold, with holes filled.
    pub mask: Buffer,
}

/// Runs a kernel for each pixel: buffers, then width and height, then `more`.
fn run_on_pixels(
    task: &mut Task<'_>,
    kernel: &'static str,
    buffers: &[&Buffer],
    size: ImageSize,
    more: Option<u32>,
) -> Result<(), DeviceError> {
    let mut arguments: Vec<_> = buffers.iter().copied().map(Argument::Buffer).collect();
    arguments.extend([size.width_px, size.height_px].map(Argument::Uint));
    arguments.extend(more.map(Argument::Uint));
    task.run(&MASKS, kernel, &arguments, size.items(), ROW_GROUP)
}

/// Replaces `marker`, the background on the image's edge, by the mask of the pixels that it does not reach.
fn fill_unreached(
    task: &mut Task<'_>,
    marker: &Buffer,
    background: &Buffer,
    size: ImageSize,
    eight: bool,
) -> Result<(), DeviceError> {
    reconstruct(task, marker, background, size, eight)?;
    let arguments = [Argument::Buffer(marker), Argument::Uint(size.pixels() as u32)];
    task.run(&MASKS, "invert", &arguments, [size.pixels(), 1], ROW_GROUP)
}

/// Returns a mask with its holes filled. A hole is background that no path of background pixels, which share an edge or with `eight` a
/// corner, connects to the image's edge.
///
/// # Errors
/// Returns a [`DeviceError`].
pub fn fill_holes(
    task: &mut Task<'_>,
    mask: &Buffer,
    size: ImageSize,
    eight: bool,
) -> Result<Buffer, DeviceError> {
    let (marker, background) = (task.buffer(size.pixels())?, task.buffer(size.pixels())?);
    run_on_pixels(task, "background_and_rim", &[mask, &marker, &background], size, None)?;
    fill_unreached(task, &marker, &background, size, eight)?;
    Ok(marker)
}

/// Returns how far `upper` exceeds `lower`, and the mask of the pixels where it does so by more than `level`. Holes of the mask are
/// filled as by [`fill_holes`].
///
/// # Errors
/// Returns a [`DeviceError`].
pub fn filled_difference(
    task: &mut Task<'_>,
    [upper, lower]: [&Buffer; 2],
    size: ImageSize,
    level: u8,
    eight: bool,
) -> Result<Difference, DeviceError> {
    let difference = task.buffer(size.pixels())?;
    let (marker, background) = (task.buffer(size.pixels())?, task.buffer(size.pixels())?);
    let buffers = [upper, lower, &difference, &marker, &background];
    run_on_pixels(task, "difference_and_rim", &buffers, size, Some(u32::from(level)))?;
    fill_unreached(task, &marker, &background, size, eight)?;
    Ok(Difference { difference, mask: marker })
}

/// Returns the pixels above a threshold in 8-connected objects with a seed, without `removed`. Holes are filled with the connectivity
/// 4, then spurs are opened with a cross, whose erosion counts the outside of the image as background.
///
/// # Errors
/// Returns a [`DeviceError`].
pub fn opened_objects(
    task: &mut Task<'_>,
    plane: &Buffer,
    level: u8,
    [seeds, removed]: [&Buffer; 2],
    size: ImageSize,
) -> Result<Buffer, DeviceError> {
    let (marker, mask) = (task.buffer(size.pixels())?, task.buffer(size.pixels())?);
    let arguments = [
        Argument::Buffer(plane),
        Argument::Buffer(seeds),
        Argument::Buffer(&marker),
        Argument::Buffer(&mask),
        Argument::Uint(size.pixels() as u32),
        Argument::Uint(u32::from(level)),
    ];
    task.run(&MASKS, "above_and_seeds", &arguments, [size.pixels(), 1], ROW_GROUP)?;
    reconstruct(task, &marker, &mask, size, true)?;
    run_on_pixels(task, "remaining_background_and_rim", &[&marker, removed, &mask], size, None)?;
    reconstruct(task, &marker, &mask, size, false)?;
    // The reached background is the inverse of the filled objects.
    run_on_pixels(task, "erode_inverse", &[&marker, &mask], size, None)?;
    run_on_pixels(task, "dilate", &[&mask, &marker], size, None)?;
    Ok(marker)
}
