//! Comparison of two masks over their pixels.
//!
//! Objects are not matched with each other here.

use crate::declared::{Arguments, Declared, Inputs, port};
use pleach_regions::{DataRegion, ElementType, Table};
use pleach_workflow::OperationError;

pub(crate) const MASKS: Declared = Declared {
    name: "compare.masks",
    version: 1,
    arguments: &[],
    inputs: &[port("mask", ElementType::Mask), port("reference", ElementType::Mask)],
    outputs: &[port("metrics", ElementType::Table)],
    nanoseconds_a_pixel: 0.2,
    bytes_a_pixel: 0,
    fixed_bytes: 0,
    run,
};

#[expect(clippy::cast_precision_loss, reason = "a tile has far fewer than 2^53 pixels")]
fn run(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let (mask, reference) = (inputs.pixels(0)?, inputs.pixels(1)?);
    let (mut both, mut either) = (0_u64, 0_u64);
    // Bytes are counted in bytes, for as long as one cannot overflow: the compiler makes vectors of it.
    for (a, b) in mask.chunks(255).zip(reference.chunks(255)) {
        let count = |(both, either): (u8, u8), (a, b): (&u8, &u8)| {
            let (a, b) = (u8::from(*a != 0), u8::from(*b != 0));
            (both + (a & b), either + (a | b))
        };
        let (in_both, in_either) = a.iter().zip(b).fold((0, 0), count);
        both += u64::from(in_both);
        either += u64::from(in_either);
    }
    let (both, either) = (both as f64, either as f64);
    // Two empty masks agree.
    let share = |part: f64, whole: f64| if whole == 0.0 { 1.0 } else { part / whole };
    let metrics = Table::new([
        ("dice", share(2.0 * both, both + either)),
        ("jaccard", share(both, either)),
        ("pixel-difference", either - both),
    ]);
    Ok(vec![DataRegion::Table(metrics)])
}
