//! Evaluation of a workflow: simulated clusterings, imbalance before and after, and the choice of a method.

use super::candidates::{
    Candidate, MethodName, Settings, Simulated, compared, remove_equal_modes, run, run_all, with_vertical,
};
use super::executed::Executed;
use super::portfolio::LevelPortfolio;
use super::sensitivity::{Comparison, Sensitivity};
use crate::cli::{MethodArg, VerticalArg};
use pleach_clustering::chains::chains;
use pleach_clustering::choose::{Advice, HorizontalMethod, LevelSummary, advise};
use pleach_clustering::{
    Clustering, ImbalanceChange, LevelMetrics, Method, Options, Reading, Task, Vertical, Workflow,
    WorkflowError, cluster, imbalance_after, metrics,
};
use std::path::PathBuf;

/// A workflow with its clusterings.
#[derive(Debug)]
pub(super) struct Evaluation {
    pub(super) file: PathBuf,
    pub(super) workflow: Workflow,
    /// Simulated clusterings. The first has one job for each task.
    pub(super) simulated: Vec<Simulated>,
    /// Position of the clustering of the tables of levels, the figures and `--out`.
    pub(super) shown: usize,
    /// Imbalance of the levels of tasks, and of the jobs of the shown clustering.
    pub(super) imbalance: ImbalanceChange,
    /// The choice by rule, with `--method best`.
    pub(super) rule: Option<Rule>,
    /// Executions of the clusterings, in their order. Empty without `--execute`.
    pub(super) executed: Vec<Executed>,
    /// The comparison for other values of parameters, with `--sensitivity`.
    pub(super) sensitivity: Option<Sensitivity>,
    /// The choice for each level, with `--portfolio`.
    pub(super) portfolio: Option<LevelPortfolio>,
}

/// The choice by rule.
#[derive(Debug)]
pub(super) struct Rule {
    /// Position of its clustering.
    pub(super) position: usize,
    /// The reason in words.
    pub(super) reason: String,
}

impl Evaluation {
    /// Returns the execution with one job for each task.
    pub(super) fn baseline(&self) -> &Simulated {
        &self.simulated[0]
    }

    /// Returns the clustering of the tables of levels, the figures and `--out`.
    pub(super) fn shown(&self) -> &Simulated {
        &self.simulated[self.shown]
    }

    /// Returns the gain μ of a clustering.
    pub(super) fn gain(&self, simulated: &Simulated) -> f64 {
        simulated.gain(self.baseline()).gain()
    }

    /// Returns the gain that the choice by rule misses.
    pub(super) fn regret(&self, rule: &Rule) -> f64 {
        self.gain(self.shown()) - self.gain(&self.simulated[rule.position])
    }
}

/// Returns the mean and the largest regret of the choices by rule. `None` without one.
pub(super) fn regret_of_rule(evaluations: &[Evaluation]) -> Option<(f64, f64)> {
    let regret = |evaluation: &Evaluation| evaluation.rule.as_ref().map(|rule| evaluation.regret(rule));
    let regrets: Vec<f64> = evaluations.iter().filter_map(regret).collect();
    let max = regrets.iter().copied().reduce(f64::max)?;
    Some((regrets.iter().sum::<f64>() / regrets.len() as f64, max))
}

/// Clusters and simulates a workflow.
///
/// # Errors
/// If jobs depend on each other in a cycle, which is a defect of a method.
pub(super) fn evaluate(
    file: PathBuf,
    workflow: Workflow,
    comparison: Comparison,
    settings: &Settings,
) -> Result<Evaluation, WorkflowError> {
    let Comparison { method, vertical, reading } = comparison;
    let mut rule = None;
    let simulated = match MethodName::single(method) {
        Some(method) => {
            let candidate = Candidate { method, vertical: vertical.unwrap_or(VerticalArg::None) };
            let mut candidates = vec![Candidate::SINGLE];
            candidates.extend(Some(candidate).filter(|candidate| *candidate != Candidate::SINGLE));
            run_all(&workflow, candidates, settings)
        }
        None => {
            let chains = chains(&workflow).iter().filter(|chain| chain.len() > 1).count();
            let mut simulated = run_all(&workflow, compared(vertical, chains > 0), settings);
            remove_equal_modes(&mut simulated);
            if method == MethodArg::Best && vertical != Some(VerticalArg::Only) {
                let advice = advice(&workflow, chains, vertical, reading, settings)?;
                let position = advised(&workflow, &advice, vertical, settings, &mut simulated);
                rule = Some(Rule { position, reason: advice.reason });
            }
            simulated
        }
    };
    let shown = match MethodName::single(method) {
        Some(_) => simulated.len() - 1,
        None => least(&simulated),
    };
    let imbalance = imbalance_after(&workflow, &simulated[shown].clustering, reading)?;
    let (sensitivity, portfolio, executed) = (None, None, Vec::new());
    Ok(Evaluation { file, workflow, simulated, shown, imbalance, rule, executed, sensitivity, portfolio })
}

/// Returns the position of the clustering with the least makespan, the first one of equals.
fn least(simulated: &[Simulated]) -> usize {
    let makespan = |position: &usize| simulated[*position].execution.makespan;
    (0..simulated.len()).min_by(|one, other| makespan(one).total_cmp(&makespan(other))).unwrap_or(0)
}

/// Returns the choice by rule, from the metrics of the levels that the method clusters.
pub(super) fn advice(
    workflow: &Workflow,
    chains: usize,
    vertical: Option<VerticalArg>,
    reading: Reading,
    settings: &Settings,
) -> Result<Advice, WorkflowError> {
    let joins_levels = vertical.is_none_or(|vertical| vertical == VerticalArg::Posterior);
    let vertical = vertical.unwrap_or(VerticalArg::Prior);
    let is_prior = matches!(vertical, VerticalArg::Prior | VerticalArg::PriorBounded) && chains > 0;
    let options = with_vertical(settings.options, vertical);
    let only = Options { method: Method::None, vertical: Vertical::Only, ..options };
    let jobs = if is_prior { cluster(workflow, &only) } else { Clustering::single(workflow) };
    let jobs = jobs.workflow(workflow)?;
    let summary = |(metrics, level): (&LevelMetrics, &Vec<u32>)| {
        let tasks: Vec<&Task> = level.iter().map(|task| &jobs.tasks()[*task as usize]).collect();
        let bytes = |file: &u32| jobs.files()[*file as usize].bytes as f64;
        let count = tasks.len().max(1) as f64;
        LevelSummary {
            tasks: tasks.len(),
            hrv: metrics.variance.hrv,
            hdv: metrics.variance.hdv,
            mean_seconds: tasks.iter().map(|task| task.seconds).sum::<f64>() / count,
            mean_bytes: tasks.iter().flat_map(|task| &task.reads).map(bytes).sum::<f64>() / count,
        }
    };
    let levels: Vec<LevelSummary> = metrics(&jobs, reading).iter().zip(jobs.levels()).map(summary).collect();
    let chains = if is_prior { chains } else { 0 };
    Ok(advise(chains, &levels, &settings.platform, joins_levels))
}

/// Returns the position of the clustering of a choice by rule. Adds it if it is missing.
fn advised(
    workflow: &Workflow,
    advice: &Advice,
    vertical: Option<VerticalArg>,
    settings: &Settings,
    simulated: &mut Vec<Simulated>,
) -> usize {
    let (candidate, limited) = advised_candidate(advice, vertical, settings);
    let known = simulated.iter().position(|one| one.candidate == candidate);
    known.filter(|_| limited.is_none()).unwrap_or_else(|| {
        simulated.push(run(workflow, candidate, &limited.unwrap_or(*settings)));
        simulated.len() - 1
    })
}

/// Returns the candidate of a choice by rule, with the settings that have its limit. `None` if it has none, or if the limit is given.
pub(super) fn advised_candidate(
    advice: &Advice,
    vertical: Option<VerticalArg>,
    settings: &Settings,
) -> (Candidate, Option<Settings>) {
    let method = match advice.method {
        HorizontalMethod::Hc => MethodName::Hc,
        HorizontalMethod::Hrb => MethodName::Hrb,
        HorizontalMethod::Hifb => MethodName::Hifb,
        HorizontalMethod::Hdb => MethodName::Hdb,
        HorizontalMethod::Dfjs => MethodName::Dfjs,
    };
    let advised = match advice.vertical {
        Vertical::None => VerticalArg::None,
        Vertical::Prior => VerticalArg::Prior,
        Vertical::Posterior => VerticalArg::Posterior,
        Vertical::Only => VerticalArg::Only,
    };
    let max_seconds = advice.max_seconds.filter(|_| settings.max_seconds.is_none());
    let limited = max_seconds.map(|seconds| Settings { max_seconds: Some(seconds), ..*settings });
    (Candidate { method, vertical: vertical.unwrap_or(advised) }, limited)
}
