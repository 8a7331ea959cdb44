//! Results of a study in phases: joint `run.json` and `report.html` beside the folders of the phases, and the
//! survivors of each phase.

use super::ResultsError;
use pleach_report::phases::Phase;
use pleach_results::folder::Folder;
use pleach_results::record::{AcceleratorRecord, OperationRecord, PhaseRun, RunRecord};
use pleach_study::Defect;
use serde::Serialize;

/// `plan.json` of a study in phases: the owner of the folder, and the folders of the phases.
#[derive(Debug, Serialize)]
pub struct PlanOfPhases<'a> {
    study: &'a str,
    study_digest: &'a str,
    phases: &'a [String],
}

impl<'a> PlanOfPhases<'a> {
    /// Creates the document. `study_digest` is the [digest of all phases](crate::rounds::phases::digest), and `phases`
    /// are the names of their folders.
    pub fn new(study: &'a str, study_digest: &'a str, phases: &'a [String]) -> Self {
        Self { study, study_digest, phases }
    }
}

/// Writes the joint results of all phases.
///
/// # Errors
/// [`ResultsError`] if the folder is not writable.
pub fn write(phases: &[Phase<'_>], wall_seconds: f64, folder: &Folder) -> Result<RunRecord, ResultsError> {
    let run = of_all(phases, wall_seconds).ok_or_else(|| Defect::new("a study of no phase"))?;
    let html = pleach_report::phases::html(&run, phases);
    folder.write("report.html", html.as_bytes())?;
    // Write run.json last: its presence marks the results as complete.
    folder.write_json("run.json", &run)?;
    Ok(run)
}

/// Returns `run.json` of the study: totals over all phases, and each phase. `None` without phases.
fn of_all(phases: &[Phase<'_>], wall_seconds: f64) -> Option<RunRecord> {
    let runs = || phases.iter().map(|phase| &phase.written.run);
    let mut all = runs().next_back()?.clone();
    all.wall_seconds = wall_seconds;
    all.planning_seconds = runs().map(|run| run.planning_seconds).sum();
    all.evaluations = runs().map(|run| run.evaluations).sum();
    all.runs = runs().map(|run| run.runs).sum();
    all.failed = runs().map(|run| run.failed).sum();
    all.tasks_executed = runs().map(|run| run.tasks_executed).sum();
    all.tasks_skipped = runs().map(|run| run.tasks_skipped).sum();
    all.tasks_reused.clear();
    all.operations.clear();
    all.convergence = None;
    for run in runs() {
        for (level, tasks) in &run.tasks_reused {
            *all.tasks_reused.entry(level).or_insert(0) += tasks;
        }
        run.operations.iter().for_each(|operation| add(&mut all.operations, operation));
        for tile in &run.excluded_tiles {
            if !all.excluded_tiles.contains(tile) {
                all.excluded_tiles.push(tile.clone());
            }
        }
    }
    // Cache counters accumulate over phases, so the counters of the last phase are the totals.
    if let (Some(cache), Some(last)) = (&mut all.cache, runs().next_back()) {
        cache.warnings =
            runs().filter_map(|run| run.cache.as_ref()).flat_map(|cache| cache.warnings.clone()).collect();
        let asked = last.operations.iter().find(|operation| operation.name == "cache");
        let all = all.operations.iter_mut().find(|operation| operation.name == "cache");
        if let (Some(all), Some(asked)) = (all, asked) {
            all.runs = asked.runs;
        }
    }
    all.operations.sort_by(|a, b| a.name.cmp(&b.name));
    all.peak_bytes_admitted = runs().map(|run| run.peak_bytes_admitted).max().unwrap_or(0);
    all.peak_rss_bytes = runs().map(|run| run.peak_rss_bytes).max().unwrap_or(0);
    all.phases = phases.iter().enumerate().map(|(number, phase)| of_one(number, phase)).collect();
    Some(all)
}

fn of_one(number: usize, phase: &Phase<'_>) -> PhaseRun {
    let (study, run) = (&phase.prepared.study, &phase.written.run);
    let varied = study.workflow.parameters.iter().filter(|parameter| parameter.domain.varies());
    PhaseRun {
        phase: number + 1,
        folder: phase.folder.to_owned(),
        method: study.method.kind(),
        parameters: varied.map(|parameter| parameter.name.clone()).collect(),
        survivors: phase.screened.map(|screened| screened.survivors.clone()),
        evaluations: run.evaluations,
        runs: run.runs,
        failed: run.failed,
        tasks_executed: run.tasks_executed,
        tasks_reused: run.tasks_reused.clone(),
        wall_seconds: run.wall_seconds,
        convergence: run.convergence.clone(),
    }
}

/// Adds the runs and seconds of an operation in another phase. Prediction errors are weighted by seconds.
fn add(all: &mut Vec<OperationRecord>, more: &OperationRecord) {
    let Some(known) = all.iter_mut().find(|operation| operation.name == more.name) else {
        return all.push(more.clone());
    };
    let wrong =
        |operation: &OperationRecord| operation.prediction_error.map(|error| error * operation.seconds);
    let seconds = known.seconds + more.seconds;
    let error = wrong(known).unwrap_or(0.0) + wrong(more).unwrap_or(0.0);
    let is_foretold = known.prediction_error.is_some() || more.prediction_error.is_some();
    known.prediction_error = (is_foretold && seconds > 0.0).then(|| error / seconds);
    known.predicted_seconds = match (known.predicted_seconds, more.predicted_seconds) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0.0) + other.unwrap_or(0.0)),
    };
    known.accelerator = AcceleratorRecord::sum(known.accelerator, more.accelerator);
    (known.runs, known.seconds) = (known.runs + more.runs, seconds);
}
