//! Planning: from a study's parameter sets and tiles to an execution plan that fits its workers (hops 3 and 4 of a
//! study).
//!
//! [`plan`] is the one planning sequence: equal stage instances are merged, a strategy of `pleach-reuse` builds
//! buckets, a dry run estimates the memory of the plan, and buckets are cut until the plan fits the workers.
//! `pleach run`, `plan`, `explain`, `simulate` and the manager all call it. [`PlanComparison`] plans one study in many
//! ways, and [`granularity()`] finds tasks and stages that would better run as one.
//!
//! This crate translates between names, values and operations on one side and the integers of `pleach-reuse` on the
//! other. It executes nothing and opens no image.

mod builder;
mod comparison;
mod cost_classes;
mod draft;
mod error;
mod granularity;
pub mod identity;
mod input;
mod memory;
mod options;
mod planned;
mod replan;
mod request;

pub use memory::memory_limit;
pub use pleach_regions::memory_size;

pub use builder::PlanBuilder;
pub use comparison::PlanComparison;
use draft::Draft;
pub use error::PlanningError;
pub use granularity::{
    Grain, Grains, GranularityRecord, STAGE_OVERHEAD_SECONDS, TASK_OVERHEAD_SECONDS, granularity,
};
use input::operations;
pub use input::{DEFAULT_LINK, PlanTile, PlanningInput};
pub use memory::memory_bounds::{PeakLocation, WorkerMemory};
pub use options::{BucketLimitOptions, BucketLimits, PlanOptions, ReuseMode, StrategyName};
pub use planned::makespan::MakespanForecast;
pub use planned::planned_study::PlannedStudy;
pub use planned::record::PlanRecord;
pub use planned::stage_tables::StageTables;
pub use planned::summary::{PlanSummary, StageSummary};
pub use planned::task_counts::task_counts;
pub use pleach_reuse::{TransferCost, TransferForecast};
pub use replan::{RangeTables, ReplanForecaster, ReplannedStage, StudyReplanner, replanned_seconds};
pub use request::{Plan, PlanRequest, plan};
