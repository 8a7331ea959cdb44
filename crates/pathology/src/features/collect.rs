//! One region of all objects with all of their numbers.

use super::columns::{PER_CHANNEL, SHAPE, TEXTURE};
use super::shape::CLASS;
use super::{CHANNELS, columns, invalid};
use crate::typed_operation::{Arguments, Inputs, TypedOperation, port};
use pleach_regions::{AnnotatedObjects, DataRegion, ElementType, Outline};
use pleach_workflow::OperationError;

/// Puts the numbers of the same objects side by side.
pub(crate) const COLLECT: TypedOperation = TypedOperation {
    name: "features.collect",
    version: 1,
    arguments: &[],
    inputs: &[
        port("shapes", ElementType::Objects),
        port("nucleus_statistics", ElementType::RaggedF64),
        port("ring_statistics", ElementType::RaggedF64),
        port("texture", ElementType::RaggedF64),
    ],
    outputs: &[port("nuclei", ElementType::Objects)],
    nanoseconds_a_pixel: 2.0,
    bytes_a_pixel: 1.9,
    fixed_bytes: 0,
    within_core: None,
    device: None,
    run,
};

fn run(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let shapes = inputs.annotated(0)?;
    if shapes.columns() != SHAPE {
        return Err(invalid(format!("columns {:?}; {SHAPE:?} are allowed", shapes.columns())));
    }
    let statistics = CHANNELS * PER_CHANNEL;
    let tables = [
        rows_of(inputs, 1, statistics, shapes.len())?,
        rows_of(inputs, 2, statistics, shapes.len())?,
        rows_of(inputs, 3, TEXTURE.len(), shapes.len())?,
    ];
    let mut nuclei = AnnotatedObjects::new(columns::all()).map_err(invalid)?;
    let mut numbers = Vec::with_capacity(nuclei.columns().len());
    for (index, shape) in shapes.iter().enumerate() {
        numbers.clear();
        numbers.extend_from_slice(shape.numbers);
        for (values, columns) in tables {
            numbers.extend_from_slice(&values[index * columns..][..columns]);
        }
        let Outline::Polygon(rings) = shape.outline else {
            return Err(invalid("a box instead of an outline"));
        };
        let rings: Vec<_> = rings.collect();
        nuclei.push_polygon(&rings, CLASS, &numbers).map_err(invalid)?;
    }
    Ok(vec![DataRegion::Objects(Box::new(nuclei))])
}

/// Returns the values of a ragged input with `columns` numbers in each of `objects` rows.
fn rows_of<'a>(
    inputs: &Inputs<'a>,
    index: usize,
    columns: usize,
    objects: usize,
) -> Result<(&'a [f64], usize), OperationError> {
    let rows = inputs.ragged(index)?;
    let is_whole = rows.len() == objects
        && rows.ends().iter().zip(1_u64..).all(|(end, row)| *end == row * columns as u64);
    let values = rows.values().get().filter(|_| is_whole);
    let values = values.ok_or_else(|| {
        invalid(format!("{} rows; {objects} of {columns} numbers are allowed, one per object", rows.len()))
    })?;
    Ok((values, columns))
}
