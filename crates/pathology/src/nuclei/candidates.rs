//! t3: candidate nuclei, where the inverted red channel exceeds its reconstruction.

use crate::kernels::{Connectivity, above, components::fill_holes};
use crate::typed_operation::{
    Arguments, BYTE, CONNECTIVITY, DeviceVariant, Inputs, TypedOperation, argument, port,
};
use pleach_accelerate::kernels::masks::{self, Difference};
use pleach_accelerate::{DeviceOutput, Task};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::{AcceleratedError, OperationError};

pub(crate) const CANDIDATES: TypedOperation = TypedOperation {
    name: "nuclei.candidates",
    version: 1,
    arguments: &[argument("G1", BYTE), argument("FillHoles", CONNECTIVITY)],
    inputs: &[port("rc", ElementType::Gray8), port("recon", ElementType::Gray8)],
    outputs: &[port("diff", ElementType::Gray8), port("bw1", ElementType::Mask)],
    nanoseconds_a_pixel: 0.7,
    bytes_a_pixel: 3.4,
    fixed_bytes: 0,
    within_core: None,
    device: Some(DeviceVariant {
        // "Recon": 1748.3 / 318.9. Hole filling, its longest part, is one.
        gain: 5.5,
        // rc, recon and diff, marker and mask of the reconstruction.
        bytes_a_pixel: 5.0,
        fixed_bytes: 1 << 20,
        run: run_on,
    }),
    run,
};

fn run(inputs: &Inputs<'_>, arguments: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let (rc, recon) = (inputs.pixels(0)?, inputs.pixels(1)?);
    let diff: Vec<u8> = rc.iter().zip(recon).map(|(rc, recon)| rc.saturating_sub(*recon)).collect();
    let bw1 = fill_holes(&above(&diff, arguments.byte(0)), inputs.width(), arguments.connectivity(1));
    Ok(vec![inputs.gray(diff)?, inputs.mask(bw1)?])
}

fn run_on(
    task: &mut Task<'_>,
    inputs: &Inputs<'_>,
    arguments: &Arguments<'_>,
) -> Result<Vec<DeviceOutput>, AcceleratedError> {
    let (rc, recon) = (task.input(inputs.region(0))?, task.input(inputs.region(1))?);
    let size = inputs.image_size(task)?;
    let eight = arguments.connectivity(1) == Connectivity::Eight;
    let Difference { difference, mask } =
        masks::filled_difference(task, [&rc, &recon], size, arguments.byte(0), eight)?;
    Ok(vec![inputs.gray_on(task, difference)?, inputs.mask_on(task, mask)?])
}
