//! Unauthorized and hostile peers: each gets the reason for its refusal, the operator gets it once, and other peers are
//! served meanwhile.

use crate::cluster::{Cluster, HOUR, patient, soon, until};
use crate::stranger::{close_reason, connect, ends, first_packet, stranger};
use pleach_actors::transport::certs::Credentials;
use pleach_actors::transport::clock::Clock;
use pleach_actors::transport::hello::{self, Hello, Version};
use pleach_actors::transport::identity::Role;
use pleach_actors::transport::quic::join::{JoinError, join};
use pleach_actors::transport::quic::{Peer, Server, ServerSetup};
use pleach_actors::transport::refusal::Cause;
use pleach_actors::transport::refusal_log::MAX_NOTICES;
use pleach_actors::transport::settings::Settings;
use pleach_actors::transport::token::{Ttl, fingerprint};
use pleach_actors::transport::{Link, codec, frames};
use pleach_dispatch::message::ToManager;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use quinn::ConnectionError;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;

const DAY: i64 = 24 * HOUR.cast_signed();

/// Moves the cluster's clock.
fn pass(cluster: &Cluster, seconds: i64) {
    cluster.clock.0.fetch_add(seconds.cast_unsigned(), Ordering::SeqCst);
}

/// Returns every message to its sender, and refuses invalid frames.
async fn echo(mut peers: Receiver<Peer>) {
    while let Some(mut peer) = peers.recv().await {
        tokio::spawn(async move {
            while let Some(frame) = peer.incoming.recv().await {
                match codec::decode::<ToManager>(&frame) {
                    Ok(_) if peer.link.send(frame.into_bytes()).is_ok() => {}
                    Ok(_) => return,
                    Err(error) => peer.link.refuse(&error),
                }
            }
        });
    }
}

/// Worker that sends requests and waits for their answers.
struct Good {
    answers: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
    asking: JoinHandle<()>,
}

impl Good {
    async fn start(cluster: &Cluster, server: &Server) -> Self {
        let connector = cluster.connector("good", Role::Worker);
        let mut peer = soon(connector.connect(server.address(), Role::Manager, Hello::default()))
            .await
            .expect("it may come in");
        let (answers, is_over) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (counted, over) = (Arc::clone(&answers), Arc::clone(&is_over));
        let asking = cluster.network.handle().spawn(async move {
            while !over.load(Ordering::SeqCst) {
                let call = counted.load(Ordering::SeqCst);
                let question = codec::encode(&ToManager::Sync { call }).expect("a short message");
                peer.link.send(question.clone()).expect("the manager is there");
                let answer = soon(peer.incoming.recv()).await.expect("the manager answers");
                assert_eq!(*answer, question[..]);
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { answers, is_over, asking }
    }

    /// Checks that every request was answered so far, and that 100 more are.
    async fn check(self) {
        let before = self.answers.load(Ordering::SeqCst);
        until(|| self.answers.load(Ordering::SeqCst) > before + 100 || self.asking.is_finished()).await;
        self.is_over.store(true, Ordering::SeqCst);
        soon(self.asking).await.expect("every question was answered");
    }
}

/// Starts a cluster with a manager that answers and a worker that sends requests.
async fn served(settings: Settings) -> (Cluster, Server, Good) {
    let cluster = Cluster::new(settings);
    let (server, peers) = cluster.listen(cluster.setup());
    tokio::spawn(echo(peers));
    let good = Good::start(&cluster, &server).await;
    (cluster, server, good)
}

fn causes(cluster: &Cluster) -> Vec<Cause> {
    cluster.notices().iter().map(|notice| notice.refusal.cause).collect()
}

#[tokio::test]
async fn peer_without_certificate_is_refused() {
    let (cluster, server, good) = served(patient()).await;
    for _ in 0..3 {
        let (endpoint, config) = stranger(&cluster, None);
        let end = ends(&endpoint, config, &server).await;
        assert_eq!(end, "no certificate; issue one with `pleach certs issue`, or join with a token");
    }
    good.check().await;
    assert_eq!(causes(&cluster), [Cause::NoCertificate], "told once");
}

#[tokio::test]
async fn certificate_of_another_authority_is_refused() {
    let (cluster, server, good) = served(patient()).await;
    let other = Cluster::new(patient());
    // A worker of another cluster rejects this manager's certificate, and reports that to it.
    let connector = other.connector("w1", Role::Worker);
    for _ in 0..3 {
        let connecting = connector.connect(server.address(), Role::Manager, Hello::default());
        let refusal = soon(connecting).await.unwrap_err();
        assert_eq!(refusal.cause, Cause::ForeignCertificate, "{refusal}");
        assert!(refusal.text.starts_with(
            "the peer's certificate is refused: issued by the authority of \
                                          another"
        ));
    }
    // The manager rejects a stranger that accepts any manager.
    for _ in 0..3 {
        let (endpoint, config) = stranger(&cluster, Some(&other.folder("w1")));
        let end = ends(&endpoint, config, &server).await;
        assert!(end.contains("UnknownIssuer"), "{end}");
    }
    good.check().await;
    assert_eq!(causes(&cluster), [Cause::ForeignCertificate], "told once, whichever side found out first");
}

#[tokio::test]
async fn certificate_outside_its_validity_is_refused() {
    for days in [40, -40] {
        let (cluster, server, good) = served(patient()).await;
        let connector = cluster.connector("w1", Role::Worker);
        let peer = soon(connector.connect(server.address(), Role::Manager, Hello::default())).await;
        drop(peer.expect("still valid"));
        if days > 0 {
            // The manager's certificate is valid for longer.
            pass(&cluster, days * DAY);
        } else {
            pass(&cluster, -days * DAY);
            cluster.credentials("early", Role::Worker, 300);
            pass(&cluster, days * DAY);
        }
        let connector = if days > 0 { connector } else { cluster.connector("early", Role::Worker) };
        for _ in 0..3 {
            let connecting = connector.connect(server.address(), Role::Manager, Hello::default());
            let refusal = soon(connecting).await.unwrap_err();
            assert_eq!(refusal.cause, Cause::Expired, "{refusal}");
            let begin = "the peer refused this node's certificate: expired or not valid yet";
            assert!(refusal.text.starts_with(begin), "{refusal}");
        }
        good.check().await;
        assert_eq!(causes(&cluster), [Cause::Expired], "told once");
    }
}

#[tokio::test]
async fn worker_refuses_expired_certificate_of_manager() {
    let (cluster, server, good) = served(patient()).await;
    pass(&cluster, 3100 * DAY);
    let connector = cluster.connector("w1", Role::Worker);
    let refusal =
        soon(connector.connect(server.address(), Role::Manager, Hello::default())).await.unwrap_err();
    assert_eq!(refusal.cause, Cause::Expired, "{refusal}");
    assert!(
        refusal.text.starts_with("the peer's certificate is refused: expired or not valid yet"),
        "{refusal}"
    );
    good.check().await;
}

#[tokio::test]
async fn worker_refuses_a_manager_with_a_worker_certificate() {
    let cluster = Cluster::new(patient());
    let setup = ServerSetup { credentials: cluster.credentials("w9", Role::Worker, 30), ..cluster.setup() };
    let (server, _peers) = cluster.listen(setup);
    let connector = cluster.connector("w1", Role::Worker);
    let refusal =
        soon(connector.connect(server.address(), Role::Manager, Hello::default())).await.unwrap_err();
    assert_eq!(refusal.cause, Cause::Certificate, "{refusal}");
    assert!(soon(connector.connect(server.address(), Role::Worker, Hello::default())).await.is_ok());
}

#[tokio::test]
async fn used_expired_or_foreign_token_is_refused() {
    let cluster = Cluster::new(patient());
    let (token, short) = {
        let (key, authority) = (cluster.authority.token_key(), fingerprint(cluster.authority.certificate()));
        let make = |seconds, is_once| {
            let ttl = Ttl::new(Duration::from_secs(seconds)).unwrap();
            key.make(authority, cluster.clock.now(), ttl, is_once).unwrap().to_string()
        };
        (make(10 * HOUR, true), make(HOUR / 2, false))
    };
    let other = Cluster::new(patient());
    let ttl = Ttl::new(Duration::from_secs(HOUR)).unwrap();
    let of_other = |authority| {
        other.authority.token_key().make(authority, cluster.clock.now(), ttl, false).unwrap().to_string()
    };
    let forged = of_other(fingerprint(cluster.authority.certificate()));
    let foreign = of_other(fingerprint(other.authority.certificate()));
    let (clock, settings) = (cluster.clock(), patient());
    let join = async |server: &Server, token: &str, name: &str| -> Result<Credentials, JoinError> {
        let (folder, name) = (cluster.folder(name), name.parse().unwrap());
        soon(join(&cluster.network, server.address(), token, name, &folder, &settings, &clock)).await
    };
    let told = |end: Result<Credentials, JoinError>, cause| match end {
        Err(JoinError::Refused(refusal)) if refusal.cause == cause => refusal.text,
        end => panic!("{end:?}"),
    };
    let (server, peers) = cluster.listen(ServerSetup { desk: Some(cluster.desk()), ..cluster.setup() });
    tokio::spawn(echo(peers));
    let good = Good::start(&cluster, &server).await;
    join(&server, &token, "w1").await.unwrap();
    for name in ["w2", "w3"] {
        let text = told(join(&server, &token, name).await, Cause::Token);
        assert_eq!(
            text,
            "the token is for one use and has been used; create another with `pleach certs \
                          token`"
        );
    }
    told(join(&server, &forged, "w4").await, Cause::Token);
    // The worker detects that the token is for another manager, and does not send the token.
    told(join(&server, &foreign, "w5").await, Cause::ForeignCertificate);
    join(&server, &short, "w6").await.unwrap();
    pass(&cluster, HOUR.cast_signed() / 2);
    let text = told(join(&server, &short, "w7").await, Cause::Token);
    assert_eq!(text, "the token expired 0 s ago; create another with `pleach certs token`");
    good.check().await;
    assert_eq!(causes(&cluster), [Cause::Token, Cause::ForeignCertificate]);
    // A used token stays used for the next manager, once the first has closed its file.
    soon(server.close()).await;
    let desk = soon(async {
        loop {
            match pleach_actors::transport::quic::JoinService::open(&cluster.folder("ca")) {
                Ok(desk) => return Arc::new(desk),
                Err(_) => tokio::task::yield_now().await,
            }
        }
    });
    let (server, _peers) = cluster.listen(ServerSetup { desk: Some(desk.await), ..cluster.setup() });
    told(join(&server, &token, "w8").await, Cause::Token);
    // A manager without an authority accepts no tokens.
    let (server, _peers) = cluster.listen(cluster.setup());
    assert!(matches!(join(&server, &short, "w9").await, Err(JoinError::Refused(_))));
}

#[tokio::test]
async fn too_long_frame_ends_the_connection() {
    let (cluster, server, good) = served(patient()).await;
    let hello = hello::write(&Version::current(), &Hello::default()).unwrap();
    let mut after_hello = Vec::new();
    frames::append(&hello, &mut after_hello);
    after_hello.extend((17_u32 << 20).to_le_bytes());
    for bytes in [u32::MAX.to_le_bytes().to_vec(), after_hello] {
        for _ in 0..2 {
            let (_endpoint, connection) = connect(&cluster, &server).await;
            let (mut send, _recv) = connection.open_bi().await.unwrap();
            send.write_all(&bytes).await.unwrap();
            let end = close_reason(&connection).await;
            assert!(end.starts_with("frame of ") && end.ends_with(" are allowed"), "{end}");
        }
    }
    good.check().await;
    assert_eq!(causes(&cluster), [Cause::TooLong], "told once");
}

/// Random bytes before and after the first frame, on the control stream and on streams for regions: the connection ends and
/// the other worker is still served.
#[test]
fn noise_ends_the_connection() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // The peer is silent after the random bytes, so a short time limit ends the test sooner.
    let settings = Settings { stalled: Duration::from_millis(200), ..patient() };
    let (cluster, server, good) = runtime.block_on(served(settings));
    let noise = (any::<bool>(), prop::collection::vec(any::<u8>(), 0..400), any::<bool>());
    let config = Config { cases: 60, failure_persistence: None, ..Config::default() };
    let ran = TestRunner::new(config).run(&noise, |(is_greeted, noise, is_framed)| {
        runtime.block_on(async {
            let (_endpoint, connection) = connect(&cluster, &server).await;
            let (mut send, mut recv) = connection.open_bi().await.unwrap();
            let mut bytes = Vec::new();
            if is_greeted {
                let hello = hello::write(&Version::current(), &Hello::default()).unwrap();
                frames::append(&hello, &mut bytes);
                send.write_all(&bytes).await.unwrap();
                let answer = soon(frames::read(&mut recv, 1 << 20)).await.unwrap();
                assert!(answer.is_some());
                bytes.clear();
                // The connection may have ended already.
                if let Ok(mut region) = soon(connection.open_uni()).await {
                    let _ = region.write_all(&noise).await;
                    let _ = region.finish();
                }
            }
            if is_framed {
                frames::append(&noise, &mut bytes);
            } else {
                bytes.extend(&noise);
            }
            // The connection ends as soon as the server detects invalid bytes.
            let _ = send.write_all(&bytes).await;
            let _ = send.finish();
            soon(connection.closed()).await;
        });
        Ok(())
    });
    ran.unwrap();
    runtime.block_on(good.check());
    let told = cluster.notices();
    assert!(!told.is_empty() && told.len() <= 4, "each cause once: {told:?}");
}

/// A region whose stream stops without an end: the server refuses it, and the connection continues.
#[tokio::test]
async fn stalled_region_is_stopped_and_connection_stays() {
    let (cluster, server, good) = served(Settings { stalled: Duration::from_millis(300), ..patient() }).await;
    for length in [20, 56, 60] {
        let (_endpoint, connection) = connect(&cluster, &server).await;
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        let mut hello = Vec::new();
        frames::append(&hello::write(&Version::current(), &Hello::default()).unwrap(), &mut hello);
        send.write_all(&hello).await.unwrap();
        soon(frames::read(&mut recv, 1 << 20)).await.unwrap().expect("the manager's first frame");
        let mut region = soon(connection.open_uni()).await.unwrap();
        // Each stream stops within its header of 73 bytes.
        let header = [&[1; 16][..], &(1_u64 << 20).to_le_bytes(), &[2; 32], &[3; 4]].concat();
        region.write_all(&header[..length]).await.unwrap();
        assert!(soon(region.stopped()).await.unwrap().is_some(), "{length} bytes: it is not taken");
        assert_eq!(connection.close_reason(), None);
    }
    good.check().await;
    let told = cluster.notices();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].refusal.text, "data region: no data for 0.3 s");
}

/// A first frame at 1 byte per 20 ms, and a connection without any: the server ends both after the time limit.
#[tokio::test]
async fn trickled_hello_misses_the_deadline() {
    let settings = Settings { handshake: Duration::from_secs(2), ..patient() };
    let (cluster, server, good) = served(settings).await;
    let mut strangers = Vec::new();
    for number in 0..20 {
        let (endpoint, connection) = connect(&cluster, &server).await;
        strangers.push(tokio::spawn(async move {
            let mut tick = tokio::time::interval(Duration::from_millis(20));
            if number % 2 == 0 {
                let (mut send, _recv) = connection.open_bi().await.unwrap();
                send.write_all(&60_000_u32.to_le_bytes()).await.unwrap();
                while send.write_all(b"p").await.is_ok() {
                    tick.tick().await;
                }
            }
            let end = close_reason(&connection).await;
            drop(endpoint);
            end
        }));
    }
    let mut told = 0;
    for stranger in strangers {
        match soon(stranger).await.unwrap().as_str() {
            "no identification within 2 s" => told += 1,
            // The frame with the reason was lost: a busy machine drops datagrams.
            "reset by peer" => {}
            other => panic!("{other}"),
        }
    }
    assert!(told > 10, "{told} of 20 peers are told why");
    until(|| server.connections() == 1).await;
    good.check().await;
    assert_eq!(causes(&cluster), [Cause::Deadline], "told once");
}

/// More silent peers with valid certificates and addresses than may be half-open: some are refused as busy, and the rest
/// time out.
#[tokio::test]
async fn half_open_connections_beyond_the_limit_are_refused() {
    let settings = Settings { handshake: Duration::from_secs(4), trusting: 4, half_open: 16, ..patient() };
    let (cluster, server, good) = served(settings).await;
    cluster.credentials("evil", Role::Worker, 30);
    let (endpoint, config) = stranger(&cluster, Some(&cluster.folder("evil")));
    let (mut silent, mut refused) = (Vec::new(), 0);
    while silent.len() + refused < 60 {
        let connecting = endpoint.connect_with(config.clone(), server.address(), "manager.pleach").unwrap();
        match soon(connecting).await {
            Ok(connection) => silent.push(connection),
            Err(ConnectionError::ConnectionClosed(_)) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    // The accepted ones are as many as may be half-open, and later ones in their places.
    assert!(refused > 0 && silent.len() >= 16, "{refused} refused");
    for connection in &silent {
        assert_eq!(close_reason(connection).await, "no identification within 4 s");
    }
    good.check().await;
    let mut causes = causes(&cluster);
    causes.sort();
    assert_eq!(causes, [Cause::Deadline, Cause::Busy], "each told once");
}

/// 10,000 first packets from different addresses, and no further packet: connections, memory and notices stay within limits. In
/// a process of its own, because tests beside it take memory as well.
#[test]
fn memory_is_bounded_under_ten_thousand_half_open() {
    const ALONE: &str = "PLEACH_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return tokio::runtime::Runtime::new().expect("threads").block_on(ten_thousand_half_open());
    }
    let mut child = Command::new(std::env::current_exe().expect("this program"));
    let test = "hostile::memory_is_bounded_under_ten_thousand_half_open";
    let ended = child.args(["--exact", test, "--nocapture"]).env(ALONE, "1").output().expect("a child");
    let (out, error) = (String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success() && out.contains("1 passed"), "{out}{error}");
}

async fn ten_thousand_half_open() {
    const PEERS: u32 = 10_000;
    let settings = Settings { handshake: Duration::from_secs(5), ..patient() };
    let (cluster, server, good) = served(settings).await;
    let before = resident_bytes();
    let address = server.address();
    let (_endpoint, config) = stranger(&cluster, None);
    let flood = tokio::task::spawn_blocking(move || {
        let mut most = 0;
        for number in 0..PEERS {
            let from = Ipv4Addr::new(127, 1, (number >> 8) as u8, number as u8);
            first_packet(&config, SocketAddr::from((from, 0)), address);
            most = most.max(server.connections());
        }
        (server, most)
    });
    let (server, most) = soon(flood).await.expect("the flood ends");
    // Peers trusted without a proof of their address, the good worker, and one that is just ending.
    assert!(most <= cluster.settings.trusting + 2, "{most} connections");
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 64 << 20, "{grown} bytes more");
    good.check().await;
    until(|| server.connections() == 0).await;
    let told = cluster.notices();
    assert!(told.len() <= MAX_NOTICES, "{} notices", told.len());
    assert!(told.iter().all(|notice| notice.refusal.cause == Cause::Deadline), "{told:?}");
}

fn resident_bytes() -> u64 {
    let pages = std::fs::read_to_string("/proc/self/statm").expect("what Linux says of itself");
    pages.split(' ').nth(1).expect("a second number").parse::<u64>().expect("a number") * 4096
}
