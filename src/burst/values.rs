//! Equal results of a recorded run by value, for the instances of a plan.

use super::error::{BurstError, MeasuredRunProblem};
use pleach_planner::{PlannedStudy, StageTables};
use pleach_results::provenance::EqualResults;
use pleach_study::PreparedStudy;
use pleach_workflow::Stage;
use std::collections::HashMap;
use std::path::Path;

/// Equal results of a run, and the problem's location if they are of another study.
pub(super) struct RecordedValues<'a> {
    /// `run.json` of the run.
    file: &'a Path,
    results: EqualResults,
    /// Number of each result. Results of two simulated tiles differ, also if one recorded tile stands for both.
    numbers: HashMap<(usize, u32), u32>,
}

impl<'a> RecordedValues<'a> {
    /// Reads the records beside `file`, the `run.json` of a run of `prepared`. `has_own_tiles` is false if the tiles are only
    /// simulated. Then recorded tile `n` has the results of the simulated tiles `n`, `n + m`, `n + 2m`, ... of `m` recorded ones.
    pub(super) fn read(
        file: &'a Path,
        prepared: &PreparedStudy,
        has_own_tiles: bool,
    ) -> Result<Self, BurstError> {
        let fail = |problem| BurstError::MeasuredRun { file: file.to_owned(), problem };
        let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
        let results = EqualResults::read(folder.unwrap_or(Path::new(".")))
            .map_err(|error| fail(MeasuredRunProblem::Records(error)))?;
        let (evaluations, tiles) = (prepared.design.evaluations.len(), prepared.tiles.len());
        let is_other = results.evaluations() != evaluations || has_own_tiles && results.tiles() != tiles;
        if is_other || results.tiles() == 0 {
            let found = format!("{} evaluations on {} tiles", results.evaluations(), results.tiles());
            let on_tiles = if has_own_tiles { format!(" on {tiles} tiles") } else { String::new() };
            let needed = format!("{evaluations} evaluations{on_tiles}");
            return Err(fail(MeasuredRunProblem::OtherSample { found, needed }));
        }
        Ok(Self { file, results, numbers: HashMap::new() })
    }

    /// Returns the number of the result of each task of a stage, by member and level.
    pub(super) fn of_stage(
        &mut self,
        planned: &PlannedStudy,
        tables: &StageTables,
        stage: &Stage,
    ) -> Result<Vec<u32>, BurstError> {
        let mut tasks = Vec::new();
        for task in &stage.tasks {
            let Some(place) = self.results.task(&stage.name, &task.name) else {
                return Err(self.other(format!("task {} of stage {}", task.name, stage.name)));
            };
            tasks.push(place);
        }
        let mut values = Vec::with_capacity(tables.instances.len() * tasks.len());
        for instance in &tables.instances {
            let (evaluation, tile) = planned.first_run(*instance);
            let (block, recorded) = (tile / self.results.tiles(), tile % self.results.tiles());
            for (place, task) in tasks.iter().zip(&stage.tasks) {
                let Some(number) = self.results.number(evaluation, recorded, *place) else {
                    return Err(self.other(format!("task {} of evaluation {evaluation}", task.name)));
                };
                let next = self.numbers.len() as u32;
                values.push(*self.numbers.entry((block, number)).or_insert(next));
            }
        }
        Ok(values)
    }

    /// Returns the error of records that lack something of the study.
    pub(super) fn other(&self, needed: String) -> BurstError {
        let found = "another plan".to_owned();
        BurstError::MeasuredRun {
            file: self.file.to_owned(),
            problem: MeasuredRunProblem::OtherSample { found, needed },
        }
    }
}
