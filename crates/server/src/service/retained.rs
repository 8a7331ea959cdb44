//! Regions that workers retain for queries: the region of each evaluation and tile, by output.
//!
//! The tables are in the manager's memory only: after its restart, regions of ended studies are unknown, and those of running
//! studies are known again once they run.

use parking_lot::Mutex;
use pleach_dispatch::message::{FileContent, InputFile};
use pleach_planner::PlannedStudy;
use pleach_regions::RegionKey;
use pleach_study::PreparedStudy;
use pleach_study::spatial::{Calibration, TilePlace};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use tracing::warn;

/// Retained outputs of all studies.
#[derive(Debug, Default)]
pub(crate) struct RetainedStudies(Mutex<BTreeMap<u32, Arc<RetainedOutputs>>>);

impl RetainedStudies {
    /// Replaces the outputs of a study: those of a new plan.
    pub(crate) fn add(&self, id: u32, outputs: RetainedOutputs) {
        self.0.lock().insert(id, Arc::new(outputs));
    }

    pub(crate) fn get(&self, id: u32) -> Option<Arc<RetainedOutputs>> {
        self.0.lock().get(&id).cloned()
    }

    /// Removes the outputs of a study.
    pub(crate) fn remove(&self, id: u32) {
        self.0.lock().remove(&id);
    }
}

/// Retained outputs of one plan.
#[derive(Debug)]
pub(crate) struct RetainedOutputs {
    pub(crate) places: Vec<TilePlace>,
    /// Numbers of the evaluations.
    pub(crate) evaluations: Range<usize>,
    outputs: Vec<RetainedOutput>,
}

/// One retained output.
#[derive(Debug)]
pub(crate) struct RetainedOutput {
    stage: String,
    output: String,
    /// Its stage runs once a slide.
    pub(crate) is_whole: bool,
    /// Keys by evaluation, then by tile.
    keys: Vec<RegionKey>,
}

impl RetainedOutputs {
    /// Lists the regions of a plan that has not been taken out of `planned`. `find` returns the local path of a slide.
    pub(crate) fn new(
        prepared: &PreparedStudy,
        planned: &PlannedStudy,
        inputs: &HashMap<RegionKey, InputFile>,
        find: impl Fn(&FileContent) -> Option<PathBuf>,
    ) -> Self {
        let study = &prepared.study;
        let first = 1 - (prepared.evaluations.len() - prepared.design.evaluations.len()).min(1);
        let evaluations = first..first + prepared.evaluations.len();
        let once = study.workflow.runs_once();
        let output = |&(stage, output): &(usize, usize)| {
            let runs = evaluations.clone().flat_map(|evaluation| {
                (0..study.tiles.len()).map(move |tile| planned.instance(evaluation, tile, stage))
            });
            let declared = &study.workflow.stages[stage];
            RetainedOutput {
                stage: declared.name.clone(),
                output: declared.outputs[output].region.region.clone(),
                is_whole: once[stage],
                keys: runs.map(|id| planned.plan.instances.at(id).outputs[output].key).collect(),
            }
        };
        let outputs = study.retained.iter().map(output).collect();
        let places = TilePlace::of_study(study, &calibrations(prepared, inputs, find));
        Self { places, evaluations, outputs }
    }

    /// Returns a retained output by name.
    pub(crate) fn output(&self, stage: &str, output: &str) -> Option<&RetainedOutput> {
        self.outputs.iter().find(|known| known.stage == stage && known.output == output)
    }

    /// Returns the names of all outputs.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        self.outputs.iter().map(|known| format!("{} {}", known.stage, known.output))
    }

    /// Returns the region of an evaluation on a tile.
    pub(crate) fn key(&self, of: &RetainedOutput, evaluation: usize, tile: usize) -> Option<RegionKey> {
        let row = evaluation.checked_sub(self.evaluations.start)?;
        of.keys.get(row * self.places.len() + tile).copied()
    }
}

/// Returns the calibrations of a study's slides, by their paths at the client. One that cannot be read is left out: its
/// coordinates are those of the tiles' magnification.
fn calibrations(
    prepared: &PreparedStudy,
    inputs: &HashMap<RegionKey, InputFile>,
    find: impl Fn(&FileContent) -> Option<PathBuf>,
) -> BTreeMap<PathBuf, Calibration> {
    let mut found = BTreeMap::new();
    for (tile, facts) in prepared.study.tiles.iter().zip(&prepared.tiles) {
        let Some(slide) = tile.slide.as_ref().filter(|_| !found.contains_key(&tile.path)) else { continue };
        let input = facts.inputs.iter().find_map(|key| inputs.get(key));
        let Some(path) = input.and_then(|input| find(&input.file)) else { continue };
        match Calibration::of_slide(&path, slide.magnification) {
            Ok(calibration) => _ = found.insert(tile.path.clone(), calibration),
            Err(error) => warn!("queries have no calibration: {error}"),
        }
    }
    found
}
