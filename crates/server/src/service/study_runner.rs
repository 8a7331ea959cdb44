//! Runs one study of the manager, from its plan to its results, on its own thread.
//!
//! Each phase, and each round of a growing sample, is a separate plan of the manager actor, one after another. Its
//! [`PlanId`] is the same after a restart. [`rounds`] decides their order.

mod cluster_executor;
mod error;
mod planning;
mod prior;
mod replan_forecasts;

use super::local::Lookup;
use super::mend;
use super::retained::RetainedOutputs;
use super::state::{StoredSubmission, StudyEnd};
use super::studies::{StudyContext, StudyProgress};
use crate::input_store::InputStore;
use cluster_executor::ClusterExecutor;
use error::StudyParts;
pub(crate) use error::StudyRunError;
pub(crate) use planning::PlannedCapacity;
use planning::{plan, replan};
use pleach_actors::input_files::gather;
use pleach_actors::manager::{GetView, ManagerActor};
use pleach_api::schema::StudyState;
use pleach_api::submission::PlanChoice;
use pleach_cache::PriorResults;
use pleach_dispatch::PlanId;
use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::memory_model::MinimumMemory;
use pleach_dispatch::message::FileContent;
use pleach_execution::executor::{self, ExecutionResult};
use pleach_execution::progress::ProgressCounts;
use pleach_execution::result_files::{self, phases::PlanOfPhases};
use pleach_execution::rounds::{self, RoundResult, StudyResult, phases};
use pleach_execution::session::{self, Existing, Session, SessionState};
use pleach_planner::Plan;
use pleach_report::gallery::previews::Previews;
use pleach_results::analysis::CollectedResponses;
use pleach_results::folder::Folder;
use pleach_results::journal;
use pleach_results::record::RunRecord;
use pleach_study::{Defect, PreparedStudy};
use pleach_workflow::Registry;
use prior::prior_results;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;
use time::OffsetDateTime;
use tracing::{info, warn};

/// Study that is ready to run.
pub(crate) struct ReadyStudy {
    whole: PreparedStudy,
    /// First phase. `None` for a study without phases.
    first: Option<PreparedStudy>,
    /// Task outputs to write as images.
    previews: Previews,
    /// Plan of the first phase, or of the whole study.
    planned: Plan,
    /// Costs of operations that the plan is made with.
    costs: CostModel,
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
        let overhead = plan.summary.bucket_overhead_seconds;
        let overhead =
            if overhead > 0.0 { format!(" with an overhead of {overhead:.1} s each") } else { String::new() };
        let (buckets, slots) = (plan.summary.buckets, plan.workers);
        format!("{buckets} buckets{overhead} for {slots} slots, planned in {seconds:.1} s")
    }

    /// Returns the minimum memory of the study, or of its first phase.
    pub(crate) fn needs(&self) -> &MinimumMemory {
        &self.planned.study.plan.needs
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

/// Prepares and plans a study of these operations for these workers, with the costs of earlier studies.
///
/// # Errors
/// [`StudyRunError`] if the study cannot be prepared or planned.
pub(crate) fn ready(
    id: u32,
    kept: &StoredSubmission,
    store: &InputStore,
    workers: PlannedCapacity,
    costs: CostModel,
    registry: &Registry,
) -> Result<ReadyStudy, StudyRunError> {
    let start = Instant::now();
    let lookup = Lookup::new(store);
    let whole = kept.submission.prepare(id, |file| find(store, &lookup, file), registry)?;
    let first = if whole.study.phases.is_empty() { None } else { Some(whole.of_phase(0, None)?) };
    let previews = Previews::find(&kept.submission.preview, &whole.study.workflow)?;
    let planned = plan(first.as_ref().unwrap_or(&whole), &costs, kept.submission.plan, &workers);
    Ok(ReadyStudy { whole, first, previews, planned: planned?, costs, start })
}

/// Runs the phases and rounds of a study on the manager's workers.
struct RoundRunner<'a, F> {
    shared: &'a Arc<StudyContext>,
    id: u32,
    choice: PlanChoice,
    previews: Previews,
    /// Present phase, from 0.
    phase: usize,
    /// Whether workers retain task results until the study ends: for later phases and rounds, and in the last of them
    /// for reattaching to a restarted manager.
    retains_results: bool,
    past: PriorResults,
    /// Costs of operations, learned by earlier studies and by earlier rounds and phases.
    costs: CostModel,
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
        let planned = plan(prepared, &self.costs, self.choice, &PlannedCapacity::of(&view));
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
        if !prepared.study.retained.is_empty() {
            let lookup = Lookup::new(&self.shared.store);
            let find = |file: &FileContent| find(&self.shared.store, &lookup, file);
            self.shared.retained.add(self.id, RetainedOutputs::new(prepared, study, &inputs, find));
        }
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
        self.costs.merge(&executed.costs);
        self.shared.keep_costs(&executed.costs);
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
        mut prepared: PreparedStudy,
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
        prepared.costs = self.costs.clone();
        let grown = rounds::execute(self, prepared, planned, &mut session)?;
        let StudyResult { prepared, planned, executed, collected, convergence } = grown;
        executed.records_lost.iter().for_each(|lost| warn!(study = id, "study {id}: {lost}"));
        let done = result_files::CompletedStudy {
            prepared: &prepared,
            plan: &planned.record,
            executed: &executed,
            prior: &self.past,
            spill: None,
            costs_lost: None,
            convergence: convergence.as_ref(),
            cost: self.shared.cost_record(id),
            start,
        };
        let written = result_files::write(&done, &collected, &self.previews, &session.folder)?;
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
    let ReadyStudy { whole, first, previews, planned, costs, start } = ready;
    let out = shared.state.results(id);
    let mut parts = RoundRunner {
        shared,
        id,
        choice,
        previews,
        phase: 0,
        retains_results: first.is_some() || whole.study.until.is_some(),
        past: prior_results(shared, id, choice, &whole),
        costs,
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
