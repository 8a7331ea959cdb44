//! State directory: the manager's identity, its number of starts, and a folder for each study.
//!
//! It belongs to one process at a time, and to its user alone: mode 0700, files 0600. Every file is published
//! atomically (write, fsync, rename) and carries its checksum. A corrupt study goes to quarantine, and the other
//! studies continue. A study is removed in one step. `record` reads files and `quarantine` sets corrupt ones aside.

mod error;
pub mod quarantine;
pub mod record;

use super::results::Checksums;
pub use error::StateError;
use parking_lot::Mutex;
use pleach_api::random;
use pleach_api::schema::StudyState;
use pleach_api::submission::Submission;
use pleach_results::checksum;
use pleach_results::folder::publish;
use pleach_storage::files::private::{self, Claim};
use pleach_study::Defect;
use quarantine::QuarantineAction;
use record::{CorruptRecord, Record};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use time::OffsetDateTime;
use time::serde::rfc3339;
use tracing::{error, warn};

/// Name of the file that identifies the manager.
pub const IDENTITY: &str = "manager.json";

/// Name of the file whose lock the manager holds.
pub const LOCK: &str = "lock";

/// Name of the folder of studies.
pub const STUDIES: &str = "studies";

/// Name of the folder of studies that are being removed.
pub const REMOVED: &str = "removed";

/// Format version of the files of a state directory that have no version of their own: the manager's identity, ends of studies,
/// costs so far, pods. It increases when one of them changes its meaning. Directories without a number are of format 1.
pub const FORMAT: u32 = 1;

/// Format of directories that earlier versions wrote.
fn first_format() -> u32 {
    1
}

/// Stored identity of the manager.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ManagerIdentity {
    /// Random number of this manager. Workers recognize the manager by it.
    number: u64,
    /// Number of starts. It keeps the leases of one start apart from those of another.
    starts: u32,
    /// Largest id of a study that was removed or set aside. It is not assigned again, because workers may still know
    /// regions by it.
    #[serde(default)]
    last_study: u32,
    /// Format version of the directory: [`FORMAT`].
    #[serde(default = "first_format")]
    format: u32,
}

impl ManagerIdentity {
    /// Returns the random number of the manager.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }
}

/// Stored record of a study's end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyEnd {
    /// Final state: complete, canceled or failed.
    pub state: StudyState,
    pub(crate) message: Option<String>,
    pub(crate) evaluations_done: u64,
    pub(crate) tasks_executed: u64,
    pub(crate) failed: u64,
    /// Time of the end.
    #[serde(default, with = "rfc3339::option", skip_serializing_if = "Option::is_none")]
    pub(crate) ended: Option<OffsetDateTime>,
    /// Checksums of its result files. `None` if there are no results or an earlier version wrote the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<Checksums>,
}

/// Stored submission of a study.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StoredSubmission {
    /// Submission as received from the client.
    pub submission: Submission,
    /// Idempotency key of the client's request. A client that resubmits under the same key gets the same study.
    pub(crate) key: Option<String>,
    #[serde(with = "rfc3339")]
    pub(crate) submitted: OffsetDateTime,
    /// User that submitted it. `None` in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) user: Option<String>,
}

/// Study of an earlier start.
#[derive(Debug)]
pub(crate) struct KeptStudy {
    pub(crate) id: u32,
    pub(crate) kept: StoredSubmission,
    /// Record of its end. `None` if it has not ended.
    pub(crate) ended: Option<StudyEnd>,
}

/// State directory of a running manager.
#[derive(Debug)]
pub struct StateDir {
    folder: PathBuf,
    /// Each change is one assignment, so a panic leaves the identity consistent.
    identity: Mutex<ManagerIdentity>,
    /// Lock on the directory, held until the process ends.
    _lock: File,
}

impl StateDir {
    /// Locks the folder for this process and counts the start. Finishes the removal of studies that a previous
    /// process began to remove.
    ///
    /// # Errors
    /// [`StateError`] when another process holds the lock, the folder cannot be written, or its `manager.json` is
    /// corrupt.
    pub fn open(folder: &Path) -> Result<Self, StateError> {
        let fail = |cause| StateError::Folder { folder: folder.to_owned(), cause };
        match private::claim(folder).map_err(fail)? {
            Claim::Private => {}
            claim => warn!("--state {}: {claim}", folder.display()),
        }
        private::create_folders(&folder.join(STUDIES)).map_err(fail)?;
        let path = folder.join(LOCK);
        let at = failed_at(&path);
        let lock = private::options().create(true).truncate(false).write(true).open(&path).map_err(at)?;
        // Locked before the identity is read: two processes must not count the same start.
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StateError::Locked(folder.to_owned())),
            Err(TryLockError::Error(error)) => return Err(at(error)),
        }
        let mut identity = identity(folder)?;
        let starts = identity.starts.checked_add(1);
        identity.starts = starts.ok_or_else(|| StateError::LastStart(folder.join(IDENTITY)))?;
        // On disk before the first lease: lease ids contain the start, and no two starts may share one.
        write(&folder.join(IDENTITY), &identity)?;
        let state = Self { folder: folder.to_owned(), identity: Mutex::new(identity), _lock: lock };
        state.clear_removed();
        Ok(state)
    }

    /// Returns the random number that identifies the manager.
    pub fn number(&self) -> u64 {
        self.identity.lock().number
    }

    /// Returns the number of starts, including this one.
    pub fn starts(&self) -> u32 {
        self.identity.lock().starts
    }

    /// Returns the folder of the input store.
    pub fn inputs(&self) -> PathBuf {
        self.folder.join("inputs")
    }

    /// Returns the file that names the pods whose deletion cost may differ from 0.
    pub(crate) fn pod_costs(&self) -> PathBuf {
        self.folder.join("pod-costs.json")
    }

    /// Returns the file with the costs so far of studies that have not ended.
    pub(crate) fn spent(&self) -> PathBuf {
        self.folder.join("spent.json")
    }

    /// Returns the file of the HTTP token.
    pub fn token(&self) -> PathBuf {
        self.folder.join("token")
    }

    /// Returns the state directory itself.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the folder of a study.
    pub(crate) fn study(&self, id: u32) -> PathBuf {
        self.folder.join(STUDIES).join(id.to_string())
    }

    /// Returns the folder of a study's results.
    pub(crate) fn results(&self, id: u32) -> PathBuf {
        self.study(id).join("results")
    }

    /// Reads all studies, in the order of their ids. A study with a corrupt file goes to quarantine. A study that
    /// cannot be read stays in place and is omitted. A study without a submission on disk, because the process ended
    /// during the request, is ignored.
    ///
    /// # Errors
    /// [`StateError::File`] when the folder of studies cannot be read.
    pub(crate) fn studies(&self) -> Result<Vec<KeptStudy>, StateError> {
        let folder = self.folder.join(STUDIES);
        let listed = record::list(&folder).map_err(failed_at(&folder))?;
        for other in &listed.unknown {
            warn!("{}: not the folder of a study; ignored", other.display());
        }
        let mut studies = Vec::with_capacity(listed.studies.len());
        for (id, folder) in listed.studies {
            // Before the study is read: even if it is set aside, no other study may get its id.
            let mut identity = self.identity.lock();
            identity.last_study = identity.last_study.max(id);
            drop(identity);
            studies.extend(self.study_in(id, &folder));
        }
        Ok(studies)
    }

    fn study_in(&self, id: u32, folder: &Path) -> Option<KeptStudy> {
        let file = folder.join(record::SUBMISSION);
        let kept = match record::read_submission(folder) {
            Record::Missing => return None,
            Record::Sound(content) => content.value,
            Record::Unreadable(why) => {
                error!(study = id, "{}: {why}; study {id} is skipped until the next start", file.display());
                return None;
            }
            Record::Corrupt(why) => {
                self.set_aside_study(id, &format!("{}: corrupt: {why}", file.display()));
                return None;
            }
        };
        let file = folder.join(record::ENDED);
        let left_out = |why: &dyn Display| {
            error!(study = id, "{}: {why}; study {id} is skipped until the next start", file.display());
        };
        let ended = match record::read_ended(folder) {
            Record::Missing => self.restore_ended(id, &kept, &file, None),
            Record::Sound(content) => {
                let mut ended = content.value;
                ended.ended = ended.ended.or_else(|| written(&file));
                Ok(Some(ended))
            }
            Record::Unreadable(why) => {
                left_out(&why);
                return None;
            }
            Record::Corrupt(why) => self.restore_ended(id, &kept, &file, Some(&why)),
        };
        match ended {
            Ok(ended) => Some(KeptStudy { id, kept, ended }),
            Err(error) => {
                left_out(&error);
                None
            }
        }
    }

    /// Moves a study to quarantine. On failure the study stays in place and is omitted from this start.
    fn set_aside_study(&self, id: u32, why: &str) {
        let folder = self.study(id);
        // Reserves the id on disk before the move, which leaves no trace of it in the folder of studies.
        let moved = self.reserve(id).and_then(|()| {
            quarantine::set_aside(&self.folder, &folder, QuarantineAction::Move, &format!("study-{id}"), why)
        });
        match moved {
            Ok(to) => {
                error!(study = id, "{why}; study {id} was moved to {}; other studies continue", to.display())
            }
            Err(error) => {
                error!(
                    study = id,
                    "{why}; study {id} is skipped until the next start, because it cannot be \
                                    moved: {error}"
                );
            }
        }
    }

    /// Moves a corrupt file of a study to quarantine, or copies it if the caller replaces the file afterwards.
    ///
    /// # Errors
    /// [`StateError`] when the file cannot be moved or copied.
    pub(crate) fn set_aside(
        &self,
        id: u32,
        file: &Path,
        action: QuarantineAction,
        why: impl Display,
    ) -> Result<(), StateError> {
        let within = file.strip_prefix(self.study(id)).unwrap_or(file).display().to_string();
        let name = format!("study-{id}-{}", within.replace('/', "-"));
        let why = format!("{}: corrupt: {why}", file.display());
        let to = quarantine::set_aside(&self.folder, file, action, &name, &why)?;
        warn!(study = id, "{why}; now at {}; study {id} continues without it", to.display());
        Ok(())
    }

    /// Replaces a corrupt or missing record of a study's end by one that follows from its results. A process that is
    /// killed after writing the results and before writing the record leaves results without a record. Returns `None`
    /// if the study has not ended.
    fn restore_ended(
        &self,
        id: u32,
        kept: &StoredSubmission,
        file: &Path,
        corrupt: Option<&CorruptRecord>,
    ) -> Result<Option<StudyEnd>, StateError> {
        let results = self.results(id);
        let mut ended = match record::complete_by_results(kept, &results) {
            Some(ended) => ended,
            None if corrupt.is_some() => record::canceled(),
            None => return Ok(None),
        };
        if ended.state == StudyState::Complete {
            ended.results = Some(super::results::checksums(&results)?);
        }
        if let Some(why) = corrupt {
            // A copy: after a crash before the next statement, the corrupt record still marks an end. Without any
            // record, the next start would resume a canceled study.
            self.set_aside(id, file, QuarantineAction::Copy, why)?;
        }
        self.end(id, &ended)?;
        warn!(
            study = id,
            "study {id} is {} according to its results: {} was {}",
            ended.state,
            file.display(),
            if corrupt.is_some() { "corrupt" } else { "missing" }
        );
        ended.ended = ended.ended.or_else(|| written(file));
        Ok(Some(ended))
    }

    /// Returns the entry of a study in quarantine, which gives the reason. `None` if the study was not set aside.
    pub(crate) fn set_aside_of(&self, id: u32) -> Option<quarantine::SetAside> {
        quarantine::list(&self.folder).ok()?.into_iter().find(|thing| thing.study == Some(id))
    }

    /// Returns whether all studies on disk are known. Only then may files that no known study refers to be removed.
    pub(crate) fn knows_all(&self, known: impl Fn(u32) -> bool) -> bool {
        let is_known = |(id, folder): &(u32, PathBuf)| {
            known(*id) || matches!(record::read_submission(folder), Record::Missing)
        };
        let listed = record::list(&self.folder.join(STUDIES));
        // An operator may restore a study from quarantine, which then needs its input files.
        let is_empty = quarantine::list(&self.folder)
            .is_ok_and(|things| things.iter().all(|thing| thing.study.is_none()));
        is_empty && listed.is_ok_and(|listed| listed.studies.iter().all(is_known))
    }

    /// Returns the largest id that a study has ever had.
    pub(crate) fn last_study(&self) -> u32 {
        self.identity.lock().last_study
    }

    /// Stores on disk that no other study may get this id.
    fn reserve(&self, id: u32) -> Result<(), StateError> {
        let mut identity = self.identity.lock();
        identity.last_study = identity.last_study.max(id);
        write(&self.folder.join(IDENTITY), &*identity)
    }

    /// Stores a study. When this returns, the study is on disk.
    ///
    /// # Errors
    /// [`StateError`] when the study cannot be written.
    pub(crate) fn store(&self, id: u32, kept: &StoredSubmission) -> Result<(), StateError> {
        let folder = self.study(id);
        private::create_folders(&folder).map_err(failed_at(&folder))?;
        write(&folder.join(record::SUBMISSION), kept)?;
        // The new folder's entry must be durable too: the caller acknowledges the study next.
        sync(&self.folder.join(STUDIES))?;
        // Only in memory: the next start finds the id as the name of the study's folder.
        let mut identity = self.identity.lock();
        identity.last_study = identity.last_study.max(id);
        Ok(())
    }

    /// Stores the record of a study's end.
    ///
    /// # Errors
    /// [`StateError`] when the record cannot be written.
    pub(crate) fn end(&self, id: u32, ended: &StudyEnd) -> Result<(), StateError> {
        write(&self.study(id).join(record::ENDED), ended)
    }

    /// Removes a study in one step: a killed process leaves either the whole study or nothing that is read again. The
    /// disk space is freed by [`StateDir::clear_removed`].
    ///
    /// # Errors
    /// [`StateError`] when the study cannot be removed. It is then still complete.
    pub(crate) fn remove(&self, id: u32) -> Result<(), StateError> {
        // Before the rename, which leaves no trace of the id in the folder of studies.
        self.reserve(id)?;
        let (from, removed) = (self.study(id), self.folder.join(REMOVED));
        let to = removed.join(id.to_string());
        fs::create_dir_all(&removed).map_err(failed_at(&from))?;
        if !from.exists() {
            // An operator has removed the folder.
            return Ok(());
        }
        fs::rename(&from, &to).map_err(failed_at(&from))?;
        // The target first: a loss of power must not leave the study in neither folder.
        sync(&removed)?;
        sync(&self.folder.join(STUDIES))
    }

    /// Frees the disk space of removed studies. Keeps the folder that contains them, because another removal may be
    /// under way.
    pub(crate) fn clear_removed(&self) {
        let removed = self.folder.join(REMOVED);
        for entry in fs::read_dir(&removed).into_iter().flatten().flatten() {
            match fs::remove_dir_all(entry.path()) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    let path = entry.path();
                    warn!("{}: {error}; removed at the next start", path.display());
                }
                _ => {}
            }
        }
    }
}

/// Reads the identity of a state directory, or creates a new one if the file is missing.
fn identity(folder: &Path) -> Result<ManagerIdentity, StateError> {
    let path = folder.join(IDENTITY);
    // Before the other fields, whose names and meanings another format may change.
    if let Some(found) = format_of(folder).filter(|found| *found != FORMAT) {
        return Err(StateError::Format { path, found });
    }
    match record::read(&path) {
        Record::Sound(content) => Ok(content.value),
        Record::Missing => {
            Ok(ManagerIdentity { number: random::number()?, starts: 0, last_study: 0, format: FORMAT })
        }
        Record::Corrupt(cause) => Err(StateError::CorruptIdentity { path, cause }),
        Record::Unreadable(cause) => Err(StateError::File { path, cause }),
    }
}

/// Returns the format version of a state directory. `None` if the manager's identity is missing or corrupt.
#[must_use]
pub fn format_of(folder: &Path) -> Option<u32> {
    let Record::Sound(content) = record::read::<serde_json::Value>(&folder.join(IDENTITY)) else {
        return None;
    };
    let fields = content.value.as_object()?;
    match fields.get("format") {
        None => Some(first_format()),
        Some(format) => format.as_u64().and_then(|format| u32::try_from(format).ok()),
    }
}

/// Returns the time of a file's last change.
fn written(path: &Path) -> Option<OffsetDateTime> {
    Some(fs::metadata(path).ok()?.modified().ok()?.into())
}

/// Publishes a file with its checksum atomically.
fn write(path: &Path, content: &impl Serialize) -> Result<(), StateError> {
    let bytes = checksum::encode(content).map_err(Defect::new)?;
    publish(path, &bytes).map_err(failed_at(path))
}

fn sync(folder: &Path) -> Result<(), StateError> {
    let synced = File::open(folder).and_then(|folder| folder.sync_all());
    synced.map_err(failed_at(folder))
}

/// Returns the conversion of an I/O error at `path` in a state directory.
pub(super) fn failed_at(path: &Path) -> impl Fn(io::Error) -> StateError + Copy + '_ {
    |cause| StateError::File { path: path.to_owned(), cause }
}

#[cfg(test)]
mod tests;
