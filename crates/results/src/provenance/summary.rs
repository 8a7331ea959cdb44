//! Totals of all records of a result folder.

use super::answer::{Explanation, TaskSummary, WorkerSummary};
use super::events::{Event, Outcome};
use super::records::{Execution, Records};
use pleach_dispatch::message::ReuseSource;
use std::collections::BTreeMap;

/// Returns the name of a level of reuse, as in `run.json`.
pub(super) fn level_name(level: ReuseSource) -> &'static str {
    match level {
        ReuseSource::Dataflow => "dataflow",
        ReuseSource::Value => "value",
        ReuseSource::Cache => "cache",
        ReuseSource::Before => "earlier",
        ReuseSource::Peer => "peer",
    }
}

/// Totals of one folder.
#[derive(Default)]
struct Totals {
    tasks: BTreeMap<(usize, usize), TaskSummary>,
    workers: BTreeMap<String, WorkerSummary>,
    lost: u64,
    reopened: u64,
}

impl Totals {
    fn new(phase: Option<&str>, records: &Records) -> Self {
        let mut totals = Self::default();
        for execution in &records.executions {
            totals.add_tasks(phase, execution);
            totals.add_execution(records, execution);
        }
        totals
    }

    fn add_tasks(&mut self, phase: Option<&str>, execution: &Execution) {
        for (stage, names) in execution.plan.stages.iter().enumerate() {
            for (task, (name, operation)) in names.tasks.iter().enumerate() {
                self.tasks.entry((stage, task)).or_insert_with(|| TaskSummary {
                    phase: phase.map(str::to_owned),
                    stage: names.name.clone(),
                    task: name.clone(),
                    operation: operation.clone(),
                    ..TaskSummary::default()
                });
            }
        }
    }

    fn add_execution(&mut self, records: &Records, execution: &Execution) {
        let mut by_number: Vec<WorkerSummary> = Vec::new();
        let names = records.for_each(execution, |event| match event {
            Event::Report { worker, instance, tasks, .. } => {
                if by_number.len() <= worker {
                    by_number.resize(worker + 1, WorkerSummary::default());
                }
                let Some(stage) = execution.plan.stage_of(instance) else { return };
                for event in tasks {
                    if let Some(total) = self.tasks.get_mut(&(stage, event.task as usize)) {
                        add_task(total, &mut by_number[worker], event.outcome);
                    }
                }
            }
            Event::Reopened(_) => self.reopened += 1,
            Event::Lost { instances, .. } => self.lost += instances.len() as u64,
        });
        for (name, totals) in names.0.into_iter().zip(by_number) {
            add_worker(self.workers.entry(name).or_default(), &totals);
        }
    }
}

fn add_task(total: &mut TaskSummary, worker: &mut WorkerSummary, outcome: Outcome) {
    match outcome {
        Outcome::Executed { micros, .. } => {
            let seconds = micros as f64 / 1e6;
            (total.executed, worker.executed) = (total.executed + 1, worker.executed + 1);
            (total.seconds, worker.seconds) = (total.seconds + seconds, worker.seconds + seconds);
        }
        Outcome::Reused { level, .. } => {
            *total.reused.entry(level_name(level).to_owned()).or_default() += 1;
            worker.reused += 1;
        }
        Outcome::Skipped => total.skipped += 1,
    }
}

fn add_worker(sum: &mut WorkerSummary, totals: &WorkerSummary) {
    sum.executed += totals.executed;
    sum.seconds += totals.seconds;
    sum.reused += totals.reused;
}

/// Adds the totals of a folder, which is a phase with this name.
pub(super) fn add(answer: &mut Explanation, phase: Option<&str>, records: &Records) {
    let Totals { tasks, workers, lost, reopened } = Totals::new(phase, records);
    let levels = ["dataflow", "value", "cache"].map(|level| (level.to_owned(), 0));
    let reused = answer.tasks_reused.get_or_insert_with(|| levels.into());
    // As in `run.json`: the sharing within buckets of the last round, and the responses from the cache of all rounds.
    let shared = records.executions.last().map_or(0, |execution| execution.plan.shared_in_buckets);
    let recalled: u64 = records.executions.iter().map(|execution| execution.plan.recalled).sum();
    *reused.entry("dataflow".to_owned()).or_default() += shared;
    *reused.entry("cache".to_owned()).or_default() += recalled;
    for (level, number) in tasks.values().flat_map(|total| &total.reused) {
        *reused.entry(level.clone()).or_default() += number;
    }
    let executed: u64 = tasks.values().map(|total| total.executed).sum();
    *answer.tasks_executed.get_or_insert(0) += executed;
    *answer.instances_lost.get_or_insert(0) += lost;
    *answer.instances_reopened.get_or_insert(0) += reopened;
    answer.tasks.extend(tasks.into_values());
    for (worker, totals) in workers {
        let known = answer.workers.iter().position(|other| other.worker == worker);
        let place = known.unwrap_or_else(|| {
            answer.workers.push(WorkerSummary { worker, ..WorkerSummary::default() });
            answer.workers.len() - 1
        });
        add_worker(&mut answer.workers[place], &totals);
    }
}
