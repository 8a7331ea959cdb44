//! Errors of planning.

use crate::memory::memory_limit::InsufficientMemory;
use pleach_dispatch::plan::PlanError;
use pleach_reuse::{JobsError, LimitsError, ProblemError, RunsError, ShapeError, SolveError, TaskGraphError};
use thiserror::Error;

/// Cause of a failed plan. The study is too large for its strategy, for ids or for memory. Variants of the problem's form
/// ([`Shape`](Self::Shape), [`Problem`](Self::Problem), [`Tasks`](Self::Tasks), [`Jobs`](Self::Jobs), [`Plan`](Self::Plan))
/// cannot follow from a checked workflow.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "each variant is named after the error that it carries")]
pub enum PlanningError {
    #[error("failed to plan the study: {0}")]
    Solve(#[from] SolveError),
    #[error("failed to plan the study: {0}")]
    Memory(#[from] InsufficientMemory),
    #[error("failed to plan the study: {0}")]
    Runs(#[from] RunsError),
    #[error("failed to plan the study: {0}")]
    Limits(#[from] LimitsError),
    #[error("failed to plan the study: {0}")]
    Shape(#[from] ShapeError),
    #[error("failed to plan the study: {0}")]
    Problem(#[from] ProblemError),
    #[error("failed to plan the study: {0}")]
    Tasks(#[from] TaskGraphError),
    #[error("failed to plan the study: {0}")]
    Jobs(#[from] JobsError),
    #[error("failed to plan the study: {0}")]
    Plan(#[from] PlanError),
}

impl PlanningError {
    /// A strategy refused a problem of this size. Other strategies may accept it.
    #[must_use]
    pub fn is_strategy_limit(&self) -> bool {
        matches!(self, Self::Solve(SolveError::TooManyToCut { .. }))
    }
}
