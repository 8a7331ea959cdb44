//! Random studies with sizes: tiles, 1–3 stages as in applications, and the memory of each task.

use crate::shapes::{key, stage, task};
use pleach_dispatch::InstanceId;
use pleach_dispatch::memory_model::TaskMemory;
use pleach_dispatch::plan::{
    BucketPlan, ExecutionPlan, InstancePlan, OutputPlan, PlannedInstance, ReuseScope,
};
use pleach_regions::RegionKey;
use pleach_workflow::{Stage, TaskInput, Value};
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fmt;

/// A plan, and the memory of its tasks for 10 pixels.
#[derive(Clone)]
pub(crate) struct Study {
    pub(crate) plan: ExecutionPlan,
    /// Some reader waits for instances that read different regions.
    pub(crate) crosses: bool,
    sizes: Vec<Vec<TaskMemory>>,
}

/// Prints a short but readable form.
impl fmt::Debug for Study {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (stage, sizes) in self.plan.stages.iter().zip(&self.sizes) {
            for (task, bytes) in stage.tasks.iter().zip(sizes) {
                writeln!(f, "{}: {:?}{:?} takes {bytes:?}", task.name, task.arguments, task.reads)?;
            }
            writeln!(
                f,
                "-- gives {:?}",
                stage.outputs.iter().map(|out| (out.task, out.output)).collect::<Vec<_>>()
            )?;
        }
        for bucket in &self.plan.buckets {
            writeln!(f, "bucket on {} px", bucket.pixels)?;
            for id in &bucket.instances {
                let instance = self.plan.instances.at(*id);
                let PlannedInstance { stage, inputs, parents, .. } = instance;
                let values: Vec<String> = instance.parameters().map(|value| value.to_string()).collect();
                let inputs: Vec<u128> = inputs.iter().map(|key| u128::from_be_bytes(key.0)).collect();
                writeln!(f, "  {id} of {stage}: {values:?} reads {inputs:?} after {parents:?}")?;
            }
        }
        writeln!(f, "{:?}", self.plan.needs)
    }
}

impl Study {
    /// Returns the memory of a stage's tasks for images of `pixels` pixels.
    pub(crate) fn bytes(&self, stage: usize, pixels: u64) -> Vec<TaskMemory> {
        let scale = |bytes: &u64| bytes * pixels / 10;
        let of = |task: &TaskMemory| TaskMemory {
            scratch: scale(&task.scratch),
            outputs: task.outputs.iter().map(scale).collect(),
        };
        self.sizes[stage].iter().map(of).collect()
    }
}

/// Reference of the last stage's comparison: none, a file of the tile, or the tile's first instance.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reference {
    Nothing,
    File,
    Run,
}

type RawTask = (Vec<usize>, Vec<(usize, usize)>, u64, Vec<u64>);

/// Returns a stage of random tasks and their memory. Each task reads stage inputs or outputs of earlier tasks.
fn random_stage(inputs: usize, parameters: usize, tasks: &[RawTask]) -> (Stage, Vec<TaskMemory>) {
    let made = tasks.iter().enumerate().map(|(level, (arguments, reads, _, outputs))| {
        let arguments: Vec<usize> = arguments.iter().map(|a| a % parameters).collect();
        let read = |&(from, output): &(usize, usize)| match from % (level + 1) {
            0 => TaskInput::StageInput(output % inputs),
            writer => TaskInput::Task { task: writer - 1, output: output % tasks[writer - 1].3.len() },
        };
        let reads: Vec<TaskInput> = reads.iter().map(read).collect();
        task(&format!("t{level}"), &arguments, &reads, outputs.len())
    });
    let last = tasks.len() - 1;
    let made = stage(parameters, inputs, made.collect(), &[(last, 0)]);
    let bytes = tasks
        .iter()
        .map(|(_, _, scratch, outputs)| TaskMemory { scratch: *scratch, outputs: outputs.clone() });
    (made, bytes.collect())
}

fn raw_task() -> impl Strategy<Value = RawTask> {
    (
        vec(any::<usize>(), 0..3),
        vec(any::<(usize, usize)>(), 1..3),
        prop_oneof![Just(0u64), 0u64..60],
        vec(prop_oneof![Just(0u64), 1u64..30], 1..3),
    )
}

prop_compose! {
    /// Studies on tiles of different sizes: an optional first stage with 1–2 parameter sets, a second stage of
    /// many instances in buckets of equal inputs, and an optional third stage that compares.
    pub(crate) fn studies()(
        tiles in vec(10u64..40, 1..4),
        normalize in prop_oneof![Just(None), vec(raw_task(), 1..3).prop_map(Some)],
        variants in 1i64..3,
        segment in vec(raw_task(), 1..5),
        compare in prop_oneof![Just(None), raw_task().prop_map(Some)],
        reference in prop_oneof![Just(Reference::Nothing), Just(Reference::File), Just(Reference::Run)],
        sets in vec(vec(0i64..3, 2), 1..9),
        bucket in 1usize..5,
        sharing in prop_oneof![Just(ReuseScope::Tree), Just(ReuseScope::Dataflow)],
    ) -> Study {
        let normalize = normalize.as_deref();
        let mut study = make(&tiles, normalize, variants, &segment, compare.as_ref(), reference, &sets, bucket);
        study.plan.sharing = sharing;
        study
    }
}

#[expect(clippy::too_many_arguments, reason = "one for each random choice")]
fn make(
    tiles: &[u64],
    normalize: Option<&[RawTask]>,
    variants: i64,
    segment: &[RawTask],
    compare: Option<&RawTask>,
    reference: Reference,
    sets: &[Vec<i64>],
    bucket: usize,
) -> Study {
    let crosses = normalize.is_some() && variants > 1 && compare.is_some() && reference == Reference::Run;
    let mut study = Study { plan: ExecutionPlan::default(), crosses, sizes: Vec::new() };
    let add_stage = |study: &mut Study, inputs: usize, parameters: usize, tasks: &[RawTask]| {
        let (stage, bytes) = random_stage(inputs, parameters, tasks);
        study.plan.stages.push(stage);
        study.sizes.push(bytes);
    };
    if let Some(tasks) = normalize {
        add_stage(&mut study, 1, 1, tasks);
    }
    add_stage(&mut study, 1, 2, segment);
    if let Some(task) = compare {
        let inputs = if reference == Reference::Nothing { 1 } else { 2 };
        // The comparison reads all its inputs.
        let mut task = task.clone();
        task.1 = (0..inputs).map(|input| (0, input)).collect();
        add_stage(&mut study, inputs, 1, &[task]);
    }
    // For each tile and variant: the input of the second stage, and the instance that writes it.
    let mut given: Vec<(usize, RegionKey, Option<InstanceId>)> = Vec::new();
    for (tile, &pixels) in tiles.iter().enumerate() {
        let file = key(10_000 + tile as u32);
        if normalize.is_none() {
            given.push((tile, file, None));
            continue;
        }
        let mut made = Vec::new();
        for variant in 0..variants {
            let id = add(&mut study.plan, 0, vec![variant], vec![file], vec![]);
            given.push((tile, output(id), Some(id)));
            made.push(id);
        }
        study.plan.buckets.push(BucketPlan { instances: made, pixels });
    }
    let second = usize::from(normalize.is_some());
    let distinct: BTreeSet<&Vec<i64>> = sets.iter().collect();
    let mut masks = Vec::new();
    for (tile, region, giver) in given {
        let make = |set: &&Vec<i64>| {
            add(&mut study.plan, second, (*set).clone(), vec![region], giver.into_iter().collect())
        };
        let made: Vec<InstanceId> = distinct.iter().map(make).collect();
        masks.extend(made.iter().map(|id| (tile, *id)));
        let buckets =
            made.chunks(bucket).map(|ids| BucketPlan { instances: ids.to_vec(), pixels: tiles[tile] });
        study.plan.buckets.extend(buckets);
    }
    if compare.is_some() {
        for &(tile, mask) in &masks {
            let first = masks.iter().find(|(other, _)| *other == tile).map_or(mask, |(_, id)| *id);
            let (mut inputs, mut parents) = (vec![output(mask)], vec![mask]);
            match reference {
                Reference::Nothing => {}
                Reference::File => inputs.push(key(20_000 + tile as u32)),
                Reference::Run => {
                    inputs.push(output(first));
                    parents.push(first);
                    parents.dedup();
                }
            }
            let id = add(&mut study.plan, second + 1, vec![0], inputs, parents);
            study.plan.buckets.push(BucketPlan { instances: vec![id], pixels: tiles[tile] });
        }
    }
    let read: BTreeSet<RegionKey> = study.plan.instances.iter().flat_map(|i| i.inputs.to_vec()).collect();
    study.plan.instances.change_outputs(|output| {
        output.stored = read.contains(&output.key);
        output.reported = !output.stored;
    });
    study
}

fn output(id: InstanceId) -> RegionKey {
    key(id.0)
}

fn add(
    plan: &mut ExecutionPlan,
    stage: usize,
    values: Vec<i64>,
    inputs: Vec<RegionKey>,
    parents: Vec<InstanceId>,
) -> InstanceId {
    let id = InstanceId(plan.instances.len() as u32);
    plan.instances.push(InstancePlan {
        stage,
        parameters: values.into_iter().map(Value::Integer).collect(),
        inputs,
        outputs: vec![OutputPlan { key: output(id), stored: false, reported: false }],
        parents,
    });
    id
}
