//! Manager in memory: accepts studies, and completes them when a test demands it.

use crate::http::control::{Control, ControlError, ControlFuture, Submitter};
use crate::input_store::InputStore;
use pleach_api::digest::InputDigest;
use pleach_api::schema::{
    CostEstimate, Forgotten, PoolCost, PoolStatus, ProvisionStatus, ScalingStatus, StudyCost, StudyState,
    StudyStatus, Submitted, WorkBySlots, WorkerState, WorkerStatus,
};
use pleach_api::submission::Submission;
use pleach_results::provenance::{
    ExplainedRun, Explanation, RecordedTask, RepeatedExecution, RunSelection, TaskSummary, WorkerSummary,
};
use pleach_study::spatial::{LocatedObject, LocatedObjects, ObjectQuery};
use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use time::OffsetDateTime;

/// Result files of every study of this manager.
pub(super) const RESULTS: [&str; 4] = ["plan.json", "responses.csv", "previews/0-tile.png", "run.json"];

pub(super) struct Memory {
    inputs: Arc<InputStore>,
    results: PathBuf,
    kept: Mutex<Kept>,
}

#[derive(Default)]
pub(super) struct Kept {
    studies: BTreeMap<String, (StudyStatus, Submission)>,
    by_key: HashMap<String, String>,
    workers: BTreeMap<String, WorkerStatus>,
    pub(super) submissions: usize,
    pub(super) looks: usize,
    pub(super) is_down: bool,
    pub(super) is_broken: bool,
    /// Number of operations to refuse before the manager answers.
    pub(super) refusals: usize,
    /// Number of submissions to accept with a lost answer.
    pub(super) lost_answers: usize,
    /// Number of status requests after which a study completes.
    pub(super) completes_after: Option<usize>,
    pub(super) fails: u64,
    /// Name added to the results of each study.
    pub(super) odd_result: Option<String>,
    /// Digest that always counts as missing.
    pub(super) odd_input: Option<InputDigest>,
}

/// The cost of each study.
fn cost() -> StudyCost {
    StudyCost {
        predicted_seconds: Some(90.5),
        predicted_cost: None,
        seconds: 60.0,
        cost: 1.75,
        pools: vec![PoolCost {
            name: "w".to_owned(),
            paid_seconds: 120.0,
            starting_seconds: 7.5,
            worker_cost: 1.5,
            sent_bytes: 125_000_000,
            egress_cost: 0.25,
        }],
        workers_started: 2,
        workers_lost: 1,
        workers_replaced: 1,
        is_final: false,
    }
}

impl Memory {
    pub(super) fn new(place: &Path, inputs: Arc<InputStore>) -> Self {
        let worker = |name: &str, lacking: &[&str], until| WorkerStatus {
            name: name.to_owned(),
            state: WorkerState::Active,
            cores: 4,
            accelerators: 0,
            closed_accelerators: 0,
            running: 3,
            bytes: 1_500_000,
            memory_bytes: 2_000_000_000,
            address: "10.0.0.7:4711".to_owned(),
            missing_operations: lacking.iter().map(|&operation| operation.to_owned()).collect(),
            time_limit: until,
            remarks: Vec::new(),
        };
        let end = OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap();
        let workers = [worker("w1", &[], None), worker("w2", &["segment"], Some(end))];
        let workers = workers.into_iter().map(|worker| (worker.name.clone(), worker)).collect();
        let kept = Mutex::new(Kept { workers, ..Kept::default() });
        Self { inputs, results: place.join("results"), kept }
    }

    pub(super) fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap()
    }

    /// Puts a study into a state.
    pub(super) fn set(&self, id: &str, state: StudyState, message: Option<&str>) {
        let mut kept = self.kept();
        let study = &mut kept.studies.get_mut(id).unwrap().0;
        study.state = state;
        study.message = message.map(str::to_owned);
        if state == StudyState::Complete {
            study.evaluations_done = study.evaluations;
            study.remaining_tasks = 0;
            let folder = self.results.join(id);
            fs::create_dir_all(folder.join("previews")).unwrap();
            for name in RESULTS {
                fs::write(folder.join(name), content(id, name)).unwrap();
            }
        }
    }

    /// Disconnects a worker.
    pub(super) fn lose(&self, worker: &str) {
        self.kept().workers.get_mut(worker).unwrap().state = WorkerState::Away;
    }

    fn missing(&self, submission: &Submission) -> Vec<InputDigest> {
        let odd = self.kept().odd_input;
        let mut missing: Vec<InputDigest> = submission.inputs.iter().map(|file| file.digest).collect();
        missing.retain(|&digest| !self.inputs.has(digest));
        missing.extend(odd);
        missing.dedup();
        missing
    }

    /// Returns the study with this id, or an error while the manager is down.
    fn find(&self, id: &str) -> Result<(MutexGuard<'_, Kept>, StudyStatus), ControlError> {
        let kept = self.up()?;
        let study = kept.studies.get(id).map(|(study, _)| study.clone());
        let study = study.ok_or_else(|| ControlError::Missing(format!("{id}: there is no such study")))?;
        Ok((kept, study))
    }

    fn up(&self) -> Result<MutexGuard<'_, Kept>, ControlError> {
        let mut kept = self.kept();
        kept.looks += 1;
        if kept.is_broken {
            return Err(ControlError::Defect("the journal is not what was written".to_owned()));
        }
        if kept.is_down || kept.refusals > 0 {
            kept.refusals = kept.refusals.saturating_sub(1);
            return Err(ControlError::NotReady("the journal is being read".to_owned()));
        }
        Ok(kept)
    }

    fn look(&self, id: &str) -> Result<StudyStatus, ControlError> {
        let (mut kept, study) = self.find(id)?;
        let Some(left) = kept.completes_after.as_mut() else { return Ok(study) };
        *left = left.saturating_sub(1);
        if *left > 0 || study.state.is_over() || study.state == StudyState::Waiting {
            return Ok(study);
        }
        let fails = kept.fails;
        drop(kept);
        self.set(id, StudyState::Complete, None);
        let mut kept = self.kept();
        let study = &mut kept.studies.get_mut(id).unwrap().0;
        study.failed = fails;
        Ok(study.clone())
    }
}

/// Returns the content of a study's result file. One file is longer than a block of a download.
pub(super) fn content(id: &str, name: &str) -> Vec<u8> {
    match name {
        "plan.json" => format!("{{\"study_digest\": \"digest of {id}\"}}").into_bytes(),
        "responses.csv" => format!("{id},{name}\n").repeat(50_000).into_bytes(),
        _ => format!("{id} {name}").into_bytes(),
    }
}

/// An answer with every field of a run.
fn located(query: &ObjectQuery) -> LocatedObjects {
    let object = LocatedObject {
        tile: query.image.clone().unwrap_or_default(),
        id: 3,
        low: vec![1.0, 2.0],
        high: vec![3.0, 4.0],
        centroid: vec![2.0, 3.0],
        distance: Some(0.5),
        centroid_um: Some(vec![0.5, 0.75]),
        distance_um: Some(0.125),
    };
    let missing = vec!["b".to_owned()];
    LocatedObjects {
        total: 7,
        objects: vec![object],
        regions: 1,
        missing,
        region_bytes: 900,
        moved_bytes: 90,
    }
}

fn one_run(study: String, evaluation: usize, tile: Option<String>) -> Explanation {
    let repeated = |seconds| RepeatedExecution {
        worker: "w2".to_owned(),
        cause: "worker lost".to_owned(),
        started: seconds,
        seconds,
    };
    let task = RecordedTask {
        stage: "segmentation".to_owned(),
        task: "t1".to_owned(),
        operation: "nuclei.candidates".to_owned(),
        source: "bucket".to_owned(),
        evaluation: Some(3),
        worker: Some("w1".to_owned()),
        holder: Some("w2".to_owned()),
        device: Some("accelerator".to_owned()),
        started: Some(1_700_000_000.25),
        seconds: Some(0.5),
        failed: true,
        repeated: vec![repeated(None), repeated(Some(1.5))],
    };
    let tile = tile.unwrap_or_else(|| "tile".to_owned());
    let run = ExplainedRun { phase: Some("phase-1-moat".to_owned()), evaluation, tile, tasks: vec![task] };
    Explanation { study, is_complete: true, runs: vec![run], ..Explanation::default() }
}

/// An answer with every field of totals.
fn totals(study: String) -> Explanation {
    let reused = BTreeMap::from([("value".to_owned(), 7)]);
    Explanation {
        study,
        notes: vec!["an execution has no end".to_owned()],
        tasks: vec![TaskSummary {
            executed: 5,
            seconds: 2.5,
            reused: reused.clone(),
            ..TaskSummary::default()
        }],
        workers: vec![WorkerSummary { worker: "w1".to_owned(), executed: 5, seconds: 2.5, reused: 7 }],
        tasks_executed: Some(5),
        tasks_reused: Some(reused),
        instances_lost: Some(1),
        instances_reopened: Some(2),
        ..Explanation::default()
    }
}

fn now<T: Send + 'static>(answer: Result<T, ControlError>) -> ControlFuture<'static, T> {
    Box::pin(std::future::ready(answer))
}

impl Control for Memory {
    fn submit(
        &self,
        submission: Submission,
        key: Option<String>,
        _: Submitter,
    ) -> ControlFuture<'_, Submitted> {
        let missing = self.missing(&submission);
        let mut kept = match self.up() {
            Ok(kept) => kept,
            Err(refused) => return now(Err(refused)),
        };
        kept.submissions += 1;
        if submission.name == "too large" {
            let told = "--memory: the segmentation needs 600 MB at once; no worker has more than 500 MB";
            return now(Err(ControlError::Study(told.to_owned())));
        }
        let known = key.as_ref().and_then(|key| kept.by_key.get(key).cloned());
        let id = known.unwrap_or_else(|| format!("s{}", kept.studies.len() + 1));
        if let Some(key) = key {
            kept.by_key.insert(key, id.clone());
        }
        let state = if missing.is_empty() { StudyState::Running } else { StudyState::Waiting };
        let study = StudyStatus {
            id: id.clone(),
            name: submission.name.clone(),
            state,
            evaluations_done: 1,
            evaluations: 12,
            tasks_executed: 70,
            remaining_tasks: 700,
            remaining_seconds: (state == StudyState::Running).then_some(90.5),
            failed: 0,
            submitted: OffsetDateTime::from_unix_timestamp(1_700_000_000).unwrap(),
            message: (!missing.is_empty()).then(|| format!("waits for {} files", missing.len())),
            deadline: Some(OffsetDateTime::from_unix_timestamp(1_700_003_600).unwrap()),
            budget: Some(12.5),
            remaining_work_seconds: (state == StudyState::Running).then_some(361.5),
            phase: (state == StudyState::Running).then_some(2),
            phases: Some(3),
            progress: (state == StudyState::Running).then_some(0.25),
            remarks: vec!["1 worker lost".to_owned()],
            cost: Some(cost()),
        };
        kept.studies.insert(id.clone(), (study, submission));
        if kept.lost_answers > 0 {
            kept.lost_answers -= 1;
            return now(Err(ControlError::NotReady("the journal is being written".to_owned())));
        }
        now(Ok(Submitted { id, missing }))
    }

    fn input_arrived(&self, _: InputDigest) -> ControlFuture<'_, ()> {
        now(self.up().map(|_| ()))
    }

    fn studies(&self) -> ControlFuture<'_, Vec<StudyStatus>> {
        let ids = self.up().map(|kept| kept.studies.keys().cloned().collect::<Vec<_>>());
        now(ids.and_then(|ids| ids.iter().map(|id| self.look(id)).collect()))
    }

    fn study<'a>(&'a self, id: &'a str) -> ControlFuture<'a, StudyStatus> {
        now(self.look(id))
    }

    fn cancel<'a>(&'a self, id: &'a str, _: String) -> ControlFuture<'a, StudyStatus> {
        now(self.find(id).and_then(|(mut kept, study)| {
            if study.state == StudyState::Complete {
                return Err(ControlError::Conflict(format!("study {id} is complete")));
            }
            let study = &mut kept.studies.get_mut(id).unwrap().0;
            study.state = StudyState::Canceled;
            Ok(study.clone())
        }))
    }

    fn forget<'a>(&'a self, id: &'a str) -> ControlFuture<'a, Forgotten> {
        now(self.find(id).and_then(|(mut kept, study)| {
            if !study.state.is_over() {
                return Err(ControlError::Conflict(format!("study {id} is {}", study.state)));
            }
            kept.studies.remove(id);
            Ok(Forgotten { id: id.to_owned(), bytes: 12 })
        }))
    }

    fn explain<'a>(&'a self, id: &'a str, selection: RunSelection) -> ControlFuture<'a, Explanation> {
        now(self.find(id).and_then(|(_, study)| {
            if study.state != StudyState::Complete {
                return Err(ControlError::Conflict(format!("study {id} is {}", study.state)));
            }
            match selection.evaluation {
                Some(evaluation) if evaluation > 12 => {
                    Err(ControlError::Study(format!("evaluation {evaluation}: 1 to 12 is allowed")))
                }
                Some(evaluation) => Ok(one_run(study.name, evaluation, selection.tile)),
                None => Ok(totals(study.name)),
            }
        }))
    }

    fn objects<'a>(&'a self, id: &'a str, query: ObjectQuery) -> ControlFuture<'a, LocatedObjects> {
        now(self.find(id).and_then(|(_, study)| {
            if study.state != StudyState::Complete {
                return Err(ControlError::Conflict(format!("study {id} retains no regions")));
            }
            if query.evaluation > 12 {
                return Err(ControlError::Study("evaluation: 0 to 12 is allowed".to_owned()));
            }
            Ok(located(&query))
        }))
    }

    fn result_names<'a>(&'a self, id: &'a str) -> ControlFuture<'a, Vec<String>> {
        now(self.find(id).and_then(|(kept, study)| {
            if study.state != StudyState::Complete {
                return Err(ControlError::Conflict(format!("study {id} is {}", study.state)));
            }
            Ok(RESULTS.iter().map(|&name| name.to_owned()).chain(kept.odd_result.clone()).collect())
        }))
    }

    fn result<'a>(&'a self, id: &'a str, name: &'a str) -> ControlFuture<'a, PathBuf> {
        now(self.find(id).map(|_| self.results.join(id).join(name)))
    }

    fn scaling(&self) -> ControlFuture<'_, ScalingStatus> {
        let price = CostEstimate { seconds: Some(7200.5), cost: None };
        let scaling = |active: usize| ScalingStatus {
            workers_desired: Some(5),
            workers_active: active as u32,
            reason: Some("infeasible".to_owned()),
            predicted_remaining_seconds: Some(7200.5),
            fastest: Some(price),
            pools: vec![PoolStatus {
                name: "w".to_owned(),
                desired: 5,
                running: 2,
                starting: 3,
                draining: 0,
                provisioned: Some(ProvisionStatus {
                    starting: 3,
                    joined: 2,
                    leaving: 0,
                    failed_starts: 1,
                    has_capacity: false,
                    remark: Some("start of worker w-1 failed: quota reached".to_owned()),
                }),
            }],
            drain_order: vec!["w1".to_owned()],
            work_by_slots: vec![
                WorkBySlots { slots: 4, seconds: 361.5 },
                WorkBySlots { slots: 16, seconds: 400.0 },
            ],
            ..ScalingStatus::default()
        };
        now(self.up().map(|kept| scaling(kept.workers.len())))
    }

    fn workers(&self) -> ControlFuture<'_, Vec<WorkerStatus>> {
        now(self.up().map(|kept| kept.workers.values().cloned().collect()))
    }

    fn drain<'a>(&'a self, name: &'a str) -> ControlFuture<'a, WorkerStatus> {
        now(self.up().and_then(|mut kept| {
            let worker = kept.workers.get_mut(name);
            let worker =
                worker.ok_or_else(|| ControlError::Missing(format!("{name}: there is no such worker")))?;
            if worker.state == WorkerState::Away {
                return Err(ControlError::Conflict(format!("worker {name} is away")));
            }
            worker.state = WorkerState::Draining;
            Ok(worker.clone())
        }))
    }

    fn is_ready(&self) -> ControlFuture<'_, bool> {
        now(if self.kept().is_down { Ok(false) } else { self.up().map(|_| true) })
    }

    fn metrics(&self) -> ControlFuture<'_, String> {
        let studies = self.up().map(|kept| kept.studies.len());
        now(studies.map(|studies| format!("# TYPE pleach_studies gauge\npleach_studies {studies}\n")))
    }
}
