//! The units of a study, and the layouts of stage inputs with bounds.

use crate::error::PrepareError;
use pleach_regions::UnitLayout;
use pleach_workflow::{Study, Units, Workflow};
use std::path::Path;

/// Expands the stage inputs with bounds for the tiles of a study. Returns the positions of the tiles if there are such
/// inputs.
///
/// # Errors
/// [`PrepareError`] if the tiles do not have the bounds that a stage needs.
pub(super) fn expand(file: &Path, study: &mut Study) -> Result<Option<Units>, PrepareError> {
    if !study.workflow.crosses_units() {
        return Ok(None);
    }
    let units = Units::of(&study.tiles, study.slides.as_ref());
    let expanded = study.workflow.expanded(&units, &study.tiles, study.slides.as_ref());
    let fail = |cause| PrepareError::Units { file: file.to_owned(), cause: Box::new(cause) };
    study.workflow = expanded.map_err(fail)?;
    Ok(Some(units))
}

/// Returns the positions of the tiles of a study, if its expanded workflow reads regions of other tiles.
pub fn units_of(study: &Study) -> Option<Units> {
    study.workflow.crosses_units().then(|| Units::of(&study.tiles, study.slides.as_ref()))
}

/// Returns the layout that an input of an expanded workflow is, for a tile. `None` for an input that is read from a file.
pub fn layout(workflow: &Workflow, units: Option<&Units>, input: usize, tile: usize) -> Option<UnitLayout> {
    units?.layout(tile, workflow.layout_of(input)?)
}

/// Returns, for each tile, whether its response is that of an earlier tile: the stage of the responses runs once a specimen.
pub fn repeated_responses(study: &Study) -> Vec<bool> {
    let runs_once = study.workflow.runs_once().get(study.workflow.response.stage).copied().unwrap_or(false);
    let units = units_of(study).filter(|_| runs_once);
    let first = units.map(|units| units.first_of_specimen()).unwrap_or_default();
    let is_later = |tile: usize| first.get(tile).is_some_and(|first| (*first as usize) < tile);
    (0..study.tiles.len()).map(is_later).collect()
}
