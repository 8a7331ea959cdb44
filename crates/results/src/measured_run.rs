//! Measured times of an earlier run of a study, from its `run.json`.

use pleach_dispatch::SlotKind;
use pleach_dispatch::cost_model::CostModel;
use pleach_study::PreparedStudy;
use pleach_workflow::{Operation, plain_name};
use serde::Deserialize;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Times of a run.
#[derive(Clone, Debug)]
pub struct MeasuredRun {
    /// Seconds of the study's operations, on cores and on accelerators.
    pub costs: CostModel,
    /// Overhead of a bucket, if the run measured one.
    pub bucket_overhead_seconds: Option<f64>,
    /// Reuse scope of the run. `None` for a strategy without one.
    pub reuse: Option<String>,
}

/// Reason why a run cannot be used.
#[derive(Debug, Error)]
#[error("{}: {problem}", file.display())]
pub struct MeasuredRunError {
    /// File of the run.
    file: PathBuf,
    #[source]
    problem: Problem,
}

#[derive(Debug, Error)]
enum Problem {
    #[error("failed to read: {0}")]
    Unreadable(#[source] io::Error),
    #[error("{0}; the run.json of a study is needed")]
    Form(#[source] serde_json::Error),
    #[error("study: {found:?} is not allowed; the run of {needed:?} is needed")]
    OtherStudy { found: String, needed: String },
}

/// Used fields of `run.json`.
#[derive(Debug, Deserialize)]
struct Run {
    study: String,
    #[serde(default)]
    reuse: Option<String>,
    workers: u32,
    execution_seconds: f64,
    operations: Vec<MeasuredOperation>,
    #[serde(default)]
    bucket_overhead_seconds: Option<f64>,
}

#[derive(Debug, Deserialize)]
struct MeasuredOperation {
    name: String,
    #[serde(flatten)]
    all: Runs,
    /// Runs on accelerators, which the others include.
    #[serde(default)]
    accelerator: Runs,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
struct Runs {
    runs: u64,
    seconds: f64,
}

impl MeasuredRun {
    /// Reads `file`, the `run.json` of a run of this study.
    ///
    /// # Errors
    /// [`MeasuredRunError`] if the file cannot be read, or is not the run of this study.
    pub fn read(file: &Path, prepared: &PreparedStudy) -> Result<Self, MeasuredRunError> {
        let fail = |problem| MeasuredRunError { file: file.to_owned(), problem };
        let text = std::fs::read(file).map_err(|error| fail(Problem::Unreadable(error)))?;
        let run: Run = serde_json::from_slice(&text).map_err(|error| fail(Problem::Form(error)))?;
        if run.study != prepared.study.name {
            let needed = prepared.study.name.clone();
            return Err(fail(Problem::OtherStudy { found: run.study, needed }));
        }
        let mut lines = Vec::new();
        for task in prepared.study.workflow.stages.iter().flat_map(|stage| &stage.tasks) {
            let Some(operation) = prepared.registry.get(&task.operation, task.version) else { continue };
            let own = run.operations.iter().find(|own| own.name == task.operation);
            lines.extend(own.into_iter().flat_map(|own| own.lines(&**operation, prepared, &run)));
        }
        let overhead = run.bucket_overhead_seconds;
        Ok(Self {
            costs: CostModel::of_lines(lines.iter().map(String::as_str)),
            bucket_overhead_seconds: overhead.filter(|seconds| seconds.is_finite() && *seconds >= 0.0),
            reuse: run.reuse,
        })
    }
}

impl Run {
    /// Returns the ratio of one worker's execution time to the time of its tasks, at least 1. The ratio adds the time
    /// between tasks to the tasks. Returns 1 for several workers, because their waiting times are unknown.
    fn between_tasks(&self) -> f64 {
        let tasks: f64 = self.operations.iter().map(|operation| operation.all.seconds).sum();
        let ratio = self.execution_seconds / tasks;
        if self.workers == 1 && ratio.is_finite() { ratio.max(1.0) } else { 1.0 }
    }
}

impl MeasuredOperation {
    /// Returns the lines of a cost model for this operation: one for each kind of slot that ran it.
    fn lines(&self, operation: &dyn Operation, prepared: &PreparedStudy, run: &Run) -> Vec<String> {
        let tiles = prepared.tiles.len().max(1) as f64;
        let declared: f64 = prepared.tiles.iter().map(|tile| operation.cost_seconds(tile.pixels)).sum();
        let ratio = |runs: Runs| {
            let seconds = runs.seconds / runs.runs as f64 * run.between_tasks();
            Some(seconds / (declared / tiles)).filter(|_| runs.runs > 0 && runs.seconds >= 0.0)
        };
        let core = Runs {
            runs: self.all.runs.saturating_sub(self.accelerator.runs),
            seconds: self.all.seconds - self.accelerator.seconds,
        };
        let on_accelerator = ratio(self.accelerator);
        // Only an accelerator ran it: by its declared gain it takes that much longer on a core.
        let gain = operation.accelerated().map_or(1.0, |variant| variant.gain());
        let on_core = ratio(core).or(on_accelerator.map(|ratio| ratio * gain));
        let line = |name: String, runs: u64, ratio: Option<f64>| {
            let version = operation.version();
            ratio.map(|ratio| format!("{name}\t{version}\t\t{runs}\t{ratio:e}"))
        };
        let name = plain_name(operation.name());
        let core = line(name.to_owned(), core.runs.max(1), on_core);
        let accelerator =
            line(format!("{name}@{}", SlotKind::Accelerator), self.accelerator.runs, on_accelerator);
        core.into_iter().chain(accelerator).collect()
    }
}
