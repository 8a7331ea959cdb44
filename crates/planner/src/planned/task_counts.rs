//! Counts the tasks that a plan executes, on the same trees and graphs that stage actors walk.

use pleach_dispatch::memory_model::{OutputConsumption, TaskMemory};
use pleach_dispatch::message::{BucketWork, InstanceWork};
use pleach_dispatch::plan::{ExecutionPlan, ReuseScope};
use pleach_dispatch::stage::{BucketExecution, InvalidBucket};
use pleach_dispatch::{BucketId, InstanceId};
use std::collections::BTreeMap;

/// Counts the tasks of the instances with `open`, by (stage, task), for a reuse scope.
///
/// # Errors
/// [`InvalidBucket`] if the plan contradicts itself: a defect of the planner.
pub fn task_counts(
    plan: &ExecutionPlan,
    open: &[bool],
    sharing: ReuseScope,
) -> Result<BTreeMap<(usize, usize), u64>, InvalidBucket> {
    let mut counts = BTreeMap::new();
    for (id, bucket) in (0u32..).zip(&plan.buckets) {
        // Finished instances execute nothing, so their tasks are neither counted nor shared.
        let open: Vec<InstanceId> = bucket.instances.iter().copied().filter(|id| open[id.index()]).collect();
        let Some(first) = open.first() else { continue };
        let number = plan.instances.at(*first).stage;
        let stage = &plan.stages[number];
        if open.len() == 1 {
            // Nothing is shared within one instance.
            (0..stage.tasks.len()).for_each(|task| *counts.entry((number, task)).or_insert(0) += 1);
            continue;
        }
        let instances: Vec<InstanceWork> = open.into_iter().map(|id| work(plan, id)).collect();
        let bytes = stage.tasks.iter().map(|t| TaskMemory { scratch: 0, outputs: vec![0; t.writes.len()] });
        let (stage_number, pixels) = (number as u32, bucket.pixels);
        let bucket = BucketWork {
            stage: stage_number,
            bucket: BucketId(id),
            pixels,
            drain: OutputConsumption::default(),
            sharing,
            own_tile: None,
            instances,
            elsewhere: Vec::new(),
        };
        let run = BucketExecution::new(stage, &bucket, bytes.collect(), None)?;
        for (task, count) in run.tasks_by_level(stage).into_iter().enumerate() {
            *counts.entry((number, task)).or_insert(0) += count;
        }
    }
    Ok(counts)
}

fn work(plan: &ExecutionPlan, id: InstanceId) -> InstanceWork {
    let instance = plan.instances.at(id);
    InstanceWork {
        id,
        parameters: instance.parameters().collect(),
        inputs: instance.inputs.to_vec(),
        outputs: instance.outputs.to_vec(),
        stays: false,
    }
}
