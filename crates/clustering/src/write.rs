//! Writes workflows as Pegasus DAX 2.1, DAG lines and WfCommons WfFormat 1.5, and the jobs of a clustering.
//!
//! Reading the text again gives the same tasks, dependencies and sizes. Names that a format cannot hold are refused before the
//! first byte, or escaped in WfFormat. A file that no task uses is not in DAX, and DAG has no name of the workflow.

mod dag;
mod dax;
mod error;
mod jobs;
mod wfformat;

use std::io::Write;

pub use error::WriteError;

use crate::clustering::Clustering;
use crate::format::Format;
use crate::workflow::Workflow;

/// Writes a workflow in small pieces: `out` should have a buffer.
///
/// # Errors
/// If `out` fails, or the format cannot hold a name or a workflow without tasks.
pub fn write(workflow: &Workflow, format: Format, out: &mut impl Write) -> Result<(), WriteError> {
    match format {
        Format::Dax => dax::write(workflow, out),
        Format::Dag => dag::write(workflow, out),
        Format::WfFormat => wfformat::write(workflow, out),
    }
}

/// Writes the jobs of a clustering as the tasks of a workflow, see [`Clustering::workflow`].
///
/// # Errors
/// As [`write`](fn@write), and if jobs depend on each other in a cycle.
///
/// # Panics
/// If the clustering is one of another workflow.
pub fn write_clustered(
    workflow: &Workflow,
    clustering: &Clustering,
    format: Format,
    out: &mut impl Write,
) -> Result<(), WriteError> {
    write(&clustering.workflow(workflow)?, format, out)
}

/// Writes the jobs of a clustering as JSON: `{ "workflow": name, "jobs": [ { "id", "tasks": [ids], "seconds", "level" } ] }`, with
/// the sum of run times in seconds and the level from 1, as in the metrics. Ids are those of [`Clustering::workflow`].
///
/// # Errors
/// If `out` fails, or jobs depend on each other in a cycle.
///
/// # Panics
/// If the clustering is one of another workflow.
pub fn write_jobs(
    workflow: &Workflow,
    clustering: &Clustering,
    out: &mut impl Write,
) -> Result<(), WriteError> {
    jobs::write(workflow, clustering, out)
}
