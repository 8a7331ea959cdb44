//! Checks the bounds of stage inputs, once all stages are in order.

use crate::bounds::{BoundsProblem, InputBounds, MAX_HALO_PX};
use crate::workflow::{InputOrigin, Stage};
use pleach_regions::ElementType;

/// Returns the first problem of a stage's inputs, with the index of the input. `stages` are the earlier ones, and
/// `once` states which of them run once a specimen.
pub(super) fn check(stage: &Stage, stages: &[Stage], once: &[bool]) -> Result<(), (usize, BoundsProblem)> {
    let mut first_halo = None;
    for (index, input) in stage.inputs.iter().enumerate() {
        let (bounds, element) = (input.bounds, input.region.element);
        let fits = match bounds {
            InputBounds::Own => true,
            InputBounds::Halo(_) => element.has_bounds(),
            InputBounds::Whole => element.has_bounds() || element == ElementType::Table,
            InputBounds::Offset(_) => element.has_empty(),
            InputBounds::Unit(_) => false,
        };
        let is_near = match bounds {
            InputBounds::Halo(halo) => halo.iter().all(|px| *px <= MAX_HALO_PX),
            InputBounds::Offset(offset) => offset.iter().all(|units| units.unsigned_abs() <= MAX_HALO_PX),
            InputBounds::Own | InputBounds::Whole | InputBounds::Unit(_) => true,
        };
        if !fits {
            return Err((index, BoundsProblem::Element { bounds, element }));
        }
        if !is_near {
            return Err((index, BoundsProblem::TooFar(bounds)));
        }
        if let (InputOrigin::Stage { stage: number, .. }, true) = (input.origin, bounds != InputBounds::Own)
            && once[number]
        {
            let stage = stages[number].name.clone();
            return Err((index, BoundsProblem::OfSpecimen { bounds, stage }));
        }
        if let InputBounds::Halo(_) = bounds {
            let first = *first_halo.get_or_insert(bounds);
            if first != bounds {
                return Err((index, BoundsProblem::Halos { bounds, first }));
            }
        }
    }
    Ok(())
}
