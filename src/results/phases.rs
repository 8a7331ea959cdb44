//! What the phases of a study come to together, beside the folders in which each has its own results: `run.json` and
//! `report.html`; and what survives a phase.

use crate::analysis::Collected;
use crate::exit::{Outcome, Stop};
use crate::output::folder::Folder;
use crate::output::record::{Operation, PhaseRun, Plan, Run};

use crate::report::sampled::Sampled;
use crate::report::{self, Report};
use crate::results::Written;
use crate::study::Prepared;
use serde::{Deserialize, Serialize};

/// Its name in the folder of a phase.
const SURVIVORS: &str = "survivors.json";

/// Which parameters go on to be varied after a phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Screened {
    /// The phase, from 1.
    pub(crate) phase: usize,
    /// The response that they were chosen by.
    pub(crate) response: String,
    /// The rule, as in the study file.
    pub(crate) rule: String,
    /// In the order of the parameters.
    pub(crate) survivors: Vec<String>,
    /// Those that varied in the phase, and are fixed from then on.
    pub(crate) fixed: Vec<String>,
}

impl Screened {
    /// What was written down, if anything was.
    ///
    /// # Errors
    /// [`Stop::Input`] when it cannot be read.
    pub(crate) fn read(folder: &Folder) -> Outcome<Option<Self>> {
        let file = folder.path().join(SURVIVORS);
        let fail = |error: &dyn std::fmt::Display| {
            Stop::Input(format!("{}: failed to read: {error}; a new folder is allowed", file.display()))
        };
        match std::fs::read_to_string(&file) {
            Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| fail(&error)),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(fail(&error)),
        }
    }

    /// Writes it down, before anything follows from it.
    pub(crate) fn write(&self, folder: &Folder) -> Outcome {
        folder.write_json(SURVIVORS, self)
    }
}

/// `plan.json` of a study in phases: whose folder it is, and where its phases are.
#[derive(Debug, Serialize)]
pub(crate) struct PlanOfPhases<'a> {
    study: &'a str,
    study_digest: &'a str,
    phases: &'a [String],
}

impl<'a> PlanOfPhases<'a> {
    pub(crate) fn new(study: &'a str, study_digest: &'a str, phases: &'a [String]) -> Self {
        Self { study, study_digest, phases }
    }
}

/// A phase that has been executed.
#[derive(Clone, Copy)]
pub(crate) struct Phase<'a> {
    /// Its folder, within that of the study.
    pub(crate) folder: &'a str,
    pub(crate) prepared: &'a Prepared,
    pub(crate) plan: &'a Plan,
    pub(crate) written: &'a Written,
    pub(crate) collected: &'a Collected,
    /// What survives it; `None` of the last phase.
    pub(crate) screened: Option<&'a Screened>,
}

impl<'a> Phase<'a> {
    /// What its part of the page tells about.
    pub(crate) fn report(&self) -> Option<Report<'a>> {
        let (analysis, further) = self.written.analyses.split_first()?;
        Some(Report {
            study: &self.prepared.study,
            plan: self.plan,
            run: &self.written.run,
            analysis,
            further,
            runs: &self.collected.runs,
            failures: self.written.failures.as_ref(),
            gallery: &self.written.gallery,
            sampled: Some(Sampled { design: &self.prepared.design, collected: self.collected }),
        })
    }
}

/// Writes what the phases come to together.
///
/// # Errors
/// [`Stop::Input`] when the folder cannot be written to.
pub(crate) fn write(phases: &[Phase<'_>], wall_seconds: f64, folder: &Folder) -> Outcome<Run> {
    let run = of_all(phases, wall_seconds).ok_or_else(|| Stop::defect("a study of no phase"))?;
    let html = report::phases::html(&run, phases);
    folder.write("report.html", html.as_bytes())?;
    // Last: it says that all is there.
    folder.write_json("run.json", &run)?;
    Ok(run)
}

/// `run.json` of the study: what all phases took, and each.
fn of_all(phases: &[Phase<'_>], wall_seconds: f64) -> Option<Run> {
    let runs = || phases.iter().map(|phase| &phase.written.run);
    let mut all = runs().next_back()?.clone();
    all.wall_seconds = wall_seconds;
    all.planning_seconds = runs().map(|run| run.planning_seconds).sum();
    all.evaluations = runs().map(|run| run.evaluations).sum();
    all.runs = runs().map(|run| run.runs).sum();
    all.failed = runs().map(|run| run.failed).sum();
    all.tasks_executed = runs().map(|run| run.tasks_executed).sum();
    all.tasks_reused.clear();
    all.operations.clear();
    all.convergence = None;
    for run in runs() {
        for (level, tasks) in &run.tasks_reused {
            *all.tasks_reused.entry(level).or_insert(0) += tasks;
        }
        run.operations.iter().for_each(|operation| add(&mut all.operations, operation));
        for tile in &run.tiles_left_out {
            if !all.tiles_left_out.contains(tile) {
                all.tiles_left_out.push(tile.clone());
            }
        }
    }
    // What was asked of a cache is counted from the first phase on.
    if let (Some(cache), Some(last)) = (&mut all.cache, runs().next_back()) {
        cache.reports =
            runs().filter_map(|run| run.cache.as_ref()).flat_map(|cache| cache.reports.clone()).collect();
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

/// Adds what an operation took in another phase; by how much it was foretold wrongly counts by its seconds.
fn add(all: &mut Vec<Operation>, more: &Operation) {
    let Some(known) = all.iter_mut().find(|operation| operation.name == more.name) else {
        return all.push(more.clone());
    };
    let wrong = |operation: &Operation| operation.prediction_error.map(|error| error * operation.seconds);
    let seconds = known.seconds + more.seconds;
    let error = wrong(known).unwrap_or(0.0) + wrong(more).unwrap_or(0.0);
    let is_foretold = known.prediction_error.is_some() || more.prediction_error.is_some();
    known.prediction_error = (is_foretold && seconds > 0.0).then(|| error / seconds);
    known.predicted_seconds = match (known.predicted_seconds, more.predicted_seconds) {
        (None, None) => None,
        (one, other) => Some(one.unwrap_or(0.0) + other.unwrap_or(0.0)),
    };
    (known.runs, known.seconds) = (known.runs + more.runs, seconds);
}
