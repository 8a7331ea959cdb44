//! Chooses a clustering method: by simulation, by rule, and for each level of a workflow.
//!
//! - [`rank`] simulates candidates. Its best one has the least makespan, and [`Ranking::regret`] is the gain that another choice
//!   misses.
//! - [`advise`] chooses from metrics and chains without a simulation.
//! - [`sensitivity`] repeats the choice over overheads, bandwidths, data sizes and workers.
//! - [`dynamic_portfolio`] chooses for each level from run times measured so far.

mod candidates;
mod portfolio;
mod rule;
mod sensitivity;

pub use candidates::{Candidate, Ranking, Score, rank};
pub use portfolio::{
    EstimateSpread, FixedChoice, LevelChoice, NamedMethod, Portfolio, dynamic_portfolio, estimates,
};
pub use rule::{Advice, HorizontalMethod, LevelSummary, advise};
pub use sensitivity::{Grid, SensitivityRow, sensitivity};
