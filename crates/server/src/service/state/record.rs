//! Reader for the files of a state directory: each is sound, corrupt or unreadable. Changes nothing.

use super::{StoredSubmission, StudyEnd};
use pleach_api::schema::StudyState;
use pleach_results::checksum::{self, Content, CorruptError};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fmt::Display;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Name of a study's submission within its folder.
pub const SUBMISSION: &str = "submission.json";

/// Name of the record of a study's end within its folder.
pub const ENDED: &str = "ended.json";

/// Name of the file with the cost of an ended study.
pub const COST: &str = "cost.json";

/// Result of reading a file.
#[derive(Debug)]
pub enum Record<T> {
    /// The file does not exist.
    Missing,
    /// The content matches its checksum, or comes from an earlier version that wrote none.
    Sound(Content<T>),
    /// The content differs from the content that was written.
    Corrupt(CorruptRecord),
    /// The operating system does not return the content, which may be sound.
    Unreadable(io::Error),
}

impl<T: Default> Record<T> {
    /// Returns the value, or the default without one. `lost` receives the reason if the file exists but cannot be used.
    pub(crate) fn or_default(self, lost: impl FnOnce(&dyn Display)) -> T {
        match self {
            Self::Missing => {}
            Self::Sound(content) => return content.value,
            Self::Corrupt(why) => lost(&why),
            Self::Unreadable(why) => lost(&why),
        }
        T::default()
    }
}

/// Reason why a file of a state directory is corrupt.
#[derive(Debug, Error)]
pub enum CorruptRecord {
    /// The content is not the one that was written.
    #[error("{0}")]
    Content(#[from] CorruptError),
    /// The path is no file.
    #[error("not a file")]
    NoFile,
    /// The state in the record of an end is no end.
    #[error("state: {0}; complete, canceled or failed is allowed")]
    State(StudyState),
    /// The submission of a study with results or a record of its end is missing.
    #[error("missing, although other files of the study exist")]
    NoSubmission,
}

/// Reads a file with a checksum, or one that an earlier version wrote without.
pub fn read<T: DeserializeOwned>(path: &Path) -> Record<T> {
    match fs::read(path) {
        Ok(bytes) => match checksum::decode(&bytes) {
            Ok(content) => Record::Sound(content),
            Err(error) => Record::Corrupt(error.into()),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Record::Missing,
        Err(error) if matches!(error.kind(), ErrorKind::IsADirectory | ErrorKind::NotADirectory) => {
            Record::Corrupt(CorruptRecord::NoFile)
        }
        // Other errors may pass, so they do not make the file corrupt.
        Err(error) => Record::Unreadable(error),
    }
}

/// Reads the record of a study's end. A record with a state that is no end counts as corrupt.
pub fn read_ended(folder: &Path) -> Record<StudyEnd> {
    match read::<StudyEnd>(&folder.join(ENDED)) {
        Record::Sound(content) if !content.value.state.is_over() => {
            Record::Corrupt(CorruptRecord::State(content.value.state))
        }
        record => record,
    }
}

/// Reads the submission of a study.
pub fn read_submission(folder: &Path) -> Record<StoredSubmission> {
    match read(&folder.join(SUBMISSION)) {
        // Results without a submission are no study. A later study with the same id must not be mistaken for their
        // owner.
        Record::Missing if folder.join("results").exists() || folder.join(ENDED).exists() => {
            Record::Corrupt(CorruptRecord::NoSubmission)
        }
        record => record,
    }
}

/// Folders of studies by id, and other entries of the folder.
#[derive(Debug, Default)]
pub struct StudyFolders {
    /// Ids and paths of the studies, sorted by id.
    pub studies: Vec<(u32, PathBuf)>,
    /// Paths of entries with names that are no id, sorted.
    pub unknown: Vec<PathBuf>,
}

/// Lists a folder of studies, in the order of their ids.
///
/// # Errors
/// [`io::Error`] when the folder cannot be read.
pub fn list(folder: &Path) -> io::Result<StudyFolders> {
    let mut listed = StudyFolders::default();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        // Only `7` counts: `007` and `7` would be one study.
        let number =
            name.to_str().and_then(|name| name.parse::<u32>().ok().filter(|id| id.to_string() == name));
        match number.filter(|id| *id > 0) {
            Some(id) => listed.studies.push((id, entry.path())),
            None => listed.unknown.push(entry.path()),
        }
    }
    listed.studies.sort_unstable();
    listed.unknown.sort_unstable();
    Ok(listed)
}

/// Counts in `run.json` that the record of an end repeats.
#[derive(Deserialize)]
struct Counts {
    evaluations: u64,
    tasks_executed: u64,
    failed: u64,
}

/// Returns the end of a study with complete results. A journal is removed once the results are written, and the
/// `run.json` of a study with phases is written when all phases have ended. `None` if results are missing.
pub fn complete_by_results(kept: &StoredSubmission, results: &Path) -> Option<StudyEnd> {
    let run = results.join("run.json");
    let counts: Counts = serde_json::from_slice(&fs::read(&run).ok()?).ok()?;
    let is_open =
        kept.submission.study.phases.is_empty() && results.join(pleach_results::journal::NAME).exists();
    (!is_open).then(|| StudyEnd {
        state: StudyState::Complete,
        message: Some(format!("{ENDED} was restored from the existing results")),
        evaluations_done: counts.evaluations,
        tasks_executed: counts.tasks_executed,
        failed: counts.failed,
        ended: super::written(&run),
        results: None,
    })
}

/// Returns the end of a study without results. Of all ends, only a cancellation leaves no other record.
pub(super) fn canceled() -> StudyEnd {
    StudyEnd {
        state: StudyState::Canceled,
        message: Some(format!("{ENDED} was corrupt, and the study has no results")),
        evaluations_done: 0,
        tasks_executed: 0,
        failed: 0,
        ended: None,
        results: None,
    }
}
