//! Errors of loading operations.

use pleach_workflow::toml_fields::FieldError;
use std::path::PathBuf;
use thiserror::Error;

/// Oldest supported Python. `python/describe.py` has it too.
const OLDEST: &str = "3.10";

/// Errors of loading the operations of a manifest. Each message names the file and the remedy.
#[derive(Debug, Error)]
pub enum ExternalError {
    /// The manifest is invalid.
    #[error(transparent)]
    Manifest(#[from] FieldError),
    /// No interpreter.
    #[error(
        "{}: no Python here; the folder of a virtual environment or an interpreter is allowed (--python)",
        path.display()
    )]
    NoPython {
        /// Path of the environment.
        path: PathBuf,
    },
    /// The interpreter fails.
    #[error("{}: failed to describe the environment: {cause}", interpreter.display())]
    Describe {
        /// The interpreter.
        interpreter: PathBuf,
        /// Its last line, or the system's error.
        cause: String,
    },
    /// The interpreter is too old.
    #[error("{}: Python {version}; {OLDEST} or later is allowed", interpreter.display())]
    TooOld {
        /// The interpreter.
        interpreter: PathBuf,
        /// Its version.
        version: String,
    },
    /// Distributions are not installed.
    #[error(
        "{}: {} not installed; install with {} -m pip install {}",
        interpreter.display(),
        distributions.join(", "),
        interpreter.display(),
        distributions.join(" ")
    )]
    Missing {
        /// The interpreter.
        interpreter: PathBuf,
        /// Names of the distributions.
        distributions: Vec<String>,
    },
    /// Required distributions have versions that the manifest does not allow.
    #[error(
        "{}: {} installed; {} required by {}; install with {} -m pip install {}",
        interpreter.display(),
        found.join(", "),
        needed.join(", "),
        manifest.display(),
        interpreter.display(),
        needed.iter().map(|needed| format!("'{needed}'")).collect::<Vec<_>>().join(" ")
    )]
    Versions {
        /// The interpreter.
        interpreter: PathBuf,
        /// The manifest.
        manifest: PathBuf,
        /// Names and versions of the installed distributions.
        found: Vec<String>,
        /// The requirements.
        needed: Vec<String>,
    },
    /// An installed distribution has no manifest.
    #[error("{}: distribution {distribution}: {mistake}", interpreter.display())]
    Distribution {
        /// The interpreter.
        interpreter: PathBuf,
        /// Name of the distribution.
        distribution: String,
        /// The missing part and the allowed one.
        mistake: String,
    },
    /// A module is not valid Python.
    #[error("{}: {mistake}", folder.display())]
    Syntax {
        /// Folder of the package.
        folder: PathBuf,
        /// Python's message with file and line.
        mistake: String,
    },
    /// A module does not exist.
    #[error(
        "{}: operation {operation}: no module {module} in {}; a file {} is allowed",
        manifest.display(),
        folder.display(),
        module.replace('.', "/") + ".py"
    )]
    NoModule {
        /// The manifest.
        manifest: PathBuf,
        /// The operation.
        operation: &'static str,
        /// The module.
        module: String,
        /// Folder of the package.
        folder: PathBuf,
    },
    /// A file of an operation cannot be read.
    #[error("{}: failed to read: {cause}", file.display())]
    File {
        /// The file.
        file: PathBuf,
        /// The system's error.
        cause: std::io::Error,
    },
    /// The program of a command is not found.
    #[error("{}: operation {operation}: program {program} is not in PATH", manifest.display())]
    NoProgram {
        /// The manifest.
        manifest: PathBuf,
        /// The operation.
        operation: &'static str,
        /// The program.
        program: String,
    },
}
