//! Errors of downloads.

use crate::address::ManagerUrl;
use crate::error::{AnswerError, ClientError};
use crate::wait::Interrupted;
use pleach_results::folder::PLAN;
use pleach_study::Defect;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Reason why results are not downloaded.
#[derive(Debug, Error)]
pub enum DownloadError {
    /// A request failed.
    #[error("{0}")]
    Client(#[from] ClientError),
    /// The name of a result leads out of the folder.
    #[error("the manager sent the result name {name:?}, a path outside the result folder")]
    ForeignName {
        /// The name.
        name: String,
    },
    /// The file that identifies the study cannot be read.
    #[error("{manager}: {PLAN} of study {study} is corrupt: {cause}")]
    CorruptPlan {
        /// Address of the manager.
        manager: ManagerUrl,
        /// Id of the study.
        study: String,
        /// Problem of the file.
        #[source]
        cause: AnswerError,
    },
    /// A file arrives incomplete each time.
    #[error("{manager}: {name} of study {study}: {cause}")]
    Incomplete {
        /// Address of the manager.
        manager: ManagerUrl,
        /// Name of the file.
        name: String,
        /// Id of the study.
        study: String,
        /// Problem of the last attempt.
        #[source]
        cause: TransferError,
    },
    /// The folder cannot receive the results.
    #[error("{0}")]
    Out(#[from] OutError),
    /// A signal interrupted the download.
    #[error("{0}")]
    Interrupted(#[from] Interrupted),
    /// A defect of pleach.
    #[error("{0}")]
    Defect(#[from] Defect),
}

/// Reason why a file arrives incomplete.
#[derive(Debug, Error)]
pub enum TransferError {
    /// The body ends early.
    #[error("{received} of {bytes} bytes received")]
    Short {
        /// Received bytes.
        received: u64,
        /// Announced bytes.
        bytes: u64,
    },
    /// The connection broke.
    #[error("{0}")]
    Broken(#[source] io::Error),
}

/// A folder cannot receive results.
#[derive(Debug, Error)]
#[error("--out {}: {problem}", out.display())]
pub struct OutError {
    /// The folder.
    pub out: PathBuf,
    /// The problem.
    #[source]
    pub problem: OutProblem,
}

/// Reason why a folder cannot receive results.
#[derive(Debug, Error)]
pub enum OutProblem {
    /// The folder is not writable.
    #[error("not writable: {0}")]
    Unwritable(#[source] io::Error),
    /// Another process downloads into the folder.
    #[error("another pleach process downloads results into it; one at a time is allowed")]
    Busy,
    /// The folder has results of another study.
    #[error("holds {name} of another study; an empty or new folder is allowed")]
    OtherStudy {
        /// A file of the other study.
        name: String,
    },
    /// The folder has a corrupt `plan.json`, and a file that differs from this study's.
    #[error(
        "{PLAN}, which identifies the study, is corrupt: {why}, and {name} belongs to another study; an \
         empty or new folder is allowed"
    )]
    Corrupt {
        /// Defect of `plan.json`.
        why: String,
        /// The file that differs.
        name: String,
    },
    /// A file cannot be written.
    #[error("failed to write {name}: {cause}")]
    File {
        /// Name of the file.
        name: String,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// The draft cannot replace the folder's content.
    #[error("failed to publish results: {0}")]
    Publish(#[source] io::Error),
}
