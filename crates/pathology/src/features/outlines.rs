//! Outlines of objects without their numbers, as a `polygons` region.

use super::invalid;
use super::shape::{SHAPE, outline};
use crate::objects::ObjectSet;
use crate::typed_operation::{Arguments, Inputs, TypedOperation, port};
use pleach_regions::{DataRegion, ElementType, Polygons};
use pleach_workflow::OperationError;

/// Traces one polygon per object, in raster order of first pixels: rings along the edges of its pixels, in pixels of the image, with
/// a ring for each hole and for each part that touches the others at corners only.
pub(crate) const OUTLINES: TypedOperation = TypedOperation {
    name: "features.outlines",
    outputs: &[port("outlines", ElementType::Polygons)],
    run,
    ..SHAPE
};

fn run(inputs: &Inputs<'_>, _: &Arguments<'_>) -> Result<Vec<DataRegion>, OperationError> {
    let objects = inputs.objects(0)?;
    let mut plane = Vec::new();
    let bounds = objects.bounds().into_iter().enumerate();
    let outlines = bounds.map(|(object, bounds)| outline(&objects, object, bounds, &mut plane));
    Ok(vec![DataRegion::Polygons(Box::new(Polygons::new(outlines).map_err(invalid)?))])
}
