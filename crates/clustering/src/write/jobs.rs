//! Writes the jobs of a clustering as JSON.

use std::io::Write;

use serde::Serialize;

use super::error::WriteError;
use crate::clustering::Clustering;
use crate::workflow::Workflow;

#[derive(Debug, Serialize)]
struct JobList<'a> {
    workflow: &'a str,
    jobs: Vec<JobEntry<'a>>,
}

#[derive(Debug, Serialize)]
struct JobEntry<'a> {
    id: &'a str,
    tasks: Vec<&'a str>,
    seconds: f64,
    /// From 1, as in tables.
    level: usize,
}

/// Writes the jobs of a clustering.
pub(super) fn write(
    workflow: &Workflow,
    clustering: &Clustering,
    out: &mut impl Write,
) -> Result<(), WriteError> {
    let clustered = clustering.workflow(workflow)?;
    let jobs = (0..).zip(clustered.tasks()).zip(clustering.jobs()).map(|((number, job), tasks)| JobEntry {
        id: &job.id,
        tasks: tasks.iter().map(|task| workflow.tasks()[*task as usize].id.as_str()).collect(),
        seconds: job.seconds,
        level: clustered.level_of(number) + 1,
    });
    serde_json::to_writer_pretty(&mut *out, &JobList { workflow: workflow.name(), jobs: jobs.collect() })?;
    writeln!(out)?;
    Ok(())
}
