//! Cost of the transport on loopback: data regions against plain quinn with the same settings, round trips of frames, the
//! latency of a frame while regions are being sent, and the gain by shared memory within a machine.
//!
//! `cargo bench -p pleach-actors --bench transport [-- ROUNDS]`. Absolute numbers depend on the machine and its load, so
//! compare the ratios. Rounds of both kinds alternate, and the median is shown.

#[path = "transport/exchange.rs"]
mod exchange;

use bytes::Bytes;
use pleach_actors::transport::certs::{Authority, Credentials, Validity};
use pleach_actors::transport::clock::{Clock, SystemClock};
use pleach_actors::transport::hello::{Hello, Version};
use pleach_actors::transport::identity::{NodeIdentity, Role};
use pleach_actors::transport::quic::{
    Connector, Peer, QuicLink, QuicRuntime, RefusalReporter, RegionStreams, Server, ServerSetup,
};
use pleach_actors::transport::settings::Settings;
use pleach_actors::transport::{Incoming, Link};
use pleach_regions::{Digest, RegionKey};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use socket2::SockRef;
use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// The allocator of the binary: regions arrive in recycled memory.
#[global_allocator]
static ALLOCATOR: pleach_pages::RecyclingAllocator = pleach_pages::RecyclingAllocator;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

/// A tile of 4096 × 4096 pixels in color.
const REGION_BYTES: usize = 48 << 20;
/// Regions per round.
const REGIONS: usize = 12;
/// Concurrent regions.
const AT_ONCE: usize = 2;
/// Interval between two requests of a worker.
const REQUEST_EVERY: Duration = Duration::from_millis(3);
const ANYWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

#[expect(clippy::print_stdout, reason = "a benchmark says what it found")]
fn main() -> Outcome<()> {
    // Skips other arguments: Cargo passes `--bench`.
    let rounds = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(7);
    // 2 threads per node, as for a worker.
    let (near, far) = (QuicRuntime::start(2)?, QuicRuntime::start(2)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ours = runtime.block_on(ours(&near, &far, for_regions()))?;
    let raw = raw(&near, &far)?;
    let bytes = Bytes::from((0..REGION_BYTES).map(|at| ((at * at) >> 9) as u8).collect::<Vec<u8>>());
    let (mut with, mut without, mut ratios, mut costs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let Ours { worker, manager, _server } = ours;
    let (arrived, mut done) = tokio::sync::mpsc::channel(AT_ONCE);
    let mut arrivals = worker.arrivals;
    far.handle().spawn(async move {
        while let Some(arrival) = arrivals.recv().await {
            let bytes = arrival.map(|region| region.bytes.len());
            if arrived.send(bytes).await.is_err() {
                return;
            }
        }
    });
    let digest = Digest::of_bytes(&bytes);
    for _ in 0..=rounds {
        let (start, spent) = (Instant::now(), processor_seconds());
        let mut sending = JoinSet::new();
        for n in 0..AT_ONCE {
            let (regions, bytes) = (manager.regions.clone(), bytes.clone());
            let send = async move {
                for _ in 0..REGIONS / AT_ONCE {
                    regions.send(RegionKey([n as u8; 16]), digest, bytes.clone()).await?;
                }
                Outcome::Ok(())
            };
            sending.spawn_on(send, near.handle());
        }
        runtime.block_on(async {
            for _ in 0..REGIONS {
                done.recv().await.ok_or("the worker is gone")??;
            }
            while let Some(sent) = sending.join_next().await {
                sent??;
            }
            Outcome::Ok(())
        })?;
        let (ours, cost) = (rate(start), processor_seconds() - spent);
        let (start, spent) = (Instant::now(), processor_seconds());
        runtime.block_on(raw.round(&near, &far, &bytes))?;
        let plain = rate(start);
        costs.push(cost / (processor_seconds() - spent));
        with.push(ours);
        without.push(plain);
        ratios.push(ours / plain);
    }
    // The first round also determines the packet size, so it does not count.
    let medians = [&mut with, &mut without, &mut ratios, &mut costs].map(|values| median(&mut values[1..]));
    println!(
        "regions of {} MB, digest checked: {:.2} GB/s; plain quinn, not even looked at: {:.2} GB/s; ratio {:.2}; \
         processor time {:.2} of its",
        REGION_BYTES >> 20,
        medians[0],
        medians[1],
        medians[2],
        medians[3]
    );

    // The settings between manager and workers, except that each frame is sent at once.
    let at_once = Settings { between_frames: Duration::ZERO, ..Settings::default() };
    let mut quick = runtime.block_on(talking(&near, &far, at_once))?;
    // From a separate runtime, like an actor.
    let count = 20_000;
    let one = runtime.block_on(round_trips(&mut quick.worker, count, 1, None))?;
    let many = runtime.block_on(round_trips(&mut quick.worker, 5 * count, 64, None))?;
    println!(
        "round trips of 200 bytes: {:.0} a second, p50 {:?}, p99 {:?}; 64 under way: {:.0} a second",
        one.rate,
        one.quantile(0.5),
        one.quantile(0.99),
        many.rate
    );
    // Requests like those of a worker whose tasks take some milliseconds.
    let mut usual = runtime.block_on(talking(&near, &far, Settings::default()))?;
    let idle = runtime.block_on(round_trips(&mut usual.worker, count / 20, 1, Some(REQUEST_EVERY)))?;
    let regions = usual.regions.clone();
    let bulk = near
        .handle()
        .spawn(async move { while regions.send(RegionKey([9; 16]), digest, bytes.clone()).await.is_ok() {} });
    let loaded = runtime.block_on(round_trips(&mut usual.worker, count / 20, 1, Some(REQUEST_EVERY)))?;
    bulk.abort();
    println!(
        "requests now and then: p50 {:?}, p99 {:?}; while regions flow: p50 {:?}, p99 {:?}, longest {:?}",
        idle.quantile(0.5),
        idle.quantile(0.99),
        loaded.quantile(0.5),
        loaded.quantile(0.99),
        loaded.quantile(1.0)
    );
    match exchange::rates(&near, &far, rounds)? {
        Some(rates) => println!(
            "regions between workers: {:.2} GB/s through shared memory, {:.2} GB/s over the network; ratio {:.2}",
            rates.shared, rates.network, rates.ratio
        ),
        None => println!("regions between workers: skipped, no folder in memory here"),
    }
    Ok(())
}

/// Settings between workers.
fn for_regions() -> Settings {
    Settings { socket_bytes: Some(Settings::REGIONS_SOCKET_BYTES), ..Settings::default() }
}

fn rate(start: Instant) -> f64 {
    (REGIONS * REGION_BYTES) as f64 / start.elapsed().as_secs_f64() / 1e9
}

/// Returns the processor time of all threads of this process, in seconds, with a resolution of 10 ms.
pub(crate) fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name may contain spaces, so the fields are counted from its closing parenthesis, which the third field follows.
    let fields = text.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

struct Trips {
    /// Sorted.
    took: Vec<Duration>,
    rate: f64,
}

impl Trips {
    fn quantile(&self, part: f64) -> Duration {
        let at = (self.took.len() as f64 * part) as usize;
        self.took.get(at.min(self.took.len().saturating_sub(1))).copied().unwrap_or_default()
    }
}

/// Worker whose manager returns every message.
struct Talking {
    worker: (QuicLink, Incoming),
    /// Sends regions from the manager to the worker, which drops them.
    regions: RegionStreams,
    _server: Server,
}

async fn talking(near: &QuicRuntime, far: &QuicRuntime, settings: Settings) -> Outcome<Talking> {
    let Ours { worker, manager, _server } = ours(near, far, settings).await?;
    let (echoing, mut questions, regions) = (manager.link, manager.incoming, manager.regions);
    near.handle().spawn(async move {
        while let Some(frame) = questions.recv().await {
            if echoing.send(frame.into_bytes()).is_err() {
                return;
            }
        }
    });
    let mut arrivals = worker.arrivals;
    far.handle().spawn(async move { while arrivals.recv().await.is_some() {} });
    Ok(Talking { worker: (worker.link, worker.incoming), regions, _server })
}

async fn round_trips(
    (link, incoming): &mut (QuicLink, Incoming),
    count: usize,
    at_once: usize,
    every: Option<Duration>,
) -> Outcome<Trips> {
    let (start, mut took) = (Instant::now(), Vec::with_capacity(count));
    let mut sent = std::collections::VecDeque::new();
    for _ in 0..count {
        if let Some(every) = every {
            tokio::time::sleep(every).await;
        }
        while sent.len() < at_once {
            sent.push_back(Instant::now());
            link.send(vec![7; 200])?;
        }
        incoming.recv().await.ok_or("the manager is gone")?;
        took.extend(sent.pop_front().map(|then| then.elapsed()));
    }
    let rate = count as f64 / start.elapsed().as_secs_f64();
    for _ in sent {
        incoming.recv().await.ok_or("the manager is gone")?;
    }
    took.sort();
    Ok(Trips { took, rate })
}

struct Ours {
    worker: Peer,
    manager: Peer,
    _server: Server,
}

/// Manager and worker of one cluster.
async fn ours(near: &QuicRuntime, far: &QuicRuntime, settings: Settings) -> Outcome<Ours> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let place = tempfile::tempdir()?;
    let authority = Authority::init(&place.path().join("ca"), clock.now())?;
    let credentials = |name: &str, role| -> Outcome<Arc<Credentials>> {
        let folder = place.path().join(name);
        let identity = NodeIdentity { name: name.parse()?, role };
        authority.issue(&identity, Validity::days(1, clock.now())?, &folder)?;
        Ok(Arc::new(Credentials::load(&folder)?))
    };
    let board = RefusalReporter::new(Arc::clone(&clock), Arc::new(|_| {}));
    let setup = ServerSetup {
        credentials: credentials("m1", Role::Manager)?,
        hello: Hello::default(),
        version: Version::current(),
        roles: vec![Role::Worker],
        settings: settings.clone(),
        clock: Arc::clone(&clock),
        board: board.clone(),
        desk: None,
    };
    let (server, mut peers) = Server::listen(near, ANYWHERE, setup)?;
    let worker = credentials("w1", Role::Worker)?;
    let connector = Connector::new(far, ANYWHERE, worker, Version::current(), settings, &clock, board)?;
    let worker = connector.connect(server.address(), Role::Manager, Hello::default()).await?;
    let manager = peers.recv().await.ok_or("nobody came")?;
    Ok(Ours { worker, manager, _server: server })
}

/// Two ends of a connection of plain quinn.
struct Raw {
    sender: Connection,
    receiver: Connection,
    _endpoints: [Endpoint; 2],
}

/// Plain quinn with a self-signed certificate and the same settings.
fn raw(near: &QuicRuntime, far: &QuicRuntime) -> Outcome<Raw> {
    let made = rcgen::generate_simple_self_signed(vec!["raw".to_owned()])?;
    let certificate = CertificateDer::from(made.cert);
    let key = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let transport = Settings::default().transport(ANYWHERE.ip());
    let tls = rustls::ServerConfig::builder_with_provider(Arc::clone(&provider));
    let tls = tls.with_protocol_versions(&[&rustls::version::TLS13])?.with_no_client_auth();
    let tls = tls.with_single_cert(vec![certificate.clone()], key)?;
    let mut server = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    server.transport_config(Arc::clone(&transport));
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let tls = rustls::ClientConfig::builder_with_provider(provider);
    let tls = tls.with_protocol_versions(&[&rustls::version::TLS13])?.with_root_certificates(roots);
    let mut client = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls.with_no_client_auth())?));
    client.transport_config(transport);
    let endpoint = |network: &QuicRuntime, server| -> Outcome<Endpoint> {
        let _runtime = network.handle().enter();
        let mut config = EndpointConfig::default();
        config.max_udp_payload_size(Settings::MAX_DATAGRAM_BYTES)?;
        let socket = UdpSocket::bind(ANYWHERE)?;
        SockRef::from(&socket).set_recv_buffer_size(Settings::REGIONS_SOCKET_BYTES)?;
        SockRef::from(&socket).set_send_buffer_size(Settings::REGIONS_SOCKET_BYTES)?;
        Ok(Endpoint::new(config, server, socket, Arc::new(quinn::TokioRuntime))?)
    };
    let (listening, connecting) = (endpoint(near, Some(server))?, endpoint(far, None)?);
    let (accepting, address) = (listening.clone(), listening.local_addr()?);
    let accepted =
        near.handle().spawn(async move { Outcome::Ok(accepting.accept().await.ok_or("closed")?.await?) });
    let connect = {
        let _runtime = far.handle().enter();
        connecting.connect_with(client, address, "raw")?
    };
    let receiver = far.handle().block_on(connect)?;
    let sender = near.handle().block_on(accepted)??;
    let settings = Settings::default();
    settings.trust(&sender);
    settings.trust(&receiver);
    Ok(Raw { sender, receiver, _endpoints: [listening, connecting] })
}

impl Raw {
    async fn round(&self, near: &QuicRuntime, far: &QuicRuntime, bytes: &Bytes) -> Outcome<()> {
        let mut work = JoinSet::new();
        for _ in 0..AT_ONCE {
            let (sender, bytes) = (self.sender.clone(), bytes.clone());
            let send = async move {
                for _ in 0..REGIONS / AT_ONCE {
                    let mut stream = sender.open_uni().await?;
                    stream.write_chunk(bytes.clone()).await?;
                    stream.finish()?;
                    stream.stopped().await?;
                }
                Outcome::Ok(())
            };
            work.spawn_on(send, near.handle());
            let receiver = self.receiver.clone();
            let receive = async move {
                for _ in 0..REGIONS / AT_ONCE {
                    let mut stream = receiver.accept_uni().await?;
                    let mut pieces: [Bytes; 32] = Default::default();
                    while stream.read_chunks(&mut pieces).await?.is_some() {}
                }
                Outcome::Ok(())
            };
            work.spawn_on(receive, far.handle());
        }
        while let Some(done) = work.join_next().await {
            done??;
        }
        Ok(())
    }
}
