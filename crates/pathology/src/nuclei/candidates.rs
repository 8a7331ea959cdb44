//! t3: candidate nuclei, where the inverted red channel exceeds its reconstruction.

use crate::kernels::{above, components::fill_holes};
use crate::typed_operation::{Arguments, BYTE, CONNECTIVITY, Inputs, TypedOperation, argument, port};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::OperationError;

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
    device: None,
    run,
};

fn run(inputs: &Inputs<'_>, arguments: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let (rc, recon) = (inputs.pixels(0)?, inputs.pixels(1)?);
    let diff: Vec<u8> = rc.iter().zip(recon).map(|(rc, recon)| rc.saturating_sub(*recon)).collect();
    let bw1 = fill_holes(&above(&diff, arguments.byte(0)), inputs.width(), arguments.connectivity(1));
    Ok(vec![inputs.gray(diff)?, inputs.mask(bw1)?])
}
