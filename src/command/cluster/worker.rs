//! `pleach worker`: runs a process that executes leases of a manager until it has left.
//!
//! `metrics` samples the worker's metrics, `readiness` answers probes, and `retry` decides when the worker connects
//! again.

mod certificate;
mod metrics;
mod readiness;
mod retry;

use crate::cli::{TimeArg, WorkerProcessArgs};
use crate::command::{meter, workers};
use crate::exit::{CommandError, CommandResult};
use crate::interrupt::Interrupt;
use crate::log;
use crate::spill;
use actix::prelude::*;
use metrics::WorkerSampler;
use pleach_actors::exchange::{Exchange, ExchangeSetup, ExchangeStats};
use pleach_actors::input_files::InputFileStore;
use pleach_actors::panic_guard::THREAD_NAME;
use pleach_actors::stage::PriorResults;
use pleach_actors::storage::StorageActor;
use pleach_actors::transport::certs::Credentials;
use pleach_actors::transport::clock::{Clock, SystemClock};
use pleach_actors::transport::hello::{Hello, TierSize, Version};
use pleach_actors::transport::identity::Role;
use pleach_actors::transport::quic::{Connector, LinkEnd, Peer, QuicRuntime, RefusalReporter};
use pleach_actors::transport::refusal::{Cause, Refusal};
use pleach_actors::transport::settings::Settings;
use pleach_actors::worker::{
    LeaveNow, LinkUp, RemoteSetup, Resources, SetTimeLimit, StartDrain, WorkerActor, WorkerEvent, WorkerSetup,
};
use pleach_api::random;
use pleach_execution::inputs::InputFileReader;
use pleach_planner::memory_limit::{self, default_memory_bytes};
use pleach_planner::memory_size::{MemorySize, human};
use pleach_regions::{MemoryCounter, RamTier};
use pleach_server::exporter;
use pleach_server::service::metrics::record_expiry;
use pleach_storage::files::scratch::Scratch;
use pleach_storage::locks_are_local;
use pleach_study::builtin;
use pleach_telemetry::Exposition;
use readiness::WorkerReadiness;
use retry::Retry;
use std::collections::HashMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::oneshot;
use tracing::{info, warn};

/// Threads for network I/O.
const NETWORK_THREADS: usize = 2;

/// Timeout of a handshake with another worker. An unresponsive peer counts as lost: fetching its regions elsewhere or
/// recomputing them hardly takes longer.
const SILENT_PEER: Duration = Duration::from_millis(1500);

/// Prefix of scratch folders in the system's temporary folder.
const SCRATCH: &str = "pleach-worker";

/// Runs the command.
pub(in crate::command) fn execute(args: &WorkerProcessArgs) -> CommandResult {
    log::start(args.log_format)?;
    let mut interrupt = Interrupt::listen()?;
    let exporter = args.metrics.map(exporter::bind).transpose()?;
    if let Some(at) = exporter.as_ref().and_then(|exporter| exporter.local_addr().ok()) {
        info!("metrics are at http://{at}/metrics");
    }
    let manager = resolve(&args.manager)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    // Install metrics before any code records one.
    let exposition = exporter
        .as_ref()
        .map(|_| Exposition::install(pleach_telemetry::ProcessRole::Worker, env!("CARGO_PKG_VERSION")));
    let exposition = exposition.transpose().map_err(CommandError::defect)?;
    let standing = WorkerReadiness::new(manager);
    // Serve probes from now on, because the manager may take long to appear.
    let exported = exporter.zip(exposition);
    let exported =
        exported.map(|(at, what)| exporter::serve(at, what, Box::new(standing.clone()))).transpose()?;
    let network = QuicRuntime::start(NETWORK_THREADS).map_err(CommandError::defect)?;
    let settings = Settings::default();
    let board = RefusalReporter::new(Arc::clone(&clock), Arc::new(|notice| warn!("{notice}")));
    let mut asked = interrupt.take_stop_requested();
    let place = certificate::JoinTarget {
        manager,
        network: &network,
        settings: &settings,
        clock: &clock,
        standing: &standing,
    };
    if !network.handle().block_on(certificate::obtain(args, &place, &mut asked))? {
        info!("the worker has left");
        return Ok(());
    }
    let certs = |error| CommandError::Input(format!("--certs {}: {error}", args.certs.display()));
    let credentials = Arc::new(Credentials::load(&args.certs).map_err(certs)?);
    if credentials.identity().role != Role::Worker {
        let found = credentials.identity();
        return Err(CommandError::Input(format!(
            "--certs {}: holds the certificate of {found}; a worker's is needed (pleach certs issue --role worker)",
            args.certs.display()
        )));
    }
    record_expiry(&credentials);
    let slots = workers(args.cores);
    let memory_bytes = args.memory.map_or_else(default_memory_bytes, MemorySize::bytes);
    pleach_pages::set_limit_bytes(memory_bytes);
    let until = args.until.map(moment);
    let registry = builtin::registry();
    let tiers = spill::open(&args.spill.options())?;
    let (below, sizes) = tiers.map(|tiers| (tiers.spill, tiers.sizes)).unzip();
    let sizes: Vec<(String, u64)> = sizes.unwrap_or_default();
    let tier_size = |(name, bytes)| TierSize { name, bytes };
    let hello = Hello {
        cores: slots.get(),
        memory_bytes,
        tiers: [("ram".to_owned(), memory_bytes)].into_iter().chain(sizes).map(tier_size).collect(),
        lease_end_seconds: until,
        host_name: memory_limit::host_name(),
        ..Hello::default()
    }
    .with_operations(&registry);
    let connector = Connector::new(
        &network,
        manager,
        Arc::clone(&credentials),
        Version::current(),
        settings.clone(),
        &clock,
        board.clone(),
    )
    .map_err(CommandError::defect)?;
    let ledger = Arc::new(MemoryCounter::default());
    let ram = Arc::new(RamTier::new(Arc::clone(&ledger)));
    let exchange = ExchangeSetup {
        credentials,
        hello: hello.clone(),
        version: Version::current(),
        settings: Settings { handshake: SILENT_PEER, ..settings.clone() },
        clock,
        board,
        ram: Arc::clone(&ram),
        spill: below.clone(),
        shared: args.shm_dir.is_dir().then(|| args.shm_dir.clone()),
    };
    let exchange = Exchange::start(&network, args.listen, exchange).map_err(CommandError::input)?;
    let temporary = if args.spill.ssd.is_none() { Some(scratch()?) } else { None };
    let ssd =
        args.spill.ssd.clone().or_else(|| Some(temporary.as_ref()?.path().to_owned())).unwrap_or_default();
    let (ask, asks) = unbounded_channel();
    let files = InputFileStore::open(ssd.join("inputs"), ask)
        .map_err(|error| CommandError::Input(format!("{}: {error}", ssd.join("inputs").display())))?;
    let files = Arc::new(files);
    let (events, told) = unbounded_channel();
    let incarnation = random::number()?;
    let files_of_process = Arc::clone(&files);
    let process =
        Process { args, manager, hello, connector, settings, files: files_of_process, until, standing };
    System::new().block_on(async move {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(slots.get() as usize)
            .thread_name(|number| format!("{THREAD_NAME}{number}"))
            .build()
            .map_err(CommandError::defect)?;
        let pool = Arc::new(pool);
        let storage = StorageActor::new(HashMap::new(), Arc::clone(&pool), Arc::clone(&ram));
        let storage = storage.with_spill(below.clone()).with_exchange(exchange.clone()).start();
        let setup = WorkerSetup {
            resources: Resources { slots, memory_bytes, active_paths: None, meter },
            registry,
            storage,
            pool,
            ram: Arc::clone(&ram),
            spill: below.clone(),
            ledger,
            costs: Arc::default(),
            prior: PriorResults::default(),
            peak_bytes: Arc::default(),
            remote: Some(RemoteSetup {
                incarnation,
                exchange: exchange.clone(),
                opener: Arc::new(InputFileReader),
                files,
                asks: Some(asks),
                events,
                window: args.prefetch_buckets,
            }),
        };
        let worker = WorkerActor::unconnected(setup).start();
        let figures = WorkerSampler { worker: worker.clone(), ram, spill: below, exchange: exchange.clone() };
        process.standing.begin(figures);
        if let Some(until) = until {
            worker.do_send(SetTimeLimit(Instant::now() + left(until, Duration::ZERO)));
        }
        let served = process.serve(&worker, told, asked).await;
        let ExchangeStats { fetched, fetched_bytes, .. } = exchange.counts();
        info!("{fetched} regions came from other workers, {} in all", human(fetched_bytes));
        drop(exported);
        exchange.close().await;
        // The last messages may still be in transit. A manager that takes longer than the idle timeout counts as lost.
        let _ = tokio::time::timeout(process.settings.idle, process.connector.idle()).await;
        process.connector.close().await;
        served
    })
}

/// Creates a scratch folder for input files of a worker without a disk of its own. Removes those of killed workers.
fn scratch() -> CommandResult<Scratch> {
    let parent = std::env::temp_dir();
    let scratch = Scratch::create(&parent, SCRATCH).map_err(|error| {
        CommandError::Input(format!("{}: {error}; TMPDIR or --ssd names another folder", parent.display()))
    })?;
    // Without locks across machines, a live worker's folder on another machine would look abandoned.
    if !locks_are_local(&parent).unwrap_or(true) {
        match Scratch::sweep(&parent, SCRATCH) {
            Ok(gone) => gone.iter().for_each(|gone| {
                info!("removed {}, the scratch folder of a killed worker", gone.display());
            }),
            // A temporary folder need not be readable.
            Err(error) => warn!("cannot look for what killed workers left in {}: {error}", parent.display()),
        }
    }
    Ok(scratch)
}

/// Process around the worker actor.
struct Process<'a> {
    args: &'a WorkerProcessArgs,
    manager: SocketAddr,
    hello: Hello,
    connector: Connector,
    settings: Settings,
    files: Arc<InputFileStore>,
    until: Option<u64>,
    standing: WorkerReadiness,
}

impl Process<'_> {
    /// Keeps the worker connected until it has left.
    async fn serve(
        &self,
        worker: &Addr<WorkerActor>,
        mut events: UnboundedReceiver<WorkerEvent>,
        mut stop: oneshot::Receiver<()>,
    ) -> CommandResult {
        let mut retry = Retry::new(&self.settings, random::number()?);
        let mut open: Option<OpenLink> = None;
        let mut not_before = tokio::time::Instant::now();
        // Cause of the last logged refusal: repeated attempts with the same cause are not logged.
        let mut refused: Option<Cause> = None;
        let mut leaving: Option<tokio::time::Instant> = None;
        let ends =
            self.until.map(|until| tokio::time::Instant::now() + left(until, self.args.drain_timeout.0));
        loop {
            // Placeholder for a time that is not set. The guards disable its branch.
            let never = tokio::time::Instant::now() + Duration::from_secs(3600);
            tokio::select! {
                connected = self.connect(&mut retry, not_before), if open.is_none() => {
                    let peer = connected?;
                    let manager = peer.identity.to_string();
                    open = Some(OpenLink { manager, end: peer.link.end_of(), welcome: None });
                    self.attach(worker, peer);
                }
                event = events.recv() => match event {
                    Some(WorkerEvent::Welcomed) => {
                        self.standing.joined();
                        refused = None;
                        if let Some(link) = &mut open {
                            link.welcome = Some(Instant::now());
                            info!("connected to {} at {}", link.manager, self.manager);
                        }
                    }
                    Some(WorkerEvent::Disconnected) => {
                        let wait = self.disconnected(open.take(), &mut retry, &mut refused);
                        not_before = tokio::time::Instant::now() + wait;
                    }
                    Some(WorkerEvent::Left) | None => {
                        info!("the worker has left");
                        return Ok(());
                    }
                },
                _ = &mut stop, if leaving.is_none() => {
                    info!("asked to leave: what is under way is finished, the rest is handed back");
                    leaving = Some(tokio::time::Instant::now() + self.args.drain_timeout.0);
                    worker.do_send(SetTimeLimit(Instant::now() + self.args.drain_timeout.0));
                    worker.do_send(StartDrain);
                }
                () = tokio::time::sleep_until(ends.unwrap_or(never)), if ends.is_some() && leaving.is_none() => {
                    info!("the time is nearly up (--until): what is under way is finished, the rest is handed back");
                    leaving = Some(tokio::time::Instant::now() + self.args.drain_timeout.0);
                    worker.do_send(StartDrain);
                }
                () = tokio::time::sleep_until(leaving.unwrap_or(never)), if leaving.is_some() => {
                    info!("there is no more time (--drain-timeout): the worker leaves at once");
                    worker.do_send(LeaveNow);
                    leaving = Some(never);
                }
            }
        }
    }

    /// Logs the end of a link. Returns the wait before the next attempt.
    fn disconnected(
        &self,
        link: Option<OpenLink>,
        retry: &mut Retry,
        refused: &mut Option<Cause>,
    ) -> Duration {
        let Some(OpenLink { end, welcome, .. }) = link else { return Duration::ZERO };
        let refusal = end.ended();
        let cause = refusal.as_ref().map(|refusal| refusal.cause);
        let wait = retry.record_end(welcome.map(|since| since.elapsed()), cause);
        if welcome.is_some() {
            warn!("the manager is lost; what is under way goes on");
        } else if let Some(refusal) = refusal {
            self.standing.failed(&refusal.to_string());
            if refused.replace(refusal.cause) != Some(refusal.cause) {
                warn!(
                    "the manager at {} refused this worker: {refusal}; trying again, less and less often",
                    self.manager
                );
            }
        }
        wait
    }

    async fn connect(&self, retry: &mut Retry, not_before: tokio::time::Instant) -> CommandResult<Peer> {
        tokio::time::sleep_until(not_before).await;
        let mut last = String::new();
        let wait = async |refusal: &Refusal, wait: Duration| {
            let text = refusal.to_string();
            self.standing.failed(&text);
            if text != last {
                warn!("cannot reach the manager at {}: {text}; trying again", self.manager);
                last = text;
            }
            tokio::time::sleep(wait).await;
        };
        let peer = self
            .connector
            .keep_connecting(self.manager, Role::Manager, &self.hello, &mut retry.lost, wait)
            .await;
        peer.map_err(|refusal| {
            CommandError::Refused(format!("the manager at {} refused this worker: {refusal}", self.manager))
        })
    }

    fn attach(&self, worker: &Addr<WorkerActor>, peer: Peer) {
        let Peer { link, incoming, mut arrivals, .. } = peer;
        let files = Arc::clone(&self.files);
        actix::spawn(async move {
            while let Some(arrival) = arrivals.recv().await {
                let files = Arc::clone(&files);
                // Use a blocking thread: storing the file may take as long as the disk does.
                let kept = tokio::task::spawn_blocking(move || files.arrived(arrival)).await;
                if kept.is_err() {
                    return;
                }
            }
        });
        worker.do_send(LinkUp { link: Box::new(link), incoming });
    }
}

/// Link to the manager.
struct OpenLink {
    /// Identity of the manager, from its certificate.
    manager: String,
    end: LinkEnd,
    /// Time of the manager's welcome. `None` before it.
    welcome: Option<Instant>,
}

fn resolve(address: &str) -> CommandResult<SocketAddr> {
    let fail =
        |what: String| CommandError::Input(format!("--manager {address}: {what}; HOST:PORT is allowed"));
    let mut found = address.to_socket_addrs().map_err(|error| fail(error.to_string()))?;
    found.next().ok_or_else(|| fail("it has no address".to_owned()))
}

/// Converts the time limit to seconds since 1970.
fn moment(until: TimeArg) -> u64 {
    until.seconds(now())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs())
}

/// Returns the time until the worker must start draining.
fn left(until: u64, drain: Duration) -> Duration {
    Duration::from_secs(until.saturating_sub(now())).saturating_sub(drain)
}
