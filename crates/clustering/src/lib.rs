//! Task clustering of scientific workflows: joins tasks to jobs, so that fewer jobs pay overheads.
//!
//! Source of metrics and methods: Chen, Ferreira da Silva, Deelman and Sakellariou, *Using imbalance metrics to optimize task
//! clustering in scientific workflow executions* (paper 002).
//!
//! - [`workflow`]: tasks, files, dependencies and levels.
//! - [`clustering`]: a partition of the tasks into jobs, and the workflow of these jobs.
//! - [`format`](mod@format): names of the file formats.
//! - [`mod@read`]: readers of DAX, DAG and WfFormat.
//! - [`mod@write`]: writers of the same formats, and of jobs.
//! - [`mod@generate`]: workflows of the five families of the paper.
//! - [`reduction`], [`chains`]: the dependencies that count, and tasks that follow each other alone.
//! - [`metrics`](mod@metrics): imbalance of the levels.
//! - [`methods`]: the clustering methods.
//! - [`simulate`]: the execution of jobs with overheads, and the gain of a clustering.
//! - [`tune`]: limits of DFJS* and AFJS*.
//! - [`choose`]: choice of a method by simulation, by rule and for each level.
//! - [`experiments`]: the experiments of the paper as rows.

pub mod chains;
pub mod choose;
pub mod clustering;
pub mod experiments;
pub mod format;
pub mod generate;
pub mod methods;
pub mod metrics;
pub mod read;
pub mod reduction;
pub mod simulate;
pub mod tune;
pub mod workflow;
pub mod write;

pub use choose::Candidate;
pub use clustering::{Clustering, ClusteringError};
pub use format::{Format, UnknownFormat};
pub use generate::{Family, GenerateError, MAX_TASKS, generate};
pub use methods::{Candidates, Method, Options, Size, Vertical, cluster};
pub use metrics::{Imbalance, ImbalanceChange, LevelMetrics, Reading, imbalance_after, metrics};
pub use read::{ReadError, ReadOptions, ReadProblem, read, read_bytes};
pub use reduction::reduced;
pub use simulate::{Delay, Execution, Gain, Overheads, Platform, PlatformError};
pub use workflow::{DataFile, Task, Workflow, WorkflowError};
pub use write::{WriteError, write, write_clustered, write_jobs};
