//! Runs one study of the manager, from its plan to its results, on its own thread.
//!
//! Each phase, and each round of a growing sample, is a separate plan of the manager actor, one after another. Its
//! [`PlanId`] is the same after a restart. [`rounds`] decides their order.

mod error;
mod prior;

use super::local::Lookup;
use super::mend;
use super::state::{StoredSubmission, StudyEnd};
use super::studies::{StudyContext, StudyProgress};
use crate::input_store::InputStore;
use error::StudyParts;
pub(crate) use error::StudyRunError;
use pleach_actors::embedded::PlanOutcome;
use pleach_actors::input_files::gather;
use pleach_actors::manager::{
    GetSnapshot, GetView, ManagerActor, ManagerView, RecordDurable, ReplacePlan, StartPlan, StudyRequest,
    SuspendStudy,
};
use pleach_api::schema::StudyState;
use pleach_api::submission::PlanChoice;
use pleach_cache::{PriorResults, StudyLabel};
use pleach_dispatch::PlanId;
use pleach_dispatch::memory_model::MinimumMemory;
use pleach_dispatch::message::{FileContent, InputFile};
use pleach_dispatch::plan::{ExecutionPlan, PlanError};
use pleach_dispatch::study::{ReplacementPlan, Study};
use pleach_execution::executor::{self, ExecutionRequest, ExecutionResult, Executor};
use pleach_execution::progress::ProgressCounts;
use pleach_execution::result_files::{self, phases::PlanOfPhases};
use pleach_execution::rounds::{self, RoundResult, StudyResult, phases};
use pleach_execution::session::{self, Existing, Session, SessionState};
use pleach_planner::{
    BucketLimitOptions, Plan, PlanOptions, PlanRequest, PlanningError, StudyReplanner, WorkerMemory,
};
use pleach_regions::RegionKey;
use pleach_report::gallery::previews::Previews;
use pleach_results::analysis::CollectedResponses;
use pleach_results::folder::Folder;
use pleach_results::journal;
use pleach_results::record::RunRecord;
use pleach_reuse::BUCKETS_PER_CORE;
use pleach_study::{Defect, PreparedStudy};
use prior::prior_results;
use std::collections::HashMap;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use time::OffsetDateTime;
use tokio::sync::oneshot;
use tracing::{info, warn};

/// Interval between checks for workers with too little memory for a study's plan, 1 s.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Study that is ready to run.
pub(crate) struct ReadyStudy {
    whole: PreparedStudy,
    /// First phase. `None` for a study without phases.
    first: Option<PreparedStudy>,
    /// Plan of the first phase, or of the whole study.
    planned: Plan,
    start: Instant,
}

impl ReadyStudy {
    /// Returns the number of evaluations that are known before the study runs.
    pub(crate) fn evaluations(&self) -> usize {
        self.whole.design.evaluations.len()
    }

    pub(crate) fn tiles(&self) -> usize {
        self.whole.tiles.len()
    }

    /// Returns a summary of the plan for the operator's log.
    pub(crate) fn summary(&self) -> String {
        let plan = &self.planned.record;
        let seconds = plan.planning_seconds.unwrap_or_default();
        format!("{} buckets for {} slots, planned in {seconds:.1} s", plan.summary.buckets, plan.workers)
    }

    /// Returns the minimum memory of the study, or of its first phase.
    pub(crate) fn needs(&self) -> &MinimumMemory {
        &self.planned.study.plan.needs
    }
}

/// Capacity of the workers that a study is planned for.
#[derive(Clone, Debug)]
pub(crate) struct PlannedCapacity {
    slots: NonZeroU32,
    /// Memory of each worker.
    memory: Vec<WorkerMemory>,
}

impl PlannedCapacity {
    /// Returns the capacity of the present workers, at least 1 slot.
    pub(crate) fn of(view: &ManagerView) -> Self {
        let slots: u32 = view.workers.iter().map(|worker| worker.slots).sum();
        let memory = view.workers.iter().map(|worker| WorkerMemory {
            memory_bytes: worker.memory_bytes,
            spill_bytes: worker.spill_bytes,
        });
        Self { slots: NonZeroU32::new(slots).unwrap_or(NonZeroU32::MIN), memory: memory.collect() }
    }

    /// Returns the number of workers with too little memory for a plan with these needs.
    fn too_small(&self, needs: &MinimumMemory) -> usize {
        self.memory.iter().filter(|memory| !memory.fits(needs)).count()
    }
}

/// Returns a local path of a file. The companions of a slide in several files have the same relative paths as at the
/// client. `None` if a file is missing or the links to companions cannot be created.
fn find(store: &InputStore, lookup: &Lookup<'_>, file: &FileContent) -> Option<PathBuf> {
    let place = |part: FileContent| {
        let digest = blake3::Hash::from_bytes(part.digest).into();
        // A path that is no regular file now was one at the submission, so it counts as missing.
        lookup.find(Path::new(&part.path), digest, part.bytes).ok().flatten()
    };
    let places = file.parts().map(place).collect::<Option<Vec<PathBuf>>>()?;
    gather(store.folder(), file, places).ok()
}

/// Prepares and plans a study for these workers.
///
/// # Errors
/// [`StudyRunError`] if the study cannot be prepared or planned.
pub(crate) fn ready(
    id: u32,
    kept: &StoredSubmission,
    store: &InputStore,
    workers: PlannedCapacity,
) -> Result<ReadyStudy, StudyRunError> {
    let start = Instant::now();
    let lookup = Lookup::new(store);
    let whole = kept.submission.prepare(id, |file| find(store, &lookup, file))?;
    let first = if whole.study.phases.is_empty() { None } else { Some(whole.of_phase(0, None)?) };
    let planned = plan(first.as_ref().unwrap_or(&whole), kept.submission.plan, &workers);
    Ok(ReadyStudy { whole, first, planned: planned?, start })
}

fn plan(
    prepared: &PreparedStudy,
    choice: PlanChoice,
    workers: &PlannedCapacity,
) -> Result<Plan, PlanningError> {
    let request = PlanRequest {
        options: PlanOptions::new(choice.strategy, choice.reuse),
        buckets: BucketLimitOptions {
            max_bucket_size: choice.max_bucket_size,
            max_buckets: choice.max_buckets,
        },
        slots: workers.slots,
        workers: &workers.memory,
        tree_fallback: true,
    };
    let mut plan = pleach_planner::plan(prepared.planning_input(), &request)?;
    plan.study.plan.durable = prepared.study.durable;
    Ok(plan)
}

/// Takes the replanner out of a plan, for replanning while the study runs. The number of buckets may fall only if the
/// plan has no more buckets than its slots need. `None` for strategies other than TRTMA and ranges, and if the user
/// gave the number of buckets.
fn replan(planned: &mut Plan, choice: PlanChoice) -> Option<StudyReplanner> {
    let Plan { study, record, .. } = planned;
    if !matches!(record.strategy, "trtma" | "ranges") || choice.max_buckets.is_some() {
        return None;
    }
    let most = record.max_buckets.and_then(NonZeroUsize::new).unwrap_or(NonZeroUsize::MAX);
    let usual = BUCKETS_PER_CORE.saturating_mul(NonZeroUsize::new(record.workers as usize)?);
    // More buckets than usual were needed for the workers' memory.
    let least = if most > usual { most } else { NonZeroUsize::MIN };
    Some(study.take_replanner(most, least))
}

/// Executes a plan on the manager's workers.
struct ClusterExecutor<'a> {
    shared: &'a Arc<StudyContext>,
    prepared: &'a PreparedStudy,
    choice: PlanChoice,
    id: PlanId,
    /// See [`RoundRunner::retains_results`].
    retains: bool,
    label: Option<Arc<StudyLabel>>,
    inputs: HashMap<RegionKey, InputFile>,
    replan: Option<StudyReplanner>,
}

impl Executor for ClusterExecutor<'_> {
    type Error = StudyRunError;

    fn execute(&mut self, work: ExecutionRequest) -> Result<PlanOutcome, StudyRunError> {
        let (done, mut outcome) = oneshot::channel();
        let mut needs = work.plan.needs.clone();
        let study = StudyRequest {
            // Built on this thread, because it takes seconds for a large plan.
            study: Study::resume(work.plan, &work.finished).map_err(Defect::new)?,
            inputs: std::mem::take(&mut self.inputs),
            observer: work.observer,
            replanner: self.replan.take().map(|replan| Box::new(replan) as _),
            retains_results: self.retains,
            label: self.label.clone(),
            done,
        };
        let begun = self.shared.manager.send(StartPlan { id: self.id, study });
        self.shared.network.block_on(begun).map_err(Defect::new)?;
        let mut tried = Vec::new();
        let outcome = loop {
            let waited = async { tokio::time::timeout(LOOK_EVERY, &mut outcome).await };
            match self.shared.network.block_on(waited) {
                Ok(outcome) => break outcome.map_err(Defect::new)?,
                Err(_) => self.suit(&mut needs, &mut tried)?,
            }
        };
        Ok(PlanOutcome { outcome, peak_bytes: 0, retained_bytes: 0 })
    }

    fn broken(&self) -> Box<dyn FnOnce() + Send> {
        let (manager, id) = (self.shared.manager.clone(), self.id);
        Box::new(move || manager.do_send(SuspendStudy(id)))
    }

    fn durable(&self) -> Box<dyn FnMut(u64) + Send> {
        let (manager, study) = (self.shared.manager.clone(), self.id);
        Box::new(move |records| manager.do_send(RecordDurable { study, records }))
    }
}

impl ClusterExecutor<'_> {
    /// Moves unstarted instances to buckets that fit workers with less memory, if such workers have joined and such a
    /// plan exists. `needs` is the minimum memory of the present plan, `tried` the memory of the workers at the last
    /// attempt.
    fn suit(&self, needs: &mut MinimumMemory, tried: &mut Vec<WorkerMemory>) -> Result<(), StudyRunError> {
        let view = self.shared.network.block_on(self.shared.manager.send(GetView)).map_err(Defect::new)?;
        let workers = PlannedCapacity::of(&view);
        let mut memory = workers.memory.clone();
        // A set of sizes: more workers of a known size, or another order, need no second attempt.
        memory.sort_unstable();
        memory.dedup();
        let too_small = workers.too_small(needs);
        if too_small == 0 || *tried == memory {
            return Ok(());
        }
        *tried = memory;
        let mut planned = plan(self.prepared, self.choice, &workers)?;
        let new_needs = planned.study.plan.needs.clone();
        if workers.too_small(&new_needs) >= too_small {
            return Ok(());
        }
        // After planning, which takes long: changes after the snapshot can make the replacement invalid.
        let snapshot = self.shared.manager.send(GetSnapshot(self.id));
        let Some(snapshot) = self.shared.network.block_on(snapshot).map_err(Defect::new)? else {
            // The plan has ended meanwhile.
            return Ok(());
        };
        let ExecutionPlan { buckets, sharing, .. } = std::mem::take(&mut planned.study.plan);
        let replacement = ReplacementPlan::new(buckets, &snapshot, new_needs.clone(), sharing);
        let replacement = replacement.map_err(Defect::new)?;
        let replanner = replan(&mut planned, self.choice).map(|replan| Box::new(replan) as _);
        let recut = self.shared.manager.send(ReplacePlan { id: self.id, replacement, replanner });
        match self.shared.network.block_on(recut).map_err(Defect::new)? {
            Ok(()) => {
                let (id, megabytes) = (self.id.study, new_needs.min_bytes.div_ceil(1_000_000));
                info!(
                    study = id,
                    megabytes,
                    "study {id} replanned for less memory per worker: needs {megabytes} MB at once"
                );
                *needs = new_needs;
            }
            // Instances became unstarted after the snapshot.
            Err(PlanError::NotInOneBucket(_)) => tried.clear(),
            Err(error) => {
                warn!(
                    study = self.id.study,
                    "failed to replan study {} for less memory: {error}", self.id.study
                )
            }
        }
        Ok(())
    }
}

/// Runs the phases and rounds of a study on the manager's workers.
struct RoundRunner<'a, F> {
    shared: &'a Arc<StudyContext>,
    id: u32,
    choice: PlanChoice,
    /// Present phase, from 0.
    phase: usize,
    /// Whether workers retain task results until the study ends: for later phases and rounds, and in the last of them
    /// for reattaching to a restarted manager.
    retains_results: bool,
    past: PriorResults,
    /// Counts of earlier phases that do not include this phase.
    before: ProgressCounts,
    /// Tasks that earlier rounds of this phase ran.
    rounds_tasks: u64,
    /// Receives the progress of each round.
    follow: F,
}

impl<F: FnMut(StudyProgress)> rounds::Runner for RoundRunner<'_, F> {
    type Error = StudyRunError;

    fn plan(&mut self, prepared: &PreparedStudy) -> Result<Plan, StudyRunError> {
        let view = self.shared.network.block_on(self.shared.manager.send(GetView)).map_err(Defect::new)?;
        let planned = plan(prepared, self.choice, &PlannedCapacity::of(&view));
        Ok(planned?)
    }

    fn execute(
        &mut self,
        prepared: &PreparedStudy,
        planned: &mut Plan,
        session: &Session,
        round: usize,
    ) -> Result<ExecutionResult, StudyRunError> {
        let replan = replan(planned, self.choice);
        let Plan { study, record, .. } = planned;
        let number = |number: usize, parts: StudyParts| {
            let too_many =
                |_| StudyRunError::TooManyParts { study: prepared.study.name.clone(), number, parts };
            u16::try_from(number).map_err(too_many)
        };
        let id = PlanId {
            study: self.id,
            phase: number(self.phase, StudyParts::Phases)?,
            round: number(round, StudyParts::Rounds)?,
        };
        let inputs = self.shared.input_files(self.id, prepared);
        let (shared, choice) = (self.shared, self.choice);
        let (label, retains) = (self.past.label.clone(), self.retains_results);
        let mut cluster = ClusterExecutor { shared, prepared, choice, id, retains, label, inputs, replan };
        let (stage, tree) = result_files::merged(record, &prepared.study.workflow.stages);
        let before = ProgressCounts { tasks_run: self.before.tasks_run + self.rounds_tasks, ..self.before };
        let (phase, evaluations) = (self.phase + 1, prepared.design.evaluations.len());
        let follow =
            |progress| (self.follow)(StudyProgress { progress, stage, tree, phase, evaluations, before });
        let executed = executor::execute(prepared, study, session, &self.past, &mut cluster, None, follow)?;
        self.rounds_tasks += executed.finished.outcome.tasks.values().map(|total| total.runs).sum::<u64>();
        Ok(executed)
    }

    fn stopped(
        &self,
        _: &PreparedStudy,
        _: &ExecutionResult,
        _: &CollectedResponses,
        _: &Session,
    ) -> StudyRunError {
        StudyRunError::Canceled(self.id)
    }
}

impl<F: FnMut(StudyProgress)> RoundRunner<'_, F> {
    /// Executes the study, or a phase of it, and writes its results into a folder.
    fn part(
        &mut self,
        prepared: PreparedStudy,
        planned: Plan,
        out: &Path,
        start: Instant,
    ) -> Result<RoundResult, StudyRunError> {
        mend::owner_of(&self.shared.state, self.id, out, &prepared.digest)?;
        mend::journal_in(&self.shared.state, self.id, out)?;
        // Results without a journal come from a manager that ended before it recorded the study's end.
        let has_journal = out.join(journal::NAME).exists();
        let existing = if has_journal { Existing::Resume } else { Existing::Overwrite };
        let mut session = match session::begin(out, &prepared, existing)? {
            SessionState::Complete(_) => {
                return Err(Defect::new("results of a study that has not ended").into());
            }
            SessionState::Open(session) => session,
        };
        let id = self.id;
        if session.cut_bytes > 0 {
            warn!(
                study = id,
                "study {id}: the last {} bytes of its journal were incomplete or corrupt; their results are \
                 recomputed",
                session.cut_bytes
            );
        }
        self.rounds_tasks = 0;
        let grown = rounds::execute(self, prepared, planned, &mut session)?;
        let StudyResult { prepared, planned, executed, collected, convergence } = grown;
        let done = result_files::CompletedStudy {
            prepared: &prepared,
            plan: &planned.record,
            executed: &executed,
            prior: &self.past,
            spill: None,
            costs_lost: None,
            convergence: convergence.as_ref(),
            start,
        };
        let written = result_files::write(&done, &collected, &Previews::default(), &session.folder)?;
        Ok(RoundResult { prepared, plan: planned.record, collected, written, session, retained_bytes: 0 })
    }

    /// Executes all phases and writes their combined results.
    fn phases(
        &mut self,
        whole: &PreparedStudy,
        first: &PreparedStudy,
        planned: Plan,
        out: &Path,
        start: Instant,
    ) -> Result<RunRecord, StudyRunError> {
        let (names, digest) = (phases::names(&whole.study), phases::digest(first));
        mend::owner_of(&self.shared.state, self.id, out, &digest)?;
        let folder = Folder::take(out, &digest)?;
        folder.write_json("plan.json", &PlanOfPhases::new(&whole.study.name, &digest, &names))?;
        let mut planned = Some(planned);
        let id = self.id;
        let notify = |text: &str| warn!(study = id, "study {id}: {text}");
        let parts = phases::execute(whole, out, notify, |phase, out| {
            let start = Instant::now();
            self.phase = phase.number;
            let planned = planned.take().map_or_else(|| rounds::Runner::plan(self, &phase.prepared), Ok)?;
            let (number, of) = (phase.number + 1, names.len());
            info!(study = self.id, phase = number, "study {}: phase {number} of {of} begins", self.id);
            let part = self.part(phase.prepared, planned, out, start)?;
            self.before.evaluations += part.written.run.evaluations;
            self.before.failed_runs += part.written.run.failed;
            self.before.tasks_run += self.rounds_tasks;
            Ok::<_, StudyRunError>(part)
        })?;
        let run = result_files::phases::write(
            &phases::report_phases(&parts, &names),
            start.elapsed().as_secs_f64(),
            &folder,
        )?;
        // Ends the sessions only now, the last phase first: a missing journal means that all results are written.
        parts.iter().rev().try_for_each(|(part, _)| part.session.end(true))?;
        Ok(run)
    }
}

/// Address of the manager actor.
pub(crate) type Manager = actix::Addr<ManagerActor>;

/// Executes a study and writes its results. `follow` receives the progress of each round. Returns the study's end and
/// the number of reused tasks, or `None` if the study was canceled.
///
/// # Errors
/// [`StudyRunError`] if the study could not be executed or its results not be written. The caller can run it again.
pub(crate) fn run(
    shared: &Arc<StudyContext>,
    id: u32,
    choice: PlanChoice,
    ready: ReadyStudy,
    follow: impl FnMut(StudyProgress),
) -> Result<Option<(StudyEnd, u64)>, StudyRunError> {
    let ReadyStudy { whole, first, planned, start } = ready;
    let out = shared.state.results(id);
    let mut parts = RoundRunner {
        shared,
        id,
        choice,
        phase: 0,
        retains_results: first.is_some() || whole.study.until.is_some(),
        past: prior_results(shared, id, choice, &whole),
        before: ProgressCounts::default(),
        rounds_tasks: 0,
        follow,
    };
    let (run, place) = match first {
        Some(first) => (parts.phases(&whole, &first, planned, &out, start), " of its phases"),
        None => {
            let run = parts.part(whole, planned, &out, start).and_then(|part| {
                part.session.end(true)?;
                Ok(part.written.run)
            });
            (run, "")
        }
    };
    let run = match run {
        Err(StudyRunError::Canceled(_)) => return Ok(None),
        run => run?,
    };
    let reused = run.tasks_reused.values().sum();
    let ended = StudyEnd {
        state: StudyState::Complete,
        message: (run.failed > 0).then(|| format!("{} runs failed; see failed.csv{place}", run.failed)),
        evaluations_done: run.evaluations as u64,
        tasks_executed: run.tasks_executed,
        failed: run.failed as u64,
        ended: Some(OffsetDateTime::now_utc()),
        results: Some(super::results::checksums(&out)?),
    };
    Ok(Some((ended, reused)))
}
