//! Errors of readers: one line with the file, the position, the id, the field, the value and the allowed values.

use std::fmt;
use std::io;

use thiserror::Error;

use crate::format::text::quoted;
use crate::workflow::WorkflowError;

/// Maximum number of ids in the path of a cycle that a message shows.
const MAX_PATH: usize = 12;

/// A workflow cannot be read.
#[derive(Debug, Error)]
#[error("{file}{place}: {problem}")]
pub struct ReadError {
    /// Name of the file.
    file: String,
    place: Place,
    /// Boxed to keep results small.
    problem: Box<ReadProblem>,
}

/// Position in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The whole file.
    File,
    /// A line, from 1.
    Line(u64),
}

/// A problem and its position.
#[derive(Debug)]
pub(super) struct Located {
    pub(super) place: Place,
    pub(super) problem: Box<ReadProblem>,
}

/// Reason why a workflow cannot be read.
#[derive(Debug, Error)]
pub enum ReadProblem {
    /// The file cannot be opened, read or decompressed.
    #[error("failed to read: {0}")]
    Unreadable(#[source] io::Error),
    /// The text is longer than `ReadOptions::max_bytes`.
    #[error("text too long; {max_bytes} bytes are allowed after decompression")]
    TooLarge {
        /// The limit.
        max_bytes: u64,
    },
    /// The text is not in UTF-8.
    #[error("byte {position} is no UTF-8; text in UTF-8 is allowed")]
    Encoding {
        /// Offset of the first wrong byte after decompression.
        position: usize,
    },
    /// The content has no known format.
    #[error(
        "unknown format; DAX 2.1 (XML with <adag>), DAG (lines FILE, TASK, INPUTS, OUTPUTS, EDGE) and WfFormat 1.5 (JSON) \
         are allowed, plain or in gzip"
    )]
    Format,
    /// The text has not the syntax of its format.
    #[error("{cause}; {allowed}")]
    Syntax {
        /// The defect.
        cause: String,
        /// The allowed syntax.
        allowed: &'static str,
    },
    /// A field has a value that is not allowed, or is missing.
    #[error(
        "{element} {}: {field} {}; {allowed}",
        quoted(id),
        value.as_ref().map_or_else(|| "is missing".to_owned(), |value| quoted(value))
    )]
    Value {
        /// Kind of the element: "task" or "file".
        element: &'static str,
        /// Its id or name.
        id: String,
        /// The field in the words of the format.
        field: &'static str,
        /// The value. `None` if it is missing.
        value: Option<String>,
        /// The allowed values.
        allowed: &'static str,
    },
    /// A field has a name without a unit.
    #[error("{element} {}: {field} has no unit; {allowed}", quoted(id))]
    Unit {
        /// Kind of the element: "task" or "file".
        element: &'static str,
        /// Its id or name.
        id: String,
        /// The field in the words of the format.
        field: &'static str,
        /// The allowed field.
        allowed: &'static str,
    },
    /// An id is given twice.
    #[error("{element} {}: given twice; ids are unique", quoted(id))]
    Twice {
        /// Kind of the element: "task" or "file".
        element: &'static str,
        /// The id.
        id: String,
    },
    /// A dependency or a list of files names a task that does not exist.
    #[error("task {}: does not exist; ids of tasks of the file are allowed", quoted(id))]
    Unknown {
        /// The id.
        id: String,
    },
    /// Tasks depend on themselves.
    #[error("tasks depend on themselves{}: {}; dependencies without a cycle are allowed", if *files { " through files" } else { "" }, shown(path))]
    Cycle {
        /// Ids along the cycle. The first is also the last.
        path: Vec<String>,
        /// Some dependencies are those of a task that reads the file of another.
        files: bool,
    },
    /// Any other defect of the graph.
    #[error(transparent)]
    Workflow(WorkflowError),
}

impl ReadError {
    pub(super) fn new(file: &str, located: Located) -> Self {
        // The name of a file may have control characters.
        let file: String = file.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        Self { file, place: located.place, problem: located.problem }
    }

    /// Returns the reason.
    #[must_use]
    pub fn problem(&self) -> &ReadProblem {
        &self.problem
    }

    /// Returns the line, from 1. `None` if the error has no line.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        match self.place {
            Place::Line(line) => Some(line),
            Place::File => None,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => Ok(()),
            Self::Line(line) => write!(f, ":{line}"),
        }
    }
}

impl ReadProblem {
    /// Adds the position.
    pub(super) fn at(self, place: Place) -> Located {
        Located { place, problem: Box::new(self) }
    }

    /// Returns the problem of a graph.
    pub(super) fn of_workflow(error: WorkflowError, files: bool) -> Self {
        match error {
            WorkflowError::Cycle { path } => Self::Cycle { path, files },
            other => Self::Workflow(other),
        }
    }
}

/// Returns the path with its middle left out if it is long.
fn shown(path: &[String]) -> String {
    let names: Vec<String> = if path.len() <= MAX_PATH {
        path.iter().map(|id| quoted(id)).collect()
    } else {
        let (head, tail) = (&path[..MAX_PATH / 2], &path[path.len() - MAX_PATH / 2..]);
        let middle = format!("… ({} more)", path.len() - head.len() - tail.len());
        head.iter().map(|id| quoted(id)).chain([middle]).chain(tail.iter().map(|id| quoted(id))).collect()
    };
    names.join(" → ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_cycles_are_shortened() {
        let mut path: Vec<String> = (0..1000).map(|number| number.to_string()).collect();
        path.push("0".into());
        let text = ReadProblem::Cycle { path, files: false }.to_string();
        assert!(text.starts_with(r#"tasks depend on themselves: "0" → "1" → "2""#), "{text}");
        assert!(text.contains("… (989 more) → \"995\"") && text.len() < 300, "{text}");
    }
}
