//! Session of a study in its result folder: new, resumed after an interruption, or complete.
//!
//! The journal file is locked for the whole session, so that only one process writes to the folder. `journal`
//! defines the journal's content, and the commands execute the study.

use crate::exit::{CommandError, CommandResult};
use crate::journal::{self, Header, JournaledResponse, Writer};
use crate::output::folder::Folder;
use crate::progress;
use pleach_study::PreparedStudy;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Read;
use std::path::Path;

/// Treatment of existing results of the same study.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// Keeps them and returns an error.
    Keep,
    /// Continues an interrupted run.
    Resume,
    /// Removes them and runs the study again.
    Overwrite,
}

/// State of the folder.
#[derive(Debug)]
pub(crate) enum SessionState {
    /// All results of the study. No run remains.
    Complete(Folder),
    /// The study can run.
    Open(Session),
}

/// Folder that this process owns until the study ends.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) folder: Folder,
    /// Responses that earlier processes recorded.
    pub(crate) known: Vec<JournaledResponse>,
    /// Responses that this process computed in earlier rounds or phases of the study.
    pub(crate) here: Vec<JournaledResponse>,
    /// Unreadable bytes removed from the journal's end.
    pub(crate) cut_bytes: u64,
    /// Whether the session started without an earlier journal.
    pub(crate) is_new: bool,
    journal: File,
}

/// Error for a run without `--resume` or `--overwrite` into a folder with all results of the study.
pub(crate) const COMPLETE: &str = "holds complete results of this study; --resume leaves them as they are, --overwrite runs the study again";

/// Error for the same case if some runs failed.
pub(crate) const SOME_FAILED: &str = "holds results of this study, some runs of which failed; --resume runs those again, \
                                      --overwrite runs all again";

/// Claims the folder `out` for a study. `existing` determines the treatment of earlier results of the same
/// study.
///
/// # Errors
/// [`CommandError::Input`] if the folder belongs to another study or another process, is not writable, or has
/// results that `existing` keeps or that cannot be resumed. [`CommandError::NoSpace`] if the disk is full.
pub(crate) fn begin(out: &Path, prepared: &PreparedStudy, existing: Existing) -> CommandResult<SessionState> {
    let fail = |text: String| CommandError::Input(format!("--out {}: {text}", out.display()));
    let path = out.join(journal::NAME);
    let header = Header::new(&prepared.digests());
    if !path.exists() {
        let folder = Folder::take(out, &prepared.digest)?;
        return match existing {
            Existing::Resume if folder.holds("run.json") => Ok(SessionState::Complete(folder)),
            Existing::Keep if folder.holds("run.json") => Err(fail(COMPLETE.to_owned())),
            _ => fresh(out, prepared, &header),
        };
    }
    let mut journal = open(&path).map_err(fail)?;
    // plan.json identifies the owner without the journal's header. The header also covers the content of
    // input files, which may differ for `--overwrite`.
    let has_owner = out.join("plan.json").exists();
    match existing {
        Existing::Keep if out.join("run.json").exists() => {
            Folder::take(out, &prepared.digest)?;
            return Err(fail(SOME_FAILED.to_owned()));
        }
        Existing::Overwrite if has_owner => return fresh(out, prepared, &header),
        _ => {}
    }
    let mut bytes = Vec::new();
    let unreadable = |error| fail(format!("failed to read its {}: {error}", journal::NAME));
    journal.read_to_end(&mut bytes).map_err(unreadable)?;
    let read = journal::read(&bytes, &header).map_err(|error| {
        fail(format!(
            "holds an interrupted study (its {}) that cannot be continued: {error}; a new folder is allowed",
            journal::NAME
        ))
    })?;
    match existing {
        Existing::Resume => {}
        Existing::Overwrite => return fresh(out, prepared, &header),
        Existing::Keep => {
            return Err(fail(format!(
                "holds an interrupted run of this study with {} responses; --resume continues it, --overwrite starts again",
                read.known.len(),
            )));
        }
    }
    // Truncate the torn or corrupt end: readers ignore all lines after it, including new ones.
    journal.set_len(read.good_bytes).map_err(unreadable)?;
    let folder = Folder::take(out, &prepared.digest)?;
    Ok(SessionState::Open(Session {
        folder,
        known: read.known,
        here: Vec::new(),
        cut_bytes: read.bad_bytes,
        is_new: false,
        journal,
    }))
}

/// Starts a new session and removes the results of an earlier run of the same study.
fn fresh(out: &Path, prepared: &PreparedStudy, header: &Header) -> CommandResult<SessionState> {
    let folder = Folder::take(out, &prepared.digest)?;
    folder.clear()?;
    forget_mark(&folder);
    folder.write(journal::NAME, header.line().as_bytes())?;
    let fail = |text: String| CommandError::Input(format!("--out {}: {text}", out.display()));
    let journal = open(&out.join(journal::NAME)).map_err(fail)?;
    Ok(SessionState::Open(Session {
        folder,
        known: Vec::new(),
        here: Vec::new(),
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

/// Opens a journal and locks it exclusively.
fn open(path: &Path) -> Result<File, String> {
    let file = OpenOptions::new().read(true).append(true).open(path);
    let file = file.map_err(|error| format!("failed to open its {}: {error}", journal::NAME))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err("another pleach is at work there".to_owned()),
        Err(TryLockError::Error(error)) => Err(format!("failed to lock its {}: {error}", journal::NAME)),
    }
}

impl Session {
    /// Starts the journal writer. `acknowledge` receives responses that are on disk. `broken` is called once
    /// if the journal cannot be written.
    ///
    /// # Errors
    /// [`CommandError::Internal`] if the thread cannot be started.
    pub(crate) fn record(
        &self,
        acknowledge: impl FnMut(&[JournaledResponse]) + Send + 'static,
        broken: impl FnOnce() + Send + 'static,
    ) -> CommandResult<Writer> {
        // The clone shares the lock, which belongs to the open file description.
        let journal = self.journal.try_clone().map_err(CommandError::defect)?;
        Writer::start(journal, acknowledge, broken).map_err(CommandError::defect)
    }

    /// Ends the session after the results are written. Removes the journal if `all_known`. It remains for
    /// `--resume` if some runs failed.
    pub(crate) fn end(&self, all_known: bool) -> CommandResult {
        forget_mark(&self.folder);
        if all_known { self.folder.remove(journal::NAME) } else { Ok(()) }
    }
}
