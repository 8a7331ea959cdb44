//! Several workers on one manager, and links that break: no instance is lost or counted twice.

use crate::outcome::{Sets, check};
use crate::toy::{Input, input_key, plan, registry};
use actix::prelude::*;
use parking_lot::Mutex;
use pleach_actors::manager::{Connect, ManagerActor, PendingWorker};
use pleach_actors::storage::{Source, StorageActor};
use pleach_actors::task::Accelerators;
use pleach_actors::task::unmetered;
use pleach_actors::transport::in_memory::{MemoryEnd, MemoryLink, pair};
use pleach_actors::transport::{Incoming, Link};
use pleach_actors::worker::{Resources, SetTimeLimit, WorkerActor, WorkerSetup, unmeasured};
use pleach_cache::PriorResults;
use pleach_dispatch::PlanId;
use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::manager::Manager;
use pleach_dispatch::study::StudyOutcome;
use pleach_regions::{MemoryCounter, RamTier, RegionKey};
use pleach_workflow::Value;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;

/// Time limit for tests that would otherwise hang, 60 s: far beyond the duration of any of them.
const DEADLINE: Duration = Duration::from_secs(60);

/// Relays frames in one direction until `left` of them have passed, then drops both ends.
async fn relay(mut from: Incoming, to: MemoryLink, mut left: usize) {
    while let Some(frame) = from.recv().await {
        if left == 0 || to.send(frame.into_bytes()).is_err() {
            return;
        }
        left -= 1;
    }
}

/// Returns the manager's and the worker's end of a link that breaks after `frames` frames from the worker.
fn breaking(frames: usize) -> (MemoryEnd, MemoryEnd) {
    let (manager, near) = pair();
    let (far, worker) = pair();
    let up = relay(far.incoming, near.link, frames);
    let down = relay(near.incoming, far.link, usize::MAX);
    actix::spawn(async move {
        // After one direction ends, the other is dropped too.
        tokio::select! { () = up => {}, () = down => {} }
    });
    (manager, worker)
}

/// Executes `sets` on workers whose links break after a number of frames (`None`: never), each within `memory_bytes`.
fn execute(sets: &Sets, bucket: usize, links: &[Option<usize>], memory_bytes: u64) -> StudyOutcome {
    execute_until(sets, bucket, links, memory_bytes, None).0
}

/// Executes `sets` like [`execute`]. The first worker has a time limit and predicts a number of seconds per task. Also
/// returns the number of tasks that each worker has run.
fn execute_until(
    sets: &Sets,
    bucket: usize,
    links: &[Option<usize>],
    memory_bytes: u64,
    mut ends: Option<(Duration, f64)>,
) -> (StudyOutcome, Vec<usize>) {
    let mut core = Manager::new(0);
    core.handle_submit(PlanId::first_round(0), plan(sets, bucket), &BTreeSet::new()).expect("a valid plan");
    let (done, outcome) = oneshot::channel();
    System::new().block_on(async {
        let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("threads"));
        let ledger = Arc::new(MemoryCounter::default());
        let input = Input { value: Ok(1.0), loads: Arc::new(AtomicUsize::new(0)) };
        let sources: HashMap<RegionKey, Arc<dyn Source>> =
            HashMap::from([(input_key(0), Arc::new(input) as Arc<dyn Source>)]);
        // One storage for all workers: regions do not cross between them here.
        let ram = Arc::new(RamTier::new(Arc::clone(&ledger)));
        let storage = StorageActor::new(sources, Arc::clone(&pool), Arc::clone(&ram)).start();
        let manager = ManagerActor::new(core, done, Box::new(|_| {})).start();
        let slots = NonZeroU32::new(2).expect("two");
        let mut watches = Vec::new();
        for link in links {
            let (near, far) = link.map_or_else(pair, breaking);
            let ends = ends.take();
            let since_1970 = || SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later");
            let lease_end_seconds = ends.map(|(left, _)| (since_1970() + left).as_secs());
            manager.do_send(Connect {
                link: Box::new(near.link),
                incoming: near.incoming,
                newcomer: PendingWorker { lease_end_seconds, ..PendingWorker::local() },
            });
            let (registry, watch) = registry();
            watches.push(watch);
            let mut costs = CostModel::default();
            if let (Some((_, seconds)), Some(step)) = (ends, registry.get("toy.step", 1)) {
                costs.observe(&**step, &[Value::Integer(0)], 64, seconds);
            }
            let setup = WorkerSetup {
                resources: Resources {
                    slots,
                    accelerators: Accelerators::default(),
                    memory_bytes,
                    active_paths: None,
                    meter: unmetered,
                    process_bytes: unmeasured,
                },
                registry,
                storage: storage.clone(),
                pool: Arc::clone(&pool),
                ram: Arc::clone(&ram),
                costs: Arc::new(Mutex::new(costs)),
                prior: PriorResults::default(),
                spill: None,
                ledger: Arc::clone(&ledger),
                peak_bytes: Arc::default(),
                remote: None,
            };
            let worker = WorkerActor::new(setup, far.link, far.incoming).start();
            if let Some((left, _)) = ends {
                worker.do_send(SetTimeLimit(Instant::now() + left));
            }
        }
        let outcome = tokio::time::timeout(DEADLINE, outcome).await.expect("the study ends");
        let runs = watches.iter().map(|watch| watch.runs.load(Ordering::SeqCst)).collect();
        (outcome.expect("the manager lives"), runs)
    })
}

#[test]
fn two_workers_share_a_study() {
    let sets: Sets = (0..40).map(|n| (0, [n % 3, n % 5, n, 1, 2])).collect();
    check(&sets, &execute(&sets, 4, &[None, None], u64::MAX));
}

#[test]
fn worker_before_time_limit_returns_unfinishable_instances() {
    let sets: Sets = (0..40).map(|n| (0, [n % 3, n % 5, n, 1, 2])).collect();
    let until = |seconds| {
        let ends = Some((Duration::from_secs(1000), seconds));
        execute_until(&sets, 4, &[None, None], u64::MAX, ends)
    };
    // The first worker can finish no instance: each consists of several tasks of a known duration.
    let (outcome, runs) = until(900.0);
    check(&sets, &outcome);
    assert_eq!((runs[0], runs[1] > 0), (0, true));
    // With enough time left, the time limit has no effect.
    let (outcome, runs) = until(1e-6);
    check(&sets, &outcome);
    assert!(runs.iter().all(|runs| *runs > 0), "{runs:?}");
}

#[test]
fn worker_that_violates_the_protocol_is_disconnected() {
    let sets: Sets = (0..10).map(|n| (0, [n, 0, 0, 1, 2])).collect();
    let mut core = Manager::new(0);
    core.handle_submit(PlanId::first_round(0), plan(&sets, 2), &BTreeSet::new()).unwrap();
    let (done, _outcome) = oneshot::channel();
    System::new().block_on(async {
        let manager = ManagerActor::new(core, done, Box::new(|_| {})).start();
        let (near, mut far) = pair();
        manager.do_send(Connect {
            link: Box::new(near.link),
            incoming: near.incoming,
            newcomer: PendingWorker::local(),
        });
        far.link.send(vec![0xff; 9]).unwrap();
        let end = tokio::time::timeout(DEADLINE, far.incoming.recv()).await.expect("the manager answers");
        assert!(end.is_none(), "the manager closes the link without a word");
        assert!(manager.connected());
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// Workers whose links break at any point, and one whose link never does: the study finishes with correct results.
    #[test]
    fn study_over_broken_links_loses_no_result(
        sets in prop::collection::vec((Just(0usize), [0..3i64, 0..3i64, 0..3i64, 0..9i64, 0..9i64]), 1..40),
        bucket in 1..9usize,
        breaks in prop::collection::vec(0..60usize, 1..4),
        memory_bytes in prop_oneof![Just(0u64), 300u64..3000],
    ) {
        let mut links: Vec<Option<usize>> = breaks.into_iter().map(Some).collect();
        links.push(None);
        check(&sets, &execute(&sets, bucket, &links, u64::MAX));
        // Also with hardly any memory: each task then waits for the manager to confirm that no other work precedes it.
        check(&sets, &execute(&sets, bucket, &links, memory_bytes));
    }
}
