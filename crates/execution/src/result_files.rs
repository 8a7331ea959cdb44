//! Writes the result files of a study: plan, responses, indices, run record and report.
//!
//! Local runs and clusters produce the same files. The callers execute the study and print the result.

pub mod phases;
mod record;

pub use record::merged;

use crate::executor::ExecutionResult;
use pleach_actors::spill::SpillStore;
use pleach_cache::PriorResults;
use pleach_planner::PlanRecord;
use pleach_report::WrittenResults;
use pleach_report::gallery::{self, PreviewError, previews::Previews};
use pleach_results::analysis::best::{self, BestSets};
use pleach_results::analysis::extremes::Extremes;
use pleach_results::analysis::{self, CollectedResponses};
use pleach_results::folder::{Folder, FolderError};
use pleach_results::record::{Convergence, CostRecord, PlanFile};
use pleach_results::tables;
use pleach_study::{Defect, PreparedStudy};
use std::time::Instant;
use thiserror::Error;

/// The results of a study cannot be written.
#[derive(Debug, Error)]
pub enum ResultsError {
    /// A file of the result folder cannot be written.
    #[error("{0}")]
    Folder(#[from] FolderError),
    /// A preview cannot be written.
    #[error("{0}")]
    Preview(#[from] PreviewError),
    /// A defect of pleach.
    #[error("{0}")]
    Defect(#[from] Defect),
}

/// Executed study.
pub struct CompletedStudy<'a> {
    /// Study with its final sample.
    pub prepared: &'a PreparedStudy,
    /// Record of the plan of the final sample.
    pub plan: &'a PlanRecord,
    /// Execution of the last round, with the task counts of all rounds and of earlier processes.
    pub executed: &'a ExecutionResult,
    /// Task cache and content identities of the inputs from before the study.
    pub prior: &'a PriorResults,
    /// Spill tiers of a local run.
    pub spill: Option<&'a SpillStore>,
    /// Reason why the learned costs of operations were not saved. `None` if they were.
    pub costs_lost: Option<String>,
    /// Growth of the sample. `None` for a sample of fixed size.
    pub convergence: Option<&'a Convergence>,
    /// Cost of the workers of a cluster so far. `None` for local runs.
    pub cost: Option<CostRecord>,
    /// Start of the study.
    pub start: Instant,
}

/// Writes `plan.json` and `samples.csv`, which are known before the execution.
///
/// # Errors
/// [`ResultsError`] if the folder is not writable.
pub(crate) fn write_plan(
    prepared: &PreparedStudy,
    plan: &PlanRecord,
    folder: &Folder,
) -> Result<(), ResultsError> {
    let untimed = PlanRecord { planning_seconds: None, ..plan.clone() };
    let study_digest = &prepared.digest;
    folder
        .write_json("plan.json", &PlanFile { study: &prepared.study.name, study_digest, plan: &untimed })?;
    let names = &prepared.design.names;
    Ok(folder.write("samples.csv", &tables::samples(names, &prepared.design.evaluations)?)?)
}

/// Writes all results of an executed study.
///
/// # Errors
/// [`ResultsError`] if the folder is not writable.
pub fn write(
    done: &CompletedStudy<'_>,
    collected: &CollectedResponses,
    previews: &Previews,
    folder: &Folder,
) -> Result<WrittenResults, ResultsError> {
    let CompletedStudy { prepared, plan, prior, .. } = *done;
    let names = &prepared.design.names;
    let tiles: Vec<&str> = prepared.study.tiles.iter().map(|tile| tile.name.as_str()).collect();
    let metrics: Vec<&str> =
        prepared.study.workflow.response.metrics.iter().map(|(name, _)| name.as_str()).collect();
    let runs = &collected.runs;
    let analyzed: Vec<usize> = prepared.study.metrics().collect();
    folder.write("responses.csv", &tables::responses(&metrics, &analyzed, &tiles, runs)?)?;
    folder.write("failed.csv", &tables::failed(names, &prepared.design.evaluations, &tiles, runs)?)?;
    let analyses = collected.analyze(prepared)?;
    folder.write("indices.csv", &analysis::csv(&analyses)?)?;
    let mut indices = analysis::json(&analyses)?;
    if let Some(convergence) = done.convergence {
        indices["convergence"] = serde_json::to_value(convergence).map_err(Defect::new)?;
    }
    folder.write_json("indices.json", &indices)?;
    let extremes = Extremes::of_all(prepared, collected);
    let best = BestSets::of_all(prepared, collected);
    if !best.is_empty() {
        folder.write("best.csv", &best::csv(&best, names)?)?;
    }
    let run = record::of(done, collected, extremes);
    folder.write_json("run.json", &run)?;
    let gallery = gallery::make(prepared, prior, collected, &run.extremes, previews, folder)?;
    let failures = collected.failures(prepared);
    let (analysis, further) = analyses.split_first().ok_or_else(|| Defect::new("a study of no response"))?;
    let html = pleach_report::html(&pleach_report::Report {
        study: &prepared.study,
        plan,
        run: &run,
        analysis,
        further,
        runs,
        failures: failures.as_ref(),
        gallery: &gallery,
        best: &best,
        sampled: Some(pleach_report::SampleResponses { design: &prepared.design, collected }),
    });
    folder.write("report.html", html.as_bytes())?;
    Ok(WrittenResults { run, analyses, best, gallery, failures })
}
