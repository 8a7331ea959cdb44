//! Authorized nodes: frames, data regions, complete studies, and the ends of connections.

use crate::cluster::{Cluster, HOUR, patient, soon, until};
use crate::outcome::{Sets, check};
use crate::toy::{Input, input_key, plan, registry};
use actix::prelude::*;
use bytes::Bytes;
use pleach_actors::manager::{Connect, ManagerActor, PendingWorker};
use pleach_actors::storage::{Source, StorageActor};
use pleach_actors::task::Accelerators;
use pleach_actors::task::unmetered;
use pleach_actors::transport::backoff::Backoff;
use pleach_actors::transport::certs::CertsError;
use pleach_actors::transport::codec::MAX_FRAME_BYTES;
use pleach_actors::transport::hello::{Hello, TierSize, Version};
use pleach_actors::transport::identity::Role;
use pleach_actors::transport::quic::join::{JoinError, join};
use pleach_actors::transport::quic::regions::SendError;
use pleach_actors::transport::quic::{Peer, QuicRuntime, Server, ServerSetup};
use pleach_actors::transport::refusal::{Cause, Refusal};
use pleach_actors::transport::settings::Settings;
use pleach_actors::transport::token::{Ttl, fingerprint};
use pleach_actors::transport::{Disconnected, Link};
use pleach_actors::worker::{Resources, WorkerActor, WorkerSetup, unmeasured};
use pleach_cache::PriorResults;
use pleach_dispatch::PlanId;
use pleach_dispatch::manager::Manager;
use pleach_dispatch::study::StudyOutcome;
use pleach_regions::{Digest, MemoryCounter, RamTier, RegionKey};
use std::collections::BTreeSet;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;
use tokio::sync::oneshot;

/// Connects a worker and a manager. Returns both ends.
async fn two(cluster: &Cluster) -> (Peer, Peer, Server) {
    let (server, mut peers) = cluster.listen(cluster.setup());
    let connector = cluster.connector("w1", Role::Worker);
    let worker = soon(connector.connect(server.address(), Role::Manager, Hello::default())).await;
    let manager = soon(peers.recv()).await.expect("it has come in");
    (worker.expect("it may come in"), manager, server)
}

fn key(n: u8) -> RegionKey {
    RegionKey([n; 16])
}

#[tokio::test]
async fn manager_receives_hello_of_joining_worker() {
    let cluster = Cluster::new(patient());
    let (server, mut peers) = cluster.listen(cluster.setup());
    let hello = Hello {
        cores: 48,
        memory_bytes: 192 << 30,
        tiers: vec![TierSize { name: "ssd".into(), bytes: 1 << 40 }],
        accelerator_slots: 2,
        lease_end_seconds: Some(1_800_003_600),
        ..Hello::default()
    }
    .with_operations(&registry().0);
    assert_eq!(hello.operations.len(), 1);
    let connector = cluster.connector("w7", Role::Worker);
    let worker = soon(connector.connect(server.address(), Role::Manager, hello.clone())).await.unwrap();
    let manager = soon(peers.recv()).await.unwrap();
    assert_eq!((manager.hello, manager.identity.to_string()), (hello, "worker w7".to_owned()));
    assert_eq!(worker.identity.to_string(), "manager m1");
}

#[tokio::test]
async fn frames_of_any_length_arrive_in_order() {
    let cluster = Cluster::new(patient());
    let (worker, mut manager, _server) = two(&cluster).await;
    let lengths = [0, 1, 65_535, 3, MAX_FRAME_BYTES, 0, MAX_FRAME_BYTES - 1, 70_000];
    let frame = |n: usize| vec![n as u8; lengths[n]];
    let sending = async {
        for n in 0..lengths.len() {
            until(|| worker.link.send(frame(n)).is_ok()).await;
        }
    };
    let receiving = async {
        for n in 0..lengths.len() {
            assert_eq!(soon(manager.incoming.recv()).await.unwrap().into_bytes(), frame(n), "frame {n}");
        }
    };
    tokio::join!(sending, receiving);
}

#[tokio::test]
async fn dropped_link_delivers_all_frames() {
    let cluster = Cluster::new(patient());
    let (worker, mut manager, server) = two(&cluster).await;
    for n in 0..200_u8 {
        worker.link.send(vec![n; 10_000]).unwrap();
    }
    drop(worker);
    for n in 0..200 {
        assert_eq!(soon(manager.incoming.recv()).await.unwrap()[..2], [n, n]);
    }
    assert!(soon(manager.incoming.recv()).await.is_none());
    drop(manager);
    soon(server.idle()).await;
    assert_eq!(cluster.notices(), [], "that is no news");
}

/// With a reader that does not read, the sender waits up to its limit and then gets an error.
#[tokio::test]
async fn peer_that_stops_reading_is_disconnected() {
    let cluster = Cluster::new(Settings { unsent_bytes: 4 << 20, ..patient() });
    let (worker, mut manager, _server) = two(&cluster).await;
    let mut sent = 0_u64;
    soon(async {
        while manager.link.send(vec![1; 1 << 20]) != Err(Disconnected) {
            sent += 1;
            assert!(sent < 1000, "it takes everything");
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(manager.link.ended().unwrap().cause, Cause::Ended, "ended here");
    soon(async { while manager.incoming.recv().await.is_some() {} }).await;
    until(|| worker.link.ended().is_some()).await;
    // The packet with the reason may be lost in the flood. Then the worker only detects the loss of the manager.
    let ended = worker.link.ended().unwrap();
    assert!(matches!(ended.cause, Cause::Busy | Cause::Lost), "{ended}");
    let told = cluster.notices();
    assert_eq!((told.len(), told[0].refusal.cause), (1, Cause::Busy));
}

#[tokio::test]
async fn regions_arrive_with_their_digests() {
    let cluster = Cluster::new(patient());
    let (worker, mut manager, _server) = two(&cluster).await;
    let lengths = [0, 1, 1 << 20, (1 << 20) + 1, 9_999_999];
    let bytes = |n: usize| -> Bytes { (0..lengths[n]).map(|at| (at * 7 + n) as u8).collect() };
    let sending = async {
        for n in 0..lengths.len() {
            let bytes = bytes(n);
            let digest = Digest::of_bytes(&bytes);
            soon(worker.regions.send(key(n as u8), digest, bytes)).await.unwrap();
        }
    };
    let receiving = async {
        for _ in 0..lengths.len() {
            let region = soon(manager.arrivals.recv()).await.unwrap().unwrap();
            let expected = bytes(region.key.0[0].into());
            assert!(region.bytes == expected[..] && region.digest == Digest::of_bytes(&expected));
        }
    };
    tokio::join!(sending, receiving);
}

#[tokio::test]
async fn regions_with_wrong_digest_or_length_are_refused() {
    let cluster = Cluster::new(Settings { longest_region_bytes: 1 << 20, ..patient() });
    let (worker, mut manager, _server) = two(&cluster).await;
    let send = |n, digest, length: usize| worker.regions.send(key(n), digest, vec![n; length].into());
    let wrong = Digest([0; 32]);
    let (sent, arrival) = tokio::join!(soon(send(1, wrong, 500_000)), soon(manager.arrivals.recv()));
    // The region may have arrived before its digest is checked.
    assert!(matches!(sent, Ok(()) | Err(SendError::NotTaken)));
    let not_arrived = arrival.unwrap().unwrap_err();
    assert_eq!((not_arrived.key, not_arrived.refusal.cause), (key(1), Cause::Language));
    let (sent, arrival) = tokio::join!(soon(send(2, wrong, 100 << 20)), soon(manager.arrivals.recv()));
    assert_eq!(sent, Err(SendError::NotTaken));
    assert_eq!(arrival.unwrap().unwrap_err().refusal.cause, Cause::TooLong);
    let digest = Digest::of_bytes(&[3; 10]);
    let (sent, arrival) = tokio::join!(soon(send(3, digest, 10)), soon(manager.arrivals.recv()));
    assert!(sent.is_ok() && arrival.unwrap().is_ok(), "the connection lives on");
}

/// Regions beyond the budget wait, and arrive when earlier ones are dropped.
#[tokio::test]
async fn regions_wait_for_room() {
    let cluster = Cluster::new(Settings { arriving_bytes: 8 << 20, ..patient() });
    let (worker, mut manager, _server) = two(&cluster).await;
    let bytes = Bytes::from(vec![9; 5 << 20]);
    let digest = Digest::of_bytes(&bytes);
    let sending = (0..6).map(|n| {
        let (regions, bytes) = (worker.regions.clone(), bytes.clone());
        tokio::spawn(async move { regions.send(key(n), digest, bytes).await })
    });
    let sending: Vec<_> = sending.collect();
    let first = soon(manager.arrivals.recv()).await.unwrap().unwrap();
    let more = tokio::time::timeout(Duration::from_millis(300), manager.arrivals.recv()).await;
    assert!(more.is_err(), "there is no room for a second one");
    drop(first);
    for _ in 1..6 {
        soon(manager.arrivals.recv()).await.unwrap().unwrap();
    }
    for sent in sending {
        soon(sent).await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn the_older_node_is_named_at_both_ends() {
    let cluster = Cluster::new(patient());
    let version = |protocol, build: &str| Version { protocol, build: build.to_owned() };
    for (manager, worker, older) in [(8, 7, "worker w1"), (7, 8, "manager m1")] {
        let setup = ServerSetup { version: version(manager, "1.0"), ..cluster.setup() };
        let (server, _peers) = cluster.listen(setup);
        let credentials = cluster.credentials("w1", Role::Worker, 30);
        let connector = cluster.connector_with(credentials, version(worker, "0.9"));
        let refusal =
            soon(connector.connect(server.address(), Role::Manager, Hello::default())).await.unwrap_err();
        assert_eq!(refusal.cause, Cause::Version);
        let ending = format!(": {older} is older; update it");
        assert!(refusal.text.ends_with(&ending) && refusal.text.contains("protocol 7"), "{refusal}");
    }
    let told = cluster.notices();
    assert!(told[0].refusal.text.ends_with("worker w1 is older; update it"), "{}", told[0]);
}

#[tokio::test]
async fn a_lost_manager_is_tried_again_until_it_is_there() {
    let cluster = Cluster::new(patient());
    let (server, peers) = cluster.listen(cluster.setup());
    let address = server.address();
    soon(server.close()).await;
    drop(peers);
    let settings = Settings { handshake: Duration::from_millis(500), ..patient() };
    let credentials = cluster.credentials("w1", Role::Worker, 30);
    let connector = pleach_actors::transport::quic::Connector::new(
        &cluster.network,
        address,
        credentials,
        Version::current(),
        settings,
        &cluster.clock(),
        cluster.board(),
    )
    .unwrap();
    let mut waits = Vec::new();
    let mut restarted = None;
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(2), 1);
    let wait = async |refusal: &Refusal, wait: Duration| {
        assert_eq!(refusal.cause, Cause::Unreachable, "{refusal}");
        assert!(refusal.text.contains(&address.to_string()), "{refusal}");
        waits.push(wait);
        if waits.len() == 3 {
            let server = Server::listen(&cluster.network, address, cluster.setup());
            restarted = Some(server.expect("the port is free again"));
        }
    };
    let hello = Hello::default();
    let peer = soon(connector.keep_connecting(address, Role::Manager, &hello, &mut backoff, wait)).await;
    assert!(peer.is_ok() && waits.len() >= 3);
    let mut same = Backoff::new(Duration::from_millis(100), Duration::from_secs(2), 1);
    assert!(waits.iter().all(|wait| *wait == same.failed()), "{waits:?}");
}

#[tokio::test]
async fn permanent_refusal_is_not_retried() {
    let cluster = Cluster::new(patient());
    let (server, _peers) = cluster.listen(cluster.setup());
    let connector = cluster.connector("c1", Role::Client);
    let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(2), 1);
    let wait = async |refusal: &Refusal, _| panic!("{refusal}");
    let hello = Hello::default();
    let trying = connector.keep_connecting(server.address(), Role::Manager, &hello, &mut backoff, wait);
    let refusal = soon(trying).await.unwrap_err();
    assert_eq!(refusal.text, "client c1 is not allowed to connect to manager m1; allowed roles: worker");
}

#[tokio::test]
async fn token_yields_a_certificate_that_connects() {
    let cluster = Cluster::new(patient());
    let setup = ServerSetup { desk: Some(cluster.desk()), ..cluster.setup() };
    let (server, _peers) = cluster.listen(setup);
    let ttl = Ttl::new(Duration::from_secs(HOUR)).unwrap();
    let authority = fingerprint(cluster.authority.certificate());
    let now = pleach_actors::transport::clock::Clock::now(&*cluster.clock);
    let token = cluster.authority.token_key().make(authority, now, ttl, false).unwrap().to_string();
    // A token for many uses admits several workers.
    for name in ["w1", "w2"] {
        let folder = cluster.folder(name);
        let (clock, settings) = (cluster.clock(), patient());
        let joining = || {
            let name = name.parse().unwrap();
            join(&cluster.network, server.address(), &token, name, &folder, &settings, &clock)
        };
        let credentials = soon(joining()).await.unwrap();
        assert_eq!(credentials.identity().to_string(), format!("worker {name}"));
        let connector = cluster.connector(name, Role::Worker);
        soon(connector.connect(server.address(), Role::Manager, Hello::default())).await.unwrap();
        let again = soon(joining()).await;
        assert!(matches!(again, Err(JoinError::Certs(CertsError::Exists(_)))), "it has one");
    }
}

/// Executes `sets` on two workers. With `is_torn`, the first worker has its own network, which is shut down during the
/// study.
fn execute(sets: &Sets, is_torn: bool) -> StudyOutcome {
    let idle = if is_torn { Duration::from_millis(500) } else { Duration::from_secs(20) };
    let cluster = Cluster::new(Settings { idle, keep_alive: idle / 4, ..patient() });
    let mut core = Manager::new(0);
    core.handle_submit(PlanId::first_round(0), plan(sets, 4), &BTreeSet::new()).expect("a valid plan");
    let (done, outcome) = oneshot::channel();
    let workers: Vec<_> = ["w1", "w2"].iter().map(|name| cluster.connector(name, Role::Worker)).collect();
    System::new().block_on(async {
        let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("threads"));
        let ledger = Arc::new(MemoryCounter::default());
        let input = Input { value: Ok(1.0), loads: Arc::new(AtomicUsize::new(0)) };
        let sources: HashMap<RegionKey, Arc<dyn Source>> =
            HashMap::from([(input_key(0), Arc::new(input) as Arc<dyn Source>)]);
        // One storage for both workers: only messages cross the network.
        let ram = Arc::new(RamTier::new(Arc::clone(&ledger)));
        let storage = StorageActor::new(sources, Arc::clone(&pool), Arc::clone(&ram)).start();
        let manager = ManagerActor::new(core, done, Box::new(|_| {})).start();
        let (server, mut peers) = cluster.listen(cluster.setup());
        let torn = QuicRuntime::start(1).expect("threads");
        for (number, connector) in workers.iter().enumerate() {
            let connector = match number {
                0 if is_torn => {
                    let (credentials, board) = (cluster.credentials("w1", Role::Worker, 30), cluster.board());
                    let (clock, settings) = (cluster.clock(), cluster.settings.clone());
                    let version = Version::current();
                    let address = server.address();
                    &pleach_actors::transport::quic::Connector::new(
                        &torn,
                        address,
                        credentials,
                        version,
                        settings,
                        &clock,
                        board,
                    )
                    .expect("a socket")
                }
                _ => connector,
            };
            let connecting = connector.connect(server.address(), Role::Manager, Hello::default());
            let far = soon(connecting).await.expect("it may come in");
            let near = soon(peers.recv()).await.expect("it has come in");
            manager.do_send(Connect {
                link: Box::new(near.link),
                incoming: near.incoming,
                newcomer: PendingWorker::local(),
            });
            let setup = WorkerSetup {
                resources: Resources {
                    slots: NonZeroU32::new(2).expect("two"),
                    accelerators: Accelerators::default(),
                    memory_bytes: u64::MAX,
                    active_paths: None,
                    meter: unmetered,
                    process_bytes: unmeasured,
                },
                registry: registry().0,
                storage: storage.clone(),
                pool: Arc::clone(&pool),
                ram: Arc::clone(&ram),
                costs: Arc::default(),
                prior: PriorResults::default(),
                spill: None,
                ledger: Arc::clone(&ledger),
                peak_bytes: Arc::default(),
                remote: None,
            };
            WorkerActor::new(setup, far.link, far.incoming).start();
        }
        if is_torn {
            drop(torn);
        }
        let outcome = soon(outcome).await.expect("the manager lives");
        // The workers end by themselves.
        soon(server.idle()).await;
        outcome
    })
}

#[test]
fn networked_study_has_the_expected_results() {
    let sets: Sets = (0..60).map(|n| (0, [n % 3, n % 5, n, 1, 2])).collect();
    check(&sets, &execute(&sets, false));
}

#[test]
fn study_that_loses_a_worker_has_the_expected_results() {
    let sets: Sets = (0..200).map(|n| (0, [n % 3, n % 5, n, 1, 2])).collect();
    check(&sets, &execute(&sets, true));
}
