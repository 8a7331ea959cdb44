//! Collects the tasks, files and dependencies of a generated workflow.

use super::draw::{Draw, Quantiles};
use crate::workflow::{DataFile, Task, Workflow, WorkflowError};

/// A workflow that is being generated.
#[derive(Debug)]
pub(super) struct Builder {
    pub(super) draw: Draw,
    tasks: Vec<Task>,
    files: Vec<DataFile>,
    edges: Vec<(u32, u32)>,
}

impl Builder {
    pub(super) fn new(draw: Draw) -> Self {
        Self { draw, tasks: Vec::new(), files: Vec::new(), edges: Vec::new() }
    }

    /// Adds a file.
    pub(super) fn file(&mut self, name: impl Into<String>, bytes: u64) -> u32 {
        self.files.push(DataFile { name: name.into(), bytes });
        self.files.len() as u32 - 1
    }

    /// Adds a file with a random size.
    pub(super) fn random_file(&mut self, name: impl Into<String>, low: u64, high: u64) -> u32 {
        let bytes = self.draw.between(low, high);
        self.file(name, bytes)
    }

    /// Returns the size of a file in bytes.
    pub(super) fn bytes(&self, file: u32) -> u64 {
        self.files[file as usize].bytes
    }

    /// Adds a task that runs for a random time of the distribution, times `scale`.
    pub(super) fn task(
        &mut self,
        kind: &str,
        time: (&Quantiles, f64),
        reads: Vec<u32>,
        writes: Vec<u32>,
        parents: &[u32],
    ) -> u32 {
        // Traces have hundredths of seconds.
        let seconds = (self.draw.quantile(time.0) * time.1 * 100.0).round() / 100.0;
        let number = self.tasks.len() as u32;
        let id = format!("ID{number:05}");
        self.tasks.push(Task { id, kind: kind.to_owned(), seconds, reads, writes });
        self.edges.extend(parents.iter().map(|parent| (*parent, number)));
        number
    }

    /// Returns the workflow. Its name is that of the family with the number of tasks.
    pub(super) fn finish(self, family: &str) -> Result<Workflow, WorkflowError> {
        let name = format!("{family}-{}", self.tasks.len());
        Workflow::new(name, self.tasks, self.files, &self.edges)
    }
}
