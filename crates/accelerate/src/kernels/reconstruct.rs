//! Morphological reconstruction by dilation.
//!
//! After the block-wise propagation of Teodoro et al., "Efficient irregular wavefront propagation algorithms on hybrid CPU–GPU
//! machines" (2013): blocks settle in local memory, and changed rims wake neighbors until no block is awake.

use super::ImageSize;
use crate::kernel::{Argument, Program};
use crate::{Buffer, DeviceError, Task};

/// Planes of bytes. 64² pixels with their margin take 8.7 KB of local memory, so several groups share a compute unit.
const BYTES: Program = Program {
    name: "reconstruct.cl",
    source: include_str!("reconstruct.cl"),
    definitions: "-DT=uchar -DBOTTOM=0 -DBLOCK=64",
};

/// `BLOCK` of [`BYTES`].
const BLOCK: usize = 64;

/// 8 rounds between two looks at the end: a round without awake blocks takes a few microseconds, a look as long as several.
const ROUNDS: usize = 8;

/// Replaces `marker`, which is nowhere above `mask`, by its reconstruction under `mask`. Values spread to four neighbors, with
/// `eight` to eight. No value spreads from outside the plane.
///
/// # Errors
/// Returns a [`DeviceError`].
pub fn reconstruct(
    task: &mut Task<'_>,
    marker: &Buffer,
    mask: &Buffer,
    size: ImageSize,
    eight: bool,
) -> Result<(), DeviceError> {
    let blocks = size.items().map(|side| side.div_ceil(BLOCK));
    let flags = blocks[0] * blocks[1] * size_of::<u32>();
    // Any nonzero flag is an awake block.
    let [mut awake, mut next] = [task.filled(flags, 1)?, task.filled(flags, 0)?];
    let woken = task.buffer(ROUNDS * size_of::<u32>())?;
    loop {
        task.fill(&woken, 0)?;
        for round in 0..ROUNDS {
            let arguments = [
                Argument::Buffer(marker),
                Argument::Buffer(mask),
                Argument::Uint(size.width_px),
                Argument::Uint(size.height_px),
                Argument::Uint(u32::from(eight)),
                Argument::Buffer(&awake),
                Argument::Buffer(&next),
                Argument::Buffer(&woken),
                Argument::Uint(round as u32),
            ];
            task.run(&BYTES, "settle", &arguments, [blocks[0] * BLOCK, blocks[1]], [BLOCK, 1])?;
            std::mem::swap(&mut awake, &mut next);
        }
        let woken = task.download(&woken)?;
        if woken[(ROUNDS - 1) * size_of::<u32>()..].iter().all(|byte| *byte == 0) {
            return Ok(());
        }
    }
}
