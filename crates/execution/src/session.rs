//! Session of a study in its result folder: new, resumed after an interruption, or complete.
//!
//! The journal file is locked for the whole session, so that only one process writes to the folder. `pleach-results`
//! defines the journal's content, and `executor` writes to it.

use crate::progress;
use pleach_results::folder::{Folder, FolderError};
use pleach_results::journal::{self, Header, HeaderError, JournaledResponse, Writer};
use pleach_study::{Defect, PreparedStudy};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Treatment of existing results of the same study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Keeps them and returns an error.
    Keep,
    /// Continues an interrupted run.
    Resume,
    /// Removes them and runs the study again.
    Overwrite,
}

/// State of the folder.
#[derive(Debug)]
pub enum SessionState {
    /// All results of the study. No run remains.
    Complete(Folder),
    /// The study can run.
    Open(Session),
}

/// Folder that this process owns until the study ends.
#[derive(Debug)]
pub struct Session {
    /// Result folder, claimed for this study.
    pub folder: Folder,
    /// Responses that earlier processes recorded.
    pub known: Vec<JournaledResponse>,
    /// Responses that this process computed in earlier rounds or phases of the study.
    pub(crate) local: Vec<JournaledResponse>,
    /// Unreadable bytes removed from the journal's end.
    pub cut_bytes: u64,
    /// Whether the session started without an earlier journal.
    pub is_new: bool,
    journal: File,
}

/// A session cannot begin in a result folder.
#[derive(Debug, Error)]
pub enum SessionError {
    /// The folder holds complete results.
    #[error(
        "--out {}: holds complete results of this study; --resume leaves them as they are, --overwrite runs the study again",
        folder.display()
    )]
    Complete {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder holds results with failed runs.
    #[error(
        "--out {}: holds results of this study, some runs of which failed; --resume runs those again, --overwrite runs all \
         again",
        folder.display()
    )]
    SomeFailed {
        /// The folder.
        folder: PathBuf,
    },
    /// The folder holds the journal of an interrupted session.
    #[error(
        "--out {}: holds an interrupted run of this study with {responses} responses; --resume continues it, --overwrite \
         starts again",
        folder.display()
    )]
    Interrupted {
        /// The folder.
        folder: PathBuf,
        /// Number of responses in the journal.
        responses: usize,
    },
    /// The journal belongs to another study or is corrupt.
    #[error(
        "--out {}: holds an interrupted study (its {}) that cannot be continued: {cause}; a new folder is allowed",
        folder.display(), journal::NAME
    )]
    CannotContinue {
        /// The folder.
        folder: PathBuf,
        /// Error of the journal's header.
        #[source]
        cause: HeaderError,
    },
    /// Another process has locked the journal.
    #[error("--out {}: another pleach is at work there", folder.display())]
    Busy {
        /// The folder.
        folder: PathBuf,
    },
    /// The journal cannot be opened, locked or read.
    #[error("--out {}: failed to {action} its {}: {cause}", folder.display(), journal::NAME)]
    Journal {
        /// The folder.
        folder: PathBuf,
        /// The failed action.
        action: &'static str,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// The result folder cannot be used.
    #[error("{0}")]
    Folder(#[from] FolderError),
}

/// Claims the folder `out` for a study. `existing` determines the treatment of earlier results of the same
/// study.
///
/// # Errors
/// [`SessionError`] if the folder belongs to another study or another process, is not writable, or has
/// results that `existing` keeps or that cannot be resumed.
pub fn begin(out: &Path, prepared: &PreparedStudy, existing: Existing) -> Result<SessionState, SessionError> {
    let folder_path = || out.to_owned();
    let path = out.join(journal::NAME);
    let header = Header::new(&prepared.digests());
    if !path.exists() {
        let folder = Folder::take(out, &prepared.digest)?;
        return match existing {
            Existing::Resume if folder.holds("run.json") => Ok(SessionState::Complete(folder)),
            Existing::Keep if folder.holds("run.json") => {
                Err(SessionError::Complete { folder: folder_path() })
            }
            _ => fresh(out, prepared, &header),
        };
    }
    // Locked before it is read: another process may still append to it.
    let mut journal = open(out)?;
    // plan.json identifies the owner without the journal's header. The header also covers the content of
    // input files, which may differ for `--overwrite`.
    let has_owner = out.join("plan.json").exists();
    match existing {
        Existing::Keep if out.join("run.json").exists() => {
            Folder::take(out, &prepared.digest)?;
            return Err(SessionError::SomeFailed { folder: folder_path() });
        }
        Existing::Overwrite if has_owner => return fresh(out, prepared, &header),
        _ => {}
    }
    let mut bytes = Vec::new();
    let unreadable = |cause| SessionError::Journal { folder: folder_path(), action: "read", cause };
    journal.read_to_end(&mut bytes).map_err(unreadable)?;
    let read = journal::read(&bytes, &header)
        .map_err(|cause| SessionError::CannotContinue { folder: folder_path(), cause })?;
    match existing {
        Existing::Resume => {}
        Existing::Overwrite => return fresh(out, prepared, &header),
        Existing::Keep => {
            return Err(SessionError::Interrupted { folder: folder_path(), responses: read.known.len() });
        }
    }
    // Truncate the torn or corrupt end: readers ignore all lines after it, including new ones.
    journal.set_len(read.good_bytes).map_err(unreadable)?;
    let folder = Folder::take(out, &prepared.digest)?;
    Ok(SessionState::Open(Session {
        folder,
        known: read.known,
        local: Vec::new(),
        cut_bytes: read.bad_bytes,
        is_new: false,
        journal,
    }))
}

/// Starts a new session and removes the results of an earlier run of the same study.
fn fresh(out: &Path, prepared: &PreparedStudy, header: &Header) -> Result<SessionState, SessionError> {
    let folder = Folder::take(out, &prepared.digest)?;
    folder.clear()?;
    forget_mark(&folder);
    folder.write(journal::NAME, header.line().as_bytes())?;
    let journal = open(out)?;
    Ok(SessionState::Open(Session {
        folder,
        known: Vec::new(),
        local: Vec::new(),
        cut_bytes: 0,
        is_new: true,
        journal,
    }))
}

/// Removes the stored progress mark, so that the next progress bar starts at 0.
fn forget_mark(folder: &Folder) {
    // Ignores errors: a remaining mark does not affect results.
    let _ = std::fs::remove_file(folder.path().join(progress::MARK));
}

/// Opens and locks the journal of a result folder.
fn open(out: &Path) -> Result<File, SessionError> {
    let fail = |action, cause| SessionError::Journal { folder: out.to_owned(), action, cause };
    let file = OpenOptions::new().read(true).append(true).open(out.join(journal::NAME));
    let file = file.map_err(|cause| fail("open", cause))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(SessionError::Busy { folder: out.to_owned() }),
        Err(TryLockError::Error(cause)) => Err(fail("lock", cause)),
    }
}

impl Session {
    /// Starts the journal writer. `acknowledge` receives responses that are on disk. `broken` is called once
    /// if the journal cannot be written.
    ///
    /// # Errors
    /// [`Defect`] if the thread cannot be started.
    pub(crate) fn record(
        &self,
        acknowledge: impl FnMut(&[JournaledResponse]) + Send + 'static,
        broken: impl FnOnce() + Send + 'static,
    ) -> Result<Writer, Defect> {
        // The clone shares the lock, which belongs to the open file description.
        let journal = self.journal.try_clone().map_err(Defect::new)?;
        Writer::start(journal, acknowledge, broken).map_err(Defect::new)
    }

    /// Ends the session after the results are written. Removes the journal if `all_known`. It remains for
    /// `--resume` if some runs failed.
    pub fn end(&self, all_known: bool) -> Result<(), FolderError> {
        forget_mark(&self.folder);
        if all_known { self.folder.remove(journal::NAME) } else { Ok(()) }
    }
}
