//! What HTTP asks of the manager.
//!
//! Calls may come from several threads at once. Nothing here says how anything is decided, or what an answer looks like
//! over HTTP ([`problem`](super::error)).

use super::schema::{Forgotten, ScalingStatus, StudyStatus, Submitted, WorkerStatus};
use crate::service::inputs::InputDigest;
use crate::service::submission::Submission;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use thiserror::Error;

/// An answer on its way.
pub(crate) type ControlFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ControlError>> + Send + 'a>>;

/// Why a request is not met: one line for the user that asked, who reads it as it is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum ControlError {
    /// There is no such study, result or worker.
    #[error("{0}")]
    Missing(String),
    /// What is asked for is not possible in the present state.
    #[error("{0}")]
    Conflict(String),
    /// The study cannot be executed as it is; says which number is wrong, and what is allowed.
    #[error("{0}")]
    Study(String),
    /// The manager cannot answer yet, or any more; the same request may be met later.
    #[error("{0}")]
    NotReady(String),
    /// A file is not the one that was written; says which.
    #[error("{0}")]
    Corrupt(String),
    /// A defect of the manager.
    #[error("{0}")]
    Defect(String),
}

/// The manager.
pub(crate) trait Control: Send + Sync + 'static {
    /// Takes a study. What is submitted again under the same key is the same study: a client that got no answer asks
    /// again. `client` is for the operator's log.
    fn submit(
        &self,
        submission: Submission,
        key: Option<String>,
        client: String,
    ) -> ControlFuture<'_, Submitted>;

    /// A file that may have been missing is in the input store now, whole and on disk.
    fn input_arrived(&self, digest: InputDigest) -> ControlFuture<'_, ()>;

    /// All studies, those submitted last at the end.
    fn studies(&self) -> ControlFuture<'_, Vec<StudyStatus>>;

    /// A study.
    fn study<'a>(&'a self, id: &'a str) -> ControlFuture<'a, StudyStatus>;

    /// Ends a study. One that is canceled already stays so; what is complete or has failed is a
    /// [`ControlError::Conflict`]. `client` is for the operator's log.
    fn cancel<'a>(&'a self, id: &'a str, client: String) -> ControlFuture<'a, StudyStatus>;

    /// Removes a study that has ended, its results, and input files that no other study reads. A study that was removed
    /// before stays so; one that has not ended is a [`ControlError::Conflict`].
    fn forget<'a>(&'a self, id: &'a str) -> ControlFuture<'a, Forgotten>;

    /// The names of a study's result files; [`ControlError::Conflict`] as long as there are none.
    fn result_names<'a>(&'a self, id: &'a str) -> ControlFuture<'a, Vec<String>>;

    /// Where one of them is. Its content does not change any more; [`ControlError::Corrupt`] if it has.
    fn result<'a>(&'a self, id: &'a str, name: &'a str) -> ControlFuture<'a, PathBuf>;

    /// All workers, by name.
    fn workers(&self) -> ControlFuture<'_, Vec<WorkerStatus>>;

    /// Lets a worker end what it has begun, and leave.
    fn drain<'a>(&'a self, name: &'a str) -> ControlFuture<'a, WorkerStatus>;

    /// How many workers are wanted, and what is predicted.
    fn scaling(&self) -> ControlFuture<'_, ScalingStatus>;

    /// Whether studies are taken.
    fn is_ready(&self) -> ControlFuture<'_, bool>;

    /// What is measured, in Prometheus' text format.
    fn metrics(&self) -> ControlFuture<'_, String>;
}
