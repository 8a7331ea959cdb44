//! A study's folder while it runs: begun afresh, continued where it was interrupted, or found complete.
//!
//! What is in a journal is `journal`'s, how a study is executed the command's.

use crate::exit::{CommandError, CommandResult};
use crate::journal::{self, Header, JournaledResponse, Writer};
use crate::output::folder::Folder;
use crate::progress;
use crate::study::PreparedStudy;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::Read;
use std::path::Path;

/// How a study treats its own results that are already in the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Existing {
    /// Refuses to touch them.
    Keep,
    /// Continues an interrupted run.
    Resume,
    /// Removes them and runs the study again.
    Overwrite,
}

/// What was found in the folder.
#[derive(Debug)]
pub(crate) enum SessionState {
    /// All results of the study: there is nothing to continue.
    Complete(Folder),
    /// The study can be run.
    Open(Session),
}

/// A folder that belongs to this process until the study is over.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) folder: Folder,
    /// Responses that earlier processes wrote down.
    pub(crate) known: Vec<JournaledResponse>,
    /// Responses that this process has computed in earlier parts of the study.
    pub(crate) here: Vec<JournaledResponse>,
    /// Bytes at the journal's end that could not be read and were cut off.
    pub(crate) cut_bytes: u64,
    /// Whether the run started from nothing, rather than from an earlier journal.
    pub(crate) is_new: bool,
    journal: File,
}

/// A run without `--resume` or `--overwrite` into a folder with all results of the study.
pub(crate) const COMPLETE: &str = "holds complete results of this study; --resume leaves them as they are, --overwrite runs the study again";

/// The same where some runs failed.
pub(crate) const SOME_FAILED: &str = "holds results of this study, some runs of which failed; --resume runs those again, \
                                      --overwrite runs all again";

/// Takes the folder `out` for a study; `existing` decides over earlier results of the same study.
///
/// # Errors
/// [`CommandError::Input`] when the folder belongs to another study or another process, cannot be written to, or holds results that
/// `existing` keeps or that cannot be continued; [`CommandError::NoSpace`].
pub(crate) fn begin(out: &Path, prepared: &PreparedStudy, existing: Existing) -> CommandResult<SessionState> {
    let fail = |text: String| CommandError::Input(format!("--out {}: {text}", out.display()));
    let path = out.join(journal::NAME);
    let header = Header::new(&prepared.digests()?);
    if !path.exists() {
        let folder = Folder::take(out, &prepared.digest)?;
        return match existing {
            Existing::Resume if folder.holds("run.json") => Ok(SessionState::Complete(folder)),
            Existing::Keep if folder.holds("run.json") => Err(fail(COMPLETE.to_owned())),
            _ => fresh(out, prepared, &header),
        };
    }
    let mut journal = open(&path).map_err(fail)?;
    // Its owner is known without the journal's first line, which names the content of files as well.
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

/// Begins anew; results of an earlier run of the same study are removed.
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

/// Removes how far a bar was: the next one starts anew.
fn forget_mark(folder: &Folder) {
    // Where there is none, or it stays, no result is wrong.
    let _ = std::fs::remove_file(folder.path().join(progress::MARK));
}

/// Opens a journal for this process alone.
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
    /// Starts writing responses down; `acknowledge` hears of those on disk, `broken` when that is no longer possible.
    ///
    /// # Errors
    /// [`CommandError::Internal`] when there is no thread to be had.
    pub(crate) fn record(
        &self,
        acknowledge: impl FnMut(&[JournaledResponse]) + Send + 'static,
        broken: impl FnOnce() + Send + 'static,
    ) -> CommandResult<Writer> {
        // The lock belongs to the open file, of which this is another handle.
        let journal = self.journal.try_clone().map_err(CommandError::defect)?;
        Writer::start(journal, acknowledge, broken).map_err(CommandError::defect)
    }

    /// The study is over, and its results are written: unless some runs failed and may be tried again, there is nothing
    /// to continue.
    pub(crate) fn end(&self, all_known: bool) -> CommandResult {
        forget_mark(&self.folder);
        if all_known { self.folder.remove(journal::NAME) } else { Ok(()) }
    }
}
