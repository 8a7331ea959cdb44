//! Operations of the HTTP interface on the manager.

use super::entry::{Entry, Phase};
use super::{StudyContext, StudyEnd, remarks};
use crate::http::control::{Control, ControlError, ControlFuture, Submitter};
use crate::service::metrics::{self, Disk, StudySample};
use crate::service::results::{self, Checksums};
use actix::MailboxError;
use pleach_actors::manager::{self, Cancel, DrainWorker, GetManagerMetrics, GetView, ManagerView};
use pleach_api::digest::InputDigest;
use pleach_api::schema::{
    Forgotten, ScalingStatus, StudyState, StudyStatus, Submitted, WorkerState, WorkerStatus,
};
use pleach_api::submission::Submission;
use pleach_results::provenance::{ExplainError, Explanation, RunSelection, explain_folder};
use pleach_study::spatial::{LocatedObjects, ObjectQuery};
use pleach_telemetry::Exposition;
use std::fmt::Display;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use time::OffsetDateTime;
use tracing::{error, info};

/// `Control` of the HTTP interface, implemented by the manager's studies.
pub struct ServiceControl(pub Arc<StudyContext>, pub Arc<Exposition>);

impl ServiceControl {
    fn id(text: &str) -> Result<u32, ControlError> {
        text.parse().map_err(|_| no_study(text))
    }

    /// Returns the error for an unknown id, which names the quarantine if the study was set aside.
    fn missing(&self, id: u32) -> ControlError {
        match self.0.state.set_aside_of(id) {
            Some(aside) => ControlError::Missing(format!(
                "study {id} is in quarantine at {}: {}",
                aside.path.display(),
                aside.reason
            )),
            None => no_study(&id.to_string()),
        }
    }

    fn find(&self, text: &str, view: &ManagerView) -> Result<StudyStatus, ControlError> {
        let id = Self::id(text)?;
        // A statement of its own: the lock is released before `missing` reads the quarantine from disk.
        let study = self.0.studies.lock().get(&id).map(|entry| entry.with_remarks(id, view));
        study.map(|study| self.0.with_cost(study)).ok_or_else(|| self.missing(id))
    }

    async fn look(&self) -> Result<ManagerView, ControlError> {
        self.0.manager.send(GetView).await.map_err(manager_ends)
    }

    /// Returns a complete study's id and the checksums of its results.
    fn complete(&self, text: &str) -> Result<(u32, Option<Checksums>), ControlError> {
        let study = self.find(text, &ManagerView::default())?;
        if study.state != StudyState::Complete {
            return Err(ControlError::Conflict(format!(
                "study {} is {}; results are available once it is complete",
                study.id, study.state
            )));
        }
        let id = Self::id(text)?;
        let checksums = match self.0.studies.lock().get(&id).map(|entry| &entry.phase) {
            Some(Phase::Ended(ended)) => ended.results.clone(),
            _ => None,
        };
        Ok((id, checksums))
    }

    /// Returns the id of a study that may have records.
    fn recorded(&self, text: &str) -> Result<u32, ControlError> {
        let study = self.find(text, &ManagerView::default())?;
        let reason = match study.state {
            StudyState::Running | StudyState::Complete | StudyState::Failed => return Self::id(text),
            StudyState::Waiting | StudyState::Queued => "is explained once it runs",
            StudyState::Canceled => "running, failed and complete studies are explained",
        };
        Err(ControlError::Conflict(format!("study {} is {}; {reason}", study.id, study.state)))
    }

    fn canceled(&self, id: u32, client: &str) -> Result<StudyStatus, ControlError> {
        let mut entries = self.0.studies.lock();
        let Some(entry) = entries.get_mut(&id) else {
            drop(entries);
            return Err(self.missing(id));
        };
        let before = entry.view(id);
        match before.state {
            StudyState::Canceled => return Ok(before),
            StudyState::Complete => {
                return Err(ControlError::Conflict(format!(
                    "study {id} is complete; only unfinished studies can be canceled"
                )));
            }
            _ => {}
        }
        let ended = StudyEnd {
            state: StudyState::Canceled,
            message: None,
            evaluations_done: before.evaluations_done,
            tasks_executed: before.tasks_executed,
            failed: before.failed,
            ended: Some(OffsetDateTime::now_utc()),
            results: None,
        };
        // On disk first: otherwise the next start of the manager would resume the study.
        self.0.state.end(id, &ended).map_err(|error| ControlError::NotReady(error.to_string()))?;
        entry.phase = Phase::Ended(ended);
        let study = entry.view(id);
        drop(entries);
        info!(
            study = id,
            name = study.name,
            client,
            "study {id} ({}) canceled by {client}: {}/{} evaluations, {} tasks executed",
            study.name,
            study.evaluations_done,
            study.evaluations,
            study.tasks_executed
        );
        // After the record: this message makes the runner's thread return, which must then find the study ended.
        self.0.manager.do_send(Cancel(id));
        self.0.drop_regions(id);
        self.0.study_ended.notify_all();
        Ok(study)
    }
}

impl Control for ServiceControl {
    fn submit(
        &self,
        submission: Submission,
        key: Option<String>,
        client: Submitter,
    ) -> ControlFuture<'_, Submitted> {
        Box::pin(async move {
            let view = self.look().await?;
            let shared = Arc::clone(&self.0);
            // Planning may take long, so it runs on a blocking thread.
            let submitted =
                tokio::task::spawn_blocking(move || shared.submit(submission, key, &client, &view)).await;
            submitted.map_err(defect)?
        })
    }

    fn input_arrived(&self, digest: InputDigest) -> ControlFuture<'_, ()> {
        Box::pin(async move {
            let waiting: Vec<u32> = {
                // In a block of its own, because `look_for_files` takes the lock again.
                let entries = self.0.studies.lock();
                let waits = |(id, entry): (&u32, &Entry)| entry.missing().contains(&digest).then_some(*id);
                entries.iter().filter_map(waits).collect()
            };
            waiting.into_iter().for_each(|id| _ = self.0.look_for_files(id));
            Ok(())
        })
    }

    fn studies(&self) -> ControlFuture<'_, Vec<StudyStatus>> {
        Box::pin(async move {
            let view = self.look().await?;
            self.0.charge(&view);
            let entries = self.0.studies.lock();
            let studies = entries.iter().map(|(id, entry)| entry.with_remarks(*id, &view));
            let studies: Vec<StudyStatus> = studies.collect();
            drop(entries);
            Ok(studies.into_iter().map(|study| self.0.with_cost(study)).collect())
        })
    }

    fn study<'a>(&'a self, id: &'a str) -> ControlFuture<'a, StudyStatus> {
        Box::pin(async move {
            let view = self.look().await?;
            self.0.charge(&view);
            self.find(id, &view)
        })
    }

    fn cancel<'a>(&'a self, id: &'a str, client: String) -> ControlFuture<'a, StudyStatus> {
        Box::pin(async move { self.canceled(Self::id(id)?, &client) })
    }

    fn forget<'a>(&'a self, id: &'a str) -> ControlFuture<'a, Forgotten> {
        Box::pin(async move {
            let id = Self::id(id)?;
            if !self.0.has(id) && self.0.state.set_aside_of(id).is_some() {
                return Err(self.missing(id));
            }
            let shared = Arc::clone(&self.0);
            // Removing many files takes long.
            let forgotten = tokio::task::spawn_blocking(move || shared.forget(id)).await;
            let bytes = forgotten.map_err(defect)??;
            Ok(Forgotten { id: id.to_string(), bytes })
        })
    }

    fn explain<'a>(&'a self, id: &'a str, selection: RunSelection) -> ControlFuture<'a, Explanation> {
        Box::pin(async move {
            let number = self.recorded(id)?;
            let folder = self.0.state.results(number);
            // Reading takes seconds for a study of a million instances.
            let answer = tokio::task::spawn_blocking(move || explain_folder(&folder, &selection)).await;
            answer.map_err(defect)?.map_err(|error| match &error {
                ExplainError::Selection { .. } => ControlError::Study(format!("study {id}: {error}")),
                ExplainError::NoRecords { .. } => ControlError::Conflict(format!(
                    "study {id} has no records; a study that this or a later version of pleach executes has them once it runs"
                )),
                ExplainError::Unreadable(_) => {
                    error!(study = number, "{error}");
                    ControlError::Corrupt(format!("study {id}: {error}"))
                }
            })
        })
    }

    fn objects<'a>(&'a self, id: &'a str, query: ObjectQuery) -> ControlFuture<'a, LocatedObjects> {
        Box::pin(async move {
            let study = self.find(id, &ManagerView::default())?;
            self.0.find_objects(Self::id(id)?, &study, &query).await
        })
    }

    fn result_names<'a>(&'a self, id: &'a str) -> ControlFuture<'a, Vec<String>> {
        Box::pin(async move {
            let (id, checksums) = self.complete(id)?;
            match checksums {
                // A missing file is listed too, so that clients notice its absence.
                Some(checksums) => Ok(checksums.into_keys().collect()),
                None => results::names(&self.0.state.results(id)).map_err(defect),
            }
        })
    }

    fn result<'a>(&'a self, id: &'a str, name: &'a str) -> ControlFuture<'a, PathBuf> {
        Box::pin(async move {
            let (number, checksums) = self.complete(id)?;
            let path = self.0.state.results(number).join(name);
            let none = || ControlError::Missing(format!("study {id} has no result {name}"));
            if !results::is_for_clients(name) {
                return Err(none());
            }
            let Some(checksums) = checksums else { return path.is_file().then_some(path).ok_or_else(none) };
            let expected = *checksums.get(name).ok_or_else(none)?;
            let file = path.clone();
            let found = tokio::task::spawn_blocking(move || results::checksum(&file)).await;
            let why = match found.map_err(defect)? {
                Ok(found) if found == expected => return Ok(path),
                Ok(_) => "corrupt: its checksum does not match its content".to_owned(),
                Err(error) => error.to_string(),
            };
            error!(study = number, "{}: {why}; not sent to the client", path.display());
            Err(ControlError::Corrupt(format!(
                "{name} of study {id}: {why}; restore studies/{id}/results/{name} of the state directory \
                 from a backup, or submit the study again"
            )))
        })
    }

    fn workers(&self) -> ControlFuture<'_, Vec<WorkerStatus>> {
        Box::pin(async move {
            let mut workers: Vec<WorkerStatus> = self.look().await?.workers.iter().map(worker).collect();
            workers.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(workers)
        })
    }

    fn drain<'a>(&'a self, name: &'a str) -> ControlFuture<'a, WorkerStatus> {
        Box::pin(async move {
            let drained = self.0.manager.send(DrainWorker { name: name.to_owned() }).await;
            let drained = drained.map_err(manager_ends)?;
            drained.map_err(|error| ControlError::Missing(error.to_string()))?;
            let view = self.look().await?;
            let found = view.workers.iter().find(|worker| worker.name == name).map(worker);
            found.ok_or_else(|| ControlError::Missing(format!("worker {name} has left")))
        })
    }

    fn scaling(&self) -> ControlFuture<'_, ScalingStatus> {
        Box::pin(async move { Ok(self.0.scale(&self.look().await?)) })
    }

    fn is_ready(&self) -> ControlFuture<'_, bool> {
        Box::pin(async move { Ok(self.look().await.is_ok()) })
    }

    fn metrics(&self) -> ControlFuture<'_, String> {
        Box::pin(async move {
            let figures = self.0.manager.send(GetManagerMetrics).await.map_err(manager_ends)?;
            // Before the lock below, which this call takes too.
            let margins = self.0.deadline_margins(&figures.view);
            let scaling = self.0.scale(&figures.view);
            let measured = |(id, entry): (&u32, &Entry)| {
                let sample = entry.measured(*id);
                let view = self.0.with_cost(sample.view);
                StudySample { deadline_margin_seconds: margins.get(id).copied(), view, ..sample }
            };
            let studies: Vec<StudySample> = self.0.studies.lock().iter().map(measured).collect();
            let costs = self.0.scaler.totals();
            let folder = self.0.state.folder().to_owned();
            // On a blocking thread: a network file system may be slow and rendering takes milliseconds, while other
            // requests wait for this thread.
            let exposition = Arc::clone(&self.1);
            let text = tokio::task::spawn_blocking(move || {
                let disk = Disk::of(&folder);
                exposition.text(|| metrics::sample(&figures, &studies, &scaling, &costs, disk))
            });
            let text = text.await.map_err(defect)?;
            text.map_err(defect)
        })
    }
}

impl StudyContext {
    /// Leaves unfinished studies to the next start of the manager. Their threads lose its actors next.
    pub fn stop(&self) {
        // Relaxed: the flag guards no other data.
        self.is_stopping.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }
}

fn defect(error: impl Display) -> ControlError {
    ControlError::Defect(error.to_string())
}

pub(super) fn manager_ends(_: MailboxError) -> ControlError {
    ControlError::NotReady("the manager is shutting down".to_owned())
}

/// Returns the error for an id that no study has.
pub(super) fn no_study(id: &str) -> ControlError {
    ControlError::Missing(format!("study {id} does not exist; pleach status lists all studies"))
}

fn worker(view: &manager::WorkerView) -> WorkerStatus {
    let until = view.lease_end_seconds.and_then(|end| i64::try_from(end).ok());
    WorkerStatus {
        name: view.name.clone(),
        state: match view.state {
            manager::WorkerState::Active => WorkerState::Active,
            manager::WorkerState::Draining => WorkerState::Draining,
        },
        cores: view.slots,
        accelerators: view.accelerators,
        closed_accelerators: u32::try_from(view.closed_slots.len()).unwrap_or(u32::MAX),
        running: u32::try_from(view.leases).unwrap_or(u32::MAX),
        bytes: view.bytes,
        memory_bytes: view.memory_bytes,
        address: view.host.map_or_else(|| "local".to_owned(), |host| host.to_string()),
        missing_operations: view.lacking.iter().map(|(name, version)| format!("{name} {version}")).collect(),
        time_limit: until.and_then(|end| OffsetDateTime::from_unix_timestamp(end).ok()),
        remarks: remarks::of_worker(view),
    }
}
