//! Dynamic portfolio: chooses a method for each level from run times measured on earlier levels.
//!
//! Paper 002, section 6, names such a portfolio as future work. This one is defined as follows.
//!
//! - Before the execution, run times are known as estimates only.
//! - The method of a level is chosen when all earlier levels have been measured. The estimate of a task is corrected by the ratio
//!   of measured to estimated seconds, summed over tasks of its kind on earlier levels, or over all tasks there if its kind is new.
//! - Each method clusters the level by its corrected estimates. The execution of all levels so far is simulated, with measured
//!   run times on earlier levels and corrected estimates on this one. The method with the least makespan is chosen, the first one
//!   of equals.
//! - The execution itself has no barriers between levels, and the choice takes no time.
//!
//! The static choice is one method for all levels, chosen by simulation with the estimates before the execution.

use std::collections::HashMap;

use crate::clustering::{Clustering, ClusteringError};
use crate::simulate::draw::factor;
use crate::simulate::{Gain, Platform, baseline, simulate_jobs};
use crate::workflow::{Task, Workflow, WorkflowError};

/// A method of the portfolio: its name, and the clustering that it makes of a workflow. Each job has tasks of one level.
pub type NamedMethod<'a> = (&'a str, &'a dyn Fn(&Workflow) -> Clustering);

/// Spread of estimates around run times: coefficients of variation of log-normal factors of mean 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EstimateSpread {
    /// Spread of a factor that all tasks of a kind share.
    pub kind: f64,
    /// Spread of a factor of each task.
    pub task: f64,
}

/// Choice for a level.
#[derive(Debug, Clone, PartialEq)]
pub struct LevelChoice {
    /// Name of the method.
    pub method: String,
    /// Predicted makespan of all levels so far in seconds.
    pub predicted: f64,
}

/// One method for all levels.
#[derive(Debug, Clone, PartialEq)]
pub struct FixedChoice {
    /// Name of the method.
    pub method: String,
    /// Makespan with the true run times in seconds.
    pub makespan: f64,
}

/// Result of a dynamic portfolio beside static choices. Makespans are in seconds, with the true run times.
#[derive(Debug, Clone, PartialEq)]
pub struct Portfolio {
    /// Choices by level.
    pub levels: Vec<LevelChoice>,
    /// The jobs of all levels.
    pub clustering: Clustering,
    /// Makespan of these jobs.
    pub makespan: f64,
    /// The static choice.
    pub fixed: FixedChoice,
    /// The best single method with true run times.
    pub best: FixedChoice,
    /// Makespan without clustering.
    pub baseline: f64,
}

impl Portfolio {
    /// Returns the regret against the static choice: the gain of the static choice minus that of the portfolio. Negative if the
    /// portfolio is better.
    #[must_use]
    pub fn regret_to_fixed(&self) -> f64 {
        self.gain(self.fixed.makespan) - self.gain(self.makespan)
    }

    /// Returns the regret against the best single method: its gain minus that of the portfolio.
    #[must_use]
    pub fn regret_to_best(&self) -> f64 {
        self.gain(self.best.makespan) - self.gain(self.makespan)
    }

    fn gain(&self, makespan: f64) -> f64 {
        Gain { makespan, baseline: self.baseline }.gain()
    }
}

/// Draws an estimate of each run time in seconds: the run time multiplied by a factor of its kind and one of its own.
#[must_use]
pub fn estimates(workflow: &Workflow, spread: EstimateSpread, seed: u64) -> Vec<f64> {
    let mut kinds = HashMap::new();
    let draw = |(number, task): (u64, &Task)| {
        let next = kinds.len() as u64;
        let kind = *kinds.entry(task.kind.clone()).or_insert(next);
        task.seconds * factor(seed, [0, kind], spread.kind) * factor(seed, [1, number], spread.task)
    };
    (0..).zip(workflow.tasks()).map(draw).collect()
}

/// Executes a workflow with a choice for each level. `estimated` are the run times in seconds by task that are known before the
/// execution. Vertical clustering is no part of the portfolio: it depends on dependencies only, so a caller may apply it first
/// and pass the workflow of its jobs. Returns `None` without methods.
///
/// # Errors
/// If an estimate is not a finite number of 0 or more, or the jobs of the chosen methods are no clustering, since some have tasks of two
/// levels.
///
/// # Panics
/// If the number of estimates is not that of the tasks.
pub fn dynamic_portfolio(
    workflow: &Workflow,
    estimated: &[f64],
    methods: &[NamedMethod<'_>],
    platform: &Platform,
    seed: u64,
) -> Result<Option<Portfolio>, ClusteringError> {
    assert_eq!(estimated.len(), workflow.tasks().len(), "an estimate for each task");
    let measured: Vec<f64> = workflow.tasks().iter().map(|task| task.seconds).collect();
    let makespan =
        |seconds: &[f64], jobs: &[Vec<u32>]| simulate_jobs(workflow, seconds, jobs, platform, seed).makespan;
    let mut jobs: Vec<Vec<u32>> = Vec::new();
    let mut levels = Vec::new();
    for level in 0..workflow.levels().len() {
        let seconds = corrected(workflow, estimated, &measured, level);
        let predicted = with_seconds(workflow, &seconds)?;
        let of_level = |job: &&Vec<u32>| workflow.level_of(job[0]) == level;
        let candidates = methods.iter().map(|(name, method)| {
            let clustering = method(&predicted);
            let all: Vec<_> = jobs.iter().chain(clustering.jobs().iter().filter(of_level)).cloned().collect();
            (LevelChoice { method: (*name).to_owned(), predicted: makespan(&seconds, &all) }, all)
        });
        let best = candidates.min_by(|one, other| one.0.predicted.total_cmp(&other.0.predicted));
        let Some((choice, all)) = best else { return Ok(None) };
        levels.push(choice);
        jobs = all;
    }
    let predicted = with_seconds(workflow, estimated)?;
    let by_estimates = least(methods, &predicted, |jobs| makespan(estimated, jobs));
    let by_measurement = least(methods, workflow, |jobs| makespan(&measured, jobs));
    let (Some(fixed), Some(best)) = (by_estimates, by_measurement) else { return Ok(None) };
    let choice = |(method, clustering): (String, Clustering)| FixedChoice {
        method,
        makespan: makespan(&measured, clustering.jobs()),
    };
    let clustering = Clustering::new(workflow, jobs)?;
    Ok(Some(Portfolio {
        levels,
        makespan: makespan(&measured, clustering.jobs()),
        clustering,
        fixed: choice(fixed),
        best: choice(best),
        baseline: baseline(workflow, platform, seed),
    }))
}

/// Returns the method with the least makespan, the first one of equals, and its clustering.
fn least(
    methods: &[NamedMethod<'_>],
    workflow: &Workflow,
    makespan: impl Fn(&[Vec<u32>]) -> f64,
) -> Option<(String, Clustering)> {
    let scored = methods.iter().map(|(name, method)| {
        let clustering = method(workflow);
        (makespan(clustering.jobs()), (*name).to_owned(), clustering)
    });
    let best = scored.min_by(|one, other| one.0.total_cmp(&other.0));
    best.map(|(_, name, clustering)| (name, clustering))
}

/// Returns measured run times before a level, and corrected estimates from it on.
fn corrected(workflow: &Workflow, estimated: &[f64], measured: &[f64], level: usize) -> Vec<f64> {
    // Sums of measured and of estimated seconds.
    let mut all = (0.0, 0.0);
    let mut by_kind: HashMap<&str, (f64, f64)> = HashMap::new();
    for task in workflow.levels()[..level].iter().flatten() {
        let index = *task as usize;
        let of_kind = by_kind.entry(&workflow.tasks()[index].kind).or_default();
        for sums in [&mut all, of_kind] {
            sums.0 += measured[index];
            sums.1 += estimated[index];
        }
    }
    let ratio = |sums: (f64, f64)| if sums.1 > 0.0 { sums.0 / sums.1 } else { 1.0 };
    let seconds = |(task, info): (u32, &Task)| {
        let index = task as usize;
        if workflow.level_of(task) < level {
            return measured[index];
        }
        estimated[index] * ratio(by_kind.get(info.kind.as_str()).copied().unwrap_or(all))
    };
    (0..).zip(workflow.tasks()).map(seconds).collect()
}

/// Returns the workflow with other run times.
fn with_seconds(workflow: &Workflow, seconds: &[f64]) -> Result<Workflow, WorkflowError> {
    let mut tasks = workflow.tasks().to_vec();
    for (task, seconds) in tasks.iter_mut().zip(seconds) {
        task.seconds = *seconds;
    }
    let edges: Vec<_> = workflow.edges().collect();
    Workflow::new(workflow.name(), tasks, workflow.files().to_vec(), &edges)
}
