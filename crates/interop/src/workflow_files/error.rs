//! Errors of imported workflows: one line with the file, the element and its line or JSON pointer, and the allowed values.

use pleach_workflow::text::quoted;
use std::fmt;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// A workflow of another program cannot be imported.
#[derive(Debug, Error)]
#[error("{}{place}: {problem}", file.display())]
pub struct WorkflowImportError {
    /// The file.
    pub(crate) file: PathBuf,
    /// Position in the file.
    pub(crate) place: Place,
    /// The problem, boxed to keep results small.
    #[source]
    pub(crate) problem: Box<WorkflowImportProblem>,
}

/// Position in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// The whole file.
    File,
    /// A line, from 1.
    Line(u32),
    /// A JSON path.
    Field(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File => Ok(()),
            Self::Line(line) => write!(f, ":{line}"),
            Self::Field(path) => write!(f, ": {}", quoted(path, 120)),
        }
    }
}

/// A processor that pleach does not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unsupported {
    pub(crate) processor: String,
    /// Kind of the activity, such as `beanshell`.
    pub(crate) activity: String,
    pub(crate) line: u32,
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" ({}, line {})", quoted(&self.processor, 60), quoted(&self.activity, 40), self.line)
    }
}

/// Reason why a workflow of another program cannot be imported.
#[derive(Debug, Error)]
pub(crate) enum WorkflowImportProblem {
    /// The file cannot be read.
    #[error("failed to read: {0}")]
    Unreadable(#[source] io::Error),
    /// The file does not have the syntax of its format.
    #[error("{0}")]
    Malformed(String),
    /// An element has a value that is not allowed.
    #[error("{element} \"{}\": {}; {allowed}", quoted(name, 60), quoted(found, 120))]
    Element {
        /// Kind of the element, such as `port`.
        element: &'static str,
        /// Its name.
        name: String,
        /// The value.
        found: String,
        /// The allowed values.
        allowed: String,
    },
    /// Processors with activities that pleach does not run.
    #[error(
        "processor {} {}; tools, text constants and nested workflows are allowed, and processors whose name \
         --map gives an operation",
        unsupported.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        if unsupported.len() == 1 { "is not allowed" } else { "are not allowed" }
    )]
    Activities {
        /// The processors, in the order of the file.
        unsupported: Vec<Unsupported>,
    },
    /// Entries of the map that the file does not use.
    #[error("{section}: \"{}\" is not in the imported file; known are {}", quoted(name, 60), known.join(", "))]
    Unused {
        /// Section of the map.
        section: &'static str,
        /// The entry.
        name: String,
        /// Names that the imported file has.
        known: Vec<String>,
    },
}

/// Builds an error of a file at a place.
pub(crate) fn failed(
    file: &std::path::Path,
    place: Place,
    problem: WorkflowImportProblem,
) -> WorkflowImportError {
    WorkflowImportError { file: file.to_owned(), place, problem: Box::new(problem) }
}
