//! Split of a bucket for an idle worker that repeats shared tasks, compared with all other splits.

use crate::buckets::{Case, bucket, cases, instance};
use crate::shapes::{stage, task};
use pleach_dispatch::InstanceId;
use pleach_dispatch::memory_model::TaskMemory;
use pleach_dispatch::message::{BucketWork, InstanceWork};
use pleach_dispatch::plan::ReuseScope;
use pleach_dispatch::stage::{BucketExecution, Effect};
use pleach_workflow::{Stage, TaskInput, Value};
use proptest::prelude::*;
use std::collections::BTreeSet;

/// Returns a stage of two tasks in a row, with one parameter each.
fn two_tasks() -> Stage {
    let tasks = vec![
        task("a", &[0], &[TaskInput::StageInput(0)], 1),
        task("b", &[1], &[TaskInput::Task { task: 0, output: 0 }], 1),
    ];
    stage(2, 1, tasks, &[(1, 0)])
}

/// Returns a bucket of instances on one tile, whose first task has this value. The second differs.
fn work(stage: &Stage, first: &[i64], sharing: ReuseScope) -> BucketWork {
    let instances = (0u32..).zip(first).map(|(n, value)| instance(stage, n, &[*value, i64::from(n)], &[0]));
    BucketWork { sharing, ..bucket(instances.collect()) }
}

fn execution(stage: &Stage, work: &BucketWork) -> BucketExecution {
    let bytes = stage.tasks.iter().map(|task| TaskMemory { scratch: 0, outputs: vec![1; task.writes.len()] });
    BucketExecution::new(stage, work, bytes.collect(), None).expect("work that fits its stage")
}

/// Runs some tasks to their end, and starts one more.
fn run(stage: &Stage, execution: &mut BucketExecution, tasks: usize) {
    for number in 0..=tasks {
        let next = execution.demand_without_bytes().next.expect("a ready task");
        execution.start_task(stage, next, 0).expect("a task");
        if number < tasks {
            execution.handle_done(next);
        }
    }
}

fn unit(_: usize, _: &[Value]) -> f64 {
    1.0
}

fn part(execution: &mut BucketExecution, seconds: impl Fn(usize, &[Value]) -> f64) -> Vec<u32> {
    execution.take_part(seconds).into_iter().map(|id| id.0).collect()
}

#[test]
fn split_repeats_few_tasks() {
    let stage = two_tasks();
    let split = |first: &[i64], sharing, seconds: fn(usize, &[Value]) -> f64| {
        part(&mut execution(&stage, &work(&stage, first, sharing)), seconds)
    };
    // Half would be 5 and 6 tasks.
    assert_eq!(split(&[1, 1, 1, 1, 1, 2, 2, 2], ReuseScope::Tree, unit), [5, 6, 7]);
    // Workers that find the results of each other share evenly.
    assert_eq!(split(&[1, 1, 1, 1, 1, 2, 2, 2], ReuseScope::Dataflow, unit), [4, 5, 6, 7]);
    // An expensive task is not repeated for one instance more.
    let expensive = |task: usize, _: &[Value]| if task == 0 { 3.0 } else { 1.0 };
    assert_eq!(split(&[1, 1, 1, 1, 1, 2], ReuseScope::Tree, expensive), [5]);
    assert_eq!(split(&[1, 1, 1, 1, 1, 2], ReuseScope::Tree, unit), [4, 5]);
}

#[test]
fn split_that_saves_no_time_is_refused() {
    let stage = two_tasks();
    let work = work(&stage, &[1; 4], ReuseScope::Tree);
    let first_is_slow = |task: usize, _: &[Value]| if task == 0 { 3.0 } else { 1.0 };
    let mut begun = execution(&stage, &work);
    // The first task is done, and one of four others runs: 4 s remain, and the other worker would need 4 s for one of them.
    run(&stage, &mut begun, 1);
    assert_eq!(part(&mut begun, first_is_slow), Vec::<u32>::new());
    assert_eq!(part(&mut begun, unit), [3]);
    // All that is not started still goes back when the worker leaves.
    let ids = |ids: &[u32]| ids.iter().copied().map(InstanceId).collect::<Vec<_>>();
    assert_eq!(begun.take_unstarted(), ids(&[1, 2]));
    // Without a started instance too.
    let mut whole = execution(&stage, &work);
    let slow = |task: usize, _: &[Value]| if task == 0 { 9.0 } else { 1.0 };
    assert_eq!(part(&mut whole, slow), [2, 3], "11 s each instead of 13 s");
}

/// Counts the distinct tasks of instances in a reuse tree.
fn tasks<'a>(stage: &Stage, instances: impl Iterator<Item = &'a InstanceWork>) -> usize {
    let mut all = BTreeSet::new();
    for instance in instances {
        let mut path = format!("{:?}", instance.inputs);
        for task in &stage.tasks {
            let values: Vec<String> =
                task.arguments.iter().map(|&a| instance.parameters[a].to_string()).collect();
            path = format!("{path}/{values:?}");
            all.insert(path.clone());
        }
    }
    all.len()
}

/// Returns the instances in the order of their execution.
fn in_order(stage: &Stage, mut run: BucketExecution) -> Vec<InstanceId> {
    let mut order = Vec::new();
    while let Some(next) = run.demand_without_bytes().next {
        run.start_task(stage, next, 0).expect("a task");
        run.handle_done(next);
        while let Some(effect) = run.poll_effect() {
            order.extend(if let Effect::Done { instance, .. } = effect { Some(instance) } else { None });
        }
    }
    order
}

proptest! {
    #[test]
    fn no_other_split_is_shorter(case in cases()) {
        let Case { stage, work, bytes, active_paths } = &case;
        let work = BucketWork { sharing: ReuseScope::Tree, ..work.clone() };
        let execution = || BucketExecution::new(stage, &work, bytes.clone(), *active_paths).expect("it fits");
        let order = in_order(stage, execution());
        let given = execution().take_part(unit).len();
        let of = |ids: &[InstanceId]| tasks(stage, work.instances.iter().filter(|instance| ids.contains(&instance.id)));
        let slower = |kept: usize| of(&order[..kept]).max(of(&order[kept..]));
        let best = (1..=order.len()).map(slower).min().expect("an instance");
        prop_assert_eq!(slower(order.len() - given), best);
    }
}
