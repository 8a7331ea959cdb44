//! Records of executions: makespans and the counts of the manager.

use crate::exit::{CommandError, CommandResult};
use pleach_clustering::simulate::Gain;
use pleach_emulation::JOB_OPERATION;
use serde::{Deserialize, Serialize};

/// Executions of one clustering.
#[derive(Clone, Debug)]
pub(super) struct Executed {
    /// One for each replicate, at least one.
    pub(super) records: Vec<ExecutionRecord>,
}

/// One execution, as the manager has counted it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct ExecutionRecord {
    /// Seconds from the start of the plan to the report of the last stage.
    pub(super) makespan_seconds: f64,
    /// Number of executed jobs. A job whose worker was lost counts again.
    pub(super) jobs: u64,
    /// Number of executed emulated tasks.
    pub(super) emulated_tasks: u64,
    /// Seconds of all transfers.
    pub(super) transfer_seconds: f64,
}

impl Executed {
    /// Returns the mean makespan in seconds.
    pub(super) fn mean(&self) -> f64 {
        self.makespans().sum::<f64>() / self.records.len() as f64
    }

    /// Returns the least and the greatest makespan in seconds.
    pub(super) fn range(&self) -> (f64, f64) {
        (self.makespans().fold(f64::INFINITY, f64::min), self.makespans().fold(0.0, f64::max))
    }

    /// Returns the gain of the mean makespans over that without clustering.
    pub(super) fn gain(&self, baseline: &Self) -> f64 {
        Gain { makespan: self.mean(), baseline: baseline.mean() }.gain()
    }

    fn makespans(&self) -> impl Iterator<Item = f64> {
        self.records.iter().map(|record| record.makespan_seconds)
    }
}

/// Fields of `run.json` that a record needs.
#[derive(Deserialize)]
struct RunFile {
    execution_seconds: f64,
    tasks_executed: u64,
    operations: Vec<OperationEntry>,
}

#[derive(Deserialize)]
struct OperationEntry {
    name: String,
    runs: u64,
    seconds: f64,
}

impl ExecutionRecord {
    /// Reads the record of a study from its `run.json`.
    pub(super) fn read(text: &[u8]) -> CommandResult<Self> {
        let run: RunFile = serde_json::from_slice(text).map_err(CommandError::defect)?;
        let transfers = ["emulation.fetch", "emulation.read"];
        let of = |names: &[&str]| {
            let entries = run.operations.iter().filter(|entry| names.contains(&&*entry.name));
            entries.fold((0, 0.0), |(runs, seconds), entry| (runs + entry.runs, seconds + entry.seconds))
        };
        Ok(Self {
            makespan_seconds: run.execution_seconds,
            jobs: of(&[JOB_OPERATION]).0,
            emulated_tasks: run.tasks_executed,
            transfer_seconds: of(&transfers).1,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_times_are_those_of_the_manager() {
        let text = br#"{"execution_seconds": 1.5, "tasks_executed": 9, "other": null, "operations": [
            {"name": "emulation.queue", "runs": 3, "seconds": 0.3},
            {"name": "emulation.fetch", "runs": 2, "seconds": 0.5},
            {"name": "emulation.read", "runs": 1, "seconds": 0.25}]}"#;
        let record = ExecutionRecord::read(text).unwrap();
        let expected =
            ExecutionRecord { makespan_seconds: 1.5, jobs: 3, emulated_tasks: 9, transfer_seconds: 0.75 };
        assert_eq!(record, expected);
        let other = ExecutionRecord { makespan_seconds: 2.5, ..record };
        let executed = Executed { records: vec![record, other] };
        assert_eq!((executed.mean(), executed.range()), (2.0, (1.5, 2.5)));
    }
}
