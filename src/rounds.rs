//! Studies of several parts, wherever they are executed: a sample that grows until it is large enough, and phases that follow
//! each other.
//!
//! Who plans and executes a part, and into which folder, is the [`Runner`]'s; what survives a phase is written down before the
//! next one begins.

pub(crate) mod phases;

use crate::analysis::Collected;
use crate::execution::ExecutionResult;
use crate::exit::{CommandError, CommandResult};
use crate::output::record::{Convergence, RoundRecord};
use crate::report::WrittenResults;
use crate::results;
use crate::session::Session;
use crate::study::PreparedStudy;
use pleach_planner::Plan;
use pleach_planner::PlanRecord;

/// A part that has been executed, its results written.
pub(crate) struct RoundResult {
    pub(crate) prepared: PreparedStudy,
    pub(crate) plan: PlanRecord,
    pub(crate) collected: Collected,
    pub(crate) written: WrittenResults,
    pub(crate) session: Session,
    /// Bytes that were never let go of: a defect.
    pub(crate) left_bytes: u64,
}

/// Whoever plans and executes.
pub(crate) trait Runner {
    /// A plan of a study.
    fn plan(&mut self, prepared: &PreparedStudy) -> CommandResult<Plan>;

    /// Executes what of a plan is not known yet. `round` counts how often the sample has grown.
    fn execute(
        &mut self,
        prepared: &PreparedStudy,
        planned: &mut Plan,
        session: &Session,
        round: usize,
    ) -> CommandResult<ExecutionResult>;

    /// In words that nobody waits for what is left of the study.
    fn stopped(
        &self,
        prepared: &PreparedStudy,
        executed: &ExecutionResult,
        collected: &Collected,
        session: &Session,
    ) -> CommandError;
}

/// A study that has been executed, its sample as large as it was to be.
pub(crate) struct StudyResult {
    pub(crate) prepared: PreparedStudy,
    pub(crate) planned: Plan,
    pub(crate) executed: ExecutionResult,
    pub(crate) collected: Collected,
    /// How the sample grew, if it was to.
    pub(crate) convergence: Option<Convergence>,
}

/// Executes a study, and has its sample grow as far as it is to.
///
/// # Errors
/// What the runner's are, and [`CommandError::Input`] when a larger sample cannot be drawn or planned.
pub(crate) fn execute(
    runner: &mut impl Runner,
    first: PreparedStudy,
    mut planned: Plan,
    session: &mut Session,
) -> CommandResult<StudyResult> {
    let mut rounds: Vec<RoundRecord> = Vec::new();
    let mut grown: Option<PreparedStudy> = None;
    let mut before: Option<ExecutionResult> = None;
    let (mut executed, collected) = loop {
        let current = grown.as_ref().unwrap_or(&first);
        results::write_plan(current, &planned.record, &session.folder)?;
        let mut executed = runner.execute(current, &mut planned, session, rounds.len())?;
        before.iter().for_each(|before| executed.add_prior(before));
        let collected = Collected::new(current, &planned.study, &executed.finished.outcome);
        if executed.finished.outcome.stopped {
            return Err(runner.stopped(current, &executed, &collected, session));
        }
        let Some(until) = first.study.until else { break (executed, collected) };
        let evaluations = current.design.evaluations.len();
        let widest = collected.widest(current, until.metric)?;
        rounds.push(RoundRecord { evaluations, max_ci_width: widest });
        let is_narrow = widest.is_some_and(|widest| widest <= until.ci_width);
        let times = rounds.len() + 1;
        if is_narrow || first.design.evaluations.len() * times > until.max_evaluations {
            break (executed, collected);
        }
        let next = first.grown(times)?;
        session.here = executed.known(current, &planned.study);
        planned = runner.plan(&next)?;
        (grown, before) = (Some(next), Some(executed));
    };
    executed.count_skipped();
    let convergence = first.study.until.map(|until| Convergence::of(&first.study, until, rounds));
    Ok(StudyResult { prepared: grown.unwrap_or(first), planned, executed, collected, convergence })
}
