//! Operations that the HTTP interface calls on the manager.
//!
//! Calls may come from several threads at once. The implementation decides, and [`error`](super::error) defines how
//! errors appear over HTTP.

use pleach_api::digest::InputDigest;
use pleach_api::schema::{Forgotten, ScalingStatus, StudyStatus, Submitted, WorkerStatus};
use pleach_api::submission::Submission;
use pleach_results::provenance::{Explanation, RunSelection};
use pleach_study::spatial::{LocatedObjects, ObjectQuery};
use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use thiserror::Error;

/// Future of an answer.
pub(crate) type ControlFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, ControlError>> + Send + 'a>>;

/// Client that submits a study.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Submitter {
    /// The user: the name in a client certificate, or `token` for all clients with the token.
    pub user: String,
    /// Client and address, for the operator's log.
    pub(crate) at: String,
}

/// User of all clients with the manager's token, who share one identity.
pub(crate) const TOKEN_USER: &str = "token";

impl fmt::Display for Submitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.at)
    }
}

/// Reason why a request is refused: one line, shown to the user as it is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ControlError {
    /// The study, result or worker does not exist.
    #[error("{0}")]
    Missing(String),
    /// The present state does not allow the operation.
    #[error("{0}")]
    Conflict(String),
    /// The study cannot be executed. The message names the wrong value and the allowed ones.
    #[error("{0}")]
    Study(String),
    /// The manager cannot answer yet, or no longer. The same request may succeed later.
    #[error("{0}")]
    NotReady(String),
    /// A file differs from the one that was written. The message names it.
    #[error("{0}")]
    Corrupt(String),
    /// Internal error of the manager.
    #[error("{0}")]
    Defect(String),
}

/// Operations of a manager.
pub trait Control: Send + Sync + 'static {
    /// Accepts a study. A second submission under the same key returns the same study, because clients without an
    /// answer retry. `client` appears in the operator's log.
    fn submit(
        &self,
        submission: Submission,
        key: Option<String>,
        client: Submitter,
    ) -> ControlFuture<'_, Submitted>;

    /// Handles the arrival of an input file, which is complete and on disk now.
    fn input_arrived(&self, digest: InputDigest) -> ControlFuture<'_, ()>;

    /// Returns all studies in the order of their submission.
    fn studies(&self) -> ControlFuture<'_, Vec<StudyStatus>>;

    /// Returns a study.
    fn study<'a>(&'a self, id: &'a str) -> ControlFuture<'a, StudyStatus>;

    /// Ends a study. A canceled study stays canceled. A complete study is a [`ControlError::Conflict`]. `client`
    /// appears in the operator's log.
    fn cancel<'a>(&'a self, id: &'a str, client: String) -> ControlFuture<'a, StudyStatus>;

    /// Removes an ended study, its results, and the input files that no other study reads. Repeating the removal
    /// succeeds. A study that has not ended is a [`ControlError::Conflict`].
    fn forget<'a>(&'a self, id: &'a str) -> ControlFuture<'a, Forgotten>;

    /// Explains what became of the tasks of selected runs, or of all in totals, from the study's records.
    /// [`ControlError::Conflict`] before the study has run and for a canceled study, [`ControlError::Study`] for a run that
    /// the study does not have.
    fn explain<'a>(&'a self, id: &'a str, selection: RunSelection) -> ControlFuture<'a, Explanation>;

    /// Finds objects of a study by position, in regions that workers retain. [`ControlError::Conflict`] for a study without such
    /// regions, [`ControlError::Study`] for an evaluation, output or image that the study does not have.
    fn objects<'a>(&'a self, id: &'a str, query: ObjectQuery) -> ControlFuture<'a, LocatedObjects>;

    /// Returns the names of a study's result files. [`ControlError::Conflict`] until the study is complete.
    fn result_names<'a>(&'a self, id: &'a str) -> ControlFuture<'a, Vec<String>>;

    /// Returns the path of a result file, whose content is final. [`ControlError::Corrupt`] if it has changed.
    fn result<'a>(&'a self, id: &'a str, name: &'a str) -> ControlFuture<'a, PathBuf>;

    /// Returns all workers by name.
    fn workers(&self) -> ControlFuture<'_, Vec<WorkerStatus>>;

    /// Drains a worker: it finishes its started instances and leaves.
    fn drain<'a>(&'a self, name: &'a str) -> ControlFuture<'a, WorkerStatus>;

    /// Returns the scaling decision and its predictions.
    fn scaling(&self) -> ControlFuture<'_, ScalingStatus>;

    /// Returns whether the manager accepts studies.
    fn is_ready(&self) -> ControlFuture<'_, bool>;

    /// Returns the metrics in Prometheus' text format.
    fn metrics(&self) -> ControlFuture<'_, String>;
}
