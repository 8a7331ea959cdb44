//! Clocks that jump during a study: open connections persist, new connections are judged by the present time, and results
//! are correct.
//!
//! Only the clock passed to the nodes jumps, not the machine's. Processes always use the machine's clock: an option for a
//! different clock would make expired certificates valid.

use crate::cluster::{Cluster, HOUR, connected, patient, soon, until};
use crate::outcome::{Sets, check, request};
use crate::toy::{Input, input_key, plan, registry};
use crate::worker;
use actix::prelude::*;
use pleach_actors::exchange::Exchange;
use pleach_actors::input_files::InputFileStore;
use pleach_actors::manager::{ManagerActor, ServiceHooks, StartPlan, StudyEvent, StudyRequest};
use pleach_actors::storage::{Preparation, Source, StorageActor};
use pleach_actors::task::Accelerators;
use pleach_actors::task::unmetered;
use pleach_actors::transport::hello::Hello;
use pleach_actors::transport::identity::Role;
use pleach_actors::transport::quic::{Peer, Server};
use pleach_actors::transport::refusal::{Cause, Refusal};
use pleach_actors::worker::{
    InputReader, LinkUp, RemoteSetup, Resources, WorkerActor, WorkerSetup, unmeasured,
};
use pleach_cache::PriorResults;
use pleach_dispatch::PlanId;
use pleach_dispatch::message::{InputFile, TaskFailure};
use pleach_dispatch::study::StudyOutcome;
use pleach_regions::{DataRegion, RegionKey};
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc::{Receiver, UnboundedReceiver, unbounded_channel};
use tokio::sync::{oneshot, watch};

const DAY: u64 = 24 * HOUR;

/// Number of tiles. Each but the first becomes available only when the test opens it, so that the study cannot end before.
const TILES: usize = 3;

/// Number of slots of a worker. More than buckets of one tile (30 instances, 4 in each bucket): a bucket that waits for its
/// input occupies a slot, so with fewer of them the buckets of a closed tile can keep those of an open one from starting.
const SLOTS: u32 = 9;

/// Input that is available once `.0` doors are open.
struct Door(usize, watch::Receiver<usize>, Input);

impl Source for Door {
    fn prepare(&self) -> Option<Preparation> {
        let (number, mut open) = (self.0, self.1.clone());
        Some(Box::pin(async move {
            let opened = open.wait_for(|open| *open >= number).await;
            let gone = |_| TaskFailure { at: "input".to_owned(), cause: "nobody opens it".to_owned() };
            opened.map(drop).map_err(gone)
        }))
    }

    fn load(&self) -> Result<DataRegion, TaskFailure> {
        self.2.load()
    }
}

/// All inputs are known from the start, so no file is opened.
struct NoFiles;

impl InputReader for NoFiles {
    fn source(&self, input: &InputFile, _: &Arc<InputFileStore>) -> Arc<dyn Source> {
        unreachable!("{input:?}")
    }
}

/// Worker with its own storage and exchange.
struct Worker {
    actor: Addr<WorkerActor>,
    exchange: Exchange,
    /// Receiver of its events and folder of its fetched files, kept open and never read.
    _rest: (UnboundedReceiver<pleach_actors::worker::WorkerEvent>, tempfile::TempDir),
}

impl Worker {
    fn start(cluster: &Cluster, name: &str, doors: &watch::Receiver<usize>) -> Self {
        let threads = rayon::ThreadPoolBuilder::new().num_threads(2);
        let pool = Arc::new(threads.build().expect("threads"));
        let worker::Worker { exchange, ram, ledger } = worker::Worker::new(cluster, name, None);
        let source = |tile| {
            let input = Input { value: Ok(1.0), loads: Arc::default() };
            (input_key(tile), Arc::new(Door(tile, doors.clone(), input)) as Arc<dyn Source>)
        };
        let sources: HashMap<RegionKey, Arc<dyn Source>> = (0..TILES).map(source).collect();
        let storage = StorageActor::new(sources, Arc::clone(&pool), Arc::clone(&ram));
        let storage = storage.with_exchange(exchange.clone()).start();
        let folder = tempfile::tempdir().expect("a folder");
        let (ask, asks) = unbounded_channel();
        let files = Arc::new(InputFileStore::open(folder.path().join("inputs"), ask).expect("a folder"));
        let (events, told) = unbounded_channel();
        let resources = Resources {
            slots: NonZeroU32::new(SLOTS).expect("at least one"),
            accelerators: Accelerators::default(),
            memory_bytes: u64::MAX,
            active_paths: None,
            meter: unmetered,
            process_bytes: unmeasured,
        };
        let remote = RemoteSetup {
            code: None,
            incarnation: name.bytes().fold(0, |number, byte| number * 256 + u64::from(byte)),
            exchange: exchange.clone(),
            opener: Arc::new(NoFiles),
            files,
            asks: Some(asks),
            events,
            window: 1,
        };
        let actor = WorkerActor::unconnected(WorkerSetup {
            resources,
            registry: registry().0,
            storage,
            pool,
            ram,
            spill: None,
            ledger,
            costs: Arc::default(),
            prior: PriorResults::default(),
            peak_bytes: Arc::default(),
            remote: Some(remote),
        });
        Self { actor: actor.start(), exchange, _rest: (told, folder) }
    }
}

/// Manager of studies, with a server for its workers.
struct Managed<'a> {
    cluster: &'a Cluster,
    manager: Addr<ManagerActor>,
    server: Server,
    peers: Receiver<Peer>,
    workers: Vec<Worker>,
}

impl<'a> Managed<'a> {
    fn new(cluster: &'a Cluster) -> Self {
        let service = ServiceHooks {
            number: 7,
            epoch: 1,
            find_file: Arc::new(|_| None),
            check_file: Arc::new(|_, _, _| true),
            clock: cluster.clock(),
            network: cluster.network.handle().clone(),
            by_data: true,
        };
        let (server, peers) = cluster.listen(cluster.setup());
        let manager = ManagerActor::for_service(service).start();
        Self { cluster, manager, server, peers, workers: Vec::new() }
    }

    /// Connects as `name`, at the present time.
    async fn connect(&self, name: &str) -> Result<Peer, Refusal> {
        let connector = self.cluster.connector(name, Role::Worker);
        soon(connector.connect(self.server.address(), Role::Manager, Hello::default())).await
    }

    /// Connects a worker and lets it join.
    async fn joined(&mut self, name: &str, doors: &watch::Receiver<usize>) {
        let worker = Worker::start(self.cluster, name, doors);
        let far = self.connect(name).await.unwrap_or_else(|refusal| panic!("{name}: {refusal}"));
        let near = soon(self.peers.recv()).await.expect("it has come in");
        self.manager.do_send(connected(near, name));
        worker.actor.do_send(LinkUp { link: Box::new(far.link), incoming: far.incoming });
        self.workers.push(worker);
    }

    /// Starts the study. Returns its outcome, and the number of instances reported so far.
    async fn begin(&self, sets: &Sets) -> (oneshot::Receiver<StudyOutcome>, Arc<AtomicUsize>) {
        let (done, outcome) = oneshot::channel();
        let reported = Arc::new(AtomicUsize::new(0));
        let told = Arc::clone(&reported);
        let observer = move |notice: StudyEvent<'_>| {
            if let StudyEvent::Reported { .. } = notice {
                told.fetch_add(1, Ordering::SeqCst);
            }
        };
        let study = StudyRequest { observer: Box::new(observer), ..request(plan(sets, 4), done) };
        let begun = self.manager.send(StartPlan { id: PlanId::first_round(1), study }).await;
        begun.expect("the manager lives");
        (outcome, reported)
    }
}

/// Moves the cluster's clock forward or back.
fn jump(cluster: &Cluster, seconds: i64) {
    cluster.clock.0.fetch_add(seconds.cast_unsigned(), Ordering::SeqCst);
}

/// Returns 1 seed, or `PLEACH_CHAOS_SEEDS` seeds.
fn seeds() -> impl Iterator<Item = u64> {
    let count = std::env::var("PLEACH_CHAOS_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    (1..=count).map(|seed: u64| seed.wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

#[test]
fn study_completes_while_clock_jumps_a_day_and_back() {
    for seed in seeds() {
        let cluster = Cluster::new(patient());
        // Between one and two days, so that certificates for one day have expired.
        let far = DAY as i64 + 60 + (seed >> 40) as i64 % (22 * HOUR as i64);
        let sets: Sets = (0..90).map(|n| ((n / 30) as usize, [n % 3, n % 5, n, 1, 2])).collect();
        // Issued before the clock jumps.
        cluster.credentials("short", Role::Worker, 1);
        let outcome = System::new().block_on(async {
            let (open, doors) = watch::channel(0);
            let mut managed = Managed::new(&cluster);
            managed.joined("w1", &doors).await;
            managed.joined("w2", &doors).await;
            let (outcome, reported) = managed.begin(&sets).await;
            until_reported(&reported, 1 + (seed >> 20) as usize % 20).await;

            jump(&cluster, far);
            let refusal = managed.connect("short").await.map(drop).unwrap_err();
            assert_eq!(refusal.cause, Cause::Expired, "seed {seed}: {refusal}");
            let begin = "the peer refused this node's certificate: expired or not valid yet; issue a new one";
            assert!(refusal.text.starts_with(begin), "seed {seed}: {refusal}");
            until(|| !cluster.notices().is_empty()).await;
            let told: Vec<Cause> = cluster.notices().iter().map(|notice| notice.refusal.cause).collect();
            assert_eq!(told, [Cause::Expired], "the operator is told once");
            // A worker with a certificate for a month joins.
            managed.joined("w3", &doors).await;
            open.send_replace(1);
            until_reported(&reported, 31 + (seed >> 10) as usize % 20).await;

            jump(&cluster, -far);
            managed.joined("short", &doors).await;
            open.send_replace(2);
            let outcome = soon(outcome).await.expect("the manager lives");
            for worker in managed.workers {
                worker.exchange.close().await;
            }
            outcome
        });
        check(&sets, &outcome);
    }
}

async fn until_reported(reported: &AtomicUsize, count: usize) {
    until(|| reported.load(Ordering::SeqCst) >= count).await;
}
