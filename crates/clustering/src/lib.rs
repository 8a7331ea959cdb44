//! Task clustering of scientific workflows: joins tasks to jobs, so that fewer jobs pay overheads.
//!
//! Source of metrics and methods: Chen, Ferreira da Silva, Deelman and Sakellariou, *Using imbalance metrics to optimize task
//! clustering in scientific workflow executions* (paper 002).
//!
//! - [`workflow`]: tasks, files, dependencies and levels.
//! - [`clustering`]: a partition of the tasks into jobs, and the workflow of these jobs.

pub mod clustering;
pub mod workflow;

pub use clustering::{Clustering, ClusteringError};
pub use workflow::{DataFile, Task, Workflow, WorkflowError};
