//! Opening with the octagon of `nuclei.reconstruct`, and the planes around it.

use super::{ImageSize, ROW_GROUP};
use crate::kernel::{Argument, Program};
use crate::{Buffer, DeviceError, Task};

const MINIMUM: Program =
    Program { name: "opening.cl", source: include_str!("opening.cl"), definitions: "-DMINIMUM" };
const MAXIMUM: Program = Program { definitions: "-DMAXIMUM", ..MINIMUM };
const PLANES: Program = Program { name: "planes.cl", source: include_str!("planes.cl"), definitions: "" };

/// `GUARD` of the sources: 16 px, so that 16 pixels at any distance up to 5 from the plane are within its buffer.
const GUARD: u32 = 16;

/// Pixels that a work item computes.
const LANES: u32 = 16;

/// 8 × 8 work items, which cover 128 × 8 px: a group reads most of its rows once.
const LANE_GROUP: [usize; 2] = [8, 8];

/// 9 px: the radius of the octagon.
const RADIUS: u32 = 9;

/// Marker and mask of a reconstruction.
#[derive(Debug)]
pub struct Opened {
    /// The inverted red channel, `width × height`.
    pub inverted_red: Buffer,
    /// Its opening with a margin of 1 px, nowhere above the mask.
    pub marker: Buffer,
    /// The inverted red channel with the margin of the opening.
    pub mask: Buffer,
}

/// Bytes of the guarded plane of an image with the padding of the opening.
fn guarded(padded: ImageSize) -> (u32, usize) {
    // A last group of lanes may reach beyond the last column.
    let stride = (padded.width_px + 2 * GUARD).next_multiple_of(LANES) + LANES;
    (stride, stride as usize * (padded.height_px + 2 * GUARD) as usize)
}

/// Opens the inverted red channel of a B, G, R image with the octagon, on a plane padded with 9 px of 255.
///
/// # Errors
/// Returns a [`DeviceError`].
pub fn open_inverted_red(task: &mut Task<'_>, bgr: &Buffer, size: ImageSize) -> Result<Opened, DeviceError> {
    let padded = size.padded(RADIUS);
    let (stride, bytes) = guarded(padded);
    let inverted_red = task.buffer(size.pixels())?;
    let (a, b) = (task.filled(bytes, 255)?, task.filled(bytes, 255)?);
    let arguments = [
        Argument::Buffer(bgr),
        Argument::Buffer(&inverted_red),
        Argument::Buffer(&a),
        Argument::Uint(size.width_px),
        Argument::Uint(size.height_px),
        Argument::Uint(RADIUS),
        Argument::Uint(stride),
    ];
    task.run(&PLANES, "inverted_red", &arguments, size.items(), ROW_GROUP)?;

    let mut step = Step { task, padded, stride };
    step.run(&MINIMUM, "rows", [&a, &b], None)?;
    step.run(&MINIMUM, "columns", [&b, &a], None)?;
    // The guards of the maxima are 0. Each plane gets them after its last minimum was read or before its next writer.
    step.task.fill(&b, 0)?;
    step.run(&MINIMUM, "diamond", [&a, &b], Some(0))?;
    step.task.fill(&a, 0)?;
    step.run(&MAXIMUM, "rows", [&b, &a], None)?;
    step.run(&MAXIMUM, "columns", [&a, &b], None)?;
    step.run(&MAXIMUM, "diamond", [&b, &a], Some(0))?;

    let ringed = size.padded(1);
    let (marker, mask) = (task.buffer(ringed.pixels())?, task.buffer(ringed.pixels())?);
    let arguments = [
        Argument::Buffer(&a),
        Argument::Buffer(&inverted_red),
        Argument::Buffer(&marker),
        Argument::Buffer(&mask),
        Argument::Uint(ringed.width_px),
        Argument::Uint(ringed.height_px),
        Argument::Uint(RADIUS - 1),
        Argument::Uint(stride),
    ];
    task.run(&PLANES, "marker_and_mask", &arguments, ringed.items(), ROW_GROUP)?;
    Ok(Opened { inverted_red, marker, mask })
}

/// A step of the opening on guarded planes.
struct Step<'t, 'd> {
    task: &'t mut Task<'d>,
    padded: ImageSize,
    stride: u32,
}

impl Step<'_, '_> {
    /// Runs a kernel. `neutral` is the value beyond the last column that a diamond leaves for the next step.
    fn run(
        &mut self,
        program: &Program,
        kernel: &'static str,
        [from, to]: [&Buffer; 2],
        neutral: Option<u32>,
    ) -> Result<(), DeviceError> {
        let mut arguments = vec![
            Argument::Buffer(from),
            Argument::Buffer(to),
            Argument::Uint(self.padded.width_px),
            Argument::Uint(self.padded.height_px),
            Argument::Uint(self.stride),
        ];
        arguments.extend(neutral.map(Argument::Uint));
        let items = [self.padded.width_px.div_ceil(LANES) as usize, self.padded.height_px as usize];
        self.task.run(program, kernel, &arguments, items, LANE_GROUP)
    }
}

/// Removes a margin of 1 px from a plane. `size` is that of the result.
///
/// # Errors
/// Returns a [`DeviceError`].
pub fn without_margin(task: &mut Task<'_>, ringed: &Buffer, size: ImageSize) -> Result<Buffer, DeviceError> {
    let plane = task.buffer(size.pixels())?;
    let arguments = [
        Argument::Buffer(ringed),
        Argument::Buffer(&plane),
        Argument::Uint(size.width_px),
        Argument::Uint(size.height_px),
    ];
    task.run(&PLANES, "without_margin", &arguments, size.items(), ROW_GROUP)?;
    Ok(plane)
}
