//! Minimum memory of a study, computed by hand.

use crate::shapes::{key, stage, task};
use pleach_dispatch::InstanceId;
use pleach_dispatch::dry_run::{DryRun, rehearse};
use pleach_dispatch::memory_model::{MinimumMemory, OutputConsumption, TaskMemory};
use pleach_dispatch::plan::{BucketPlan, ExecutionPlan, InstancePlan, OutputPlan};
use pleach_workflow::{TaskInput, Value};

/// An instance: its stage, its parameter, the keys that it reads, and its parents.
type Raw<'a> = (usize, i64, &'a [u32], &'a [u32]);

/// Creates a plan. Outputs with a reader are stored, all others are reported.
fn plan(instances: &[Raw<'_>], buckets: &[&[u32]]) -> ExecutionPlan {
    let first = |name: &str, inputs: usize| {
        let reads: Vec<TaskInput> = (0..inputs).map(TaskInput::StageInput).collect();
        task(name, &[0], &reads, 1)
    };
    let second = task("second", &[0], &[TaskInput::Task { task: 0, output: 0 }], 1);
    let stages = vec![
        stage(1, 1, vec![first("prepare", 1)], &[(0, 0)]),
        stage(1, 1, vec![first("first", 1), second], &[(1, 0)]),
        stage(1, 2, vec![first("compare", 2)], &[(0, 0)]),
    ];
    let ids = |numbers: &[u32]| numbers.iter().copied().map(InstanceId).collect::<Vec<_>>();
    let read = |number: u32| instances.iter().any(|(_, _, inputs, _)| inputs.contains(&number));
    let instance = |(number, &(stage, value, inputs, parents)): (u32, &Raw<'_>)| InstancePlan {
        stage,
        parameters: vec![Value::Integer(value)],
        inputs: inputs.iter().copied().map(key).collect(),
        outputs: vec![OutputPlan { key: key(number), stored: read(number), reported: !read(number) }],
        parents: ids(parents),
    };
    ExecutionPlan {
        stages,
        instances: (0u32..).zip(instances).map(instance).collect(),
        buckets: buckets.iter().map(|bucket| BucketPlan { instances: ids(bucket), pixels: 100 }).collect(),
        ..ExecutionPlan::default()
    }
}

/// Returns the sizes of a stage's tasks. An image has 1 byte per pixel. The scratch of preparation is 50 bytes,
/// of the first task 30, and of the comparison 70 beside an output of 1 byte.
fn bytes(stage: usize, pixels: u64) -> Vec<TaskMemory> {
    let task = |scratch, output| TaskMemory { scratch, outputs: vec![output] };
    match stage {
        0 => vec![task(50, pixels)],
        1 => vec![task(30, 40), task(0, 20)],
        _ => vec![task(70, 1)],
    }
}

const TILE: u32 = 1000;
const REFERENCE: u32 = 2000;

#[test]
fn a_tile_prepared_and_two_masks_of_it_compared() {
    let instances: &[Raw<'_>] = &[
        (0, 0, &[TILE], &[]),
        (1, 1, &[0], &[0]),
        (1, 2, &[0], &[0]),
        (2, 0, &[1, REFERENCE], &[1]),
        (2, 0, &[2, REFERENCE], &[2]),
    ];
    let rehearsal = rehearse(&plan(instances, &[&[0], &[1, 2], &[3], &[4]]), bytes).expect("valid");
    // The tile and its preparation need 250 bytes. The peak comes later: the prepared image, the first mask,
    // the reference and the comparison need 100 + 20 + 100 + 71 bytes, before the second mask is started.
    let min_bytes = 291;
    let drains = vec![
        // From 0 bytes held before the prepared image to the end of the study.
        OutputConsumption { bytes: 291, rest_bytes: 0, busy_bytes: 291 },
        // A mask, the reference and the comparison. The reference stays.
        OutputConsumption { bytes: 191, rest_bytes: 100, busy_bytes: 191 },
        OutputConsumption::default(),
    ];
    // A spill tier does not help: the started bucket reads the prepared image.
    let busy_bytes = 291;
    assert_eq!(
        rehearsal,
        DryRun { needs: MinimumMemory { min_bytes, busy_bytes, drains }, dearest: Some(InstanceId(3)) }
    );
}

#[test]
fn a_mask_that_waits_for_its_reference_stays() {
    // The reference is the mask of instance 2, which runs after instance 1.
    let instances: &[Raw<'_>] =
        &[(0, 0, &[TILE], &[]), (1, 1, &[0], &[0]), (1, 2, &[0], &[0]), (2, 0, &[1, 2], &[1, 2])];
    let rehearsal = rehearse(&plan(instances, &[&[0], &[1], &[2], &[3]]), bytes).expect("valid");
    assert_eq!(rehearsal.needs.min_bytes, 250, "preparing the tile takes most");
    // With a spill tier, the first mask does not count as held before: the comparison loads both masks.
    assert_eq!(rehearsal.needs.drains[1], OutputConsumption { bytes: 91, rest_bytes: 20, busy_bytes: 111 });
    assert_eq!(rehearsal.dearest, Some(InstanceId(0)));
}

#[test]
fn equal_instances_end_together_and_leave_a_region_each() {
    let instances: Vec<Raw<'_>> = vec![(1, 1, &[TILE], &[]); 9];
    let mut plan = plan(&instances, &[&[0, 1, 2, 3, 4, 5, 6, 7, 8]]);
    plan.instances.change_outputs(|output| output.stored = true);
    // 100 bytes of the tile and 9 times 20 bytes of outputs: more than either of the two tasks needs.
    assert_eq!(rehearse(&plan, bytes).expect("valid").needs.min_bytes, 280);
}

#[test]
fn empty_plan_needs_no_memory_and_invalid_plan_is_refused() {
    let nothing = rehearse(&ExecutionPlan::default(), bytes).expect("nothing to be wrong with");
    assert_eq!(nothing, DryRun::default());
    let instances: &[Raw<'_>] = &[(0, 0, &[TILE], &[])];
    assert!(rehearse(&plan(instances, &[]), bytes).is_err());
}
