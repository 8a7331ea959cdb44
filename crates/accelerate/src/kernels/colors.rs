//! Colors of an image: counts on the device, one new color for each on the host, look-up on the device.

use super::{ImageSize, ROW_GROUP};
use crate::kernel::{Argument, Program};
use crate::{Buffer, DeviceError, Task};

const COLORS: Program = Program { name: "colors.cl", source: include_str!("colors.cl"), definitions: "" };

/// 2^24: the number of colors.
const COLOR_COUNT: usize = 1 << 24;

/// A color as R << 16 | G << 8 | B, and its number of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CountedColor {
    /// The color.
    pub color: u32,
    /// Pixels of the color.
    pub count: u32,
}

fn bytes(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn numbers(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|number| u32::from_le_bytes(*number)).collect()
}

/// Replaces the color of each pixel of a B, G, R image. `map` receives the colors that occur, ascending, and returns the new one of
/// each, as R << 16 | G << 8 | B.
///
/// # Errors
/// Returns a [`DeviceError`].
pub fn map_colors(
    task: &mut Task<'_>,
    bgr: &Buffer,
    size: ImageSize,
    map: impl FnOnce(&[CountedColor]) -> Vec<u32>,
) -> Result<Buffer, DeviceError> {
    let (pixels, one_row) = (Argument::Uint(size.pixels() as u32), [size.pixels(), 1]);
    let table = task.filled(COLOR_COUNT * size_of::<u32>(), 0)?;
    let list = task.buffer(size.pixels().min(COLOR_COUNT) * size_of::<u32>())?;
    let listed = task.filled(size_of::<u32>(), 0)?;
    let arguments = [bgr, &table, &list, &listed].map(Argument::Buffer);
    task.run(&COLORS, "count_colors", &[&arguments[..], &[pixels]].concat(), one_row, ROW_GROUP)?;

    let length = numbers(&task.download(&listed)?)[0];
    let (bytes_listed, items) = (length as usize * size_of::<u32>(), [length as usize, 1]);
    let counts = task.buffer(bytes_listed)?;
    let arguments = [&table, &list, &counts].map(Argument::Buffer);
    let arguments = [&arguments[..], &[Argument::Uint(length)]].concat();
    task.run(&COLORS, "gather", &arguments, items, ROW_GROUP)?;
    let colors = numbers(&task.download_start(&list, bytes_listed)?);
    let counts = numbers(&task.download(&counts)?);
    // The list is in the order of the device's work items, which differs from run to run.
    let mut order: Vec<usize> = (0..colors.len()).collect();
    order.sort_unstable_by_key(|at| colors[*at]);
    let counted: Vec<CountedColor> =
        order.iter().map(|&at| CountedColor { color: colors[at], count: counts[at] }).collect();
    let mut new = vec![0; colors.len()];
    order.iter().zip(map(&counted)).for_each(|(at, color)| new[*at] = color);

    let new = task.upload(&bytes(&new))?;
    let arguments = [&table, &list, &new].map(Argument::Buffer);
    let arguments = [&arguments[..], &[Argument::Uint(length)]].concat();
    task.run(&COLORS, "scatter", &arguments, items, ROW_GROUP)?;
    let mapped = task.buffer(bgr.bytes())?;
    let arguments = [bgr, &table, &mapped].map(Argument::Buffer);
    task.run(&COLORS, "look_up", &[&arguments[..], &[pixels]].concat(), one_row, ROW_GROUP)?;
    Ok(mapped)
}
