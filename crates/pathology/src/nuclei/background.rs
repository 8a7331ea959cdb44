//! t1: background and red blood cells.
//!
//! Reports whether the tile is background, and t5 reacts to it. The share of background is not an output: it would
//! distinguish tiles and thresholds whose later results are equal.

use super::{BACKGROUND_COLUMN, NORMALIZED};
use crate::kernels::{Connectivity, components::select};
use crate::typed_operation::{Arguments, BYTE, DeviceVariant, Inputs, RATIO, TypedOperation, argument, port};
use pleach_accelerate::kernels::red::{self, RedThresholds};
use pleach_accelerate::{DeviceOutput, Task};
use pleach_regions::{DataRegion, ElementType, Table};
use pleach_workflow::{AcceleratedError, OperationError};

pub(crate) const BACKGROUND: TypedOperation = TypedOperation {
    name: "nuclei.background",
    version: 1,
    arguments: &[
        argument("B", BYTE),
        argument("G", BYTE),
        argument("R", BYTE),
        argument("T1", RATIO),
        argument("T2", RATIO),
    ],
    inputs: &[NORMALIZED],
    outputs: &[port("rbc", ElementType::Mask), port("background", ElementType::Table)],
    nanoseconds_a_pixel: 4.0,
    bytes_a_pixel: 3.3,
    fixed_bytes: 0,
    within_core: None,
    device: Some(DeviceVariant {
        // "RBC": 394.1 / 29.91.
        gain: 13.2,
        // 3 of the image, marker and mask.
        bytes_a_pixel: 5.0,
        fixed_bytes: 1 << 20,
        run: run_on,
    }),
    run,
};

/// The spacing of `f32` at 1: keeps a ratio's denominator from being 0, as in the original program.
const EPSILON: f32 = f32::EPSILON;

fn run(inputs: &Inputs<'_>, arguments: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let (pixels, _) = inputs.pixels(0)?.as_chunks::<3>();
    let bright = bright(arguments);
    let background = pixels.iter().filter(|p| (0..3).all(|c| p[c] > bright[c])).count();
    let rbc = red_blood_cells(pixels, inputs.width(), arguments.real(3), arguments.real(4));
    Ok(vec![inputs.mask(rbc)?, flag(background as u64, pixels.len() as u64)])
}

fn run_on(
    task: &mut Task<'_>,
    inputs: &Inputs<'_>,
    arguments: &Arguments<'_>,
) -> Result<Vec<DeviceOutput>, AcceleratedError> {
    let (image, size) = (task.input(inputs.region(0))?, inputs.image_size(task)?);
    let (strong, weak) = (min_red(arguments.real(3)), min_red(arguments.real(4)));
    let thresholds = RedThresholds { strong: &strong, weak: &weak, bright: bright(arguments) };
    let (rbc, background) = red::red_objects(task, &image, size, &thresholds)?;
    Ok(vec![inputs.mask_on(task, rbc)?, DeviceOutput::Host(flag(background, size.pixels() as u64))])
}

fn bright(arguments: &Arguments<'_>) -> [u8; 3] {
    [arguments.byte(0), arguments.byte(1), arguments.byte(2)]
}

/// Returns whether a tile is background. The original program skips tiles with at least 90 % of it.
fn flag(background: u64, pixels: u64) -> DataRegion {
    let is_background = 10 * background >= 9 * pixels;
    DataRegion::Table(Table::new([(BACKGROUND_COLUMN, if is_background { 1.0 } else { 0.0 })]))
}

/// Returns the pixels with R/G above `t2` in 8-connected objects that contain a pixel above `t1`, and with R above B.
fn red_blood_cells(pixels: &[[u8; 3]], width: usize, t1: f64, t2: f64) -> Vec<u8> {
    let (strong, weak) = (min_red(t1), min_red(t2));
    let reaches = |least: &[u16; 256], [_, g, r]: &[u8; 3]| u16::from(*r) >= least[usize::from(*g)];
    if !pixels.iter().any(|pixel| reaches(&strong, pixel)) {
        return vec![0; pixels.len()];
    }
    let mask =
        |least| pixels.iter().map(|pixel| if reaches(least, pixel) { 255 } else { 0 }).collect::<Vec<u8>>();
    let mut rbc = select(&mask(&weak), &mask(&strong), width, Connectivity::Eight);
    for (value, [b, _, r]) in rbc.iter_mut().zip(pixels) {
        // R/(B + ε) > 1 in f32 is R > B for integers: 1/(1 + ε) rounds below 1, and from 2 on ε vanishes.
        if r <= b {
            *value = 0;
        }
    }
    rbc
}

/// Returns for each G the smallest R with R/(G + ε) above `ratio` in `f32`, or 256 without such an R.
#[expect(clippy::cast_possible_truncation, reason = "the original compares in f32")]
fn min_red(ratio: f64) -> [u16; 256] {
    std::array::from_fn(|g| {
        let above = |r: &u16| f32::from(*r) / (g as f32 + EPSILON) > ratio as f32;
        (0..256).find(above).unwrap_or(256)
    })
}
