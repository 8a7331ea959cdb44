//! Comparison of two masks by pixels.

use super::{ImageSize, ROW_GROUP};
use crate::kernel::{Argument, Program};
use crate::{Buffer, DeviceError, Task};

const PIXELS: Program = Program { name: "overlap.cl", source: include_str!("overlap.cl"), definitions: "" };
const COUNTED_PIXELS: Program = Program { definitions: "-DCOUNTED", ..PIXELS };

/// `LANES` of the source: 16 pixels a work item, so that a group covers 1,024 pixels of a row before it adds to the counts.
const LANES: u32 = 16;

/// The pixels of a comparison.
#[derive(Clone, Copy, Debug)]
pub enum Extent<'b> {
    /// A rectangle within the image, pixels.
    Rectangle {
        /// First column.
        left_px: u32,
        /// First row.
        top_px: u32,
        /// Width and height.
        size: ImageSize,
    },
    /// The nonzero bits of a mask. Each value of the compared masks is restricted to the bits at its pixel.
    Counted(&'b Buffer),
}

/// Returns the number of pixels in both masks, and the number of pixels in either.
///
/// # Errors
/// Returns a [`DeviceError`].
pub fn count_overlap(
    task: &mut Task<'_>,
    [mask, reference]: [&Buffer; 2],
    size: ImageSize,
    extent: Extent<'_>,
) -> Result<[u64; 2], DeviceError> {
    let counts = task.filled(2 * size_of::<u32>(), 0)?;
    let (program, counted, [left, top], within) = match extent {
        // Without `COUNTED` the kernel does not read its third buffer.
        Extent::Rectangle { left_px, top_px, size } => (&PIXELS, mask, [left_px, top_px], size),
        Extent::Counted(counted) => (&COUNTED_PIXELS, counted, [0, 0], size),
    };
    let mut arguments = [mask, reference, counted, &counts].map(Argument::Buffer).to_vec();
    arguments.extend([size.width_px, left, top, within.width_px, within.height_px].map(Argument::Uint));
    let items = [within.width_px.div_ceil(LANES) as usize, within.height_px as usize];
    task.run(program, "overlap", &arguments, items, ROW_GROUP)?;
    let counts = task.download(&counts)?;
    let count = |number: &[u8; 4]| u64::from(u32::from_le_bytes(*number));
    Ok(counts.as_chunks().0.first_chunk::<2>().map_or([0, 0], |numbers| numbers.each_ref().map(count)))
}
