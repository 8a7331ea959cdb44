//! t2: the inverted red channel, and its reconstruction, where everything nucleus-sized and darker is flattened.

use super::{NORMALIZED, opencv};
use crate::kernels::{Connectivity, morphology, reconstruct::reconstruct};
use crate::typed_operation::{
    Arguments, CONNECTIVITY, DeviceVariant, Inputs, TypedOperation, argument, port,
};
use pleach_accelerate::kernels::opening::{self, Opened};
use pleach_accelerate::kernels::reconstruct as device_reconstruct;
use pleach_accelerate::{DeviceOutput, Task};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::{AcceleratedError, OperationError};

pub(crate) const RECONSTRUCT: TypedOperation = TypedOperation {
    name: "nuclei.reconstruct",
    version: 1,
    arguments: &[argument("MorphRecon", CONNECTIVITY)],
    inputs: &[NORMALIZED],
    outputs: &[port("rc", ElementType::Gray8), port("recon", ElementType::Gray8)],
    nanoseconds_a_pixel: 29.0,
    // First rc and the plane before and after each step of the opening, later marker, mask, queue and result.
    bytes_a_pixel: 5.4,
    fixed_bytes: 0,
    within_core: None,
    device: Some(DeviceVariant {
        // "Open" and "Recon" together: (152.2 + 1748.3) / (16.54 + 318.9).
        gain: 5.7,
        // 3 of the image, 3 of planes, 2 of guarded planes, 1 of the result, and their margins on small tiles.
        bytes_a_pixel: 10.0,
        fixed_bytes: 1 << 20,
        run: run_on,
    }),
    run,
};

fn run(inputs: &Inputs<'_>, arguments: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let width = inputs.width();
    let (pixels, _) = inputs.pixels(0)?.as_chunks::<3>();
    let rc: Vec<u8> = pixels.iter().map(|[_, _, r]| 255 - r).collect();

    // The opening's padding remains as a ring around both planes and feeds the reconstruction from outside.
    let mut marker = morphology::open_octagon(&rc, width).map_err(opencv)?;
    let mut mask = marker.clone();
    let inner_rows = mask.chunks_exact_mut(width + 2).skip(1);
    for (ringed, row) in inner_rows.zip(rc.chunks_exact(width)) {
        ringed[1..=width].copy_from_slice(row);
    }
    reconstruct(&mut marker, &mask, width + 2, arguments.connectivity(0));
    let recon = morphology::crop(&marker, width + 2, 1);
    Ok(vec![inputs.gray(rc)?, inputs.gray(recon)?])
}

fn run_on(
    task: &mut Task<'_>,
    inputs: &Inputs<'_>,
    arguments: &Arguments<'_>,
) -> Result<Vec<DeviceOutput>, AcceleratedError> {
    let (image, size) = (task.input(inputs.region(0))?, inputs.image_size(task)?);
    let Opened { inverted_red, marker, mask } = opening::open_inverted_red(task, &image, size)?;
    let eight = arguments.connectivity(0) == Connectivity::Eight;
    device_reconstruct::reconstruct(task, &marker, &mask, size.padded(1), eight)?;
    let recon = opening::without_margin(task, &marker, size)?;
    Ok(vec![inputs.gray_on(task, inverted_red)?, inputs.gray_on(task, recon)?])
}
