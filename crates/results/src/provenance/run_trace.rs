//! Traces runs through the events of one execution: which lease finished each stage instance, and which record of the lease
//! is that of each of its tasks.
//!
//! The tasks of a bucket are a graph, in which instances share nodes. A record names the first instance that needs its node.
//! Another instance of the lease shares the node if all its tasks up to that one are of the same classes (a reuse tree), or
//! else if the task itself is (reuse by dataflow).

use super::events::{Event, Outcome, TaskEvent};
use super::records::{Execution, Records};
use pleach_dispatch::study::InstanceEnd;
use std::collections::HashMap;

/// End of an instance under one lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AttemptEnd {
    Finished,
    Failed,
    MissingInput,
    Late,
    /// The worker left or was lost before its report.
    WorkerLost,
    /// The instance was finished, and its only outputs were lost.
    OutputLost,
}

/// A lease of an instance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    pub(super) lease: u64,
    pub(super) worker: usize,
    pub(super) end: AttemptEnd,
}

/// A record that may be that of a task.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    lease: u64,
    worker: usize,
    /// 2 for a record of the instance itself, 1 for one of equal tasks up to this one, 0 for an equal task.
    rank: u8,
    event: TaskEvent,
}

/// Record of a task, with the worker that reported it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TracedTask {
    pub(super) worker: usize,
    pub(super) event: TaskEvent,
}

/// Records of one stage instance in one execution.
#[derive(Clone, Debug, Default)]
pub(super) struct InstanceTrace {
    attempts: Vec<Attempt>,
    candidates: Vec<Candidate>,
}

impl InstanceTrace {
    /// A trace without records.
    pub(super) const EMPTY: Self = Self { attempts: Vec::new(), candidates: Vec::new() };

    /// Returns the lease whose outputs the study has used: the last one that finished the instance, or that failed.
    pub(super) fn accepted(&self) -> Option<Attempt> {
        let last = |end| self.attempts.iter().rev().find(|attempt| attempt.end == end).copied();
        last(AttemptEnd::Finished).or_else(|| last(AttemptEnd::Failed))
    }

    /// Returns whether the execution has records of the instance.
    pub(super) fn is_recorded(&self) -> bool {
        !self.attempts.is_empty()
    }

    /// Returns the record of a task under the accepted lease.
    pub(super) fn task(&self, task: usize) -> Option<TracedTask> {
        let accepted = self.accepted()?;
        let is_executed = |found: &&Candidate| matches!(found.event.outcome, Outcome::Executed { .. });
        // A bucket may find a result of its own again later, after it has dropped the output.
        let executed = self.best(accepted.lease, task).filter(is_executed).last();
        let found = executed.or_else(|| self.best(accepted.lease, task).last())?;
        Some(TracedTask { worker: found.worker, event: found.event })
    }

    /// Returns the records of a task under a lease, those of another node left out, in the order of time.
    fn best(&self, lease: u64, task: usize) -> impl Iterator<Item = &Candidate> {
        let all = move || {
            let of_lease = self.candidates.iter().filter(move |found| found.lease == lease);
            of_lease.filter(move |found| found.event.task as usize == task)
        };
        let rank = all().map(|found| found.rank).max();
        all().filter(move |found| Some(found.rank) == rank)
    }

    /// Returns further executions of a task: the end of their lease, the worker, and the record if the worker has reported it.
    pub(super) fn repeated(&self, task: usize) -> Vec<(AttemptEnd, usize, Option<TaskEvent>)> {
        let mut repeated = Vec::new();
        let accepted = self.accepted();
        for attempt in &self.attempts {
            let is_accepted = accepted.is_some_and(|accepted| accepted.lease == attempt.lease);
            let mut executed: Vec<&Candidate> = self.best(attempt.lease, task).collect();
            executed.retain(|found| matches!(found.event.outcome, Outcome::Executed { .. }));
            // The last execution counts. A bucket may find its result again later, after it has dropped the output.
            if is_accepted {
                executed.pop();
            }
            // Within the accepted lease, only a lost output of the task is a reason to run it again.
            let end = if is_accepted { AttemptEnd::OutputLost } else { attempt.end };
            let is_unreported = executed.is_empty() && end == AttemptEnd::WorkerLost;
            repeated.extend(executed.into_iter().map(|found| (end, found.worker, Some(found.event))));
            if is_unreported {
                repeated.push((end, attempt.worker, None));
            }
        }
        repeated
    }

    /// Records the end of the instance under a lease. A later end replaces an earlier one, because a lost worker may come back
    /// with its lease. A late report under a lease that has finished the instance is that report, sent again over a new link.
    fn end(&mut self, attempt: Attempt) {
        let is_over = |other: &Attempt| matches!(other.end, AttemptEnd::Finished | AttemptEnd::OutputLost);
        let mut same = self.attempts.iter().filter(|other| other.lease == attempt.lease);
        if attempt.end == AttemptEnd::Late && same.any(is_over) {
            return;
        }
        self.attempts.retain(|other| other.lease != attempt.lease);
        self.attempts.push(attempt);
    }
}

/// Traces instances through an execution. Returns the traces in the same order, and the names of workers.
pub(super) fn trace(
    records: &Records,
    execution: &Execution,
    instances: &[u32],
) -> (Vec<InstanceTrace>, Vec<String>) {
    let places: HashMap<u32, usize> = instances.iter().copied().zip(0..).collect();
    let mut traces = vec![InstanceTrace::default(); instances.len()];
    // First the leases, because a report of another instance may have tasks of these before their own ends.
    records.for_each(execution, |event| match event {
        Event::Report { worker, lease, instance, end, .. } => {
            let Some(place) = places.get(&instance) else { return };
            let end = match end {
                InstanceEnd::Finished => AttemptEnd::Finished,
                InstanceEnd::Failed => AttemptEnd::Failed,
                InstanceEnd::MissingInput => AttemptEnd::MissingInput,
                InstanceEnd::Late => AttemptEnd::Late,
                // Another lease ends the instance, and uses these tasks.
                InstanceEnd::Returned => return,
            };
            traces[*place].end(Attempt { lease, worker, end });
        }
        Event::Reopened(instance) => {
            let Some(place) = places.get(&instance) else { return };
            let mut finished = traces[*place].attempts.iter_mut().rev();
            if let Some(finished) = finished.find(|attempt| attempt.end == AttemptEnd::Finished) {
                finished.end = AttemptEnd::OutputLost;
            }
        }
        Event::Lost { worker, lease, instances } => {
            for place in instances.iter().filter_map(|instance| places.get(instance)) {
                traces[*place].end(Attempt { lease, worker, end: AttemptEnd::WorkerLost });
            }
        }
    });
    let mut by_lease: HashMap<u64, Vec<usize>> = HashMap::new();
    for (place, trace) in traces.iter().enumerate() {
        trace.attempts.iter().for_each(|attempt| by_lease.entry(attempt.lease).or_default().push(place));
    }
    let plan = &execution.plan;
    let names = records.for_each(execution, |event| {
        let Event::Report { worker, lease, tasks, .. } = event else { return };
        let Some(of_lease) = by_lease.get(&lease) else { return };
        for event in tasks {
            let task = event.task as usize;
            let theirs = plan.classes_of(event.instance);
            for place in of_lease {
                let own = plan.classes_of(instances[*place]);
                // A lease has instances of one stage, and classes of two stages differ.
                if task >= own.len() || theirs.get(task) != Some(&own[task]) {
                    continue;
                }
                let rank = match event.instance == instances[*place] {
                    true => 2,
                    false => u8::from(theirs[..=task] == own[..=task]),
                };
                let candidates = &mut traces[*place].candidates;
                // A report that was sent again has the same starts.
                let is_executed = matches!(event.outcome, Outcome::Executed { .. });
                let is_same = |other: &Candidate| other.lease == lease && other.event == event;
                if !is_executed || !candidates.iter().any(is_same) {
                    candidates.push(Candidate { lease, worker, rank, event });
                }
            }
        }
    });
    (traces, names.0)
}
