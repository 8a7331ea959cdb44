//! Executes prepared studies and writes their results (hops 6 to 10 of a study).
//!
//! A [`session`] owns the result folder and its journal. [`rounds`] executes a study round by round, and phase by phase
//! ([`rounds::phases`]). [`executor`] executes one plan, in this process or through an [`Executor`](executor::Executor)
//! on a cluster, with [`progress`]. [`result_files`] writes plan, responses, indices and report. [`inputs`] reads the
//! image files of workers and of `pleach run`. [`explain`] explains the origin of each task of a run, and
//! [`cost_history`] stores the learned costs of operations. The crate prints nothing.

pub mod cost_history;
pub mod executor;
pub mod explain;
pub mod inputs;
pub mod progress;
pub mod result_files;
pub mod rounds;
pub mod session;
