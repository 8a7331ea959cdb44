//! Experiments 1–3 of paper 002, section 5.3, as rows.
//!
//! The caller supplies workflows and candidates: a function from a workflow and a platform to methods with their clusterings.
//! Tuned methods (DFJS*, AFJS*) tune themselves there.

use std::num::NonZeroUsize;

use crate::choose::{Candidate, Grid, Ranking, rank, sensitivity};
use crate::simulate::{Platform, PlatformError};
use crate::workflow::Workflow;

/// Factors of the file sizes of LIGO in experiment 2: means of 5, 50, 250 and 500 MB (Fig. 21).
pub const DATA_FACTORS: [f64; 4] = [1.0, 10.0, 50.0, 100.0];
/// Workers in experiment 2 (Figs. 22 and 23).
pub const WORKERS: [usize; 5] = [5, 10, 15, 20, 25];
/// Workers in experiment 2 with 8,000 tasks (Fig. 24). The text prints the ends of the range.
pub const MANY_WORKERS: [usize; 5] = [200, 600, 1000, 1400, 1800];

/// Gain of a method in an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct ExperimentRow {
    /// Number of the experiment: 1, 2 or 3.
    pub experiment: u8,
    /// Name of the workflow.
    pub workflow: String,
    /// Name of the method.
    pub method: String,
    /// Vertical mode.
    pub vertical: String,
    /// Varied parameters with their values.
    pub parameters: Vec<(&'static str, f64)>,
    /// Makespan in seconds: the mean over the clusterings of the candidate.
    pub makespan: f64,
    /// Performance gain μ over an execution without clustering.
    pub gain: f64,
    /// Half the width of the 95 % interval of the mean gain. `None` for one clustering.
    pub half_width: Option<f64>,
}

/// Experiment 1 (Fig. 20): the gain of each method for each workflow. Candidates are without vertical clustering.
pub fn experiment_1(
    workflows: &[Workflow],
    platform: &Platform,
    seed: u64,
    candidates: impl FnMut(&Workflow, &Platform) -> Vec<Candidate>,
) -> Vec<ExperimentRow> {
    for_each_workflow(1, workflows, platform, seed, candidates)
}

/// Experiment 2 (Figs. 21–24): the gain of each method by factors of the file sizes and numbers of workers, in all combinations.
/// The figures are [`DATA_FACTORS`] with 20 workers, [`WORKERS`] with factors of 1 and 100, and [`MANY_WORKERS`] with 8,000 tasks.
///
/// # Errors
/// Never with these parameters: the platform has been checked, and its bandwidth and delays stay.
pub fn experiment_2(
    workflow: &Workflow,
    platform: &Platform,
    data_factors: &[f64],
    workers: &[NonZeroUsize],
    seed: u64,
    candidates: impl FnMut(&Workflow, &Platform) -> Vec<Candidate>,
) -> Result<Vec<ExperimentRow>, PlatformError> {
    let grid = Grid { data_factors: data_factors.to_vec(), workers: workers.to_vec(), ..Grid::default() };
    let rows = sensitivity(workflow, platform, &grid, seed, candidates)?;
    let rows = rows.iter().flat_map(|row| {
        let workers = row.platform.workers().get() as f64;
        let parameters = [("data_factor", row.data_factor), ("workers", workers)];
        experiment_rows(2, workflow, &parameters, &row.ranking)
    });
    Ok(rows.collect())
}

/// Experiment 3 (Figs. 25–28, Table 4): the gain of each method with each vertical mode, for each workflow.
pub fn experiment_3(
    workflows: &[Workflow],
    platform: &Platform,
    seed: u64,
    candidates: impl FnMut(&Workflow, &Platform) -> Vec<Candidate>,
) -> Vec<ExperimentRow> {
    for_each_workflow(3, workflows, platform, seed, candidates)
}

fn for_each_workflow(
    experiment: u8,
    workflows: &[Workflow],
    platform: &Platform,
    seed: u64,
    mut candidates: impl FnMut(&Workflow, &Platform) -> Vec<Candidate>,
) -> Vec<ExperimentRow> {
    let rows = workflows.iter().flat_map(|workflow| {
        let ranking = rank(workflow, &candidates(workflow, platform), platform, seed);
        experiment_rows(experiment, workflow, &[], &ranking)
    });
    rows.collect()
}

/// Returns a row for each score of a ranking.
fn experiment_rows(
    experiment: u8,
    workflow: &Workflow,
    parameters: &[(&'static str, f64)],
    ranking: &Ranking,
) -> Vec<ExperimentRow> {
    let rows = ranking.scores.iter().map(|score| ExperimentRow {
        experiment,
        workflow: workflow.name().to_owned(),
        method: score.method.clone(),
        vertical: score.vertical.clone(),
        parameters: parameters.to_vec(),
        makespan: score.makespan,
        gain: ranking.gain(score),
        half_width: score.half_width.map(|seconds| seconds / ranking.baseline),
    });
    rows.collect()
}
