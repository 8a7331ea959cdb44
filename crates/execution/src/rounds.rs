//! Executes studies in phases and rounds, in this process or on a cluster: a sample grows round by round until it has
//! converged, and each phase varies the survivors of the phase before.
//!
//! A [`Runner`] plans and executes each round. The survivors of a phase are written before the next phase begins.

pub mod phases;

use crate::executor::ExecutionResult;
use crate::result_files::{self, ResultsError};
use crate::session::Session;
use pleach_planner::{Plan, PlanRecord};
use pleach_report::WrittenResults;
use pleach_results::analysis::CollectedResponses;
use pleach_results::record::{Convergence, RoundRecord};
use pleach_study::{Defect, PrepareError, PreparedStudy};
use thiserror::Error;

/// Error of a study in rounds or phases, besides those of its runner.
#[derive(Debug, Error)]
pub enum RoundsError {
    /// The parameter sets of a larger sample cannot be drawn.
    #[error("{0}")]
    Prepare(#[from] PrepareError),
    /// Results cannot be written.
    #[error("{0}")]
    Results(#[from] ResultsError),
    /// A defect of pleach.
    #[error("{0}")]
    Defect(#[from] Defect),
}

/// Executed study or phase, with its results written.
pub struct RoundResult {
    /// Study or phase with its final sample.
    pub prepared: PreparedStudy,
    /// Record of the plan of the final sample.
    pub plan: PlanRecord,
    /// Responses of all runs.
    pub collected: CollectedResponses,
    /// Analyses, failures and pictures, as written to the result folder.
    pub written: WrittenResults,
    /// Session that owns the result folder.
    pub session: Session,
    /// Bytes of regions still held at the end. It is 0 unless regions leaked.
    pub retained_bytes: u64,
}

/// Planner and executor of rounds.
pub trait Runner {
    /// Error of the runner and of the rounds on it.
    type Error: From<RoundsError>;

    /// Plans a study.
    fn plan(&mut self, prepared: &PreparedStudy) -> Result<Plan, Self::Error>;

    /// Executes the instances without known results. `round` counts how often the sample has grown.
    fn execute(
        &mut self,
        prepared: &PreparedStudy,
        planned: &mut Plan,
        session: &Session,
        round: usize,
    ) -> Result<ExecutionResult, Self::Error>;

    /// Returns the error of a study that was stopped before its end.
    fn stopped(
        &self,
        prepared: &PreparedStudy,
        executed: &ExecutionResult,
        collected: &CollectedResponses,
        session: &Session,
    ) -> Self::Error;
}

/// Executed study with its final sample.
pub struct StudyResult {
    /// Study with its final sample.
    pub prepared: PreparedStudy,
    /// Plan of the last round.
    pub planned: Plan,
    /// Execution of the last round, with the task counts of all rounds and of earlier processes.
    pub executed: ExecutionResult,
    /// Responses of all runs of the final sample.
    pub collected: CollectedResponses,
    /// Growth of the sample. `None` without a stopping rule.
    pub convergence: Option<Convergence>,
}

/// Executes a study. Its sample grows until the stopping rule is met or the next sample would exceed the maximum.
///
/// # Errors
/// Errors of the runner. [`RoundsError`] if a larger sample cannot be drawn or the plan cannot be written.
pub fn execute<R: Runner>(
    runner: &mut R,
    first: PreparedStudy,
    mut planned: Plan,
    session: &mut Session,
) -> Result<StudyResult, R::Error> {
    let mut rounds: Vec<RoundRecord> = Vec::new();
    let mut grown: Option<PreparedStudy> = None;
    let mut before: Option<ExecutionResult> = None;
    let (mut executed, collected) = loop {
        let current = grown.as_ref().unwrap_or(&first);
        result_files::write_plan(current, &planned.record, &session.folder).map_err(RoundsError::Results)?;
        let mut executed = runner.execute(current, &mut planned, session, rounds.len())?;
        before.iter().for_each(|before| executed.add_prior(before));
        let collected = CollectedResponses::new(current, &planned.study, &executed.finished.outcome);
        if executed.finished.outcome.stopped {
            return Err(runner.stopped(current, &executed, &collected, session));
        }
        let Some(until) = first.study.until else { break (executed, collected) };
        let evaluations = current.design.evaluations.len();
        let widest = collected.widest(current, until.metric).map_err(RoundsError::Defect)?;
        rounds.push(RoundRecord { evaluations, max_ci_width: widest });
        let is_narrow = widest.is_some_and(|widest| widest <= until.ci_width);
        let times = rounds.len() + 1;
        if is_narrow || first.design.evaluations.len() * times > until.max_evaluations {
            break (executed, collected);
        }
        let next = first.grown(times).map_err(RoundsError::Prepare)?;
        // Before `planned` is replaced: the responses are found through the ids of the plan that was executed.
        session.local = executed.known_responses(current, &planned.study);
        planned = runner.plan(&next)?;
        (grown, before) = (Some(next), Some(executed));
    };
    // Once, after the last round: `skipped` covers all responses of earlier processes.
    executed.count_skipped();
    let convergence = first.study.until.map(|until| Convergence::of(&first.study, until, rounds));
    Ok(StudyResult { prepared: grown.unwrap_or(first), planned, executed, collected, convergence })
}
