//! Grammar of `pleach workflow` and `pleach instrument`.

use super::operations::PythonArgs;
use clap::{ArgGroup, Args, Subcommand};
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
        /// Print one run of the workflow as a tool of the Common Workflow Language (CWL 1.2, JSON)
        #[arg(long, conflicts_with = "json")]
        cwl: bool,
    },
    /// Write the folder of a new workflow: JSON of built-in operations, or a pipeline in Python
    New {
        /// The folder to create; its name becomes that of the workflow
        folder: PathBuf,
        /// Write functions in Python, with manifest, workflow, study and test
        #[arg(long)]
        python: bool,
    },
    /// Convert a workflow of another program to workflow and stage files, or its study to a study file
    #[command(long_about = IMPORT)]
    Import {
        /// The file to convert
        file: PathBuf,
        /// Output: file of a study, folder of a workflow [default: print]
        #[arg(long, value_name = "PATH")]
        out: Option<PathBuf>,
        /// JSON file with operations for the calls of a workflow, types of its regions and values of its parameters
        #[arg(long, value_name = "FILE")]
        map: Option<PathBuf>,
    },
    /// Write the source of operations that a workflow or stage file names and pleach lacks
    #[command(group(ArgGroup::new("language").args(["rust", "python"]).required(true)))]
    Stub {
        /// A workflow or stage file
        file: PathBuf,
        /// Write a program in Rust
        #[arg(long)]
        rust: bool,
        /// Write functions in Python, with their manifest
        #[arg(long)]
        python: bool,
        /// Folder for the files; existing files stay [default: print the source]
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

const IMPORT: &str = "\
Convert a workflow of another program to workflow and stage files, or its study to a study file

Workflows: Taverna 2 (.t2flow), stage descriptors of the region templates framework (JSON).
Studies: Dakota inputs (.in), SALib problems (.json) and parameter files (.txt).";

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
