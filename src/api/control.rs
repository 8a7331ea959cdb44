//! What HTTP asks of the manager.
//!
//! Calls may come from several threads at once. Nothing here says how anything is decided, or what an answer looks like
//! over HTTP ([`problem`](super::problem)).

use super::view::{Forgotten, Scaling, Study, Submitted, Worker};
use crate::service::inputs::InputDigest;
use crate::service::submission::Submission;
use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use thiserror::Error;

/// An answer on its way.
pub(crate) type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, Refused>> + Send + 'a>>;

/// Why a request is not met: one line for the user that asked, who reads it as it is.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(crate) enum Refused {
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
    fn submit(&self, submission: Submission, key: Option<String>, client: String) -> Answer<'_, Submitted>;

    /// A file that may have been missing is in the input store now, whole and on disk.
    fn input_arrived(&self, digest: InputDigest) -> Answer<'_, ()>;

    /// All studies, those submitted last at the end.
    fn studies(&self) -> Answer<'_, Vec<Study>>;

    /// A study.
    fn study<'a>(&'a self, id: &'a str) -> Answer<'a, Study>;

    /// Ends a study. One that is cancelled already stays so; what is complete or has failed is a
    /// [`Refused::Conflict`]. `client` is for the operator's log.
    fn cancel<'a>(&'a self, id: &'a str, client: String) -> Answer<'a, Study>;

    /// Removes a study that has ended, its results, and input files that no other study reads. A study that was removed
    /// before stays so; one that has not ended is a [`Refused::Conflict`].
    fn forget<'a>(&'a self, id: &'a str) -> Answer<'a, Forgotten>;

    /// The names of a study's result files; [`Refused::Conflict`] as long as there are none.
    fn result_names<'a>(&'a self, id: &'a str) -> Answer<'a, Vec<String>>;

    /// Where one of them is. Its content does not change any more; [`Refused::Corrupt`] if it has.
    fn result<'a>(&'a self, id: &'a str, name: &'a str) -> Answer<'a, PathBuf>;

    /// All workers, by name.
    fn workers(&self) -> Answer<'_, Vec<Worker>>;

    /// Lets a worker end what it has begun, and leave.
    fn drain<'a>(&'a self, name: &'a str) -> Answer<'a, Worker>;

    /// How many workers are wanted, and what is predicted.
    fn scaling(&self) -> Answer<'_, Scaling>;

    /// Whether studies are taken.
    fn is_ready(&self) -> Answer<'_, bool>;

    /// What is measured, in Prometheus' text format.
    fn metrics(&self) -> Answer<'_, String>;
}
