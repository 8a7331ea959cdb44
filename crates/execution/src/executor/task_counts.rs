//! Numbers of tasks of an execution: to execute, known, shared, and saved by the task cache.

use super::known_responses::KnownResponses;
use pleach_dispatch::InstanceId;
use pleach_dispatch::plan::{ExecutionPlan, ReuseScope};
use pleach_dispatch::scaling::RemainingWork;
use pleach_planner::task_counts;
use pleach_study::{Defect, PreparedStudy};
use std::collections::{BTreeMap, BTreeSet};

/// Numbers of tasks by stage and task.
pub(super) type Counts = BTreeMap<(usize, usize), u64>;

/// Numbers of tasks of a plan with known responses.
pub(super) struct TaskCounts {
    /// Tasks to execute.
    pub(super) open: Counts,
    /// Tasks needed only for responses of the journal.
    pub(super) skipped: Counts,
    /// Number of tasks needed only for responses of the journal and of earlier rounds.
    pub(super) known: u64,
    /// Number of tasks saved by sharing within buckets beyond reuse trees.
    pub(super) shared_in_buckets: u64,
    /// Number of tasks saved by responses from the task cache.
    pub(super) recalled: u64,
}

impl TaskCounts {
    /// Counts the tasks of a plan. `finished` are the instances of the `known` responses.
    ///
    /// # Errors
    /// [`Defect`] if the plan contradicts itself.
    pub(super) fn new(
        plan: &ExecutionPlan,
        finished: &BTreeSet<InstanceId>,
        known: &KnownResponses<'_>,
    ) -> Result<Self, Defect> {
        let open = plan.unfinished(finished);
        let whole = vec![true; open.len()];
        // Counting takes as long as planning, so equal counts are taken once.
        let mut counted: Vec<(&[bool], ReuseScope, Counts)> = Vec::new();
        let mut count = |open, sharing| {
            if let Some((.., counts)) = counted.iter().find(|(of, scope, _)| *of == open && *scope == sharing)
            {
                return Ok(counts.clone());
            }
            let counts = task_counts(plan, open, sharing).map_err(Defect::new)?;
            counted.push((open, sharing, counts.clone()));
            Ok(counts)
        };
        let all = count(&whole, plan.sharing)?;
        let as_trees = count(&whole, ReuseScope::Tree)?;
        let after_journal = count(&known.open_after_journal, plan.sharing)?;
        let before_recall = sum(&count(&known.open_before_recall, plan.sharing)?);
        let open = count(&open, plan.sharing)?;
        Ok(Self {
            skipped: skipped(&all, &after_journal),
            known: sum(&all) - before_recall,
            shared_in_buckets: sum(&as_trees) - sum(&all),
            recalled: before_recall - sum(&open),
            open,
        })
    }

    /// Returns the number of tasks to execute.
    pub(super) fn open_tasks(&self) -> u64 {
        sum(&self.open)
    }

    /// Returns the tasks to execute with their predicted times, each for the mean over the tiles and the default
    /// values.
    pub(super) fn remaining_work(&self, prepared: &PreparedStudy) -> RemainingWork {
        let workflow = &prepared.study.workflow;
        let tiles = prepared.tiles.len().max(1) as f64;
        let kind = |((stage, task), count): (&(usize, usize), &u64)| {
            let (place, stage) = ((*stage as u32, *task as u32), &workflow.stages[*stage]);
            let task = &stage.tasks[*task];
            let seconds = prepared.registry.get(&task.operation, task.version).map_or(0.0, |operation| {
                let values = stage.task_parameters(task).map(|index| workflow.parameters[index].default);
                let ratio = prepared.costs.ratio(operation.as_ref(), &values.collect::<Vec<_>>());
                let declared = prepared.tiles.iter().map(|tile| operation.cost_seconds(tile.pixels));
                ratio * declared.sum::<f64>() / tiles
            });
            (place, *count, seconds)
        };
        RemainingWork::new(self.open.iter().map(kind))
    }
}

fn sum(counts: &Counts) -> u64 {
    counts.values().sum()
}

/// Returns the tasks of `all` that are not in `open`.
fn skipped(all: &Counts, open: &Counts) -> Counts {
    let rest = |(task, &count): (&(usize, usize), &u64)| {
        let rest = count - open.get(task).copied().unwrap_or(0);
        (rest > 0).then_some((*task, rest))
    };
    all.iter().filter_map(rest).collect()
}
