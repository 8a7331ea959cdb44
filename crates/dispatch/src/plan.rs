//! The execution plan: stage instances, their parents, and the buckets they are merged into.

mod instances;

use crate::memory_model::MinimumMemory;
use crate::{BucketId, InstanceId};
pub use instances::{InstancePlan, InstancePlans, PlannedInstance};
use pleach_regions::RegionKey;
use pleach_workflow::{Durability, Stage};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashSet};
use thiserror::Error;

/// A frozen plan. Stages and instances are in topological order: parents come before children, and are of an
/// earlier stage. Buckets therefore cannot wait for each other.
#[derive(Clone, Debug, Default)]
pub struct ExecutionPlan {
    /// The stages of the workflow.
    pub stages: Vec<Stage>,
    /// Stage instances, by id.
    pub instances: InstancePlans,
    /// Buckets, by id: every instance is in exactly one. Among the ready buckets of one stage, the first is granted
    /// first.
    pub buckets: Vec<BucketPlan>,
    /// Minimum memory, for workers with a memory limit.
    pub needs: MinimumMemory,
    /// Reuse scope within a bucket.
    pub sharing: ReuseScope,
    /// Data that must survive the worker that stored it.
    pub durable: Durability,
    /// Upward rank of each instance: predicted seconds of the longest path from it to the end of the study, itself
    /// included. Empty if unknown.
    pub ranks: Vec<f32>,
    /// Stages and outputs whose regions workers retain for queries after their last reader.
    pub retained: Vec<(u32, u32)>,
    /// Order of grants.
    pub order: GrantOrder,
    /// Overhead of a bucket that the buckets were made for, in seconds, or as measured since then. Work stealing makes no bucket
    /// with less work.
    pub bucket_overhead_seconds: f64,
}

/// Order of the grants of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GrantOrder {
    /// Buckets of later stages first, since they release the outputs of earlier ones. Workers get buckets in advance.
    #[default]
    LaterStages,
    /// Buckets in the order in which they became ready, each to the idle worker with the fewest bytes to transfer, as queues
    /// of workflow systems do. A worker has at most one bucket for each slot, so that no task of another bucket runs between
    /// those of a bucket.
    Release,
}

/// Condition under which two task instances of a bucket are executed once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReuseScope {
    /// They and all tasks before them, in the stage's order, consume the same values: a reuse tree.
    #[default]
    Tree,
    /// They consume the same values and read the same outputs: a graph. Buckets of one worker share tasks as well, through
    /// its result cache.
    Dataflow,
    /// As dataflow, and regions of equal content count as the same, regardless of their provenance.
    Value,
}

impl ReuseScope {
    /// All scopes, from the narrowest.
    pub const ALL: [Self; 3] = [Self::Tree, Self::Dataflow, Self::Value];

    /// Returns the name in lower case, as in `plan.json`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Dataflow => "dataflow",
            Self::Value => "value",
        }
    }
}

/// Destination of one output of a stage instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputPlan {
    /// Its key.
    pub key: RegionKey,
    /// Other instances read it: it is stored until the last reader is finished.
    pub stored: bool,
    /// It is a result of the study and is reported to the manager.
    pub reported: bool,
}

/// Stage instances of one stage that one worker executes together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BucketPlan {
    /// The instances, at least one.
    pub instances: Vec<InstanceId>,
    /// Size of the images it works on, pixels.
    pub pixels: u64,
}

/// A plan that cannot be executed: an internal error of the planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PlanError {
    /// An instance is in no bucket, or in two.
    #[error("{0} is not in exactly one bucket")]
    NotInOneBucket(InstanceId),
    /// A bucket is empty, or mixes stages.
    #[error("{0} is empty or mixes stages")]
    BadBucket(BucketId),
    /// An instance waits for a later one, or for one of its own or a later stage.
    #[error("{0} waits for one that cannot come before it")]
    BadParent(InstanceId),
    /// An id or index is out of range.
    #[error("{0} names something that is not there")]
    Dangling(InstanceId),
}

impl ExecutionPlan {
    /// Retains the regions of these outputs for queries, given as stage and output. Each is stored even if no instance reads
    /// it.
    pub fn retain(&mut self, outputs: &[(usize, usize)]) {
        self.retained = outputs.iter().map(|(stage, output)| (*stage as u32, *output as u32)).collect();
        let keys = self.instances.iter().flat_map(|instance| {
            let own = outputs.iter().filter(move |(stage, _)| *stage == instance.stage);
            own.filter_map(move |(_, output)| Some(instance.outputs.get(*output)?.key))
        });
        let keys: HashSet<RegionKey> = keys.collect();
        self.instances.change_outputs(|output| output.stored |= keys.contains(&output.key));
    }

    /// Returns for each instance whether it must be executed after the `finished` ones have reported their results. An
    /// instance without reported outputs is executed if an open instance reads from it, or if it has no readers.
    #[must_use]
    pub fn unfinished(&self, finished: &BTreeSet<InstanceId>) -> Vec<bool> {
        let mut open = vec![false; self.instances.len()];
        let (mut has_children, mut has_open_children) = (open.clone(), open.clone());
        for (number, instance) in self.instances.iter().enumerate().rev() {
            let reports = instance.outputs.iter().any(|output| output.reported);
            let over =
                if reports { finished.contains(&InstanceId(number as u32)) } else { has_children[number] };
            open[number] = !over || has_open_children[number];
            for parent in instance.parents {
                has_children[parent.index()] = true;
                has_open_children[parent.index()] |= open[number];
            }
        }
        open
    }

    /// Checks the plan and returns the bucket of every instance.
    ///
    /// # Errors
    /// [`PlanError`] when the plan breaks one of its rules.
    pub(crate) fn validate(&self) -> Result<Vec<BucketId>, PlanError> {
        let mut bucket_of: Vec<Option<BucketId>> = vec![None; self.instances.len()];
        for (bucket, plan) in (0u32..).map(BucketId).zip(&self.buckets) {
            let mut stage = None;
            for &id in &plan.instances {
                let instance = self.instances.get(id).ok_or(PlanError::Dangling(id))?;
                if *stage.get_or_insert(instance.stage) != instance.stage {
                    return Err(PlanError::BadBucket(bucket));
                }
                if bucket_of[id.index()].replace(bucket).is_some() {
                    return Err(PlanError::NotInOneBucket(id));
                }
            }
            if stage.is_none() {
                return Err(PlanError::BadBucket(bucket));
            }
        }
        let mut buckets = Vec::with_capacity(self.instances.len());
        for (id, bucket) in (0u32..).map(InstanceId).zip(bucket_of) {
            buckets.push(bucket.ok_or(PlanError::NotInOneBucket(id))?);
        }
        for (id, instance) in self.instances.enumerate() {
            let stage = self.stages.get(instance.stage).ok_or(PlanError::Dangling(id))?;
            let shapes = (stage.parameters.len(), stage.inputs.len(), stage.outputs.len());
            if shapes != (instance.parameters().len(), instance.inputs.len(), instance.outputs.len()) {
                return Err(PlanError::Dangling(id));
            }
            let earlier =
                |parent: &InstanceId| *parent < id && self.instances.at(*parent).stage < instance.stage;
            if !instance.parents.iter().all(earlier) {
                return Err(PlanError::BadParent(id));
            }
        }
        Ok(buckets)
    }
}
