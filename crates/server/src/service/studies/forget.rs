//! Removal of ended studies on request, by age and by size, and of input files that no study refers to.
//!
//! Only a study that has ended is removed, in one step on disk. Its input files are removed afterwards. References
//! are counted from the stored submissions each time, so a process that is killed in between leaves no file behind
//! for good.

use super::StudyContext;
use super::control::no_study;
use super::entry::{Entry, Phase};
use crate::http::control::ControlError;
use pleach_actors::input_files::gathered;
use pleach_api::digest::InputDigest;
use pleach_api::schema::StudyState;
use pleach_planner::memory_size::human;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use time::OffsetDateTime;
use tracing::{info, warn};

/// 60 s between two checks of age and size: days and gigabytes change slowly.
const TIDY_EVERY: Duration = Duration::from_secs(60);

/// Checks of age and size per removal of unreferenced input files, which reads all submissions.
const PRUNE_EVERY: usize = 10;

/// An input file stays for 1 hour even if no study refers to it, because its submission may still arrive. A client
/// that sends files first needs far less time.
const GRACE: Duration = Duration::from_secs(3600);

/// 5 s to wait for submissions in progress before input files are removed: planning takes seconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Limits for studies that have ended. `None` means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Maximum number of days since the end of a study.
    pub days: Option<u32>,
    /// Maximum bytes of all ended studies, together with the stored input files that only they refer to.
    pub bytes: Option<u64>,
}

/// Study that has ended for good.
struct EndedStudy {
    id: u32,
    ended: OffsetDateTime,
}

impl StudyContext {
    /// Returns whether a study has this id.
    pub(super) fn has(&self, id: u32) -> bool {
        self.studies.lock().contains_key(&id)
    }

    /// Removes an ended study. Returns the freed bytes, 0 if it was removed before.
    ///
    /// # Errors
    /// [`ControlError`] when the study never existed, has not ended, or cannot be removed.
    pub(super) fn forget(&self, id: u32) -> Result<u64, ControlError> {
        let bytes = self.remove(id)?;
        Ok(bytes + self.prune_inputs())
    }

    fn remove(&self, id: u32) -> Result<u64, ControlError> {
        // Before the lock: a large folder takes long to count.
        let bytes = folder_bytes(&self.state.study(id));
        let mut entries = self.studies.lock();
        let last = entries.last_key_value().map_or(0, |(last, _)| *last).max(self.state.last_study());
        let Some(entry) = entries.get(&id) else {
            // A client that missed the answer repeats its request.
            let is_gone = (1..=last).contains(&id);
            return if is_gone { Ok(0) } else { Err(no_study(&id.to_string())) };
        };
        if !matches!(entry.phase, Phase::Ended(_)) {
            let state = entry.view(id).state;
            return Err(ControlError::Conflict(format!(
                "study {id} is {state}; cancel it first (pleach cancel {id})"
            )));
        }
        if entry.is_busy {
            return Err(ControlError::NotReady(format!("study {id} is ending; try again")));
        }
        // On disk first: otherwise the next start of the manager would know the study.
        self.state.remove(id).map_err(|error| ControlError::NotReady(error.to_string()))?;
        let name = entry.kept.submission.name.clone();
        entries.remove(&id);
        drop(entries);
        self.drop_regions(id);
        // Without the lock: deleting many files takes long, and no reader finds them any more.
        self.state.clear_removed();
        info!(study = id, name, "study {id} ({name}) removed, {} freed", human(bytes));
        Ok(bytes)
    }

    /// Removes input files that no study refers to. Returns their bytes.
    fn prune_inputs(&self) -> u64 {
        // A submission in progress has looked for its files and is not among the entries yet. While this lock is
        // held, no other begins. If one takes longer, the next check removes the files.
        let mut reserved = self.reserved_ids.lock();
        self.reservation_ended.wait_while_for(&mut reserved, |reserved| !reserved.is_empty(), PATIENCE);
        if !reserved.is_empty() {
            return 0;
        }
        let entries = self.studies.lock();
        // A study that cannot be read now may be readable later and then needs its files.
        if !self.state.knows_all(|id| entries.contains_key(&id)) {
            return 0;
        }
        let kept: HashSet<String> = entries.values().flat_map(stored).collect();
        // `reserved` stays locked until the files are removed: a submission that begins now must not find one of them.
        drop(entries);
        match self.store.prune(&kept, GRACE) {
            Ok(0) => 0,
            Ok(bytes) => {
                info!("unreferenced input files removed, {} freed", human(bytes));
                bytes
            }
            Err(error) => {
                warn!("failed to remove unreferenced input files: {error}");
                0
            }
        }
    }

    /// Removes ended studies that exceed the age limit, then the oldest ones until the size limit is met.
    fn tidy(&self, retention: Retention) {
        if retention == Retention::default() {
            return;
        }
        let now = OffsetDateTime::now_utc();
        let mut over = self.over_by_age(retention.bytes.is_some());
        let mut removed = 0;
        let mut remove = |study: &EndedStudy, why: String| {
            info!(study = study.id, "study {}: {why}", study.id);
            match self.remove(study.id) {
                Ok(_) => removed += 1,
                Err(refused) => warn!(study = study.id, "failed to remove study {}: {refused}", study.id),
            }
        };
        if let Some(days) = retention.days {
            let is_old = |study: &EndedStudy| (now - study.ended).whole_days() >= i64::from(days);
            let old = over.partition_point(is_old);
            for study in over.drain(..old) {
                let age = (now - study.ended).whole_days();
                remove(&study, format!("ended {age} days ago (--keep-days {days})"));
            }
        }
        if let Some(limit) = retention.bytes {
            // Input files that several ended studies share count once and disappear with the last of these studies.
            let mut left: BTreeSet<u32> = over.iter().map(|study| study.id).collect();
            for study in over {
                let bytes = self.stored_bytes(&left);
                if bytes <= limit {
                    break;
                }
                let (bytes, limit) = (human(bytes), human(limit));
                remove(
                    &study,
                    format!("ended studies use {bytes} (--keep-size {limit}), this one ended first"),
                );
                left.remove(&study.id);
            }
        }
        if removed > 0 {
            self.prune_inputs();
        }
    }

    /// Returns the studies that have ended for good, the oldest first. Counts the bytes of their folders if
    /// `with_bytes`.
    fn over_by_age(&self, with_bytes: bool) -> Vec<EndedStudy> {
        let mut over: Vec<EndedStudy> = Vec::new();
        for (id, entry) in &mut *self.studies.lock() {
            let Phase::Ended(ended) = &entry.phase else { continue };
            // A failed study is tried again after the next start.
            let (false, Some(at)) = (entry.is_busy || ended.state == StudyState::Failed, ended.ended) else {
                continue;
            };
            if with_bytes {
                entry.bytes.get_or_insert_with(|| folder_bytes(&self.state.study(*id)));
            }
            over.push(EndedStudy { id: *id, ended: at });
        }
        over.sort_by_key(|study| (study.ended, study.id));
        over
    }

    /// Returns the bytes of these studies and of the stored input files that no other study refers to.
    fn stored_bytes(&self, over: &BTreeSet<u32>) -> u64 {
        let entries = self.studies.lock();
        let (mut bytes, mut theirs) = (0_u64, BTreeMap::<InputDigest, u64>::new());
        let files =
            |entry: &Entry| entry.kept.submission.files().into_iter().map(|file| (file.digest, file.bytes));
        for (_, entry) in entries.iter().filter(|(id, _)| over.contains(id)) {
            bytes = bytes.saturating_add(entry.bytes.unwrap_or_default());
            theirs.extend(files(entry));
        }
        for (_, entry) in entries.iter().filter(|(id, _)| !over.contains(id)) {
            files(entry).for_each(|(digest, _)| _ = theirs.remove(&digest));
        }
        drop(entries);
        let stored = theirs.into_iter().filter(|(digest, _)| self.store.names(*digest));
        // Saturates: clients state the lengths of their files.
        stored.fold(bytes, |sum, (_, bytes)| sum.saturating_add(bytes))
    }

    /// Applies the limits every `TIDY_EVERY` and removes unreferenced input files.
    pub async fn enforce_retention(self: Arc<Self>, retention: Retention) {
        let mut ticks = tokio::time::interval(TIDY_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        for tick in 0_usize.. {
            ticks.tick().await;
            let shared = Arc::clone(&self);
            let done = tokio::task::spawn_blocking(move || {
                shared.tidy(retention);
                if tick.is_multiple_of(PRUNE_EVERY) {
                    shared.prune_inputs();
                }
            });
            // A panic has already ended the process.
            if done.await.is_err() {
                return;
            }
        }
    }
}

/// Returns the names that the files of a study and its folders of slide links have in the input store.
fn stored(entry: &Entry) -> Vec<String> {
    let submission = &entry.kept.submission;
    let files = submission.files().into_iter().map(|file| file.digest.to_string());
    let slides = submission.inputs.iter().filter(|input| submission.companions.contains_key(&input.path));
    files.chain(slides.filter_map(|input| gathered(&submission.content(input)))).collect()
}

/// Returns the bytes of the files in a folder, as far as it can be read.
fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => folder_bytes(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.flatten().map(bytes).fold(0, u64::saturating_add)
}
