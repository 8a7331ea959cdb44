//! One plan as a JSON document: an entry of `pleach plan --json`, and the body of `plan.json`.

use crate::{BucketLimits, PlanOptions, PlanSummary};
use serde::Serialize;
use std::num::NonZeroU32;

/// One plan.
#[derive(Clone, Debug, Serialize)]
pub struct PlanRecord {
    /// Strategy, in lower case.
    pub strategy: &'static str,
    /// Reuse scope. `None` for strategies without a choice.
    pub reuse: Option<&'static str>,
    /// Savings and predicted cost.
    #[serde(flatten)]
    pub summary: PlanSummary,
    /// Seconds that planning took. Left out of documents that are compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planning_seconds: Option<f64>,
    /// Task slots that the plan is for.
    pub workers: u32,
    /// Maximum number of instances in a bucket, if the strategy has this limit.
    pub max_bucket_size: Option<usize>,
    /// Maximum number of buckets of a stage, if the strategy has this limit.
    pub max_buckets: Option<usize>,
    /// Minimum bytes of a worker, if the plan was made for a given memory.
    #[serde(rename = "least_bytes", skip_serializing_if = "Option::is_none")]
    pub min_bytes: Option<u64>,
}

impl PlanRecord {
    pub(crate) fn new(
        options: PlanOptions,
        limits: BucketLimits,
        summary: PlanSummary,
        seconds: f64,
        slots: NonZeroU32,
    ) -> Self {
        Self {
            strategy: options.strategy_name(),
            reuse: options.reuse_name(),
            summary,
            planning_seconds: Some(seconds),
            workers: slots.get(),
            max_bucket_size: options.max_bucket_size(limits),
            max_buckets: options.max_buckets(limits),
            min_bytes: None,
        }
    }
}
