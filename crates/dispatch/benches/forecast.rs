//! Time of a worker's own state machine for each task of a bucket, with a forecast of the bucket's memory at each start and
//! end, as for a worker with a memory limit. Prints it beside that without forecasts, for buckets of several sizes.
//!
//! `cargo bench -p pleach-dispatch --bench forecast`

#![expect(clippy::print_stdout, reason = "it prints a table")]
#![expect(clippy::disallowed_methods, reason = "it measures time, which the state machines must not read")]

#[path = "../tests/support/shapes.rs"]
mod shapes;

use pleach_dispatch::memory_model::{BucketDemand, OutputConsumption, TaskMemory};
use pleach_dispatch::message::{BucketWork, InstanceWork};
use pleach_dispatch::plan::{OutputPlan, ReuseScope};
use pleach_dispatch::stage::BucketExecution;
use pleach_dispatch::{BucketId, InstanceId};
use pleach_workflow::{Stage, TaskInput, Value};
use shapes::{key, stage, task};
use std::time::Instant;

/// A chain of three tasks, whose last one reads both others.
fn example() -> (Stage, Vec<TaskMemory>) {
    let of = |task| TaskInput::Task { task, output: 0 };
    let tasks = vec![
        task("a", &[0], &[TaskInput::StageInput(0)], 1),
        task("b", &[1], &[of(0)], 1),
        task("c", &[2], &[of(1), of(0)], 1),
    ];
    let bytes = [(3, vec![5]), (11, vec![2]), (1, vec![4])];
    let bytes = bytes.map(|(scratch, outputs)| TaskMemory { scratch, outputs });
    (stage(3, 1, tasks, &[(2, 0)]), bytes.to_vec())
}

fn bucket(instances: u32) -> BucketWork {
    let instance = |number: u32| InstanceWork {
        id: InstanceId(number),
        parameters: [number / 100, number / 4, number].map(|value| Value::Integer(value.into())).to_vec(),
        inputs: vec![key(0)],
        outputs: vec![OutputPlan { key: key(1 + number), stored: false, reported: true }],
        stays: false,
    };
    BucketWork {
        bucket: BucketId(0),
        stage: 0,
        pixels: 0,
        drain: OutputConsumption::default(),
        sharing: ReuseScope::Tree,
        own_tile: None,
        instances: (0..instances).map(instance).collect(),
        elsewhere: Vec::new(),
    }
}

/// Returns the number of tasks, and microseconds for each of them.
fn execute(instances: u32, demand: impl Fn(&BucketExecution) -> BucketDemand) -> (u32, f64) {
    let (stage, bytes) = example();
    let mut run = BucketExecution::new(&stage, &bucket(instances), bytes, None).expect("it fits the stage");
    let (start, mut tasks) = (Instant::now(), 0);
    while let Some(next) = demand(&run).next {
        run.start_task(&stage, next, 0).expect("it is ready");
        std::hint::black_box(demand(&run));
        run.handle_done(next);
        while run.poll_effect().is_some() {}
        tasks += 1;
    }
    (tasks, start.elapsed().as_secs_f64() * 1e6 / f64::from(tasks))
}

fn main() {
    println!("tasks    with forecasts, us a task    without");
    for instances in [40, 400, 1_500, 4_000, 40_000] {
        let (tasks, with) = execute(instances, |run| run.demand(0));
        let (_, without) = execute(instances, BucketExecution::demand_without_bytes);
        println!("{tasks:7} {with:12.2} {without:24.2}");
    }
}
