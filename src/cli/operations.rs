//! Arguments for operations of manifests, and the manifests that each command reads.

use super::{Command, WorkflowCommand};
use clap::Args;
use std::path::{Path, PathBuf};

/// Environment of operations in Python.
#[derive(Debug, Args)]
pub(crate) struct PythonArgs {
    /// Environment of operations in Python: the folder of a virtual environment, or an interpreter [default: the active
    /// environment, or python3]
    #[arg(long, value_name = "ENV", env = "PLEACH_PYTHON", hide_env_values = true)]
    pub(crate) python: Option<PathBuf>,
}

/// External operations of a node of a cluster.
#[derive(Debug, Args)]
pub(crate) struct NodeOperationArgs {
    /// Manifest of operations in Python or of commands (pleach.toml) that this node runs, or distribution:NAME for those of an
    /// installed distribution; may be repeated
    #[arg(long, value_name = "FILE|distribution:NAME")]
    pub(crate) operations: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) python: PythonArgs,
}

/// Code that clients send to a worker.
#[derive(Debug, Args)]
pub(crate) struct CodeArgs {
    /// Load the operations of clients' studies that this worker lacks: their code runs with the rights of the worker [default: no
    /// code of clients]
    #[arg(long)]
    pub(crate) allow_code: bool,
}

/// Operations of a submission.
#[derive(Debug, Args)]
pub(crate) struct PinArgs {
    /// Use the operation of the workers with this digest in place of the client's; may be repeated
    #[arg(long, value_name = "NAME@DIGEST")]
    pub(crate) pin: Vec<String>,
}

/// Source of a command's operations beside those of the program.
#[derive(Clone, Copy, Debug)]
pub(crate) enum OperationSource<'a> {
    /// None.
    Program,
    /// The manifests of a study's workflow.
    Study(&'a Path, Option<&'a Path>),
    /// The manifests of the workflow of a burst file's study.
    Burst(&'a Path, Option<&'a Path>),
    /// The manifests of a workflow.
    Workflow(&'a Path, Option<&'a Path>),
    /// These manifests.
    Manifests(&'a [PathBuf], Option<&'a Path>),
}

impl PythonArgs {
    pub(crate) fn path(&self) -> Option<&Path> {
        self.python.as_deref()
    }
}

impl Command {
    /// Returns the source of the operations that the command uses.
    pub(crate) fn operations(&self) -> OperationSource<'_> {
        match self {
            Self::Run(args) => OperationSource::Study(&args.study, args.python.path()),
            Self::Export(args) => OperationSource::Study(&args.study, args.python.path()),
            Self::Apply(args) => OperationSource::Study(&args.study, args.python.path()),
            Self::Plan(args) => OperationSource::Study(&args.study, args.python.path()),
            Self::Explain(args) => OperationSource::Study(&args.target, args.python.path()),
            Self::Sample(args) => OperationSource::Study(&args.problem, args.python.path()),
            Self::Analyze(args) => OperationSource::Study(&args.problem, args.python.path()),
            Self::Classify(args) => OperationSource::Study(&args.study, args.python.path()),
            Self::Submit(args) => OperationSource::Study(&args.study, args.python.path()),
            Self::Workflow(
                WorkflowCommand::Check { file, python, .. } | WorkflowCommand::Show { file, python, .. },
            ) => OperationSource::Workflow(file, python.path()),
            Self::Simulate(args) => OperationSource::Burst(&args.burst, args.python.path()),
            Self::Segment(args) => match &args.workflow {
                Some(workflow) => OperationSource::Workflow(workflow, args.python.path()),
                None => OperationSource::Program,
            },
            Self::Manager(args) => {
                OperationSource::Manifests(&args.operations.operations, args.operations.python.path())
            }
            Self::Worker(args) => {
                OperationSource::Manifests(&args.operations.operations, args.operations.python.path())
            }
            _ => OperationSource::Program,
        }
    }
}
