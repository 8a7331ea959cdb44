//! Time of the manager's handlers for one tile in many buckets: start, request with grant, last report of a bucket, and
//! the loss of a worker. Prints mean and maximum for the tree scope, which has no ranges, and for dataflow.
//!
//! `cargo bench -p pleach-dispatch --bench grants -- [BUCKETS] [WORKERS]`

#![expect(clippy::print_stdout, reason = "it prints a table")]
#![expect(clippy::disallowed_methods, reason = "it measures time, which the state machines must not read")]

#[path = "../tests/support/shapes.rs"]
mod shapes;

use pleach_dispatch::manager::{Effect, Manager, WorkerInfo};
use pleach_dispatch::plan::{BucketPlan, ExecutionPlan, InstancePlan, OutputPlan, ReuseScope};
use pleach_dispatch::study::{NewBuckets, Study};
use pleach_dispatch::{InstanceId, LeaseId, PlanId, WorkerId};
use pleach_workflow::TaskInput;
use shapes::{key, stage, task};
use std::time::Instant;

/// Instances of a bucket.
const EACH: u32 = 10;

fn plan(buckets: u32, sharing: ReuseScope) -> ExecutionPlan {
    let instance = |id: u32| InstancePlan {
        stage: 0,
        parameters: Vec::new(),
        inputs: vec![key(u32::MAX)],
        outputs: vec![OutputPlan { key: key(id), stored: false, reported: true }],
        parents: Vec::new(),
    };
    let members = |bucket: u32| (EACH * bucket..EACH * (bucket + 1)).map(InstanceId).collect();
    ExecutionPlan {
        stages: vec![stage(0, 1, vec![task("t1", &[], &[TaskInput::StageInput(0)], 1)], &[(0, 0)])],
        instances: (0..EACH * buckets).map(instance).collect(),
        buckets: (0..buckets).map(|bucket| BucketPlan { instances: members(bucket), pixels: 64 }).collect(),
        sharing,
        ..ExecutionPlan::default()
    }
}

/// Mean and maximum of some steps, in microseconds.
#[derive(Default)]
struct Times {
    count: u32,
    sum: f64,
    max: f64,
}

impl Times {
    fn time<T>(&mut self, step: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = step();
        let micros = start.elapsed().as_secs_f64() * 1e6;
        self.count += 1;
        self.sum += micros;
        self.max = self.max.max(micros);
        result
    }

    fn show(&self) -> String {
        format!("{:.1} / {:.0}", self.sum / f64::from(self.count.max(1)), self.max)
    }
}

/// Leases granted since the last call, with their instances.
fn grants(manager: &mut Manager) -> Vec<(WorkerId, LeaseId, Vec<InstanceId>)> {
    let mut grants = Vec::new();
    while let Some(effect) = manager.poll_effect() {
        if let Effect::Assign { worker, lease, work, .. } = effect {
            grants.push((worker, lease, work.instances.iter().map(|instance| instance.id).collect()));
        }
    }
    grants
}

fn main() {
    merges(160_000);
    merges(1_000_000);
    let given: Vec<u32> = std::env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let buckets = given.first().copied().unwrap_or(100_000);
    let workers = given.get(1).copied().unwrap_or(256);
    println!("{buckets} buckets of {EACH} instances, {workers} workers; microseconds, mean / maximum\n");
    println!("| scope | start, ms | request and grant | last report of a bucket | loss of a worker |");
    println!("| --- | --- | --- | --- | --- |");
    let id = PlanId::first_round(0);
    for scope in [ReuseScope::Tree, ReuseScope::Dataflow] {
        let mut manager = Manager::new(0);
        let workers: Vec<WorkerId> = (0..workers).map(|_| manager.handle_join(WorkerInfo::ANY)).collect();
        let start = Instant::now();
        let study = Study::new(plan(buckets, scope)).expect("a plan that keeps the rules");
        manager.handle_start(id, study);
        let begun = start.elapsed().as_secs_f64() * 1e3;
        let (mut granted, mut reported, mut lost) = (Times::default(), Times::default(), Times::default());
        let mut leases = Vec::new();
        for worker in &workers {
            granted.time(|| manager.handle_request(*worker, 1, None));
            leases.extend(grants(&mut manager));
        }
        let mut next = 0;
        while next < leases.len() {
            let (worker, lease, instances) = leases[next].clone();
            next += 1;
            // Some workers are lost on the way, and their buckets are granted again.
            if next % 1000 == 0 {
                lost.time(|| manager.handle_leave(worker, true));
                let new = manager.handle_join(WorkerInfo::ANY);
                granted.time(|| manager.handle_request(new, 1, None));
                leases.extend(grants(&mut manager));
                continue;
            }
            for (number, instance) in instances.iter().enumerate() {
                let report = |manager: &mut Manager| manager.handle_done(worker, id, lease, *instance);
                if number + 1 == instances.len() {
                    reported.time(|| report(&mut manager));
                } else {
                    report(&mut manager);
                }
            }
            granted.time(|| manager.handle_request(worker, 1, None));
            leases.extend(grants(&mut manager));
        }
        let scope = scope.as_str();
        println!("| {scope} | {begun:.0} | {} | {} | {} |", granted.show(), reported.show(), lost.show());
    }
}

/// Prints the time of merging a replan of all instances into a study of this number of instances.
fn merges(instances: u32) {
    for old in [1_000, 100] {
        let plan = plan(instances / EACH, ReuseScope::Dataflow);
        let all: Vec<InstanceId> = (0..instances).map(InstanceId).collect();
        let bucket = |ids: &[InstanceId]| BucketPlan { instances: ids.to_vec(), pixels: 64 };
        let plan = ExecutionPlan { buckets: all.chunks(old).map(bucket).collect(), ..plan };
        let id = PlanId::first_round(0);
        let mut manager = Manager::new(0);
        manager.handle_start(id, Study::new(plan).expect("a plan that keeps the rules"));
        let new = NewBuckets::new(all.chunks(old / 3 * 2).map(bucket).collect()).expect("each instance once");
        let start = Instant::now();
        let merged = manager.handle_replanned(id, new).expect("buckets of the study");
        println!(
            "{instances} instances of {old} a bucket: {} moved in {:.1} ms",
            merged.moved,
            start.elapsed().as_secs_f64() * 1e3
        );
    }
}
