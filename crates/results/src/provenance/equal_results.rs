//! Tasks with equal results, as a run by value has found them.
//!
//! A record of a reused result names the instance that the result was computed for. Both tasks have the operation, the values
//! and the contents of inputs in common, and so their results. Equal results that the run computed twice count as different:
//! it had dropped the first one from memory, or both tasks ran at once. So do those by value whose record names no instance.

use super::NAME;
use super::events::{Event, Outcome};
use super::plan_table::PlanTable;
use super::records::{Execution, Records, UnreadableRecords};
use super::summary::level_name;
use pleach_dispatch::message::ReuseSource;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Records that do not have the equal results of a study.
#[derive(Debug, Error)]
pub enum EqualResultsError {
    /// The folder has no records of its own.
    #[error("{}: has no {NAME}; the folder of a study without phases is allowed, as pleach run writes it", folder.display())]
    NoRecords {
        /// The folder.
        folder: PathBuf,
    },
    /// The records cannot be read.
    #[error("{0}")]
    Unreadable(#[from] UnreadableRecords),
    /// The records are incomplete.
    #[error(
        "{}: {found}; the records of one execution of all tasks are needed: pleach run --reuse value in a new folder, \
         without --cache",
        file.display()
    )]
    Partial {
        /// The file.
        file: PathBuf,
        /// The records in its place.
        found: String,
    },
}

/// Numbers of the results of a recorded execution: tasks with equal numbers have equal results.
#[derive(Clone, Debug)]
pub struct EqualResults {
    plan: PlanTable,
    /// By class of the plan: the number.
    numbers: Vec<u32>,
}

impl EqualResults {
    /// Reads the records of a result folder.
    ///
    /// # Errors
    /// [`EqualResultsError`] if the folder has no records, or if they are not those of one execution of all tasks.
    pub fn read(folder: &Path) -> Result<Self, EqualResultsError> {
        let file = folder.join(NAME);
        if !file.is_file() {
            return Err(EqualResultsError::NoRecords { folder: folder.to_owned() });
        }
        let records = Records::read(&file)?;
        let partial = |found: String| EqualResultsError::Partial { file: file.clone(), found };
        if !records.notes.is_empty() {
            return Err(partial("has corrupt records, or no end".to_owned()));
        }
        let [execution] = records.executions.as_slice() else {
            return Err(partial(format!("has {} executions", records.executions.len())));
        };
        if execution.plan.known.iter().any(|known| !known.is_empty()) || execution.plan.recalled > 0 {
            return Err(partial("some responses were known before".to_owned()));
        }
        let (numbers, sources) = numbers(&records, execution);
        if let Some((source, count)) = sources.first_key_value() {
            return Err(partial(format!("{count} results have the source {source:?}, without an instance")));
        }
        Ok(Self { plan: execution.plan.clone(), numbers })
    }

    /// Returns the number of tiles.
    #[must_use]
    pub fn tiles(&self) -> usize {
        self.plan.tiles.len()
    }

    /// Returns the number of evaluations, without the defaults.
    #[must_use]
    pub fn evaluations(&self) -> usize {
        self.plan.evaluations
    }

    /// Returns the position of a task, by the names of its stage and itself.
    #[must_use]
    pub fn task(&self, stage: &str, task: &str) -> Option<(usize, usize)> {
        let number = self.plan.stages.iter().position(|other| other.name == stage)?;
        let tasks = &self.plan.stages[number].tasks;
        Some((number, tasks.iter().position(|(name, _)| name == task)?))
    }

    /// Returns the number of the result of a task, as [`task`](Self::task) finds it, of an evaluation on a tile. `None` if
    /// the execution does not have it.
    #[must_use]
    pub fn number(&self, evaluation: usize, tile: usize, (stage, task): (usize, usize)) -> Option<u32> {
        let instance = self.plan.instance(evaluation, tile, stage)?;
        let class = self.plan.classes_of(instance).get(task)?;
        self.numbers.get(*class as usize).copied()
    }
}

/// Joins classes whose results are equal. Returns the number of each class, and by level the reused results without an instance.
fn numbers(records: &Records, execution: &Execution) -> (Vec<u32>, BTreeMap<&'static str, u64>) {
    let plan = &execution.plan;
    let classes = plan.classes.iter().max().map_or(0, |last| last + 1);
    let mut roots: Vec<u32> = (0..classes).collect();
    let mut unknown: BTreeMap<&'static str, u64> = BTreeMap::new();
    records.for_each(execution, |event| {
        let Event::Report { tasks, .. } = event else { return };
        for event in tasks {
            let Outcome::Reused { level, from, .. } = event.outcome else { continue };
            let task = event.task as usize;
            match from.filter(|_| matches!(level, ReuseSource::Dataflow | ReuseSource::Value)) {
                Some(from) => {
                    let classes = (
                        plan.classes_of(event.instance).get(task),
                        source_class(plan, event.instance, from, task),
                    );
                    if let (Some(own), Some(other)) = classes {
                        let (own, other) = (root(&mut roots, *own), root(&mut roots, other));
                        roots[own.max(other) as usize] = own.min(other);
                    }
                }
                // Tasks that are equal by dataflow have one class.
                None if matches!(level, ReuseSource::Dataflow | ReuseSource::Value) => {}
                None => *unknown.entry(level_name(level)).or_default() += 1,
            }
        }
    });
    ((0..classes).map(|class| root(&mut roots, class)).collect(), unknown)
}

/// Returns the class of the task that a result was computed for, or `None` if the record does not identify it: an operation
/// that several tasks have may be any of them.
fn source_class(plan: &PlanTable, instance: u32, from: u32, task: usize) -> Option<u32> {
    let stage = plan.stage_of(instance).filter(|stage| plan.stage_of(from) == Some(*stage))?;
    let (_, operation) = plan.stages[stage].tasks.get(task)?;
    let all = plan.stages.iter().flat_map(|stage| &stage.tasks);
    let is_only = all.filter(|(_, other)| other == operation).count() == 1;
    plan.classes_of(from).get(task).copied().filter(|_| is_only)
}

/// Returns the smallest class that is joined with a class.
fn root(roots: &mut [u32], class: u32) -> u32 {
    let mut at = class;
    while roots[at as usize] != at {
        roots[at as usize] = roots[roots[at as usize] as usize];
        at = roots[at as usize];
    }
    at
}
