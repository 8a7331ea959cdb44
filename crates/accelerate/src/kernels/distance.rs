//! Exact Euclidean distance to the background.
//!
//! Saito & Toriwaki, "New algorithms for Euclidean distance transformation of an n-dimensional digitized picture with applications"
//! (1994): distances within columns, then for each pixel the nearest of the columns that can be nearer than the best one so far.

use super::{ImageSize, ROW_GROUP};
use crate::kernel::{Argument, Program};
use crate::{Buffer, DeviceError, Task};

const DISTANCE: Program =
    Program { name: "distance.cl", source: include_str!("distance.cl"), definitions: "" };

/// Returns the squared distance of each pixel of a mask to the nearest background pixel, a `u32` each. All are [`u32::MAX`] without
/// background. Pixels outside the image are not background.
///
/// # Errors
/// Returns a [`DeviceError`], [`DeviceError::Unsupported`] for an image whose diagonal has a square of 2^32 and more.
pub fn squared_distance(task: &mut Task<'_>, mask: &Buffer, size: ImageSize) -> Result<Buffer, DeviceError> {
    let [width, height] = [size.width_px, size.height_px].map(u64::from);
    if width * width + height * height > u64::from(u32::MAX) {
        let cause = format!("a diagonal of {width} x {height} px; squares below 2^32 are allowed");
        return Err(DeviceError::Unsupported { device: task.device_name().to_owned(), cause });
    }
    let bytes = size.pixels() * size_of::<u32>();
    let (vertical, squares) = (task.buffer(bytes)?, task.buffer(bytes)?);
    let sides = [size.width_px, size.height_px].map(Argument::Uint);
    let arguments = [&[mask, &vertical].map(Argument::Buffer)[..], &sides].concat();
    task.run(&DISTANCE, "vertical", &arguments, [size.width_px as usize, 1], ROW_GROUP)?;
    let arguments = [&[&vertical, &squares].map(Argument::Buffer)[..], &sides].concat();
    task.run(&DISTANCE, "squares", &arguments, size.items(), ROW_GROUP)?;
    Ok(squares)
}

/// Replaces squares by the `f32` nearest to the root of each. A square beyond 2^24 is first rounded to `f32`.
///
/// # Errors
/// Returns a [`DeviceError`].
pub fn roots(task: &mut Task<'_>, squares: &Buffer) -> Result<(), DeviceError> {
    let pixels = squares.bytes() / size_of::<u32>();
    let arguments = [Argument::Buffer(squares), Argument::Uint(pixels as u32)];
    task.run(&DISTANCE, "roots", &arguments, [pixels, 1], ROW_GROUP)
}
