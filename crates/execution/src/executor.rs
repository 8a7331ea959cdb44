//! Executes a planned study, in this process or on a cluster, with progress and journal. Known results, from a journal,
//! an earlier round or the task cache, are not computed again.

mod cost_learner;
mod known_responses;
mod task_counts;

use crate::inputs;
use crate::progress::{Mark, Progress, ProgressDisplay, Run, Totals};
use crate::session::Session;
use cost_learner::CostLearner;
use known_responses::KnownResponses;
use parking_lot::Mutex;
use pleach_actors::embedded::{EmbeddedEngine, EngineConfig, PlanOutcome, PlanRun};
use pleach_actors::manager::{Observer, StudyEvent};
use pleach_actors::spill::SpillStore;
use pleach_actors::worker::Resources;
use pleach_cache::PriorResults;
use pleach_dispatch::InstanceId;
use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::plan::ExecutionPlan;
use pleach_planner::PlannedStudy;
use pleach_regions::MemoryCounter;
use pleach_results::journal::{self, JournaledResponse, Writer, WriterError};
use pleach_results::provenance::{self, PlanTable, Recorder, RecordingObserver};
use pleach_study::{Defect, PreparedStudy};
use std::collections::{BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use task_counts::{Counts, TaskCounts};
use thiserror::Error;
use tokio::sync::oneshot;

/// A plan cannot be executed to its end.
#[derive(Debug, Error)]
pub enum ExecutionError {
    /// The journal cannot be written. Its responses up to the error are on disk.
    #[error("--out {}: {cause}; --resume continues the study", folder.display())]
    Journal {
        /// The result folder.
        folder: PathBuf,
        /// Error of the journal.
        #[source]
        cause: WriterError,
    },
    /// A defect of pleach.
    #[error("{0}")]
    Defect(#[from] Defect),
}

/// Result of an executed plan.
#[derive(Debug)]
pub struct ExecutionResult {
    /// Results, failures and task counts of the plan, with the results known before, and its peak memory.
    pub finished: PlanOutcome,
    /// Tasks saved by sharing within buckets beyond reuse trees.
    pub(crate) tasks_shared_in_buckets: u64,
    /// Tasks not executed because responses followed from the task cache of earlier studies.
    pub(crate) tasks_recalled: u64,
    /// Wall seconds of the walk through the task cache.
    pub(crate) recall_seconds: f64,
    /// Cost model of operations after the execution.
    pub costs: CostModel,
    /// Wall seconds of the execution.
    pub(crate) execution_seconds: f64,
    /// Reason why provenance records are missing, in this round or an earlier one. `None` if all are written.
    pub records_lost: Option<String>,
    /// Tasks needed only for results that earlier processes recorded.
    skipped: Counts,
}

impl ExecutionResult {
    /// Adds the tasks that an earlier round of the same phase executed in this process.
    pub(crate) fn add_prior(&mut self, before: &Self) {
        for (task, total) in &before.finished.outcome.tasks {
            self.finished.outcome.tasks.entry(*task).or_default().add(total);
        }
        self.tasks_recalled += before.tasks_recalled;
        self.recall_seconds += before.recall_seconds;
        self.records_lost = before.records_lost.clone().or(self.records_lost.take());
    }

    /// Counts the tasks needed only for results of earlier processes as if this process had run them.
    pub(crate) fn count_skipped(&mut self) {
        for (task, runs) in std::mem::take(&mut self.skipped) {
            self.finished.outcome.tasks.entry(task).or_default().runs += runs;
        }
    }

    /// Returns the known responses.
    pub(crate) fn known_responses(
        &self,
        prepared: &PreparedStudy,
        planned: &PlannedStudy,
    ) -> Vec<JournaledResponse> {
        let stage = prepared.study.workflow.response.stage;
        let first = usize::from(!prepared.defaults_run());
        let runs = (first..=prepared.design.evaluations.len())
            .flat_map(|evaluation| (0..prepared.study.tiles.len()).map(move |tile| (evaluation, tile)));
        let known = |(evaluation, tile)| {
            let results = self.finished.outcome.results.get(planned.instance(evaluation, tile, stage))?;
            Some(JournaledResponse { evaluation, tile, results })
        };
        runs.filter_map(known).collect()
    }
}

/// Plan to execute.
pub struct ExecutionRequest {
    /// Plan of the whole study, including instances with known results.
    pub plan: ExecutionPlan,
    /// Instances with known results.
    pub finished: BTreeSet<InstanceId>,
    /// Follows the study.
    pub observer: Observer,
    /// Cost model of operations, updated from measured times during the execution.
    pub costs: Arc<Mutex<CostModel>>,
}

/// Executor of plans: this process or a cluster.
pub trait Executor {
    /// Error of the executor and of the executions on it.
    type Error: From<ExecutionError>;

    /// Executes a plan to its end, or until it is stopped.
    fn execute(&mut self, work: ExecutionRequest) -> Result<PlanOutcome, Self::Error>;

    /// Returns whether the executor updates the cost model of a request. Otherwise the model learns from its reports.
    fn learns_costs(&self) -> bool {
        false
    }

    /// Returns the memory counter of regions. A new counter if this process holds no regions.
    fn ledger(&self) -> Arc<MemoryCounter> {
        Arc::default()
    }

    /// Returns the action for a journal that can no longer be written. It stops the execution.
    fn broken(&self) -> Box<dyn FnOnce() + Send>;

    /// Returns the callback for the number of responses on disk, among those that this execution reported.
    fn durable(&self) -> Box<dyn FnMut(u64) + Send>;
}

/// Executes studies in this process, one after another.
pub struct LocalExecutor {
    /// Manager, worker and storage in this process. They persist between plans.
    pub engine: EmbeddedEngine,
    /// Retains task results for the next plan, within the memory limit.
    pub retains_results: bool,
    stop: Arc<dyn Fn() + Send + Sync>,
}

impl LocalExecutor {
    /// Starts the engine for studies that read the files of this study.
    pub fn start(
        prepared: &PreparedStudy,
        prior: &PriorResults,
        spill: Option<Arc<SpillStore>>,
        resources: Resources,
        stopped: oneshot::Receiver<()>,
        stop: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, Defect> {
        let engine = EmbeddedEngine::start(EngineConfig {
            registry: prepared.registry.clone(),
            sources: inputs::sources(prepared),
            resources,
            prior: prior.clone(),
            spill,
            stop: stopped,
        });
        Ok(Self { engine: engine.map_err(Defect::new)?, retains_results: false, stop: Arc::new(stop) })
    }
}

impl Executor for LocalExecutor {
    type Error = ExecutionError;

    fn execute(&mut self, work: ExecutionRequest) -> Result<PlanOutcome, ExecutionError> {
        let ExecutionRequest { plan, finished, observer, costs } = work;
        let executed = self.engine.run(PlanRun {
            plan,
            finished,
            costs,
            observer,
            retains_results: self.retains_results,
        });
        Ok(executed.map_err(Defect::new)?)
    }

    // The worker in this process learns from each task, and predicts with the same model.
    fn learns_costs(&self) -> bool {
        true
    }

    fn ledger(&self) -> Arc<MemoryCounter> {
        self.engine.ledger()
    }

    fn broken(&self) -> Box<dyn FnOnce() + Send> {
        let stop = Arc::clone(&self.stop);
        Box::new(move || stop())
    }

    fn durable(&self) -> Box<dyn FnMut(u64) + Send> {
        Box::new(|_| {})
    }
}

/// Executes the instances of a plan without known results. The outcome has the results of the whole study, including
/// those of earlier processes. Its tasks are those that ran. `ExecutionResult::count_skipped` adds the others.
/// `follow` receives the progress once, before the execution.
///
/// # Errors
/// [`ExecutionError::Journal`] if responses can no longer be written.
/// [`Defect`] if the plan cannot be executed.
pub fn execute<E: Executor>(
    prepared: &PreparedStudy,
    planned: &mut PlannedStudy,
    session: &Session,
    prior: &PriorResults,
    executor: &mut E,
    display: Option<Box<dyn ProgressDisplay>>,
    follow: impl FnOnce(Progress),
) -> Result<ExecutionResult, E::Error> {
    let known = KnownResponses::gather(prepared, planned, session, prior);
    let finished = known.instances();
    // Moved, because the executor owns the plan, and a clone would double the memory of a large one.
    let plan = std::mem::take(&mut planned.plan);
    let counts = TaskCounts::new(&plan, &finished, &known).map_err(ExecutionError::Defect)?;
    let (first_runs, shared_runs) = runs(prepared, planned, plan.instances.len());
    let mark = Mark::in_folder(session.folder.path());
    let progress = Progress::new(display, totals(prepared, &counts, shared_runs), executor.ledger(), mark);
    progress.count_journaled(known.runs());
    follow(progress.clone());

    let table = PlanTable::new(
        prepared,
        planned,
        &plan,
        known.sources(),
        (counts.shared_in_buckets, counts.recalled),
    );
    let records = Recorder::start(&session.folder.path().join(provenance::NAME), &table);
    drop(table);
    let writer = record(session, executor, progress.clone()).map_err(ExecutionError::Defect)?;
    let recording = records.as_ref().ok().map(Recorder::observer);
    let costs = Arc::new(Mutex::new(prepared.costs.clone()));
    let learner = (!executor.learns_costs()).then(|| CostLearner::new(prepared, planned, Arc::clone(&costs)));
    let observer = observer(first_runs, writer.recorder(), recording, learner, progress.clone());
    let work = ExecutionRequest { plan, finished, observer, costs: Arc::clone(&costs) };
    let start = Instant::now();
    let executed = executor.execute(work);
    let execution_seconds = start.elapsed().as_secs_f64();
    // The journal ends before an execution error returns: reported responses must reach the disk.
    let written = writer.finish();
    // A study continues without records, so that only its results need the disk.
    let recorded = records.and_then(Recorder::finish);
    progress.finish();
    // The executor's own error comes first. A broken journal stops the execution without one.
    let mut executed = executed?;
    written.map_err(|cause| {
        let folder = session.folder.path().to_owned();
        ExecutionError::Journal { folder, cause }
    })?;

    let recall_seconds = known.recall_seconds;
    known.add_to(&mut executed.outcome.results);
    let costs = costs.lock().clone();
    Ok(ExecutionResult {
        finished: executed,
        tasks_shared_in_buckets: counts.shared_in_buckets,
        tasks_recalled: counts.recalled,
        recall_seconds,
        costs,
        skipped: counts.skipped,
        execution_seconds,
        records_lost: recorded.err().map(|error| error.to_string()),
    })
}

/// Returns the totals of the progress. `shared_runs` is the second table of [`runs`].
fn totals(prepared: &PreparedStudy, counts: &TaskCounts, shared_runs: HashMap<Run, Vec<Run>>) -> Totals {
    Totals {
        evaluations: prepared.design.evaluations.len(),
        tiles: prepared.study.tiles.len(),
        tasks: counts.open_tasks(),
        known_tasks: counts.known,
        tasks_a_run: prepared.study.workflow.stages.iter().map(|stage| stage.tasks.len() as u64).sum(),
        shared_in_buckets: counts.shared_in_buckets,
        recalled: counts.recalled,
        shared_runs,
        remaining_work: counts.remaining_work(prepared),
    }
}

/// Starts the journal writer. Responses on disk are reported to the executor and count as progress.
fn record(session: &Session, executor: &impl Executor, progress: Progress) -> Result<Writer, Defect> {
    let (mut durable, mut records) = (executor.durable(), 0);
    let acknowledge = move |known: &[JournaledResponse]| {
        records += known.len() as u64;
        durable(records);
        progress.count_journaled(known.iter().map(|known| (known.evaluation, known.tile)));
    };
    session.record(acknowledge, executor.broken())
}

/// Returns the observer of an execution: records responses and the provenance of tasks, learns costs, and counts failed
/// instances and finished tasks. `first_runs` is the first table of [`runs`].
fn observer(
    first_runs: Vec<Option<Run>>,
    recorder: journal::Recorder,
    recording: Option<RecordingObserver>,
    learner: Option<CostLearner>,
    progress: Progress,
) -> Observer {
    Box::new(move |event: StudyEvent<'_>| match event {
        StudyEvent::Reported { instance, results } => {
            // The run counts as done once the journal has its response on disk (`record`).
            if let Some((evaluation, tile)) = first_runs[instance.index()] {
                recorder.record(JournaledResponse { evaluation, tile, results });
            }
        }
        StudyEvent::Failed(instance) => {
            first_runs[instance.index()].into_iter().for_each(|run| progress.failed(run));
        }
        StudyEvent::Done(reports) => {
            recording.iter().for_each(|recording| recording.report(&reports));
            learner.iter().for_each(|learner| learner.learn(&reports));
            progress.done(reports.tasks());
        }
        StudyEvent::BucketOverheads(seconds) => {
            learner.iter().for_each(|learner| learner.learn_overheads(seconds));
        }
        StudyEvent::Reopened(instance) => {
            recording.iter().for_each(|recording| recording.reopened(instance));
        }
        StudyEvent::Lost { worker, lease, instances } => {
            recording.iter().for_each(|recording| recording.lost(worker, lease, instances));
        }
        StudyEvent::Progress(_) => {}
    })
}

/// Returns two tables. The first has, for each of the plan's `instances` that gives a response, the first run that
/// needs it. The second maps that run to the further runs of evaluations with the same response.
fn runs(
    prepared: &PreparedStudy,
    planned: &PlannedStudy,
    instances: usize,
) -> (Vec<Option<Run>>, HashMap<Run, Vec<Run>>) {
    let stage = prepared.study.workflow.response.stage;
    let first = usize::from(!prepared.defaults_run());
    let (mut first_runs, mut shared_runs) = (vec![None; instances], HashMap::<Run, Vec<Run>>::new());
    for evaluation in first..=prepared.design.evaluations.len() {
        for tile in 0..prepared.study.tiles.len() {
            let instance = planned.instance(evaluation, tile, stage);
            let run = *first_runs[instance.index()].get_or_insert_with(|| planned.first_run(instance));
            if (evaluation, tile) != run {
                shared_runs.entry(run).or_default().push((evaluation, tile));
            }
        }
    }
    (first_runs, shared_runs)
}
