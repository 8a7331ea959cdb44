//! Outlines of objects without their numbers, as a `polygons` region.

use super::shape::outline;
use super::{OBJECTS, invalid};
use crate::objects::ObjectSet;
use crate::typed_operation::{Arguments, Inputs, TypedOperation, port};
use pleach_regions::{DataRegion, ElementType, Polygons};
use pleach_workflow::OperationError;

/// Traces one polygon per object, in raster order of first pixels: rings along the edges of its pixels, in pixels of the image, with
/// a ring for each hole and for each part that touches the others at corners only.
pub(crate) const OUTLINES: TypedOperation = TypedOperation {
    name: "features.outlines",
    version: 1,
    arguments: &[],
    inputs: &[OBJECTS],
    outputs: &[port("outlines", ElementType::Polygons)],
    nanoseconds_a_pixel: 10.0,
    bytes_a_pixel: 0.85,
    fixed_bytes: 0,
    within_core: None,
    run,
};

fn run(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let objects = inputs.objects(0)?;
    let mut plane = Vec::new();
    let bounds = objects.bounds().into_iter().enumerate();
    let outlines = bounds.map(|(object, bounds)| outline(&objects, object, bounds, &mut plane));
    Ok(vec![DataRegion::Polygons(Box::new(Polygons::new(outlines).map_err(invalid)?))])
}
