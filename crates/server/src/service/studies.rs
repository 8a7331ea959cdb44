//! Studies of a manager: waiting for files, running, or ended.
//!
//! Lock order: `reserved_ids` before `studies`.

mod control;
mod demand;
mod entry;
mod events;
mod files;
mod forget;
mod objects;
mod operations;
mod remarks;

use super::retained::RetainedStudies;
use super::scaling::Scaler;
use super::state::record;
use super::state::{KeptStudy, StateDir, StateError, StoredSubmission, StudyEnd};
use super::study_runner::{self, Manager, PlannedCapacity, ReadyStudy, StudyRunError};
use crate::http::control::{ControlError, Submitter};
use crate::input_store::InputStore;
use crate::pools::Pools;
pub use control::ServiceControl;
pub(crate) use entry::StudyProgress;
use entry::{Entry, Phase};
pub use forget::Retention;
use parking_lot::{Condvar, Mutex};
use pleach_actors::manager::{DropStudyResults, GetView, ManagerView, RetainResults, WorkerView};
use pleach_api::digest::InputDigest;
use pleach_api::schema::{StudyState, Submitted};
use pleach_api::submission::Submission;
use pleach_cache::Cache;
use pleach_dispatch::cost_model::CostModel;
use pleach_execution::cost_history;
use pleach_study::{Cause, Defect};
use pleach_workflow::Registry;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::{Arc, atomic::AtomicBool};
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use tracing::{error, warn};

/// Maximum number of running studies. Each keeps its plan in memory, and more would only share the same workers.
const RUNNING_AT_ONCE: usize = 16;

/// State that all studies of a manager share.
pub struct StudyContext {
    /// State directory.
    pub state: StateDir,
    pub(crate) store: Arc<InputStore>,
    pub(crate) manager: Manager,
    pub(crate) network: tokio::runtime::Handle,
    studies: Mutex<BTreeMap<u32, Entry>>,
    /// Ids and idempotency keys of submissions in progress. Concurrent submissions get different ids, and two
    /// submissions under one key become one study.
    reserved_ids: Mutex<BTreeMap<u32, Option<String>>>,
    /// Notified when a submission was accepted or refused.
    reservation_ended: Condvar,
    /// Notified when a study has ended, so that the next one may start.
    study_ended: Condvar,
    pub(crate) scaler: Scaler,
    /// Folder or bucket of the task cache that workers write.
    pub(crate) task_cache: Option<PathBuf>,
    /// The task cache, if it is in a bucket and has been opened.
    pub(crate) bucket_cache: Mutex<Option<Arc<Cache>>>,
    /// Regions that workers retain for queries.
    pub(crate) retained: RetainedStudies,
    /// Operations of the studies that it accepts.
    registry: Registry,
    /// The manager stops: later failures of studies are no defects.
    is_stopping: AtomicBool,
}

impl StudyContext {
    /// Reads all studies of the state directory and resumes those that have not ended.
    ///
    /// # Errors
    /// [`StateError`] when the folder of studies cannot be read.
    pub fn open(
        state: StateDir,
        store: Arc<InputStore>,
        manager: Manager,
        network: tokio::runtime::Handle,
        pools: Option<Pools>,
        task_cache: Option<PathBuf>,
        registry: Registry,
    ) -> Result<Arc<Self>, StateError> {
        let kept = state.studies()?;
        let (studies, reserved_ids) = (Mutex::default(), Mutex::default());
        let (reservation_ended, study_ended) = (Condvar::new(), Condvar::new());
        let scaler = Scaler::new(pools, state.spent());
        let shared = Arc::new(Self {
            state,
            store,
            manager,
            network,
            studies,
            reserved_ids,
            reservation_ended,
            study_ended,
            scaler,
            task_cache,
            bucket_cache: Mutex::default(),
            retained: RetainedStudies::default(),
            registry,
            is_stopping: AtomicBool::new(false),
        });
        for KeptStudy { id, kept, ended } in kept {
            // Stored files are only looked up by name here. They are verified before the study runs, because there
            // may be many.
            let missing = || shared.missing_unless(&kept.submission, |digest| shared.store.names(digest)).0;
            let phase = match ended.map_or_else(|| Err(missing()), Ok) {
                Ok(ended) => Phase::Ended(ended),
                Err(missing) if missing.is_empty() => Phase::Queued,
                Err(missing) => Phase::Waiting(missing),
            };
            let is_queued = matches!(phase, Phase::Queued);
            if !matches!(phase, Phase::Ended(_)) {
                let missing = if let Phase::Waiting(missing) = &phase { missing.len() } else { 0 };
                events::resumed(id, &kept, missing);
            }
            // Before workers reattach: the manager has them drop the results of studies that it does not retain.
            if is_queued && kept.submission.has_parts() {
                shared.manager.do_send(RetainResults(id));
            }
            let lost = |why: &dyn Display| {
                warn!(study = id, "{}: {why}; the cost of study {id} is unknown", record::COST);
            };
            let cost = record::read(&shared.state.study(id).join(record::COST)).or_default(lost);
            // Before the start, which marks the entry as busy and whose thread looks for it.
            shared.studies.lock().insert(id, Entry { cost, ..Entry::new(kept, phase) });
            if is_queued {
                shared.start(id, None);
            }
        }
        Ok(shared)
    }

    /// Returns whether a study of an earlier start is queued or running.
    pub fn has_unfinished(&self) -> bool {
        self.studies.lock().values().any(|entry| matches!(entry.phase, Phase::Queued | Phase::Running { .. }))
    }

    /// Accepts a study, or returns the study that was submitted before under the same key.
    fn submit(
        self: &Arc<Self>,
        submission: Submission,
        key: Option<String>,
        client: &Submitter,
        view: &ManagerView,
    ) -> Result<Submitted, ControlError> {
        let reservation = match self.reserve_id(key.as_deref()) {
            Ok(reservation) => reservation,
            Err(IdConflict::Before(id)) => {
                return Ok(Submitted { id: id.to_string(), missing: self.look_for_files(id) });
            }
            Err(IdConflict::All(last)) => {
                let text = format!(
                    "study {last} is the last one of this state directory; start a manager \
                                    with another --state"
                );
                return Err(ControlError::Study(text));
            }
        };
        // The reservation lasts until this function returns: a concurrent request under the same key waits for the
        // outcome.
        let id = reservation.id;
        let (missing, irregular) = self.missing(&submission);
        if let Some(irregular) = irregular {
            return Err(ControlError::Study(format!("study {}: {irregular}", submission.name)));
        }
        if let Some(differences) = operations::differences(&submission, view) {
            return Err(ControlError::Study(format!(
                "study {}: no worker has its external operations: {differences}; use the same code and environment, or --pin \
                 NAME@DIGEST for the operation of a worker",
                submission.name
            )));
        }
        let submitted = OffsetDateTime::now_utc();
        let kept = StoredSubmission { submission, key, submitted, user: Some(client.user.clone()) };
        // Planned before it is accepted, so that the client gets the error of a study that cannot be executed.
        let ready = self.ready(id, &kept, view).map_err(|error| refusal(&error))?;
        let least = |worker: &WorkerView| ready.needs().with_spill(worker.spill_bytes);
        let fits = |worker: &WorkerView| least(worker) <= worker.memory_bytes;
        let largest = view.workers.iter().max_by_key(|worker| (fits(worker), worker.memory_bytes));
        if let Some(largest) = largest.filter(|largest| !fits(largest)) {
            let (most, min_bytes) = (largest.memory_bytes, least(largest));
            return Err(ControlError::Study(format!(
                "study {}: needs {} MB at once on a worker, and the largest worker has {} MB; workers with \
                 --memory {}MB or more are required",
                kept.submission.name,
                min_bytes.div_ceil(1_000_000),
                most / 1_000_000,
                min_bytes.div_ceil(1_000_000),
            )));
        }
        // On disk before the entry exists: a client must not see a study that a crash can lose.
        self.state.store(id, &kept).map_err(|error| ControlError::NotReady(error.to_string()))?;
        let phase = if missing.is_empty() { Phase::Queued } else { Phase::Waiting(missing.clone()) };
        let is_queued = missing.is_empty();
        events::submitted(id, &kept, client, &ready, missing.len());
        self.studies.lock().insert(id, Entry::new(kept, phase));
        if is_queued {
            self.start(id, Some(ready));
        }
        Ok(Submitted { id: id.to_string(), missing })
    }

    /// Returns the user that submitted a study. `None` if it is unknown.
    pub(super) fn user_of(&self, id: u32) -> Option<String> {
        self.studies.lock().get(&id)?.kept.user.clone()
    }

    /// Reserves an id for a submission. Waits while a submission under the same key is in progress. Returns
    /// [`IdConflict::Before`] if a study was accepted under this key before, and [`IdConflict::All`] if no id is left.
    fn reserve_id(self: &Arc<Self>, key: Option<&str>) -> Result<IdReservation, IdConflict> {
        let mut reserved = self.reserved_ids.lock();
        loop {
            let entries = self.studies.lock();
            let of = |entry: &Entry| key.is_some() && entry.kept.key.as_deref() == key;
            if let Some((id, _)) = entries.iter().find(|(_, entry)| of(entry)) {
                return Err(IdConflict::Before(*id));
            }
            if key.is_some() && reserved.values().any(|other| other.as_deref() == key) {
                // The condition variable releases `reserved` only. The submission in progress needs `studies` to become
                // an entry.
                drop(entries);
                self.reservation_ended.wait(&mut reserved);
                continue;
            }
            // Ids of removed studies count too, because workers may still know regions by them.
            let last = entries.last_key_value().map_or(0, |(id, _)| *id).max(self.state.last_study());
            let last = last.max(reserved.last_key_value().map_or(0, |(id, _)| *id));
            let id = last.checked_add(1).ok_or(IdConflict::All(last))?;
            reserved.insert(id, key.map(str::to_owned));
            return Ok(IdReservation { shared: Arc::clone(self), id });
        }
    }

    /// Keeps the costs of operations that a study has learned, for the plans of later studies.
    pub(crate) fn keep_costs(&self, learned: &CostModel) {
        if let Err(cause) = cost_history::store(self.state.folder(), learned) {
            warn!("operation costs are not stored for later plans: {cause}");
        }
    }

    fn ready(
        &self,
        id: u32,
        kept: &StoredSubmission,
        view: &ManagerView,
    ) -> Result<ReadyStudy, StudyRunError> {
        let planning = || {
            let costs = cost_history::read(self.state.folder());
            study_runner::ready(id, kept, &self.store, PlannedCapacity::of(view), costs, &self.registry)
        };
        // An invalid submission may panic in the planner and must not end the manager.
        let ready = std::panic::catch_unwind(std::panic::AssertUnwindSafe(planning));
        ready.unwrap_or_else(|_| {
            let name = &kept.submission.name;
            Err(StudyRunError::NotPlannable(name.clone()))
        })
    }

    /// Looks again for the files that a study waits for, queues the study if none is missing, and returns the missing
    /// ones.
    fn look_for_files(self: &Arc<Self>, id: u32) -> Vec<InputDigest> {
        let mut entries = self.studies.lock();
        let Some(entry) = entries.get_mut(&id) else { return Vec::new() };
        let Phase::Waiting(missing) = &mut entry.phase else { return Vec::new() };
        // Cheap under the lock: a file that arrived was verified by its transfer, and a missing one has no name in the
        // store.
        missing.retain(|digest| !self.store.has(*digest));
        let missing = missing.clone();
        if missing.is_empty() {
            (entry.phase, entry.why) = (Phase::Queued, None);
            // `start` takes the lock again.
            drop(entries);
            self.start(id, None);
        }
        missing
    }

    /// Starts a thread that executes a study as soon as fewer than [`RUNNING_AT_ONCE`] are running.
    fn start(self: &Arc<Self>, id: u32, ready: Option<ReadyStudy>) {
        let shared = Arc::clone(self);
        // With the name prefix of task threads: a panic there fails the study and not the process.
        let name = format!("{}-study-{id}", pleach_actors::panic_guard::THREAD_NAME);
        // Before the thread exists: a short one could otherwise clear the mark before it is set.
        self.set_busy(id, true);
        let run = move || {
            let job = || shared.run(id, ready);
            // Without this catch, a panic would leave the study running and occupy one of the turns until the next
            // start.
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
            if ended.is_err() {
                shared.fail(id, "a defect in pleach; please report it".to_owned());
            }
            shared.set_busy(id, false);
        };
        if let Err(error) = std::thread::Builder::new().name(name).spawn(run) {
            self.fail(id, format!("failed to start a thread: {error}"));
            self.set_busy(id, false);
        }
    }

    fn set_busy(&self, id: u32, is_busy: bool) {
        if let Some(entry) = self.studies.lock().get_mut(&id) {
            entry.is_busy = is_busy;
        }
    }

    fn run(self: &Arc<Self>, id: u32, ready: Option<ReadyStudy>) {
        {
            let mut entries = self.studies.lock();
            loop {
                // A study that was canceled or removed while it waited has no turn to take.
                let is_queued = entries.get(&id).is_some_and(|entry| matches!(entry.phase, Phase::Queued));
                if !is_queued {
                    return;
                }
                let running = |entry: &&Entry| matches!(entry.phase, Phase::Running { .. });
                if entries.values().filter(running).count() < RUNNING_AT_ONCE {
                    break;
                }
                self.study_ended.wait(&mut entries);
            }
            if let Some(entry) = entries.get_mut(&id) {
                entry.phase = Phase::Running { progress: None };
            }
        }
        // A study with `ready` comes from a submission, which has just verified its files.
        if ready.is_none() && !self.files_are_intact(id) {
            return;
        }
        let choice = self.studies.lock().get(&id).map(|entry| entry.kept.submission.plan);
        let choice = choice.ok_or_else(|| Defect::new("a study that is not there").into());
        let ready = choice.and_then(|choice| Ok((choice, ready.map_or_else(|| self.prepare_again(id), Ok)?)));
        let follow = |followed| {
            if let Some(entry) = self.studies.lock().get_mut(&id)
                // A cancellation may have ended the study meanwhile. Its record stays.
                && let Phase::Running { progress: place } = &mut entry.phase
            {
                *place = Some(followed);
            }
        };
        let start = Instant::now();
        let ready = ready.inspect(|(_, ready)| events::started(id, ready));
        let ended = ready.and_then(|(choice, ready)| study_runner::run(self, id, choice, ready, follow));
        match ended {
            Ok(Some((ended, reused))) => self.finish(id, ended, reused, start.elapsed()),
            // Canceled: the canceling request has written the record of its end.
            Ok(None) => {}
            Err(error) => self.fail(id, error.to_string()),
        }
    }

    fn prepare_again(&self, id: u32) -> Result<ReadyStudy, StudyRunError> {
        let kept = self.studies.lock().get(&id).map(|entry| entry.kept.clone());
        let kept = kept.ok_or_else(|| Defect::new("a study that is not there"))?;
        let view = self.network.block_on(self.manager.send(GetView)).map_err(Defect::new)?;
        self.ready(id, &kept, &view)
    }

    /// Records the end of a study, unless it was canceled at the last moment.
    fn finish(&self, id: u32, ended: StudyEnd, reused: u64, took: Duration) {
        let mut entries = self.studies.lock();
        if let Some(entry) = entries.get_mut(&id)
            && !matches!(entry.phase, Phase::Ended(_))
        {
            // Under the lock: a cancellation must not write the same record meanwhile.
            if let Err(error) = self.state.end(id, &ended) {
                // Released first, because `fail` takes the lock again.
                drop(entries);
                return self.fail(id, error.to_string());
            }
            events::ended(id, &entry.kept, &ended, reused, took);
            entry.phase = Phase::Ended(ended);
        }
        drop(entries);
        // After the record of the end: a manager that is killed before it resumes the study with the retained results.
        self.manager.do_send(DropStudyResults(id));
        self.study_ended.notify_all();
    }

    /// Marks a study as failed until the next start of the manager, which tries again from the results so far.
    fn fail(&self, id: u32, why: String) {
        if self.is_stopping() {
            return;
        }
        let message = format!("{why}; the manager retries it at its next start");
        error!(study = id, "study {id} failed: {message}");
        if let Some(entry) = self.studies.lock().get_mut(&id)
            && !matches!(entry.phase, Phase::Ended(_))
        {
            let before = entry.view(id);
            entry.phase = Phase::Ended(StudyEnd {
                state: StudyState::Failed,
                message: Some(message),
                evaluations_done: before.evaluations_done,
                tasks_executed: before.tasks_executed,
                failed: before.failed,
                ended: None,
                results: None,
            });
        }
        self.study_ended.notify_all();
    }
}

/// Returns the refusal of a submission that cannot be prepared or planned. Only its content is the client's mistake.
fn refusal(error: &StudyRunError) -> ControlError {
    match Cause::of(error) {
        Cause::Input => ControlError::Study(error.to_string()),
        Cause::Defect | Cause::NoSpace => ControlError::Defect(error.to_string()),
    }
}

/// Reason why a submission gets no new id.
enum IdConflict {
    /// A study with this id was accepted before under the same key.
    Before(u32),
    /// This id was the last possible one.
    All(u32),
}

/// Id of a submission in progress. On drop, the study is among the entries or was refused.
struct IdReservation {
    shared: Arc<StudyContext>,
    id: u32,
}

impl Drop for IdReservation {
    fn drop(&mut self) {
        self.shared.reserved_ids.lock().remove(&self.id);
        self.shared.reservation_ended.notify_all();
    }
}

/// Returns the time in seconds since 1970.
fn now_seconds() -> f64 {
    let now = OffsetDateTime::now_utc();
    now.unix_timestamp() as f64 + f64::from(now.nanosecond()) / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_api::submission::{InvalidSubmission, SubmissionError};
    use pleach_study::PrepareError;
    use std::io::ErrorKind;

    /// [`ControlError::Study`] is answered with status 422, after which a client does not submit the study again.
    #[test]
    fn defects_and_full_disks_are_no_mistakes_of_the_client() {
        let prepare = |cause: PrepareError| StudyRunError::from(SubmissionError::from(cause));
        let write = |kind: ErrorKind| {
            StudyRunError::from(StateError::File { path: "state".into(), cause: kind.into() })
        };
        for internal in [
            Defect::new("none").into(),
            prepare(Defect::new("none").into()),
            write(ErrorKind::StorageFull),
            write(ErrorKind::QuotaExceeded),
        ] {
            assert_eq!(refusal(&internal), ControlError::Defect(internal.to_string()));
        }
        let problem = InvalidSubmission::Parts;
        for mistake in [
            StudyRunError::NotPlannable("toy".to_owned()),
            SubmissionError::Invalid { study: "toy".to_owned(), problem }.into(),
        ] {
            assert_eq!(refusal(&mistake), ControlError::Study(mistake.to_string()));
        }
    }
}
