//! Errors of the state directory.

use super::record::CorruptRecord;
use crate::service::results::UnreadableError;
use pleach_study::Defect;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Ways to repair a corrupt `manager.json`.
const REMEDY: &str = "the file identifies this manager: restore it from a backup, or remove it; without it \
                      the manager continues its studies under a new number and recomputes the results that \
                      workers have not reported yet";

/// Failed operation on a state directory.
#[derive(Debug, Error)]
pub enum StateError {
    /// The state directory cannot be created or opened.
    #[error("--state {}: {cause}", folder.display())]
    Folder {
        /// The state directory.
        folder: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// Another process holds the lock of the state directory.
    #[error(
        "--state {}: locked by another manager; one manager per folder is allowed",
        .0.display()
    )]
    Locked(PathBuf),
    /// A file or folder of the state directory cannot be read or written.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// The file that identifies the manager is corrupt.
    #[error("{}: corrupt: {cause}; {REMEDY}", path.display())]
    CorruptIdentity {
        /// The file.
        path: PathBuf,
        /// The problem of its content.
        #[source]
        cause: CorruptRecord,
    },
    /// Another version of pleach has written the state directory in another format.
    #[error(
        "{}: format {found}; {} is allowed: start the version of pleach that wrote it, or restore a copy of the time before",
        path.display(), super::FORMAT
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// Format of the directory.
        found: u32,
    },
    /// The number of starts has its maximum.
    #[error("{}: starts: {} is the maximum; {REMEDY}", .0.display(), u32::MAX)]
    LastStart(PathBuf),
    /// A file or folder cannot be moved or copied to quarantine.
    #[error("failed to move {} to {}: {cause}", from.display(), quarantine.display())]
    NotSetAside {
        /// The file or folder.
        from: PathBuf,
        /// The quarantine folder.
        quarantine: PathBuf,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// All names of an entry in quarantine are taken.
    #[error("{}: all names for {name} are in use; remove entries that are no longer needed", quarantine.display())]
    QuarantineFull {
        /// The quarantine folder.
        quarantine: PathBuf,
        /// Name of the entry without a number.
        name: String,
    },
    /// The results of a study cannot be read.
    #[error("{0}")]
    Results(#[from] UnreadableError),
    /// A defect of pleach.
    #[error("{0}")]
    Defect(#[from] Defect),
}
