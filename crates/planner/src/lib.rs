//! Planning: from a study's parameter sets and tiles to an execution plan that fits its workers (hops 3 to 5 of a study).
//!
//! [`plan`] is the one planning sequence: equal stage instances are merged, a strategy of `pleach-reuse` builds buckets,
//! a dry run estimates the memory of the plan, and buckets are cut until the plan fits the workers. `pleach run`, `plan`,
//! `explain`, `simulate` and the manager all call it. [`PlanComparison`] plans one study in many ways.
//!
//! This crate translates between names, values and operations on one side and the integers of `pleach-reuse` on the other.
//! It executes nothing and opens no image.

mod builder;
mod comparison;
mod draft;
mod error;
mod execution_plan;
pub mod identity;
mod input;
mod makespan;
mod memory_bounds;
mod memory_check;
mod memory_fit;
pub mod memory_limit;
pub mod memory_size;
mod options;
mod planned_study;
mod record;
mod replan;
mod request;
mod stage_tables;
mod summary;
mod task_counts;

pub use builder::PlanBuilder;
pub use comparison::PlanComparison;
use draft::Draft;
pub use error::PlanningError;
use input::operations;
pub use input::{PlanTile, PlanningInput};
pub use makespan::MakespanForecast;
pub use memory_bounds::{PeakLocation, WorkerMemory};
pub use options::{BucketLimitOptions, BucketLimits, PlanOptions, ReuseMode, StrategyName};
pub use planned_study::PlannedStudy;
pub use record::PlanRecord;
pub use replan::StudyReplanner;
pub use request::{Plan, PlanRequest, plan};
pub use stage_tables::StageTables;
pub use summary::{PlanSummary, StageSummary};
pub use task_counts::task_counts;
