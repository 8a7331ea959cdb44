//! Planned studies: execution plans, their records, summaries and forecasts.

pub(crate) mod execution_plan;
pub(crate) mod makespan;
pub(crate) mod operation_work;
pub(crate) mod planned_study;
pub(crate) mod record;
pub(crate) mod stage_tables;
pub(crate) mod summary;
pub(crate) mod task_counts;
