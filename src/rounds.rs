//! Executes studies in phases and rounds, in this process or on a cluster: a sample grows round by round until it has
//! converged, and each phase varies the survivors of the phase before.
//!
//! A [`Runner`] plans and executes each round. The survivors of a phase are written before the next phase begins.

pub(crate) mod phases;

use crate::analysis::Collected;
use crate::execution::ExecutionResult;
use crate::exit::{CommandError, CommandResult};
use crate::output::record::{Convergence, RoundRecord};
use crate::report::WrittenResults;
use crate::results;
use crate::session::Session;
use pleach_planner::Plan;
use pleach_planner::PlanRecord;
use pleach_study::PreparedStudy;

/// Executed study or phase, with its results written.
pub(crate) struct RoundResult {
    pub(crate) prepared: PreparedStudy,
    pub(crate) plan: PlanRecord,
    pub(crate) collected: Collected,
    pub(crate) written: WrittenResults,
    pub(crate) session: Session,
    /// Bytes of regions still held at the end. It is 0 unless regions leaked.
    pub(crate) left_bytes: u64,
}

/// Planner and executor of rounds.
pub(crate) trait Runner {
    /// Plans a study.
    fn plan(&mut self, prepared: &PreparedStudy) -> CommandResult<Plan>;

    /// Executes the instances without known results. `round` counts how often the sample has grown.
    fn execute(
        &mut self,
        prepared: &PreparedStudy,
        planned: &mut Plan,
        session: &Session,
        round: usize,
    ) -> CommandResult<ExecutionResult>;

    /// Returns the error of a study that was stopped before its end.
    fn stopped(
        &self,
        prepared: &PreparedStudy,
        executed: &ExecutionResult,
        collected: &Collected,
        session: &Session,
    ) -> CommandError;
}

/// Executed study with its final sample.
pub(crate) struct StudyResult {
    pub(crate) prepared: PreparedStudy,
    pub(crate) planned: Plan,
    pub(crate) executed: ExecutionResult,
    pub(crate) collected: Collected,
    /// Growth of the sample. `None` without a stopping rule.
    pub(crate) convergence: Option<Convergence>,
}

/// Executes a study. Its sample grows until the stopping rule is met or the next sample would exceed the maximum.
///
/// # Errors
/// Errors of the runner. [`CommandError::Input`] if a larger sample cannot be drawn or planned.
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
