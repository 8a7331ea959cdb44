//! Facts about all jobs that each stage needs.

use crate::operations::CONTENT;
use pleach_clustering::Workflow as TaskWorkflow;
use pleach_workflow::RegionDecl;
use std::collections::HashMap;

/// Delays of a job that occupy its worker.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct JobDelays {
    /// Queue delay in seconds.
    pub queue: f64,
    /// Clustering delay in seconds. 0 for a job of 1 task.
    pub clustering: f64,
}

/// Facts about all jobs.
pub(crate) struct Context<'a> {
    pub(crate) tasks: &'a TaskWorkflow,
    /// Workflow of the jobs: job `j` is task `j`.
    pub(crate) jobs: &'a TaskWorkflow,
    pub(crate) bytes_per_second: f64,
    /// Parameter that identifies the execution.
    pub(crate) execution: usize,
    /// Stage of each job.
    pub(crate) stage_of: Vec<usize>,
    /// Job that writes a file.
    pub(crate) writers: HashMap<u32, u32>,
}

/// Returns the region of a file.
pub(crate) fn file_region(file: u32) -> RegionDecl {
    RegionDecl { region: format!("file {file}"), element: CONTENT }
}
