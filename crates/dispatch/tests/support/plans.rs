//! Execution plans: explicit ones for examples, random ones for properties.

use crate::shapes::{key, stage, task};
use pleach_dispatch::InstanceId;
use pleach_dispatch::plan::{BucketPlan, ExecutionPlan, InstancePlan, OutputPlan, ReuseScope};
use pleach_regions::RegionKey;
use pleach_workflow::{Stage, TaskInput};
use proptest::collection::vec;
use proptest::prelude::*;

pub(crate) fn ids(numbers: impl IntoIterator<Item = u32>) -> Vec<InstanceId> {
    numbers.into_iter().map(InstanceId).collect()
}

/// Returns the key of an instance's output. Keys of tiles begin at 10,000.
pub(crate) fn output_key(instance: u32, output: usize) -> RegionKey {
    key(10 * instance + output as u32)
}

pub(crate) fn tile_key(tile: u32) -> RegionKey {
    key(10_000 + tile)
}

/// Returns a stage of one task with these numbers of inputs and outputs.
fn plain_stage(inputs: usize, outputs: usize) -> Stage {
    let reads: Vec<TaskInput> = (0..inputs).map(TaskInput::StageInput).collect();
    let gives: Vec<(usize, usize)> = (0..outputs).map(|output| (0, output)).collect();
    stage(0, inputs, vec![task("t1", &[], &reads, outputs)], &gives)
}

/// Returns a plan of stages with one input and one output. Each instance is given by its stage and the instance
/// that it reads from. Without one, it reads a tile.
pub(crate) fn chain(instances: &[(usize, Option<u32>)], buckets: &[&[u32]]) -> ExecutionPlan {
    let stages = instances.iter().map(|(stage, _)| stage + 1).max().unwrap_or(0);
    let plan = |(number, &(stage, parent)): (u32, &(usize, Option<u32>))| {
        let stored = instances.iter().any(|(_, parent)| *parent == Some(number));
        InstancePlan {
            stage,
            parameters: Vec::new(),
            inputs: vec![parent.map_or(tile_key(0), |parent| output_key(parent, 0))],
            outputs: vec![OutputPlan { key: output_key(number, 0), stored, reported: !stored }],
            parents: ids(parent),
        }
    };
    ExecutionPlan {
        stages: (0..stages).map(|_| plain_stage(1, 1)).collect(),
        instances: (0u32..).zip(instances).map(plan).collect(),
        buckets: buckets.iter().map(|bucket| bucket_of(ids(bucket.iter().copied()))).collect(),
        ..ExecutionPlan::default()
    }
}

fn bucket_of(instances: Vec<InstanceId>) -> BucketPlan {
    BucketPlan { instances, pixels: 64 }
}

/// One random instance: its bucket among those of the stage, and a number that selects each input.
type RawInstance = (usize, Vec<u32>);
/// One random stage: its number of inputs, its number of outputs, and its instances.
type RawStage = (usize, usize, Vec<RawInstance>);

prop_compose! {
    /// Plans of 3 or 4 stages. Instances read tiles or any outputs of earlier stages, possibly one region
    /// twice. Some outputs have no readers. Buckets are any partition of a stage, in any order. Of any reuse scope.
    pub(crate) fn plans()(
        stages in vec((1usize..4, 1usize..3, vec((0usize..4, vec(any::<u32>(), 3)), 1..7)), 3..5),
        later_first in any::<bool>(),
        scope in 0..ReuseScope::ALL.len(),
    ) -> ExecutionPlan {
        ExecutionPlan { sharing: ReuseScope::ALL[scope], ..wrap(&stages, later_first) }
    }
}

fn wrap(raw: &[RawStage], later_first: bool) -> ExecutionPlan {
    let mut plan = ExecutionPlan::default();
    for (number, (inputs, outputs, instances)) in raw.iter().enumerate() {
        let earlier = plan.instances.len() as u32;
        let mut buckets = vec![Vec::new(); 4];
        plan.stages.push(plain_stage(*inputs, *outputs));
        for (bucket, choices) in instances {
            let id = plan.instances.len() as u32;
            let read = |&choice: &u32| match choice % (earlier + 1) {
                0 => (None, tile_key(choice % 3)),
                parent => {
                    let given = plan.instances.at(InstanceId(parent - 1)).outputs.len();
                    (Some(InstanceId(parent - 1)), output_key(parent - 1, (choice / 64) as usize % given))
                }
            };
            let reads: Vec<_> = choices[..*inputs].iter().map(read).collect();
            let mut parents: Vec<InstanceId> = reads.iter().filter_map(|(parent, _)| *parent).collect();
            parents.sort_unstable();
            parents.dedup();
            let output = |output| OutputPlan { key: output_key(id, output), stored: false, reported: true };
            plan.instances.push(InstancePlan {
                stage: number,
                parameters: Vec::new(),
                inputs: reads.into_iter().map(|(_, key)| key).collect(),
                outputs: (0..*outputs).map(output).collect(),
                parents,
            });
            buckets[*bucket].push(InstanceId(id));
        }
        buckets.retain(|bucket| !bucket.is_empty());
        plan.buckets.extend(buckets.into_iter().map(bucket_of));
    }
    if later_first {
        plan.buckets.reverse();
    }
    let read: Vec<RegionKey> = plan.instances.iter().flat_map(|instance| instance.inputs.to_vec()).collect();
    plan.instances.change_outputs(|output| {
        output.stored = read.contains(&output.key);
        // Some outputs with readers are results as well.
        output.reported = !output.stored || output.key.0[15].is_multiple_of(3);
    });
    plan
}
