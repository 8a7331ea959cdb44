//! Tunes a workflow: many limits give the same jobs, and equal jobs are simulated once.

use std::collections::HashMap;

use super::search::{Tuned, tune_seconds, tune_seconds_and_bytes};
use crate::clustering::Clustering;
use crate::methods::{Method, Options, Vertical, cluster, starts_of_jobs, task_bytes};
use crate::reduction::{Graph, redundant_edges};
use crate::simulate::{Jobs, Platform, Prepared, makespan};
use crate::workflow::Workflow;
use crate::workflow::lists::Lists;

/// A method with limits that are tuned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TunedMethod {
    /// DFJS*.
    Dfjs,
    /// AFJS*.
    Afjs,
}

/// Tunes the limits of a method on a workflow. `options` has the vertical mode, its method does not count. Trials are those of
/// [`tune_seconds`] and [`tune_seconds_and_bytes`] with a simulation of each clustering, bit by bit.
///
/// # Panics
/// Never for a workflow without a cycle of jobs, which vertical modes cannot make.
#[must_use]
pub fn tune(
    workflow: &Workflow,
    method: TunedMethod,
    options: &Options,
    platform: &Platform,
    seed: u64,
) -> Tuned {
    let mut trials = Trials::new(workflow, options, platform, seed);
    let seconds = workflow.total_seconds();
    let mut tuned = match method {
        TunedMethod::Dfjs => {
            tune_seconds(seconds, |max_seconds| trials.makespan(Method::Dfjs { max_seconds }))
        }
        TunedMethod::Afjs => {
            let tasks = workflow.tasks().iter();
            let bytes = tasks.map(|task| task_bytes(workflow, task)).fold(0, u64::saturating_add);
            tune_seconds_and_bytes(seconds, bytes, |max_seconds, max_bytes| {
                trials.makespan(Method::Afjs { max_seconds, max_bytes: max_bytes as f64 })
            })
        }
    };
    tuned.clusterings = trials.simulations;
    tuned
}

/// Simulations of a workflow with different limits.
struct Trials<'a> {
    prepared: Prepared<'a>,
    /// Run times by task.
    seconds: Vec<f64>,
    units: Units,
    options: Options,
    platform: Platform,
    seed: u64,
    /// Makespans by the units that start a job, a bit each.
    known: HashMap<Vec<u64>, f64>,
    simulations: usize,
}

/// Tasks, or chains of tasks, that the method joins.
struct Units {
    /// Tasks of each unit, in the order of units by level.
    tasks: Lists,
    /// Run time in seconds and bytes of inputs and outputs of each unit, by level.
    levels: Vec<Vec<(f64, u64)>>,
}

impl<'a> Trials<'a> {
    fn new(workflow: &'a Workflow, options: &Options, platform: &Platform, seed: u64) -> Self {
        Self {
            prepared: Prepared::new(workflow),
            seconds: workflow.tasks().iter().map(|task| task.seconds).collect(),
            units: Units::new(workflow, options),
            options: *options,
            platform: *platform,
            seed,
            known: HashMap::new(),
            simulations: 0,
        }
    }

    fn makespan(&mut self, method: Method) -> f64 {
        let (max_seconds, max_bytes) = match method {
            Method::Afjs { max_seconds, max_bytes } => (max_seconds, max_bytes),
            Method::Dfjs { max_seconds } => (max_seconds, f64::INFINITY),
            _ => (f64::INFINITY, f64::INFINITY),
        };
        let starts = self.units.starts(max_seconds, max_bytes);
        if let Some(makespan) = self.known.get(&starts) {
            return *makespan;
        }
        let jobs = self.jobs(&starts, method);
        let jobs = Jobs::new(&self.prepared, &self.seconds, jobs.iter());
        let makespan = makespan(self.prepared.workflow, &jobs, &self.platform, self.seed);
        self.simulations += 1;
        self.known.insert(starts, makespan);
        makespan
    }

    /// Returns the tasks of each job.
    fn jobs(&self, starts: &[u64], method: Method) -> Lists {
        match self.options.vertical {
            Vertical::None | Vertical::Prior => self.units.join(starts),
            Vertical::Posterior if !self.options.bounded_chains => {
                join_chains(self.prepared.workflow, &self.units.join(starts))
            }
            Vertical::Posterior | Vertical::Only => {
                let clustering = cluster(self.prepared.workflow, &Options { method, ..self.options });
                let mut jobs = Lists::default();
                clustering.jobs().iter().for_each(|job| jobs.extend(job));
                jobs
            }
        }
    }
}

impl Units {
    fn new(workflow: &Workflow, options: &Options) -> Self {
        let inner = match options.vertical {
            Vertical::Prior => cluster(workflow, &Options { vertical: Vertical::Only, ..*options }),
            Vertical::None | Vertical::Posterior | Vertical::Only => Clustering::single(workflow),
        };
        let joined;
        let units = if options.vertical == Vertical::Prior {
            joined = inner.workflow(workflow).expect("chains form no cycle");
            &joined
        } else {
            workflow
        };
        let mut tasks = Lists::default();
        units.levels().iter().flatten().for_each(|unit| tasks.extend(&inner.jobs()[*unit as usize]));
        let amounts = |unit: &u32| {
            let unit = &units.tasks()[*unit as usize];
            (unit.seconds, task_bytes(units, unit))
        };
        let levels = units.levels().iter().map(|level| level.iter().map(amounts).collect());
        Self { tasks, levels: levels.collect() }
    }

    /// Returns the units that start a job, a bit each.
    fn starts(&self, max_seconds: f64, max_bytes: f64) -> Vec<u64> {
        let units: usize = self.levels.iter().map(Vec::len).sum();
        let mut starts = vec![0; units.div_ceil(64)];
        let mut unit = 0;
        for level in &self.levels {
            for starts_job in starts_of_jobs(level.iter().copied(), max_seconds, max_bytes) {
                starts[unit / 64] |= u64::from(starts_job) << (unit % 64);
                unit += 1;
            }
        }
        starts
    }

    /// Returns the tasks of each job.
    fn join(&self, starts: &[u64]) -> Lists {
        let mut jobs = Lists::default();
        for (unit, tasks) in self.tasks.iter().enumerate() {
            if unit > 0 && starts[unit / 64] >> (unit % 64) & 1 == 1 {
                jobs.close();
            }
            tasks.iter().for_each(|task| jobs.push(*task));
        }
        if self.tasks.len() > 0 {
            jobs.close();
        }
        jobs
    }
}

/// Joins chains of jobs, which are in the order of levels.
fn join_chains(workflow: &Workflow, jobs: &Lists) -> Lists {
    let graph = JobGraph::new(workflow, jobs);
    let redundant = redundant_edges(&graph);
    let count = jobs.len() as u32;
    let kept = |edge: &(u32, u32)| redundant.binary_search(edge).is_err();
    let mut parents: Vec<usize> = (0..count).map(|job| graph.parents(job).len()).collect();
    redundant.iter().for_each(|(_, child)| parents[*child as usize] -= 1);
    let next = |job: u32| {
        let mut children = graph.children(job).iter().filter(|child| kept(&(job, **child)));
        let child = children.next().filter(|child| parents[**child as usize] == 1)?;
        children.next().is_none().then_some(*child)
    };
    let next: Vec<Option<u32>> = (0..count).map(next).collect();
    let mut is_head = vec![true; count as usize];
    next.iter().flatten().for_each(|job| is_head[*job as usize] = false);
    let mut joined = Lists::default();
    for head in (0..count).filter(|job| is_head[*job as usize]) {
        for job in std::iter::successors(Some(head), |job| next[*job as usize]) {
            jobs.get(job).iter().for_each(|task| joined.push(*task));
        }
        joined.close();
    }
    joined
}

/// Dependencies of jobs, each with tasks of one level.
struct JobGraph {
    children: Lists,
    parents: Lists,
    levels: Lists,
    level_of: Vec<u32>,
}

impl JobGraph {
    fn new(workflow: &Workflow, jobs: &Lists) -> Self {
        let (children, counts) = Jobs::dependencies(workflow, jobs.iter());
        let mut of: Vec<Vec<u32>> = counts.iter().map(|count| Vec::with_capacity(*count as usize)).collect();
        for (job, children) in (0..).zip(children.iter()) {
            children.iter().for_each(|child| of[*child as usize].push(job));
        }
        let mut parents = Lists::default();
        of.iter().for_each(|list| parents.extend(list));
        let level_of: Vec<u32> = jobs.iter().map(|tasks| workflow.level_of(tasks[0]) as u32).collect();
        let mut levels = Lists::default();
        for level in level_of.chunk_by(|one, other| one == other) {
            let first = levels.items() as u32;
            (first..first + level.len() as u32).for_each(|job| levels.push(job));
            levels.close();
        }
        Self { children, parents, levels, level_of }
    }
}

impl Graph for JobGraph {
    fn len(&self) -> usize {
        self.level_of.len()
    }

    fn children(&self, task: u32) -> &[u32] {
        self.children.get(task)
    }

    fn parents(&self, task: u32) -> &[u32] {
        self.parents.get(task)
    }

    fn level_of(&self, task: u32) -> usize {
        self.level_of[task as usize] as usize
    }

    fn level(&self, level: usize) -> &[u32] {
        self.levels.get(level as u32)
    }
}
