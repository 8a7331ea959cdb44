//! Provenance records of a study: where and when each task was executed, where reused results came from, and which
//! executions were lost and repeated.
//!
//! The records are an append-only file in the result folder. Each execution of a plan (a round, a phase, or the rest of an
//! interrupted study) starts with the plan's table of instances (`plan_table`), so that a reader needs no other file. Events
//! follow in blocks. Each block has its length and a checksum. The writer never waits for the disk, and a crash loses at
//! most the events of the last second. A reader detects a missing end and corrupt blocks, and answers from the others.
//!
//! Nothing depends on the records: a study whose records cannot be written continues.

mod answer;
mod blocks;
mod bytes;
mod equal_results;
mod events;
mod explain;
mod plan_table;
mod records;
mod run_trace;
mod summary;
mod writer;

pub use answer::{ExplainedRun, Explanation, RecordedTask, RepeatedExecution, TaskSummary, WorkerSummary};
pub use blocks::MAGIC;
pub use equal_results::{EqualResults, EqualResultsError};
pub use explain::{ExplainError, RunSelection, explain_folder};
pub use plan_table::{KnownSource, PlanTable};
pub use writer::{RecordError, Recorder, RecordingObserver};

/// Name of the records in the result folder.
pub const NAME: &str = "provenance.bin";

#[cfg(test)]
mod tests;
