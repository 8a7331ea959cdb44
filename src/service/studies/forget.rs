//! Studies that are removed: on request, by age, and by size; and input files that no study refers to any more.
//!
//! Only a study that has ended is removed, in one step on disk. Input files follow: references are counted from the
//! submissions that are kept, each time, so that a process that is killed in between leaves nothing behind for good.

use super::StudyContext;
use super::entry::{Entry, Phase};
use crate::api::control::ControlError;
use crate::api::schema::StudyState;
use crate::service::inputs::InputDigest;
use crate::size::human;
use pleach_actors::input_files::gathered;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::Path;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use time::OffsetDateTime;
use tracing::{info, warn};

/// Between two looks at age and size: days and gigabytes change slowly.
const TIDY_EVERY: Duration = Duration::from_secs(60);

/// Between two looks for input files that no study refers to, in looks at age and size: it reads all submissions.
const PRUNE_EVERY: usize = 10;

/// An input file is kept for so long whether or not a study refers to it: its submission may be on the way, and a client that
/// sends files first needs far less between the two.
const GRACE: Duration = Duration::from_secs(3600);

/// For studies that are being taken, before files are pruned: planning takes seconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long and in what room studies that have ended are kept. `None`: without limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Retention {
    /// Days after a study's end.
    pub(crate) days: Option<u32>,
    /// Bytes of all studies that have ended, and of stored input files that only these refer to.
    pub(crate) bytes: Option<u64>,
}

/// A study that has ended for good.
struct Over {
    id: u32,
    ended: OffsetDateTime,
}

impl StudyContext {
    /// Whether there is a study of this id.
    pub(super) fn has(&self, id: u32) -> bool {
        self.entries().contains_key(&id)
    }

    /// Removes a study that has ended. Returns the bytes that this freed, 0 where it was removed before.
    ///
    /// # Errors
    /// [`ControlError`] where there was no such study, or it has not ended.
    pub(super) fn forget(&self, id: u32) -> Result<u64, ControlError> {
        let bytes = self.remove(id)?;
        Ok(bytes + self.prune_inputs())
    }

    fn remove(&self, id: u32) -> Result<u64, ControlError> {
        let bytes = folder_bytes(&self.state.study(id));
        let mut entries = self.entries();
        let last = entries.last_key_value().map_or(0, |(last, _)| *last).max(self.state.last_study());
        let Some(entry) = entries.get(&id) else {
            // An answer that is lost is asked for again.
            let is_gone = (1..=last).contains(&id);
            let none = || ControlError::Missing(format!("there is no study {id}; pleach status lists them"));
            return if is_gone { Ok(0) } else { Err(none()) };
        };
        if !matches!(entry.phase, Phase::Ended(_)) {
            let state = entry.view(id).state;
            return Err(ControlError::Conflict(format!(
                "study {id} is {state}; pleach cancel {id} ends it first"
            )));
        }
        if entry.is_busy {
            return Err(ControlError::NotReady(format!("study {id} is about to end")));
        }
        // First on disk: a manager that is started again would know it.
        self.state.remove(id).map_err(|stop| ControlError::NotReady(super::said(&stop)))?;
        let name = entry.kept.submission.name.clone();
        entries.remove(&id);
        drop(entries);
        self.state.clear_removed();
        info!(study = id, name, "study {id} ({name}) is removed, {} are free", human(bytes));
        Ok(bytes)
    }

    /// Removes input files that no study refers to. Returns their bytes.
    fn prune_inputs(&self) -> u64 {
        // A study that is being taken has looked for its files, and is not among the entries yet. None begins while the lock is
        // held; where one takes longer, the next look prunes.
        let taking = self.taking();
        let taking = self.taken.wait_timeout_while(taking, PATIENCE, |taking| !taking.is_empty());
        let (taking, _) = taking.unwrap_or_else(PoisonError::into_inner);
        if !taking.is_empty() {
            return 0;
        }
        let entries = self.entries();
        // A study that cannot be read may come back, and then needs its files.
        if !self.state.knows_all(|id| entries.contains_key(&id)) {
            return 0;
        }
        let kept: HashSet<String> = entries.values().flat_map(stored).collect();
        drop(entries);
        match self.store.prune(&kept, GRACE) {
            Ok(0) => 0,
            Ok(bytes) => {
                info!("input files that no study reads are removed, {} are free", human(bytes));
                bytes
            }
            Err(error) => {
                warn!("input files that no study reads are not removed: {error}");
                0
            }
        }
    }

    /// Removes studies that have ended longer ago than they are kept, or take more room.
    fn tidy(&self, retention: Retention) {
        if retention == Retention::default() {
            return;
        }
        let now = OffsetDateTime::now_utc();
        let mut over = self.over_by_age(retention.bytes.is_some());
        let mut removed = 0;
        let mut remove = |study: &Over, why: String| {
            info!(study = study.id, "study {}: {why}", study.id);
            match self.remove(study.id) {
                Ok(_) => removed += 1,
                Err(refused) => warn!(study = study.id, "study {} is not removed: {refused}", study.id),
            }
        };
        if let Some(days) = retention.days {
            let is_old = |study: &Over| (now - study.ended).whole_days() >= i64::from(days);
            let old = over.partition_point(is_old);
            for study in over.drain(..old) {
                let age = (now - study.ended).whole_days();
                remove(&study, format!("it ended {age} days ago (--keep-days {days})"));
            }
        }
        if let Some(limit) = retention.bytes {
            let mut left: BTreeSet<u32> = over.iter().map(|study| study.id).collect();
            for study in over {
                let bytes = self.taken_bytes(&left);
                if bytes <= limit {
                    break;
                }
                let (bytes, limit) = (human(bytes), human(limit));
                remove(
                    &study,
                    format!(
                        "studies that have ended take {bytes} (--keep-size {limit}), this one ended first"
                    ),
                );
                left.remove(&study.id);
            }
        }
        if removed > 0 {
            self.prune_inputs();
        }
    }

    /// Studies that have ended for good, the oldest first.
    fn over_by_age(&self, with_bytes: bool) -> Vec<Over> {
        let mut over: Vec<Over> = Vec::new();
        for (id, entry) in &mut *self.entries() {
            let Phase::Ended(ended) = &entry.phase else { continue };
            // One that has failed is tried again.
            let (false, Some(at)) = (entry.is_busy || ended.state == StudyState::Failed, ended.ended) else {
                continue;
            };
            if with_bytes {
                entry.bytes.get_or_insert_with(|| folder_bytes(&self.state.study(*id)));
            }
            over.push(Over { id: *id, ended: at });
        }
        over.sort_by_key(|study| (study.ended, study.id));
        over
    }

    /// Bytes of these studies, and of stored input files that no other study refers to.
    fn taken_bytes(&self, over: &BTreeSet<u32>) -> u64 {
        let entries = self.entries();
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
        stored.fold(bytes, |sum, (_, bytes)| sum.saturating_add(bytes))
    }

    /// Removes what is not to be kept, now and from time to time.
    pub(crate) async fn keep_tidy(self: Arc<Self>, retention: Retention) {
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
            // A panic has ended the process.
            if done.await.is_err() {
                return;
            }
        }
    }
}

/// Names that a study's files have in the input store, if they are there.
fn stored(entry: &Entry) -> Vec<String> {
    let submission = &entry.kept.submission;
    let files = submission.files().into_iter().map(|file| file.digest.to_string());
    let slides = submission.inputs.iter().filter(|input| submission.companions.contains_key(&input.path));
    files.chain(slides.filter_map(|input| gathered(&submission.content(input)))).collect()
}

/// Bytes of the files in a folder, as far as it can be read.
fn folder_bytes(folder: &Path) -> u64 {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let bytes = |entry: fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => folder_bytes(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.flatten().map(bytes).fold(0, u64::saturating_add)
}
