//! A worker whose manager is ahead of it: it releases a region before the worker has stored it, or ends a study before it
//! has acknowledged the reports.

use crate::cluster::{Cluster, patient, soon};
use crate::sharing_worker::Worker;
use crate::toy;
use actix::prelude::*;
use pleach_actors::transport::in_memory::{MemoryEnd, pair};
use pleach_actors::transport::{Link, codec};
use pleach_actors::worker::LinkUp;
use pleach_dispatch::memory_model::OutputConsumption;
use pleach_dispatch::message::{
    BucketWork, GrantReason, InstanceWork, Report, ReportedEnd, ToManager, ToWorker,
};
use pleach_dispatch::plan::{OutputPlan, ReuseScope};
use pleach_dispatch::{BucketId, InstanceId, LeaseId, PlanId};
use pleach_regions::RegionKey;
use pleach_workflow::{Durability, InputOrigin, Value};
use std::sync::atomic::Ordering;

const STUDY: PlanId = PlanId::first_round(1);
const OUTPUT: RegionKey = RegionKey([7; 16]);

fn say(manager: &MemoryEnd, message: &ToWorker) {
    manager.link.send(codec::encode(message).expect("a message")).expect("the link is there");
}

/// A bucket of one instance, which stores its output.
fn bucket() -> BucketWork {
    let instance = InstanceWork {
        id: InstanceId(0),
        parameters: vec![Value::Integer(1), Value::Integer(2)],
        inputs: vec![toy::input_key(0)],
        outputs: vec![OutputPlan { key: OUTPUT, stored: true, reported: false }],
        stays: false,
    };
    BucketWork {
        bucket: BucketId(0),
        stage: 0,
        pixels: 1,
        drain: OutputConsumption::default(),
        sharing: ReuseScope::Dataflow,
        own_tile: None,
        instances: vec![instance],
        elsewhere: Vec::new(),
    }
}

/// Begins the study on a connected worker and gives it the bucket.
fn begin(manager: &MemoryEnd) {
    say(manager, &ToWorker::Welcome { manager: 7 });
    say(
        manager,
        &ToWorker::StartStudy {
            study: STUDY,
            stages: vec![toy::stage("a", 2, InputOrigin::Input(0))],
            min_bytes: 0,
            durable: Durability::default(),
            retains_results: false,
            name: String::new(),
            user: String::new(),
            retained: Vec::new(),
        },
    );
    let (lease, work) = (LeaseId(1), bucket());
    let (inputs, peers, reason) = (Vec::new(), Vec::new(), GrantReason::Request);
    say(manager, &ToWorker::Assign { study: STUDY, lease, work, reason, inputs, peers });
}

/// Connects a worker to a manager that the test plays. Returns the manager's end.
fn connect(worker: &Worker) -> MemoryEnd {
    let (manager, near) = pair();
    worker.actor.do_send(LinkUp { link: Box::new(near.link), incoming: near.incoming });
    manager
}

async fn heard(manager: &mut MemoryEnd) -> ToManager {
    let frame = soon(manager.incoming.recv()).await.expect("the link is there");
    codec::decode(&frame).expect("a message")
}

/// Waits for the report of the bucket's instance.
async fn report(manager: &mut MemoryEnd) {
    loop {
        if let ToManager::Reports { reports, .. } = heard(manager).await {
            assert!(matches!(
                reports[..],
                [Report { instance: InstanceId(0), end: ReportedEnd::Done { .. }, .. }]
            ));
            return;
        }
    }
}

#[test]
fn output_of_an_instance_that_another_worker_finished_first_is_not_kept() {
    let cluster = Cluster::new(patient());
    System::new().block_on(async {
        let worker = Worker::start(&cluster, "w1", 1);
        let mut manager = connect(&worker);
        begin(&manager);
        // No task has run yet: the worker handles messages that have arrived before it grants a slot.
        say(&manager, &ToWorker::Release { keys: vec![OUTPUT] });
        report(&mut manager).await;
        assert_eq!(worker.watch.runs.load(Ordering::SeqCst), 2);
        // The output was stored before the report. The bucket is over now.
        soon(async {
            while worker.ram.get(OUTPUT).is_some() {
                tokio::task::yield_now().await;
            }
        })
        .await;
    });
}

#[test]
fn reattaching_worker_reports_whether_it_still_has_the_study() {
    let cluster = Cluster::new(patient());
    System::new().block_on(async {
        let worker = Worker::start(&cluster, "w1", 1);
        let mut manager = connect(&worker);
        begin(&manager);
        report(&mut manager).await;
        // The link breaks before the manager acknowledges the report, once with the study and once after its end.
        for introduced in [true, false] {
            if !introduced {
                say(&manager, &ToWorker::StudyFinished { study: STUDY });
            }
            let MemoryEnd { link, mut incoming } = manager;
            drop(link);
            // The worker closes its own end once it has noticed.
            while soon(incoming.recv()).await.is_some() {}
            manager = connect(&worker);
            let ToManager::Join { before: Some(before), .. } = heard(&mut manager).await else {
                panic!("the first message is a join");
            };
            let leases = vec![(LeaseId(1), vec![InstanceId(0)])];
            let claimed = before.studies.first().map(|had| (had.study, had.introduced, had.leases.clone()));
            assert_eq!(claimed, Some((STUDY, introduced, leases)));
            report(&mut manager).await;
            say(&manager, &ToWorker::Welcome { manager: 7 });
        }
    });
}
