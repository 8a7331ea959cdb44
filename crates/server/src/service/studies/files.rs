//! Input files of studies: missing ones, and those that have changed.

use super::StudyContext;
use super::entry::{Entry, Phase};
use crate::service::input_files::input_files;
use crate::service::local::{Lookup, NotRegularFile};
use pleach_actors::manager::Cancel;
use pleach_api::digest::InputDigest;
use pleach_api::submission::Submission;
use pleach_dispatch::message::{CodePackage, InputFile};
use pleach_regions::RegionKey;
use pleach_study::PreparedStudy;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use tracing::warn;

impl StudyContext {
    /// Returns the files of a submission that are missing or corrupt, and the first path that cannot be an input
    /// file. Holds no lock, because file systems may hang.
    pub(super) fn missing(&self, submission: &Submission) -> (Vec<InputDigest>, Option<NotRegularFile>) {
        self.missing_unless(submission, |_| false)
    }

    /// Like [`Self::missing`], but skips files that `counts` accepts.
    pub(super) fn missing_unless(
        &self,
        submission: &Submission,
        counts: impl Fn(InputDigest) -> bool,
    ) -> (Vec<InputDigest>, Option<NotRegularFile>) {
        let lookup = Lookup::new(&self.store);
        let (mut missing, mut irregular) = (Vec::new(), None);
        // Code is edited between two studies, so the manager keeps its own copy of it.
        let is_stored = |digest: &InputDigest| counts(*digest) || self.store.has(*digest);
        missing.extend(submission.code_files().into_iter().filter(|digest| !is_stored(digest)));
        for file in submission.input_files() {
            if counts(file.digest) {
                continue;
            }
            match lookup.find(Path::new(&file.path), file.digest, file.bytes) {
                Ok(Some(_)) => continue,
                Ok(None) => {}
                Err(error) => irregular = irregular.or(Some(error)),
            }
            missing.push(file.digest);
        }
        missing.sort_unstable();
        missing.dedup();
        (missing, irregular)
    }

    /// Returns the path of a file with this content that some study reads.
    pub fn find_file(&self, digest: &[u8; 32]) -> Option<PathBuf> {
        let digest = InputDigest::from(blake3::Hash::from_bytes(*digest));
        let sent = self.store.path(digest);
        if sent.is_file() {
            return Some(sent);
        }
        let entries = self.studies.lock();
        let path = entries.values().find_map(|entry| entry.kept.submission.path_of(digest))?;
        path.is_file().then_some(path)
    }

    /// Returns whether the manager's copy of a file that a worker lacks still has its content. If not, the studies
    /// that read it fail until the next start of the manager. A file at its client's path always passes: its digest
    /// is computed during the transfer, and a changed file fails the runs that read it.
    /// [`pleach_actors::manager::CheckFile`] defines when the manager calls this.
    pub fn check_file(&self, digest: &[u8; 32], path: &Path, again: bool) -> bool {
        let digest = InputDigest::from(blake3::Hash::from_bytes(*digest));
        let is_ours = path == self.store.path(digest);
        if !is_ours || if again { self.store.has_still(digest) } else { self.store.has(digest) } {
            return true;
        }
        let running = |(id, entry): (&u32, &Entry)| {
            let path = entry.kept.submission.path_of(digest)?;
            matches!(entry.phase, Phase::Running { .. }).then_some((*id, path))
        };
        // Collected first, because `fail` takes the lock again.
        let readers: Vec<(u32, PathBuf)> = self.studies.lock().iter().filter_map(running).collect();
        for (id, path) in readers {
            self.fail(id, corrupt(&path));
            // Before this returns `false`: otherwise workers would fail the study's runs for the missing file.
            self.manager.do_send(Cancel(id));
        }
        false
    }

    /// Verifies the stored files of a study before it runs. Returns `false` if one is corrupt and its client's path
    /// does not have it either. The study then waits until a client sends the file again.
    pub(super) fn files_are_intact(&self, id: u32) -> bool {
        // Cloned, so that no lock is held while files are read.
        let submission = self.studies.lock().get(&id).map(|entry| entry.kept.submission.clone());
        let Some(submission) = submission else { return false };
        let (missing, _) =
            self.missing_unless(&submission, |digest| !self.store.names(digest) || self.store.has(digest));
        let Some(first) = missing.first() else { return true };
        let path = submission.path_of(*first).unwrap_or_default();
        warn!(study = id, "study {id} waits for {} corrupt files: {}", missing.len(), corrupt(&path));
        if let Some(entry) = self.studies.lock().get_mut(&id)
            // A cancellation during the reads keeps its record.
            && matches!(entry.phase, Phase::Running { .. })
        {
            entry.why = Some(corrupt(&path));
            entry.phase = Phase::Waiting(missing);
        }
        // The study no longer counts as running, so that a queued one can start.
        self.study_ended.notify_all();
        false
    }

    /// Returns the code of a study's external operations as it is sent to workers.
    pub(crate) fn code_packages(&self, id: u32) -> Vec<CodePackage> {
        self.studies.lock().get(&id).map(|entry| entry.kept.submission.code_packages()).unwrap_or_default()
    }

    /// Returns the input files of a study as they are sent to its workers.
    pub(crate) fn input_files(&self, id: u32, prepared: &PreparedStudy) -> HashMap<RegionKey, InputFile> {
        let entries = self.studies.lock();
        let Some(entry) = entries.get(&id) else { return HashMap::new() };
        input_files(prepared, &entry.kept.submission)
    }
}

/// Returns the message for a corrupt copy of an input file, with its remedy.
fn corrupt(path: &Path) -> String {
    format!(
        "{}: the manager's copy is corrupt; pleach submit of a study that reads it sends it again",
        path.display()
    )
}
