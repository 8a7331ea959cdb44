//! t5: the nuclei around the candidates, without red blood cells, holes and spurs.

use super::{BACKGROUND_COLUMN, opencv};
use crate::kernels::components::{fill_holes, select};
use crate::kernels::{Connectivity, above, morphology::open_cross};
use crate::typed_operation::{Arguments, BYTE, Inputs, TypedOperation, argument, port};
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::OperationError;

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
    device: None,
    run,
};

fn run(inputs: &Inputs<'_>, arguments: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let (diff, candidates, rbc) = (inputs.pixels(0)?, inputs.pixels(1)?, inputs.pixels(2)?);
    let width = inputs.width();
    // A background tile has no nuclei.
    if inputs.table(3)?.get(BACKGROUND_COLUMN) == Some(1.0) {
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
