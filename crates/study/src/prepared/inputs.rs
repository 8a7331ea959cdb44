//! Inputs of a workflow on a tile: their region keys, and the tables among them that travel with the study.

use super::units::layout;
use pleach_planner::identity;
use pleach_regions::{RegionKey, Table};
use pleach_workflow::{StainFit, Study, Units};
use std::path::Path;

/// Returns the region key of a workflow input on a tile: of the tile itself, except the core of a slide's tile, the pixels that
/// count, layouts, fitted values and calibrations. `role` names the input, and `path` the file of the tile.
pub fn key(
    study: &Study,
    units: Option<&Units>,
    (input, tile): (usize, usize),
    role: &str,
    path: &Path,
) -> RegionKey {
    let (declared, file) = (&study.workflow.inputs[input], &study.tiles[tile]);
    if let Some(layout) = layout(&study.workflow, units, input, tile) {
        return identity::of_layout(role, &layout);
    }
    if let Some(fit) = study.fit_of(declared, file) {
        return identity::of_stain_fit(role, fit);
    }
    if let Some(calibration) = study.calibration_of(declared, file) {
        return identity::of_calibration(role, &calibration);
    }
    match &file.block {
        Some(block) => identity::of_block(role, path, block),
        None => identity::of_tile(role, path, file.slide.as_ref()),
    }
}

/// Returns the table that a workflow input is on a tile: a layout, fitted values or a calibration. `None` for an input that is
/// read from a file.
pub fn table(study: &Study, units: Option<&Units>, (input, tile): (usize, usize)) -> Option<Table> {
    let (declared, file) = (&study.workflow.inputs[input], &study.tiles[tile]);
    let layout = layout(&study.workflow, units, input, tile).map(|layout| layout.to_table());
    let fit = || study.fit_of(declared, file).map(StainFit::table);
    layout.or_else(fit).or_else(|| study.calibration_of(declared, file))
}
