//! The studies of a manager: those that wait for files, those that run, and those that have ended.

mod control;
mod entry;
mod remarks;

use super::inputs::{InputDigest, InputStore};
use super::job::{self, Manager, Ready, Workers};
use super::scaling::{Scaler, StudyNeed};
use super::state::{Ended, Kept, State};
use super::submission::Submission;
use crate::api::control::Refused;
use crate::api::view::{Scaling, StudyState, Submitted};
use crate::exit::{Outcome, Stop};
use crate::inputs;
use crate::pools::Pools;
use crate::study::Prepared;
pub(crate) use control::Asked;
pub(crate) use entry::Followed;
use entry::{Entry, Phase};
use pleach_actors::manager::{Forget, Keep, Look, ManagerView, WorkerView};
use pleach_dispatch::message::InputFile;
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use tracing::{error, info};

/// Studies that run at once: each keeps its plan in memory, and more would only share the same workers.
const RUNNING_AT_ONCE: usize = 16;

/// Between two looks at how many workers are wanted: a part of what any worker takes to come.
const SCALE_EVERY: Duration = Duration::from_secs(5);

/// What all studies of a manager share.
pub(crate) struct Shared {
    pub(crate) state: State,
    pub(crate) store: Arc<InputStore>,
    pub(crate) manager: Manager,
    pub(crate) network: tokio::runtime::Handle,
    studies: Mutex<BTreeMap<u32, Entry>>,
    /// Held while a study is taken: two that come at once get different numbers, and one that comes twice is one.
    submitting: Mutex<()>,
    /// A study has ended: another one may begin.
    ended: Condvar,
    scaler: Scaler,
}

impl Shared {
    /// The studies of a folder: those that have not ended go on.
    ///
    /// # Errors
    /// [`Stop::Input`] when one of them cannot be read.
    pub(crate) fn open(
        state: State,
        store: Arc<InputStore>,
        manager: Manager,
        network: tokio::runtime::Handle,
        pools: Option<Pools>,
    ) -> Outcome<Arc<Self>> {
        let kept = state.studies()?;
        let (studies, submitting, ended) = (Mutex::default(), Mutex::default(), Condvar::new());
        let scaler = Scaler::new(pools, state.spent());
        let shared = Arc::new(Self { state, store, manager, network, studies, submitting, ended, scaler });
        for (id, kept, ended) in kept {
            let missing = shared.missing(&kept.submission);
            let phase = match ended {
                Some(ended) => Phase::Ended(ended),
                None if missing.is_empty() => Phase::Queued,
                None => Phase::Waiting(missing.clone()),
            };
            let is_queued = matches!(phase, Phase::Queued);
            if !matches!(phase, Phase::Ended(_)) {
                let name = &kept.submission.name;
                let files = missing.len();
                info!(study = id, name, missing = files, "study {id} ({name}) resumed after a start of the manager");
            }
            // Before workers come back: they ask.
            if is_queued && kept.submission.has_parts() {
                shared.manager.do_send(Keep(id));
            }
            shared.entries().insert(id, Entry::new(kept, phase));
            if is_queued {
                shared.start(id, None);
            }
        }
        Ok(shared)
    }

    /// Whether some study of an earlier start goes on.
    pub(crate) fn goes_on(&self) -> bool {
        self.entries().values().any(|entry| matches!(entry.phase, Phase::Queued | Phase::Running { .. }))
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<u32, Entry>> {
        self.studies.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many workers are wanted now.
    pub(crate) fn scale(&self, view: &ManagerView) -> Scaling {
        let needs: Vec<StudyNeed> = self.entries().iter().filter_map(|(id, entry)| entry.need(*id)).collect();
        let now = OffsetDateTime::now_utc();
        self.scaler.step(view, &needs, now.unix_timestamp() as f64 + f64::from(now.nanosecond()) / 1e9)
    }

    /// Looks now and then how many workers are wanted, so that what is wanted and what was spent do not depend on who asks.
    pub(crate) async fn keep_scaling(self: Arc<Self>) {
        let mut ticks = tokio::time::interval(SCALE_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let Ok(view) = self.manager.send(Look).await else { return };
            self.scale(&view);
        }
    }

    /// Files of a submission that are nowhere here.
    fn missing(&self, submission: &Submission) -> Vec<InputDigest> {
        let is_here = |file: &super::submission::InputFile| {
            job::find_one(&self.store, Path::new(&file.path), file.digest).is_some()
        };
        let files = submission.files().into_iter();
        let mut missing: Vec<InputDigest> =
            files.filter(|file| !is_here(file)).map(|file| file.digest).collect();
        missing.sort_unstable();
        missing.dedup();
        missing
    }

    /// Where a file of this content lies that some study reads.
    pub(crate) fn find_file(&self, digest: &[u8; 32]) -> Option<PathBuf> {
        let digest = InputDigest::from(blake3::Hash::from_bytes(*digest));
        let sent = self.store.path(digest);
        if sent.is_file() {
            return Some(sent);
        }
        let entries = self.entries();
        let path = entries.values().find_map(|entry| entry.kept.submission.path_of(digest))?;
        path.is_file().then_some(path)
    }

    /// The files of a study, as its workers are told of them.
    pub(crate) fn input_files(&self, id: u32, prepared: &Prepared) -> HashMap<RegionKey, InputFile> {
        let entries = self.entries();
        let Some(entry) = entries.get(&id) else { return HashMap::new() };
        inputs::specified(prepared, &entry.kept.submission)
    }

    /// Takes a study, unless it was taken before under the same key.
    fn submit(
        self: &Arc<Self>,
        submission: Submission,
        key: Option<String>,
        client: &str,
        view: &ManagerView,
    ) -> Result<Submitted, Refused> {
        let _one_by_one = self.submitting.lock().unwrap_or_else(PoisonError::into_inner);
        let known = key.as_ref().and_then(|key| {
            let entries = self.entries();
            let of = |entry: &Entry| entry.kept.key.as_ref() == Some(key);
            entries.iter().find(|(_, entry)| of(entry)).map(|(id, _)| *id)
        });
        if let Some(id) = known {
            return Ok(Submitted { id: id.to_string(), missing: self.look_for_files(id) });
        }
        let id = self.entries().last_key_value().map_or(1, |(last, _)| last + 1);
        let missing = self.missing(&submission);
        let submitted = OffsetDateTime::now_utc();
        let kept = Kept { submission, key, submitted };
        // Planned now, so that what cannot be executed is refused now.
        let ready = self.ready(id, &kept, view).map_err(|stop| match stop {
            Stop::Input(text) => Refused::Study(text),
            stop => Refused::Defect(said(&stop)),
        })?;
        let least = |worker: &WorkerView| ready.needs().with_below(worker.below_bytes);
        let fits = |worker: &WorkerView| least(worker) <= worker.memory_bytes;
        let largest = view.workers.iter().max_by_key(|worker| (fits(worker), worker.memory_bytes));
        if let Some(largest) = largest.filter(|largest| !fits(largest)) {
            let (most, least_bytes) = (largest.memory_bytes, least(largest));
            return Err(Refused::Study(format!(
                "study {}: it needs {} MB at once on a worker, and the largest has {} MB; workers with --memory {}MB or more \
                 are needed",
                kept.submission.name,
                least_bytes.div_ceil(1_000_000),
                most / 1_000_000,
                least_bytes.div_ceil(1_000_000),
            )));
        }
        self.state.keep(id, &kept).map_err(|stop| Refused::NotReady(said(&stop)))?;
        let phase = if missing.is_empty() { Phase::Queued } else { Phase::Waiting(missing.clone()) };
        let is_queued = missing.is_empty();
        let (name, evaluations, tiles) = (&kept.submission.name, ready.evaluations(), ready.tiles());
        info!(
            study = id,
            name,
            client,
            evaluations,
            tiles,
            missing = missing.len(),
            "study {id} ({name}) submitted by {client}: {evaluations} evaluations on {tiles} tiles"
        );
        self.entries().insert(id, Entry::new(kept, phase));
        if is_queued {
            self.start(id, Some(ready));
        }
        Ok(Submitted { id: id.to_string(), missing })
    }

    fn ready(&self, id: u32, kept: &Kept, view: &ManagerView) -> Outcome<Ready> {
        let planning = || job::ready(id, kept, &self.store, Workers::of(view));
        // What a client has made up may not end the manager.
        let ready = std::panic::catch_unwind(std::panic::AssertUnwindSafe(planning));
        ready.unwrap_or_else(|_| {
            let name = &kept.submission.name;
            Err(Stop::Input(format!("study {name}: it cannot be planned: it is no study of this pleach")))
        })
    }

    /// Looks again for files that a study waits for; gives those that are missing still.
    fn look_for_files(self: &Arc<Self>, id: u32) -> Vec<InputDigest> {
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(&id) else { return Vec::new() };
        let Phase::Waiting(missing) = &mut entry.phase else { return Vec::new() };
        missing.retain(|digest| !self.store.has(*digest));
        let missing = missing.clone();
        if missing.is_empty() {
            entry.phase = Phase::Queued;
            drop(entries);
            self.start(id, None);
        }
        missing
    }

    /// Has a study executed, when it is its turn.
    fn start(self: &Arc<Self>, id: u32, ready: Option<Ready>) {
        let shared = Arc::clone(self);
        // As threads that run tasks are: what fails there fails the study and not the process.
        let name = format!("{}-study-{id}", pleach_actors::task::THREAD_NAME);
        let run = move || {
            let job = || shared.run(id, ready);
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
            if ended.is_err() {
                shared.fail(id, "a defect in pleach; please report it".to_owned());
            }
        };
        if let Err(error) = std::thread::Builder::new().name(name).spawn(run) {
            self.fail(id, format!("the system gives no thread: {error}"));
        }
    }

    fn run(self: &Arc<Self>, id: u32, ready: Option<Ready>) {
        {
            let mut entries = self.entries();
            loop {
                let is_queued = entries.get(&id).is_some_and(|entry| matches!(entry.phase, Phase::Queued));
                if !is_queued {
                    return;
                }
                let running = |entry: &&Entry| matches!(entry.phase, Phase::Running { .. });
                if entries.values().filter(running).count() < RUNNING_AT_ONCE {
                    break;
                }
                entries = self.ended.wait(entries).unwrap_or_else(PoisonError::into_inner);
            }
            if let Some(entry) = entries.get_mut(&id) {
                entry.phase = Phase::Running { progress: None };
            }
        }
        let choice = self.entries().get(&id).map(|entry| entry.kept.submission.plan);
        let choice = choice.ok_or_else(|| Stop::defect("a study that is not there"));
        let ready = choice.and_then(|choice| Ok((choice, ready.map_or_else(|| self.ready_again(id), Ok)?)));
        let follow = |followed| {
            if let Some(entry) = self.entries().get_mut(&id)
                && let Phase::Running { progress: place } = &mut entry.phase
            {
                *place = Some(followed);
            }
        };
        let start = Instant::now();
        let started = |ready: &Ready| info!(study = id, "study {id} started: {}", ready.summary());
        let ready = ready.inspect(|(_, ready)| started(ready));
        let ended = ready.and_then(|(choice, ready)| job::run(self, id, choice, ready, follow));
        match ended {
            Ok(Some((ended, reused))) => self.over(id, ended, reused, start.elapsed()),
            // Cancelled: whoever did so has written that down.
            Ok(None) => {}
            Err(stop) => self.fail(id, said(&stop)),
        }
    }

    fn ready_again(&self, id: u32) -> Outcome<Ready> {
        let kept = self.entries().get(&id).map(|entry| entry.kept.clone());
        let kept = kept.ok_or_else(|| Stop::defect("a study that is not there"))?;
        let view = self.network.block_on(self.manager.send(Look)).map_err(Stop::defect)?;
        self.ready(id, &kept, &view)
    }

    /// A study has ended: that is written down, unless it was cancelled at the last moment.
    fn over(&self, id: u32, ended: Ended, reused: u64, took: Duration) {
        let mut entries = self.entries();
        if let Some(entry) = entries.get_mut(&id)
            && !matches!(entry.phase, Phase::Ended(_))
        {
            if let Err(stop) = self.state.end(id, &ended) {
                drop(entries);
                return self.fail(id, said(&stop));
            }
            let name = &entry.kept.submission.name;
            let Ended { state, evaluations_done: evaluations, tasks_executed: executed, failed, .. } = &ended;
            let seconds = took.as_secs_f64();
            info!(
                study = id,
                name,
                %state,
                seconds,
                evaluations,
                executed,
                reused,
                failed,
                "study {id} ({name}) is {state} after {seconds:.1} s: {evaluations} evaluations, {executed} tasks executed, \
                 {reused} reused, {failed} runs failed"
            );
            entry.phase = Phase::Ended(ended);
        }
        drop(entries);
        self.manager.do_send(Forget(id));
        self.ended.notify_all();
    }

    /// A study cannot go on now. It is tried again when the manager is started again: what is known of it by now is kept.
    fn fail(&self, id: u32, why: String) {
        let message = format!("{why}; it is tried again when the manager is started again");
        error!(study = id, "study {id} cannot go on: {message}");
        if let Some(entry) = self.entries().get_mut(&id)
            && !matches!(entry.phase, Phase::Ended(_))
        {
            let before = entry.view(id);
            entry.phase = Phase::Ended(Ended {
                state: StudyState::Failed,
                message: Some(message),
                evaluations_done: before.evaluations_done,
                tasks_executed: before.tasks_executed,
                failed: before.failed,
            });
        }
        self.ended.notify_all();
    }
}

/// What a command would have said.
fn said(stop: &Stop) -> String {
    match stop {
        Stop::Input(text)
        | Stop::SomeFailed(text)
        | Stop::Refused(text)
        | Stop::Interrupted(text)
        | Stop::Defect(text) => text.clone(),
    }
}
