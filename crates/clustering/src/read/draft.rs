//! Tasks, files and dependencies while a reader collects them.

use std::collections::HashMap;

use super::error::{Located, Place, ReadProblem};
use super::options::ReadOptions;
use crate::workflow::{DataFile, Task, Workflow};

/// Allowed run times.
pub(super) const SECONDS: &str = "a finite number of seconds of 0 or more is allowed, without a unit";

/// Allowed sizes.
pub(super) const BYTES: &str = "a whole number of bytes of 0 or more is allowed, without a unit";

/// A workflow that is being read.
#[derive(Debug, Default)]
pub(super) struct Draft {
    name: Option<String>,
    tasks: Vec<Task>,
    files: Vec<DraftFile>,
    task_numbers: HashMap<String, u32>,
    file_numbers: HashMap<String, u32>,
    edges: Vec<(u32, u32)>,
}

#[derive(Debug)]
struct DraftFile {
    name: String,
    bytes: Option<u64>,
    /// Position of the first mention, in the unit of the reader.
    position: u64,
}

impl Draft {
    /// Creates a draft of a workflow with this name.
    pub(super) fn new(name: Option<String>) -> Self {
        Self { name, ..Self::default() }
    }

    /// Adds a task and returns its number.
    pub(super) fn add_task(&mut self, id: &str, kind: &str, seconds: f64) -> Result<u32, ReadProblem> {
        let number = self.tasks.len() as u32;
        if self.task_numbers.insert(id.to_owned(), number).is_some() {
            return Err(ReadProblem::Twice { element: "task", id: id.to_owned() });
        }
        let (reads, writes) = (Vec::new(), Vec::new());
        self.tasks.push(Task { id: id.to_owned(), kind: kind.to_owned(), seconds, reads, writes });
        Ok(number)
    }

    /// Returns the number of a task.
    pub(super) fn task(&self, id: &str) -> Result<u32, ReadProblem> {
        self.task_numbers.get(id).copied().ok_or_else(|| ReadProblem::Unknown { id: id.to_owned() })
    }

    /// Returns the number of a file, and adds it if it is new.
    pub(super) fn file(&mut self, name: &str, position: u64) -> u32 {
        if let Some(number) = self.file_numbers.get(name) {
            return *number;
        }
        let number = self.files.len() as u32;
        self.file_numbers.insert(name.to_owned(), number);
        self.files.push(DraftFile { name: name.to_owned(), bytes: None, position });
        number
    }

    /// Returns the size of a file, `None` if it has none yet.
    pub(super) fn bytes(&self, file: u32) -> Option<u64> {
        self.files[file as usize].bytes
    }

    /// Sets the size of a file.
    pub(super) fn set_bytes(&mut self, file: u32, bytes: u64) {
        self.files[file as usize].bytes = Some(bytes);
    }

    /// Adds an input to a task.
    pub(super) fn add_input(&mut self, task: u32, file: u32) {
        self.tasks[task as usize].reads.push(file);
    }

    /// Adds an output to a task.
    pub(super) fn add_output(&mut self, task: u32, file: u32) {
        self.tasks[task as usize].writes.push(file);
    }

    /// Adds a dependency.
    pub(super) fn add_edge(&mut self, parent: u32, child: u32) {
        self.edges.push((parent, child));
    }

    /// Returns the workflow. `line` is the place of a position of a file.
    pub(super) fn finish(
        self,
        name: &str,
        options: ReadOptions,
        line: impl Fn(u64) -> Place,
    ) -> Result<Workflow, Located> {
        let mut files = Vec::with_capacity(self.files.len());
        for file in self.files {
            let bytes = match file.bytes {
                None if !options.assume_zero => return Err(missing_size(file.name).at(line(file.position))),
                bytes => bytes.unwrap_or(0),
            };
            files.push(DataFile { name: file.name, bytes });
        }
        let name = self.name.unwrap_or_else(|| name.to_owned());
        let workflow = Workflow::new(name, self.tasks, files, &self.edges)
            .map_err(|error| ReadProblem::of_workflow(error, false).at(Place::File))?;
        check_files(&workflow).map_err(|problem| problem.at(Place::File))?;
        Ok(workflow)
    }
}

fn missing_size(id: String) -> ReadProblem {
    ReadProblem::Value { element: "file", id, field: "size", value: None, allowed: BYTES }
}

/// Refuses cycles of dependencies and files together: a task that reads a file before its only writer has run. Several tasks of
/// the traces write one name, so that its reader need not wait for all of them. Such files are not checked.
fn check_files(workflow: &Workflow) -> Result<(), ReadProblem> {
    const NONE: u32 = u32::MAX;
    const SEVERAL: u32 = u32::MAX - 1;
    let mut writer = vec![NONE; workflow.files().len()];
    for (number, task) in (0..).zip(workflow.tasks()) {
        for file in &task.writes {
            let writer = &mut writer[*file as usize];
            *writer = if *writer == NONE { number } else { SEVERAL };
        }
    }
    let mut implied = Vec::new();
    for (child, task) in (0..).zip(workflow.tasks()) {
        for file in &task.reads {
            let parent = writer[*file as usize];
            if parent < SEVERAL && workflow.children(parent).binary_search(&child).is_err() {
                implied.push((parent, child));
            }
        }
    }
    if implied.is_empty() {
        return Ok(());
    }
    implied.extend(workflow.edges());
    workflow.with_edges(&implied).map_err(|error| ReadProblem::of_workflow(error, true))?;
    Ok(())
}

/// Returns a run time in seconds. `None` if it is not allowed.
pub(super) fn seconds(text: &str, options: ReadOptions) -> Option<f64> {
    let seconds: f64 = text.trim().parse().ok()?;
    seconds_of(seconds, options)
}

/// Returns a run time in seconds. `None` if it is not allowed.
pub(super) fn seconds_of(seconds: f64, options: ReadOptions) -> Option<f64> {
    match seconds {
        seconds if !seconds.is_finite() => None,
        // Without the sign of -0.
        seconds if seconds >= 0.0 => Some(seconds.abs()),
        _ => options.assume_zero.then_some(0.0),
    }
}

/// Returns a size in bytes. `None` if it is not allowed.
pub(super) fn bytes(text: &str, options: ReadOptions) -> Option<u64> {
    let text = text.trim();
    text.parse().ok().or_else(|| bytes_of(text.parse().ok()?, options))
}

/// Returns a size in bytes. `None` if it is not allowed.
pub(super) fn bytes_of(bytes: f64, options: ReadOptions) -> Option<u64> {
    // An f64 above 2⁵³ does not hold each whole number.
    const MAX: f64 = (1_u64 << 53) as f64;
    match bytes {
        bytes if bytes.fract() != 0.0 || bytes > MAX => None,
        bytes if bytes >= 0.0 => Some(bytes as u64),
        _ => (options.assume_zero && bytes.is_finite()).then_some(0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_no_units_and_no_sign() {
        let strict = ReadOptions::default();
        let zero = ReadOptions { assume_zero: true, ..strict };
        assert_eq!(seconds(" 13.39 ", strict), Some(13.39));
        assert_eq!(seconds("1e3", strict), Some(1000.0));
        assert!(seconds("-0", strict).is_some_and(f64::is_sign_positive));
        for text in ["", "3 s", "3s", "1,5", "nan", "inf", "1e999", "-nan", "0x10"] {
            assert_eq!((seconds(text, strict), seconds(text, zero)), (None, None), "{text}");
        }
        assert_eq!((seconds("-1.64", strict), seconds("-1.64", zero)), (None, Some(0.0)));
        assert_eq!(bytes("18446744073709551615", strict), Some(u64::MAX));
        assert_eq!(bytes("1.5e7", strict), Some(15_000_000));
        for text in ["", "4 MB", "4MB", "1.5", "nan", "-inf", "1e300"] {
            assert_eq!((bytes(text, strict), bytes(text, zero)), (None, None), "{text}");
        }
        assert_eq!((bytes("-5", strict), bytes("-5", zero)), (None, Some(0)));
    }
}
