//! Totals of all records of a result folder.

use super::answer::{Explanation, TaskSummary, WorkerSummary};
use super::events::{Event, Outcome};
use super::records::Records;
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

/// Adds the totals of a folder, which is a phase with this name.
pub(super) fn add(answer: &mut Explanation, phase: Option<&str>, records: &Records) {
    let mut tasks: BTreeMap<(usize, usize), TaskSummary> = BTreeMap::new();
    let mut workers: BTreeMap<String, WorkerSummary> = BTreeMap::new();
    let (mut lost, mut reopened) = (0, 0);
    for execution in &records.executions {
        for (stage, names) in execution.plan.stages.iter().enumerate() {
            for (task, (name, operation)) in names.tasks.iter().enumerate() {
                tasks.entry((stage, task)).or_insert_with(|| TaskSummary {
                    phase: phase.map(str::to_owned),
                    stage: names.name.clone(),
                    task: name.clone(),
                    operation: operation.clone(),
                    ..TaskSummary::default()
                });
            }
        }
        let mut by_number: Vec<WorkerSummary> = Vec::new();
        let names = records.for_each(execution, |event| match event {
            Event::Report { worker, instance, tasks: reported, .. } => {
                if by_number.len() <= worker {
                    by_number.resize(worker + 1, WorkerSummary::default());
                }
                let of_worker = &mut by_number[worker];
                let Some(stage) = execution.plan.stage_of(instance) else { return };
                for event in reported {
                    let Some(total) = tasks.get_mut(&(stage, event.task as usize)) else { continue };
                    match event.outcome {
                        Outcome::Executed { micros, .. } => {
                            let seconds = micros as f64 / 1e6;
                            (total.executed, total.seconds) = (total.executed + 1, total.seconds + seconds);
                            of_worker.executed += 1;
                            of_worker.seconds += seconds;
                        }
                        Outcome::Reused { level, .. } => {
                            *total.reused.entry(level_name(level).to_owned()).or_default() += 1;
                            of_worker.reused += 1;
                        }
                    }
                }
            }
            Event::Reopened(_) => reopened += 1,
            Event::Lost { instances, .. } => lost += instances.len() as u64,
        });
        for (name, totals) in names.0.into_iter().zip(by_number) {
            let sum = workers.entry(name).or_default();
            sum.executed += totals.executed;
            sum.seconds += totals.seconds;
            sum.reused += totals.reused;
        }
    }
    let levels = ["dataflow", "value", "cache"].map(|level| (level.to_owned(), 0));
    let reused = answer.tasks_reused.get_or_insert_with(|| levels.into());
    // As in `run.json`: the sharing within buckets of the last round, and the responses from the cache of all rounds.
    let shared = records.executions.last().map_or(0, |execution| execution.plan.shared_in_buckets);
    let recalled: u64 = records.executions.iter().map(|execution| execution.plan.recalled).sum();
    *reused.entry("dataflow".to_owned()).or_default() += shared;
    *reused.entry("cache".to_owned()).or_default() += recalled;
    for total in tasks.values() {
        for (level, number) in &total.reused {
            *reused.entry(level.clone()).or_default() += number;
        }
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
        let sum = &mut answer.workers[place];
        sum.executed += totals.executed;
        sum.seconds += totals.seconds;
        sum.reused += totals.reused;
    }
}
