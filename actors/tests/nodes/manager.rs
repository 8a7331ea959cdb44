//! A manager, and workers that the tests play: its messages and their order.

use crate::outcome::request;
use crate::toy::plan;
use actix::prelude::*;
use parking_lot::Mutex;
use pleach_actors::manager::{
    Cancel, Connect, DropStudyResults, GetView, ManagerActor, ManagerView, PendingWorker, RecordDurable,
    RetainResults, ServiceHooks, StartPlan, StudyRequest,
};
use pleach_actors::transport::clock::SystemClock;
use pleach_actors::transport::in_memory::{MemoryEnd, pair};
use pleach_actors::transport::{Incoming, Link, codec};
use pleach_dispatch::message::{
    ReattachState, Report, ReportedEnd, StudyReattach, TaskOutcome, TaskProvenance, TaskReport, ToManager,
    ToWorker,
};
use pleach_dispatch::plan::BucketPlan;
use pleach_dispatch::study::{Replanner, StudyOutcome, StudySnapshot};
use pleach_dispatch::{InstanceId, LeaseId, PlanId};
use pleach_regions::Table;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Time limit for tests that would otherwise hang, 60 s: far beyond the duration of any of them.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// Returns the manager's next message.
pub(crate) async fn said(incoming: &mut Incoming) -> ToWorker {
    let frame = tokio::time::timeout(DEADLINE, incoming.recv()).await.expect("the manager speaks");
    codec::decode(&frame.expect("the link is there")).expect("a message")
}

pub(crate) fn service() -> ServiceHooks {
    ServiceHooks {
        number: 7,
        epoch: 1,
        find_file: Arc::new(|_| None),
        check_file: Arc::new(|_, _, _| true),
        clock: Arc::new(SystemClock),
        network: tokio::runtime::Handle::current(),
        by_data: true,
    }
}

/// Waits until the manager's view is as asked.
pub(crate) async fn viewed(
    manager: &Addr<ManagerActor>,
    is_so: impl Fn(&ManagerView) -> bool,
) -> ManagerView {
    let looking = async {
        loop {
            let view = manager.send(GetView).await.expect("the manager lives");
            if is_so(&view) {
                return view;
            }
        }
    };
    tokio::time::timeout(DEADLINE, looking).await.expect("a view as expected")
}

/// Returns the join message of a worker without accelerators.
fn joining(slots: u32, incarnation: u64, before: Option<ReattachState>) -> ToManager {
    ToManager::Join { slots, accelerators: 0, device_bytes: 0, incarnation, exchange_port: None, before }
}

/// Worker that joins and requests no work.
pub(crate) fn idler(manager: &Addr<ManagerActor>, slots: u32) -> MemoryEnd {
    let (near, far) = pair();
    manager.do_send(Connect {
        link: Box::new(near.link),
        incoming: near.incoming,
        newcomer: PendingWorker { name: format!("w{slots}"), ..PendingWorker::local() },
    });
    let join = joining(slots, u64::from(slots), None);
    far.link.send(codec::encode(&join).expect("a message")).expect("the link is there");
    far
}

/// Returns the report of an instance that has executed `tasks` tasks of `seconds` each.
pub(crate) fn executed((lease, instance): (LeaseId, InstanceId), tasks: usize, seconds: f64) -> Report {
    let done = TaskOutcome::Ran { seconds, predicted_seconds: seconds, digests: 0, digest_seconds: 0.0 };
    let provenance = TaskProvenance::default();
    let task = TaskReport { task: 0, stage: 0, done, cache_seconds: 0.0, provenance };
    let end = ReportedEnd::Done { results: Vec::new(), shared: Vec::new() };
    Report { lease, instance, end, tasks: vec![task; tasks] }
}

/// Returns a study of two stages with `instances` each, in buckets of `bucket`.
pub(crate) fn study(instances: i64, bucket: usize, done: oneshot::Sender<StudyOutcome>) -> StudyRequest {
    let sets: Vec<(usize, [i64; 5])> = (0..instances).map(|n| (0, [n, 0, 0, 1, 2])).collect();
    request(plan(&sets, bucket), done)
}

/// Returns a study of 12 instances in four buckets, two stages of six instances each.
fn replanned_study(replanner: impl Replanner + 'static, done: oneshot::Sender<StudyOutcome>) -> StudyRequest {
    StudyRequest { replanner: Some(Box::new(replanner)), ..study(6, 3, done) }
}

/// Records the slots of each call, and returns a bucket for each unstarted instance.
struct OneByOne(Arc<Mutex<Vec<u32>>>);

impl Replanner for OneByOne {
    fn replan(&mut self, snapshot: &StudySnapshot, slots: u32) -> Option<Vec<BucketPlan>> {
        self.0.lock().push(slots);
        let open = snapshot.unstarted();
        Some(open.map(|(id, _)| BucketPlan { instances: vec![id], pixels: 1 }).collect())
    }
}

#[test]
fn workers_that_join_or_leave_have_buckets_replanned_for_their_slots() {
    System::new().block_on(async {
        let manager = ManagerActor::for_service(service()).start();
        let (done, _outcome) = oneshot::channel();
        let slots: Arc<Mutex<Vec<u32>>> = Arc::default();
        let study = replanned_study(OneByOne(Arc::clone(&slots)), done);
        manager.send(StartPlan { id: PlanId::first_round(1), study }).await.unwrap();
        let replanned = async |expected: &[u32]| -> ManagerView {
            let view = viewed(&manager, |view| view.replans as usize >= expected.len()).await;
            assert_eq!(*slots.lock(), expected);
            view
        };
        // Without a worker, the manager does not replan.
        let _first = idler(&manager, 2);
        assert_eq!(replanned(&[2]).await.replanned_instances, 2 * 6);
        let second = idler(&manager, 3);
        replanned(&[2, 5]).await;
        drop(second);
        let view = replanned(&[2, 5, 2]).await;
        assert_eq!((view.replans, view.workers.len()), (3, 1));
    });
}

/// Replans with [`OneByOne`]. Its costs are new until the second replan, and it counts how often it is asked.
struct NewCosts {
    replanner: OneByOne,
    replans: usize,
    asked: Arc<AtomicUsize>,
}

impl Replanner for NewCosts {
    fn has_new_costs(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed);
        self.replans < 2
    }

    fn replan(&mut self, snapshot: &StudySnapshot, slots: u32) -> Option<Vec<BucketPlan>> {
        self.replans += 1;
        self.replanner.replan(snapshot, slots)
    }
}

#[test]
fn study_is_replanned_once_its_measured_costs_are_new() {
    System::new().block_on(async {
        let manager = ManagerActor::for_service(service()).start();
        let (done, _outcome) = oneshot::channel();
        let (slots, asked): (Arc<Mutex<Vec<u32>>>, Arc<AtomicUsize>) = Default::default();
        let study = replanned_study(
            NewCosts { replanner: OneByOne(Arc::clone(&slots)), replans: 0, asked: Arc::clone(&asked) },
            done,
        );
        let id = PlanId::first_round(1);
        manager.send(StartPlan { id, study }).await.unwrap();
        let mut worker = idler(&manager, 1);
        // The replan for the joined worker is the first of two with new costs.
        let replans = async |least: u64| _ = viewed(&manager, |view| view.replans >= least).await;
        replans(1).await;
        let mut call = 0;
        // Reports tasks, and returns how often the manager has compared the costs by then.
        let mut report = async |tasks: usize| {
            // The lease is unknown, but the tasks were executed.
            let report = executed((LeaseId(999), InstanceId(0)), tasks, 1.0);
            let done = ToManager::Reports { study: id, reports: vec![report] };
            call += 1;
            for message in [done, ToManager::Sync { call }] {
                worker.link.send(codec::encode(&message).expect("a message")).expect("the link is there");
            }
            while !matches!(said(&mut worker.incoming).await, ToWorker::SyncAck { call: of } if of == call) {}
            asked.load(Ordering::Relaxed)
        };
        assert_eq!(report(31).await, 0, "31 tasks say too little");
        assert_eq!(report(1).await, 1);
        replans(2).await;
        // The costs are compared again at 64 tasks, and are those of the buckets.
        assert_eq!(report(31).await, 1);
        assert_eq!(report(1).await, 2);
        assert_eq!(*slots.lock(), [1, 1]);
    });
}

/// Replans with [`OneByOne`] when the test sends a message, and reports its start.
struct Slow {
    replanner: OneByOne,
    begun: mpsc::Sender<()>,
    may_end: mpsc::Receiver<()>,
}

impl Replanner for Slow {
    fn replan(&mut self, snapshot: &StudySnapshot, slots: u32) -> Option<Vec<BucketPlan>> {
        self.begun.send(()).expect("the test waits");
        self.may_end.recv_timeout(DEADLINE).expect("the test sends");
        self.replanner.replan(snapshot, slots)
    }
}

#[test]
fn manager_answers_and_grants_during_a_replan() {
    System::new().block_on(async {
        let manager = ManagerActor::for_service(service()).start();
        let (done, _outcome) = oneshot::channel();
        let (begun, has_begun) = mpsc::channel();
        let (end, may_end) = mpsc::channel();
        let slots: Arc<Mutex<Vec<u32>>> = Arc::default();
        let study = replanned_study(Slow { replanner: OneByOne(Arc::clone(&slots)), begun, may_end }, done);
        let id = PlanId::first_round(1);
        manager.send(StartPlan { id, study }).await.unwrap();
        let mut worker = idler(&manager, 1);
        let wait = async |is_so: &dyn Fn(&ManagerView) -> bool| viewed(&manager, is_so).await;
        wait(&|_| has_begun.try_recv().is_ok()).await;
        // The replan waits for this test. Meanwhile the manager answers, and grants a bucket of 3 instances.
        assert!(matches!(said(&mut worker.incoming).await, ToWorker::Welcome { .. }));
        let request = ToManager::Request { buckets: 1, after: None };
        worker.link.send(codec::encode(&request).expect("a message")).expect("the link is there");
        let granted = loop {
            if let ToWorker::Assign { work, .. } = said(&mut worker.incoming).await {
                break work.instances.len();
            }
        };
        assert_eq!(granted, 3);
        assert_eq!(manager.send(GetView).await.unwrap().replans, 0);
        // A worker joins, and the timer of its replan fires.
        let _second = idler(&manager, 3);
        let joined = Instant::now();
        wait(&|view| view.workers.len() == 2 && joined.elapsed() > Duration::from_millis(300)).await;
        assert!(has_begun.try_recv().is_err(), "a study has one replan at a time");
        // The granted instances stay in their bucket, the other 9 of two stages are replanned.
        end.send(()).expect("the replan waits");
        assert_eq!(wait(&|view| view.replans == 1).await.replanned_instances, 9);
        // The study is replanned again, for the slots of both workers.
        wait(&|_| has_begun.try_recv().is_ok()).await;
        end.send(()).expect("the replan waits");
        wait(&|view| view.replans == 2).await;
        assert_eq!(*slots.lock(), [1, 4]);
        let _third = idler(&manager, 2);
        wait(&|_| has_begun.try_recv().is_ok()).await;
        // A canceled study discards its replan, and with it the replanner.
        manager.send(Cancel(1)).await.unwrap();
        end.send(()).expect("the replan waits");
        wait(&|_| has_begun.try_recv() == Err(mpsc::TryRecvError::Disconnected)).await;
        assert_eq!(manager.send(GetView).await.unwrap().replans, 2);
    });
}

#[test]
fn many_instances_are_merged_in_parts() {
    System::new().block_on(async {
        let manager = ManagerActor::for_service(service()).start();
        let _worker = idler(&manager, 1);
        let (done, _outcome) = oneshot::channel();
        // Of two stages: more than are merged in one event.
        let instances = 40_000;
        let replanner = Some(Box::new(OneByOne(Arc::default())) as _);
        let study = StudyRequest { replanner, ..study(instances, 1000, done) };
        manager.send(StartPlan { id: PlanId::first_round(1), study }).await.expect("the manager lives");
        let view = viewed(&manager, |view| view.replans > 0).await;
        assert_eq!((view.replans, view.replanned_instances), (1, 2 * instances as u64));
    });
}

#[test]
fn measured_links_are_those_that_a_transfer_can_have() {
    System::new().block_on(async {
        let manager = ManagerActor::for_service(service()).start();
        let worker = idler(&manager, 1);
        let report = async |bytes_per_second: f64, latency_seconds: f64, bytes: u64| {
            let link = ToManager::MeasuredLink { bytes_per_second, latency_seconds };
            // The manager handles messages in order, so the bytes show that it has handled the link.
            for message in [link, ToManager::StorageUsage { bytes }] {
                worker.link.send(codec::encode(&message).expect("a message")).expect("the link is there");
            }
            let has = |view: &ManagerView| view.workers.iter().any(|worker| worker.bytes == bytes);
            viewed(&manager, has).await.workers[0].transfers.map(|cost| cost.seconds(1000))
        };
        assert_eq!(report(f64::NAN, 1.0, 1).await, None);
        assert_eq!(report(0.0, 1.0, 2).await, None);
        assert_eq!(report(500.0, 1.0, 3).await, Some(3.0));
        assert_eq!(report(500.0, f64::INFINITY, 4).await, Some(3.0));
        assert_eq!(report(f64::INFINITY, 4.0, 5).await, Some(4.0));
    });
}

#[test]
fn reattached_worker_drops_studies_finished_meanwhile() {
    System::new().block_on(async {
        let manager = ManagerActor::for_service(service()).start();
        for study in [3, 4, 5] {
            manager.do_send(RetainResults(study));
        }
        manager.do_send(DropStudyResults(4));
        let (near, mut far) = pair();
        manager.do_send(Connect {
            link: Box::new(near.link),
            incoming: near.incoming,
            newcomer: PendingWorker::local(),
        });
        let before = ReattachState { manager: 7, studies: Vec::new(), retained_studies: vec![2, 3, 4, 5] };
        let join = joining(1, 1, Some(before));
        far.link.send(codec::encode(&join).unwrap()).unwrap();
        assert!(matches!(said(&mut far.incoming).await, ToWorker::Welcome { manager: 7 }));
        for over in [2, 4] {
            assert!(
                matches!(said(&mut far.incoming).await, ToWorker::DropRetained { study } if study == over)
            );
        }
        // Studies that end while the worker is connected, finished or canceled.
        manager.do_send(DropStudyResults(5));
        manager.do_send(Cancel(3));
        for over in [5, 3] {
            assert!(
                matches!(said(&mut far.incoming).await, ToWorker::DropRetained { study } if study == over)
            );
        }
    });
}

#[test]
fn reattached_worker_without_the_study_gets_it_again() {
    for introduced in [true, false] {
        System::new().block_on(async {
            let manager = ManagerActor::for_service(service()).start();
            let (done, _outcome) = oneshot::channel();
            let study = PlanId::first_round(1);
            let plan = replanned_study(OneByOne(Arc::default()), done);
            manager.send(StartPlan { id: study, study: plan }).await.unwrap();
            let (near, mut far) = pair();
            manager.do_send(Connect {
                link: Box::new(near.link),
                incoming: near.incoming,
                newcomer: PendingWorker::local(),
            });
            let leases = vec![(LeaseId(9), vec![InstanceId(0)])];
            let had = StudyReattach { study, introduced, leases, regions: Vec::new() };
            let before = ReattachState { manager: 7, studies: vec![had], retained_studies: Vec::new() };
            let join = joining(1, 1, Some(before));
            far.link.send(codec::encode(&join).unwrap()).unwrap();
            far.link.send(codec::encode(&ToManager::Request { buckets: 1, after: None }).unwrap()).unwrap();
            assert!(matches!(said(&mut far.incoming).await, ToWorker::Welcome { manager: 7 }));
            let ToWorker::ResumeLease { lease, instances, .. } = said(&mut far.incoming).await else {
                panic!("the lease is answered first");
            };
            assert_eq!((lease, instances), (LeaseId(9), vec![InstanceId(0)]));
            if !introduced {
                let first = said(&mut far.incoming).await;
                assert!(matches!(first, ToWorker::StartStudy { .. }), "{first:?}");
            }
            let grant = said(&mut far.incoming).await;
            assert!(matches!(grant, ToWorker::Assign { .. }), "{grant:?}");
        });
    }
}

#[test]
fn sync_is_acknowledged_after_the_grants_of_earlier_requests() {
    System::new().block_on(async {
        let manager = ManagerActor::for_service(service()).start();
        let (done, _outcome) = oneshot::channel();
        // Three times as many instances as the manager grants before it handles other messages.
        let study = study(6 * 1024, 1024, done);
        manager.send(StartPlan { id: PlanId::first_round(1), study }).await.unwrap();
        let mut worker = idler(&manager, 6);
        for message in [ToManager::Request { buckets: 6, after: None }, ToManager::Sync { call: 3 }] {
            worker.link.send(codec::encode(&message).unwrap()).unwrap();
        }
        let mut granted = 0;
        loop {
            match said(&mut worker.incoming).await {
                ToWorker::Assign { work, .. } => granted += work.instances.len(),
                ToWorker::SyncAck { call } => break assert_eq!((call, granted), (3, 6 * 1024)),
                _ => {}
            }
        }
    });
}

/// A worker reports an instance, loses its link, and reports it again before the record is on disk.
#[test]
fn repeated_report_is_acknowledged_once_its_record_is_on_disk() {
    System::new().block_on(async {
        let manager = ManagerActor::for_service(service()).start();
        let (done, _outcome) = oneshot::channel();
        let id = PlanId::first_round(1);
        manager.send(StartPlan { id, study: study(2, 1, done) }).await.unwrap();
        let join = |before: Option<ReattachState>| {
            let (near, far) = pair();
            let newcomer = PendingWorker::local();
            manager.do_send(Connect { link: Box::new(near.link), incoming: near.incoming, newcomer });
            let join = joining(1, 1, before);
            far.link.send(codec::encode(&join).unwrap()).unwrap();
            far
        };
        let report = |lease: LeaseId, instance: InstanceId| {
            let results = vec![Table::new([("value", 1.0)])];
            let end = ReportedEnd::Done { results, shared: Vec::new() };
            ToManager::Reports {
                study: id,
                reports: vec![Report { lease, instance, end, tasks: Vec::new() }],
            }
        };
        let first = join(None);
        // The last instance, whose outputs no other reads: it stays done without its worker.
        let (lease, instance) = (LeaseId(9), InstanceId(3));
        drop(first);
        let had = || StudyReattach {
            study: id,
            introduced: true,
            leases: vec![(lease, vec![instance])],
            regions: Vec::new(),
        };
        let before =
            || Some(ReattachState { manager: 7, studies: vec![had()], retained_studies: Vec::new() });
        let second = join(before());
        second.link.send(codec::encode(&report(lease, instance)).unwrap()).unwrap();
        viewed(&manager, |view| view.studies.iter().any(|study| study.instances == 1)).await;
        drop(second);
        let mut third = join(before());
        third.link.send(codec::encode(&report(lease, instance)).unwrap()).unwrap();
        third.link.send(codec::encode(&ToManager::Sync { call: 3 }).unwrap()).unwrap();
        loop {
            match said(&mut third.incoming).await {
                ToWorker::SyncAck { .. } => break,
                message => {
                    assert!(!matches!(message, ToWorker::AckReports { .. }), "the record is not on disk")
                }
            }
        }
        manager.do_send(RecordDurable { study: id, records: 1 });
        let acknowledged = async {
            while !matches!(said(&mut third.incoming).await, ToWorker::AckReports { messages: 1 }) {}
        };
        tokio::time::timeout(DEADLINE, acknowledged).await.expect("an acknowledgment");
    });
}
