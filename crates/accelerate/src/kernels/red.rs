//! Red blood cells and background.

use super::reconstruct::reconstruct;
use super::{ImageSize, ROW_GROUP};
use crate::kernel::{Argument, Program};
use crate::{Buffer, DeviceError, Task};

const RED: Program = Program { name: "red.cl", source: include_str!("red.cl"), definitions: "-DPIXELS=64" };

/// `PIXELS` of [`RED`]: 64 pixels for one atomic sum.
const PIXELS: usize = 64;

/// Thresholds of red blood cells and of background.
#[derive(Clone, Copy, Debug)]
pub struct RedThresholds<'a> {
    /// For each G the least R of a seed, or 256.
    pub strong: &'a [u16; 256],
    /// For each G the least R of an object, or 256.
    pub weak: &'a [u16; 256],
    /// B, G, R that all channels of a pixel of background exceed.
    pub bright: [u8; 3],
}

fn table(least: &[u16; 256]) -> Vec<u8> {
    least.iter().flat_map(|red| red.to_le_bytes()).collect()
}

/// Returns the mask of the weak pixels that are redder than blue, in 8-connected objects with a strong pixel, and the number of pixels
/// of background.
///
/// # Errors
/// Returns a [`DeviceError`].
pub fn red_objects(
    task: &mut Task<'_>,
    bgr: &Buffer,
    size: ImageSize,
    thresholds: &RedThresholds<'_>,
) -> Result<(Buffer, u64), DeviceError> {
    let (pixels, one_row) = (Argument::Uint(size.pixels() as u32), [size.pixels(), 1]);
    let (strong, weak) = (task.upload(&table(thresholds.strong))?, task.upload(&table(thresholds.weak))?);
    let (marker, mask) = (task.buffer(size.pixels())?, task.buffer(size.pixels())?);
    let background = task.filled(size_of::<u32>(), 0)?;
    let [b, g, r] = thresholds.bright;
    let arguments = [
        Argument::Buffer(bgr),
        Argument::Buffer(&strong),
        Argument::Buffer(&weak),
        Argument::Buffer(&marker),
        Argument::Buffer(&mask),
        Argument::Buffer(&background),
        Argument::Uint(u32::from_le_bytes([b, g, r, 0])),
        pixels,
    ];
    task.run(&RED, "thresholds", &arguments, [size.pixels().div_ceil(PIXELS), 1], ROW_GROUP)?;
    reconstruct(task, &marker, &mask, size, true)?;
    let arguments = [Argument::Buffer(bgr), Argument::Buffer(&marker), pixels];
    task.run(&RED, "clear_not_red", &arguments, one_row, ROW_GROUP)?;
    let count = task.download(&background)?;
    let count = count.first_chunk().map_or(0, |bytes| u64::from(u32::from_le_bytes(*bytes)));
    Ok((marker, count))
}
