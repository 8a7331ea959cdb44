//! Overheads of buckets: a manager measures them, and steals no work that is shorter.

use crate::manager::{DEADLINE, executed, idler, said, service, study, viewed};
use actix::prelude::*;
use parking_lot::Mutex;
use pleach_actors::manager::{ManagerActor, StartPlan, StudyEvent, StudyRequest};
use pleach_actors::transport::in_memory::MemoryEnd;
use pleach_actors::transport::{Link, codec};
use pleach_dispatch::message::{ToManager, ToWorker};
use pleach_dispatch::plan::BucketPlan;
use pleach_dispatch::study::{Replanner, StudySnapshot};
use pleach_dispatch::{InstanceId, LeaseId, PlanId};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Ten times the interval of ticks. A tick gives idle workers work of others.
const WHILE: Duration = Duration::from_secs(1);

fn send(worker: &MemoryEnd, message: &ToManager) {
    worker.link.send(codec::encode(message).expect("a message")).expect("the link is there");
}

/// Requests buckets. Returns the lease and the first instance of each.
async fn granted(worker: &mut MemoryEnd, buckets: u32) -> Vec<(LeaseId, InstanceId)> {
    send(worker, &ToManager::Request { buckets, after: None });
    let mut leases = Vec::new();
    while leases.len() < buckets as usize {
        if let ToWorker::Assign { lease, work, .. } = said(&mut worker.incoming).await {
            leases.push((lease, work.instances[0].id));
        }
    }
    leases
}

/// Reports the first instance of each lease, with a task of 50 ms.
fn report(worker: &MemoryEnd, id: PlanId, leases: Vec<(LeaseId, InstanceId)>) {
    let reports = leases.into_iter().map(|lease| executed(lease, 1, 0.05)).collect();
    send(worker, &ToManager::Reports { study: id, reports });
}

/// The clock of the manager is that of its shell, finer than its ticks. The task takes 50 ms of the 120 ms at least.
#[test]
fn overheads_of_buckets_are_measured_from_grant_to_report() {
    System::new().block_on(async {
        let manager = ManagerActor::for_service(service()).start();
        let (done, _outcome) = oneshot::channel();
        let measured: Arc<Mutex<Vec<f64>>> = Arc::default();
        let overheads = Arc::clone(&measured);
        let observer = Box::new(move |event: StudyEvent<'_>| {
            if let StudyEvent::BucketOverheads(seconds) = event {
                overheads.lock().extend(seconds);
            }
        });
        let id = PlanId::first_round(1);
        let study = StudyRequest { observer, ..study(6, 1, done) };
        manager.send(StartPlan { id, study }).await.unwrap();
        let mut worker = idler(&manager, 4);
        let leases = granted(&mut worker, 4).await;
        let begun = Instant::now();
        viewed(&manager, |_| begun.elapsed() >= Duration::from_millis(120)).await;
        report(&worker, id, leases);
        viewed(&manager, |view| view.studies[0].tasks == 4).await;
        // The first of them reads the tile's file for the first time.
        let measured = measured.lock();
        assert_eq!(measured.len(), 3, "{measured:?}");
        assert!(measured.iter().all(|seconds| *seconds >= 0.069), "{measured:?}");
    });
}

/// Replanner that moves nothing, and knows the overhead of a bucket.
struct Known(Option<f64>);

impl Replanner for Known {
    fn replan(&mut self, _: &StudySnapshot, _: u32) -> Option<Vec<BucketPlan>> {
        None
    }

    fn bucket_overhead_seconds(&self) -> Option<f64> {
        self.0
    }
}

/// A worker has the two buckets of six instances of 50 ms. Another one is idle.
#[test]
fn work_shorter_than_a_measured_overhead_stays_with_its_worker() {
    // Returns whether the manager asks for a part of a bucket within a time.
    let is_asked = |overhead: Option<f64>, within: Duration| {
        System::new().block_on(async {
            let manager = ManagerActor::for_service(service()).start();
            let (done, _outcome) = oneshot::channel();
            let id = PlanId::first_round(1);
            let study = StudyRequest { replanner: Some(Box::new(Known(overhead))), ..study(12, 6, done) };
            manager.send(StartPlan { id, study }).await.unwrap();
            let mut worker = idler(&manager, 2);
            let leases = granted(&mut worker, 2).await;
            report(&worker, id, leases);
            viewed(&manager, |view| view.studies[0].tasks == 2).await;
            let idle = idler(&manager, 3);
            send(&idle, &ToManager::Request { buckets: 1, after: None });
            let asked =
                async { while !matches!(said(&mut worker.incoming).await, ToWorker::StealRequest { .. }) {} };
            tokio::time::timeout(within, asked).await.is_ok()
        })
    };
    assert!(is_asked(None, DEADLINE), "without an overhead, idle workers help");
    assert!(is_asked(Some(0.01), DEADLINE));
    assert!(!is_asked(Some(10.0), WHILE));
}
