//! Clustering methods: which tasks of a level, or of a chain, become one job (paper 002, sections 4.2, 4.3 and 5.2).

mod balance;
mod distance_balance;
mod jobs;
mod limits;
mod shuffle;

use crate::chains::{bounded_chains, chains};
use crate::clustering::Clustering;
use crate::metrics::{Reading, impact_factors};
use crate::reduction::reduced;
use crate::workflow::Workflow;
pub(crate) use limits::{starts_of_jobs, task_bytes};

/// Horizontal clustering method.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Method {
    /// One job a task.
    None,
    /// Horizontal clustering (Algorithm 4): the tasks of a level in random order are cut into jobs of equal numbers.
    Hc,
    /// Horizontal runtime balancing (Algorithm 1): the longest task to the shortest job.
    #[default]
    Hrb,
    /// Horizontal impact factor balancing (Algorithm 2): jobs with tasks of the same impact factor first.
    Hifb,
    /// Horizontal distance balancing (Algorithm 3): jobs with the nearest tasks first.
    Hdb,
    /// Dynamic fine-grained job scheduler (Algorithm 5): tasks in order, up to a run time.
    Dfjs {
        /// Most seconds a job. A longer task is a job by itself.
        max_seconds: f64,
    },
    /// Adaptive fine-grained job scheduler (Algorithm 6): tasks in order, up to a run time and a data size.
    Afjs {
        /// Most seconds a job.
        max_seconds: f64,
        /// Most bytes of all inputs and outputs of the tasks of a job.
        max_bytes: f64,
    },
}

/// Jobs among which [`Method::Hifb`] and [`Method::Hdb`] choose the one of least run time, where text and figures of the paper
/// disagree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Candidates {
    /// Near jobs and empty ones. Without any, the nearest.
    #[default]
    Spread,
    /// Near jobs, or else an empty one, or else the nearest (Figures 9 and 10).
    Examples,
}

/// Vertical clustering: chains of tasks become jobs (section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Vertical {
    /// No vertical clustering.
    #[default]
    None,
    /// Chains become jobs first. The method clusters the levels of these jobs.
    Prior,
    /// The method is first. Chains of its jobs become jobs.
    Posterior,
    /// Vertical clustering alone.
    Only,
}

/// Granularity of the methods that cut levels by number: all but DFJS and AFJS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// Most jobs a level (`clusters.num`), 1 or more. Tasks of a level with no more tasks stay single.
    Jobs(usize),
    /// Most tasks a job (`clusters.size`), 1 or more. [`Method::Hc`] then takes consecutive tasks.
    Tasks(usize),
}

/// Options of [`cluster`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// The horizontal method.
    pub method: Method,
    /// Its granularity.
    pub size: Size,
    /// Vertical clustering.
    pub vertical: Vertical,
    /// Cuts chains where they exceed the mean job of their level, see [`bounded_chains`].
    pub bounded_chains: bool,
    /// Reading of HIFB and HDB.
    pub candidates: Candidates,
    /// Seed of the random order of tasks for [`Method::Hc`].
    pub seed: u64,
}

impl Default for Options {
    /// HRB with 20 jobs a level, the number of workers in the paper's experiments.
    fn default() -> Self {
        Self {
            method: Method::default(),
            size: Size::Jobs(20),
            vertical: Vertical::default(),
            bounded_chains: false,
            candidates: Candidates::default(),
            seed: 0,
        }
    }
}

/// Clusters a workflow. Jobs are ordered by level. Horizontal methods only join tasks of one level, vertical clustering only
/// tasks of one chain.
#[must_use]
pub fn cluster(workflow: &Workflow, options: &Options) -> Clustering {
    match options.vertical {
        Vertical::None => horizontal(workflow, options),
        Vertical::Only => vertical(workflow, options),
        Vertical::Prior => combine(workflow, options, vertical, horizontal),
        Vertical::Posterior => combine(workflow, options, horizontal, vertical),
    }
}

/// Applies a clustering to the jobs of another.
fn combine(
    workflow: &Workflow,
    options: &Options,
    first: fn(&Workflow, &Options) -> Clustering,
    second: fn(&Workflow, &Options) -> Clustering,
) -> Clustering {
    let inner = first(workflow, options);
    let jobs = inner.workflow(workflow).expect("jobs of a valid clustering form no cycle");
    inner.then(&second(&jobs, options))
}

fn vertical(workflow: &Workflow, options: &Options) -> Clustering {
    let chains = match options.size {
        Size::Jobs(jobs) if options.bounded_chains => bounded_chains(workflow, jobs),
        Size::Tasks(_) if options.bounded_chains => bounded_chains(workflow, usize::MAX),
        Size::Jobs(_) | Size::Tasks(_) => chains(workflow),
    };
    Clustering::new(workflow, chains).expect("chains are a partition without cycles")
}

fn horizontal(workflow: &Workflow, options: &Options) -> Clustering {
    let graph = match options.method {
        Method::Hifb | Method::Hdb => Some(reduced(workflow)),
        _ => None,
    };
    let factors = match (&graph, options.method) {
        (Some(graph), Method::Hifb) => impact_factors(graph, Reading::Definition),
        _ => Vec::new(),
    };
    let mut jobs = Vec::new();
    for (index, level) in workflow.levels().iter().enumerate() {
        let count = job_count(level.len(), options.size);
        let is_cut = level.len() > count;
        match (options.method, &graph) {
            (Method::Dfjs { max_seconds }, _) => {
                jobs.extend(limits::cut(workflow, level, max_seconds, f64::INFINITY));
            }
            (Method::Afjs { max_seconds, max_bytes }, _) => {
                jobs.extend(limits::cut(workflow, level, max_seconds, max_bytes));
            }
            (Method::Hc, _) if is_cut => jobs.extend(shuffle::cut(level, options.size, options.seed, index)),
            (Method::Hrb, _) if is_cut => jobs.extend(balance::by_run_time(workflow, level, count)),
            (Method::Hifb, _) if is_cut => {
                jobs.extend(balance::by_impact(workflow, level, count, &factors, options.candidates));
            }
            (Method::Hdb, Some(graph)) if is_cut => {
                jobs.extend(distance_balance::by_distance(graph, index, count, options.candidates));
            }
            _ => jobs.extend(level.iter().map(|task| vec![*task])),
        }
    }
    Clustering::new(workflow, jobs).expect("jobs of levels are a partition without cycles")
}

/// Returns the largest number of jobs of a level.
fn job_count(tasks: usize, size: Size) -> usize {
    match size {
        Size::Jobs(jobs) => jobs.max(1),
        Size::Tasks(tasks_per_job) => tasks.div_ceil(tasks_per_job.max(1)),
    }
}
