//! Grammar of `pleach workflow` and `pleach instrument`.

use super::operations::PythonArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum WorkflowCommand {
    /// Check a workflow or stage descriptor and its references
    Check {
        /// A workflow file, a stage file, or the name of a built-in workflow
        file: PathBuf,
        /// Run the workflow at its default values twice on this tile, and compare all regions
        #[arg(long, value_name = "TILE")]
        twice: Option<PathBuf>,
        #[command(flatten)]
        python: PythonArgs,
    },
    /// Show a workflow: stages, tasks, regions and parameters
    Show {
        /// A workflow file or the name of a built-in workflow
        file: PathBuf,
        #[command(flatten)]
        python: PythonArgs,
        /// Print one JSON document on stdout, and nothing else
        #[arg(long)]
        json: bool,
    },
    /// Write the folder of a new pipeline: functions in Python, manifest, workflow, study and test
    New {
        /// The folder to create; its name becomes that of the workflow
        folder: PathBuf,
        /// Write functions in Python, the only language so far
        #[arg(long, required = true)]
        python: bool,
    },
    /// Convert a Dakota input (.in), a SALib problem (.json) or parameter file (.txt) to a study file
    Import {
        /// The file to convert
        file: PathBuf,
        /// Output file [default: print the study file]
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct InstrumentArgs {
    /// The script: a Python file with the function
    pub(crate) script: PathBuf,
    /// The function to cut [default: the only one that no other function calls]
    #[arg(long, value_name = "NAME")]
    pub(crate) function: Option<String>,
    /// Run the function on this tile at some parameter sets: measures types, times and sizes, and compares the tasks with it
    #[arg(long, value_name = "FILE")]
    pub(crate) tile: Option<PathBuf>,
    /// New folder for module, manifest, workflow and study; requires --tile
    #[arg(long, value_name = "DIR", requires = "tile")]
    pub(crate) out: Option<PathBuf>,
    /// Parameter that keeps its default; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) constant: Vec<String>,
    /// Task of the proposal to join with the readers of its outputs; may be repeated
    #[arg(long, value_name = "TASK")]
    pub(crate) join: Vec<String>,
    #[command(flatten)]
    pub(crate) python: PythonArgs,
    /// Print one JSON document on stdout, and nothing else
    #[arg(long)]
    pub(crate) json: bool,
}
