//! Area filter of masks.
//!
//! Components by union-find with an atomic minimum, after Playne & Hawick, "A new algorithm for parallel connected-component labelling
//! on GPUs" (2018). Labels start as runs of up to 64 pixels, so that only the ends of runs are united.

use super::{ImageSize, ROW_GROUP};
use crate::kernel::{Argument, Program};
use crate::{Buffer, DeviceError, Task};
use std::ops::Range;

const AREAS: Program = Program { name: "areas.cl", source: include_str!("areas.cl"), definitions: "" };

/// Returns the objects of a mask whose area in pixels is within `areas`. Pixels of an object share edges, with `eight` also corners.
///
/// # Errors
/// Returns a [`DeviceError`].
pub fn filter_by_area(
    task: &mut Task<'_>,
    mask: &Buffer,
    size: ImageSize,
    eight: bool,
    areas: Range<u32>,
) -> Result<Buffer, DeviceError> {
    let labels = task.buffer(size.pixels() * size_of::<u32>())?;
    let counts = task.filled(size.pixels() * size_of::<u32>(), 0)?;
    let kept = task.buffer(size.pixels())?;
    let sides = [size.width_px, size.height_px].map(Argument::Uint);
    let [mask, labels, counts, kept_at] = [mask, &labels, &counts, &kept].map(Argument::Buffer);
    let mut run = |kernel, arguments: &[Argument<'_>]| {
        // `SEGMENT` of the source is the width of these groups.
        task.run(&AREAS, kernel, arguments, size.items(), ROW_GROUP)
    };
    run("label_runs", &[&[mask, labels][..], &sides].concat())?;
    run("unite_runs", &[&[labels][..], &sides, &[Argument::Uint(u32::from(eight))]].concat())?;
    run("sum_areas", &[&[labels, counts][..], &sides].concat())?;
    let bounds = [size.pixels() as u32, areas.start, areas.end].map(Argument::Uint);
    let arguments = [&[labels, counts, kept_at][..], &bounds].concat();
    task.run(&AREAS, "keep_areas", &arguments, [size.pixels(), 1], ROW_GROUP)?;
    Ok(kept)
}
