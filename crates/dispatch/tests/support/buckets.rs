//! Random buckets: stages, instances that share much, and sizes.

use crate::shapes::{key, stage, task};
use pleach_dispatch::memory_model::{OutputConsumption, TaskMemory};
use pleach_dispatch::message::{BucketWork, InstanceWork};
use pleach_dispatch::plan::{OutputPlan, ReuseScope};
use pleach_dispatch::{BucketId, InstanceId};
use pleach_workflow::{Stage, TaskInput, Value};
use proptest::collection::vec;
use proptest::prelude::*;
use std::num::NonZeroU32;

/// Returns a bucket of the first stage.
pub(crate) fn bucket(instances: Vec<InstanceWork>) -> BucketWork {
    let (drain, sharing) = (OutputConsumption::default(), ReuseScope::Tree);
    BucketWork {
        bucket: BucketId(0),
        stage: 0,
        pixels: 0,
        drain,
        sharing,
        own_tile: None,
        instances,
        elsewhere: Vec::new(),
    }
}

pub(crate) fn instance(stage: &Stage, number: u32, parameters: &[i64], inputs: &[u32]) -> InstanceWork {
    let output = |output: usize| OutputPlan {
        key: key(1_000 + 10 * number + output as u32),
        stored: true,
        reported: false,
    };
    InstanceWork {
        id: InstanceId(number),
        parameters: parameters.iter().copied().map(Value::Integer).collect(),
        inputs: inputs.iter().copied().map(key).collect(),
        outputs: (0..stage.outputs.len()).map(output).collect(),
        stays: false,
    }
}

/// A random stage, random instances, and the sizes of the tasks.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) stage: Stage,
    pub(crate) work: BucketWork,
    pub(crate) bytes: Vec<TaskMemory>,
    pub(crate) active_paths: Option<NonZeroU32>,
}

type RawTask = (Vec<usize>, Vec<(usize, usize)>, usize);

/// Wraps random numbers into a stage whose reads all exist: stage inputs, or any output of any earlier task.
fn random_stage(parameters: usize, inputs: usize, tasks: &[RawTask], outputs: &[(usize, usize)]) -> Stage {
    let mut made = Vec::new();
    for (level, (arguments, reads, writes)) in tasks.iter().enumerate() {
        let arguments: Vec<usize> = arguments.iter().map(|a| a % parameters).collect();
        let read = |&(from, output): &(usize, usize)| match from % (level + 1) {
            0 => TaskInput::StageInput(output % inputs),
            task => TaskInput::Task { task: task - 1, output: output % tasks[task - 1].2 },
        };
        let reads: Vec<TaskInput> = reads.iter().map(read).collect();
        made.push(task(&format!("t{}", level + 1), &arguments, &reads, *writes));
    }
    let mut outputs: Vec<(usize, usize)> =
        outputs.iter().map(|(t, o)| (t % tasks.len(), o % tasks[t % tasks.len()].2)).collect();
    outputs.sort_unstable();
    outputs.dedup();
    stage(parameters, inputs, made, &outputs)
}

prop_compose! {
    pub(crate) fn cases()(parameters in 1usize..4, inputs in 1usize..3)(
        tasks in vec((vec(any::<usize>(), 0..3), vec(any::<(usize, usize)>(), 1..4), 1usize..3), 1..6),
        outputs in vec(any::<(usize, usize)>(), 1..3),
        // Few distinct values, so that much is shared.
        instances in vec((vec(0i64..3, parameters), vec(0u32..2, inputs)), 1..14),
        sizes in vec((0u64..20, vec(0u64..20, 2)), 6),
        active_paths in prop_oneof![Just(None), (1u32..4).prop_map(NonZeroU32::new)],
        sharing in prop_oneof![Just(ReuseScope::Tree), Just(ReuseScope::Dataflow)],
        parameters in Just(parameters),
        inputs in Just(inputs),
    ) -> Case {
        let stage = random_stage(parameters, inputs, &tasks, &outputs);
        let instances = (0u32..).zip(&instances).map(|(n, (values, keys))| instance(&stage, n, values, keys));
        let work = BucketWork { sharing, ..bucket(instances.collect()) };
        let size = |(task, (scratch, outputs)): (&pleach_workflow::Task, &(u64, Vec<u64>))| TaskMemory {
            scratch: *scratch,
            outputs: outputs[..task.writes.len()].to_vec(),
        };
        let bytes = stage.tasks.iter().zip(&sizes).map(size).collect();
        Case { stage, work, bytes, active_paths }
    }
}
