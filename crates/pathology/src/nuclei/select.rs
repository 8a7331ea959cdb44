//! t5: the nuclei around the candidates, without red blood cells, holes and spurs.

use super::{BACKGROUND_COLUMN, opencv};
use crate::kernels::components::{fill_holes, select};
use crate::kernels::{Connectivity, above, morphology::open_cross};
use crate::typed_operation::{Arguments, BYTE, DeviceVariant, Inputs, TypedOperation, argument, port};
use pleach_accelerate::kernels::masks;
use pleach_accelerate::{DeviceOutput, Task};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::{AcceleratedError, OperationError};

pub(crate) const NUCLEI: TypedOperation = TypedOperation {
    name: "nuclei.nuclei",
    version: 1,
    arguments: &[argument("G2", BYTE)],
    inputs: &[
        port("diff", ElementType::Gray8),
        port("bw1_t", ElementType::Mask),
        port("rbc", ElementType::Mask),
        port("background", ElementType::Table),
    ],
    outputs: &[port("seg_open", ElementType::Mask)],
    nanoseconds_a_pixel: 2.6,
    bytes_a_pixel: 4.3,
    fixed_bytes: 0,
    within_core: None,
    device: Some(DeviceVariant {
        // "Recon": 1748.3 / 318.9. Selection and hole filling are two.
        gain: 5.5,
        // diff, bw1_t and rbc, marker and mask of the reconstructions.
        bytes_a_pixel: 5.0,
        fixed_bytes: 1 << 20,
        run: run_on,
    }),
    run,
};

fn run(inputs: &Inputs<'_>, arguments: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let (diff, candidates, rbc) = (inputs.pixels(0)?, inputs.pixels(1)?, inputs.pixels(2)?);
    let width = inputs.width();
    if is_background(inputs)? {
        return Ok(vec![inputs.mask(vec![0; diff.len()])?]);
    }
    let mut nuclei = select(&above(diff, arguments.byte(0)), candidates, width, Connectivity::Eight);
    for (value, &red) in nuclei.iter_mut().zip(rbc) {
        if red != 0 {
            *value = 0;
        }
    }
    let opened = open_cross(&fill_holes(&nuclei, width, Connectivity::Four), width).map_err(opencv)?;
    Ok(vec![inputs.mask(opened)?])
}

/// Returns whether the tile is background, which has no nuclei.
fn is_background(inputs: &Inputs<'_>) -> Result<bool, OperationError> {
    Ok(inputs.table(3)?.get(BACKGROUND_COLUMN) == Some(1.0))
}

fn run_on(
    task: &mut Task<'_>,
    inputs: &Inputs<'_>,
    arguments: &Arguments<'_>,
) -> Result<Vec<DeviceOutput>, AcceleratedError> {
    let size = inputs.image_size(task)?;
    if is_background(inputs)? {
        return Ok(vec![DeviceOutput::Host(inputs.mask(vec![0; size.pixels()])?)]);
    }
    let [diff, candidates, rbc] = [0, 1, 2].map(|index| inputs.region(index));
    let (diff, candidates, rbc) = (task.input(diff)?, task.input(candidates)?, task.input(rbc)?);
    let opened = masks::opened_objects(task, &diff, arguments.byte(0), [&candidates, &rbc], size)?;
    Ok(vec![inputs.mask_on(task, opened)?])
}
