//! `pleach worker`: runs a process that executes leases of a manager until it has left.
//!
//! `metrics` samples the worker's metrics, `readiness` answers probes, and `retry` decides when the worker connects
//! again.

mod certificate;
mod metrics;
mod readiness;
mod retry;

use crate::accelerators::{self, OpenAccelerators};
use crate::cli::{TimeArg, WorkerProcessArgs};
use crate::command::{meter, process_bytes, workers};
use crate::exit::{CommandError, CommandResult};
use crate::interrupt::Interrupt;
use crate::log;
use crate::operations;
use crate::spill;
use actix::prelude::*;
use metrics::WorkerSampler;
use pleach_actors::exchange::{Exchange, ExchangeSetup, ExchangeStats};
use pleach_actors::input_files::InputFileStore;
use pleach_actors::panic_guard::THREAD_NAME;
use pleach_actors::spill::SpillStore;
use pleach_actors::storage::StorageActor;
use pleach_actors::task::Accelerators;
use pleach_actors::transport::clock::{Clock, SystemClock};
use pleach_actors::transport::hello::{Hello, TierSize, Version};
use pleach_actors::transport::identity::Role;
use pleach_actors::transport::quic::{Connector, LinkEnd, Peer, QuicRuntime, RefusalReporter};
use pleach_actors::transport::refusal::{Cause, Refusal};
use pleach_actors::transport::settings::Settings;
use pleach_actors::worker::{
    CodeLoader, LeaveNow, LinkUp, RemoteSetup, Resources, SetTimeLimit, StartDrain, WorkerActor, WorkerEvent,
    WorkerSetup,
};
use pleach_api::random;
use pleach_cache::{Cache, PriorResults};
use pleach_execution::inputs::InputFileReader;
use pleach_planner::memory_limit::{self, default_memory_bytes};
use pleach_planner::memory_size::{MemorySize, human};
use pleach_regions::{MemoryCounter, RamTier};
use pleach_results::cache_walk;
use pleach_server::exporter;
use pleach_server::listener;
use pleach_server::service::metrics::record_expiry;
use pleach_storage::files::scratch::Scratch;
use pleach_storage::locks_are_local;
use pleach_telemetry::Exposition;
use pleach_workflow::Registry;
use readiness::WorkerReadiness;
use retry::Retry;
use std::collections::HashMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::num::NonZeroU32;
use std::path::PathBuf;
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
pub(in crate::command) fn execute(args: &WorkerProcessArgs, registry: &Registry) -> CommandResult {
    log::start(args.log_format)?;
    let mut interrupt = Interrupt::listen()?;
    let (manager, readiness, exporter) = serve_probes(args)?;
    let OpenAccelerators { accelerators, remarks } = accelerators::open(&args.accelerators)?;
    remarks.iter().for_each(|remark| info!("{remark}"));
    let on_cores = accelerators.is_empty().then(|| registry.clone().on_cores());
    let registry = on_cores.as_ref().unwrap_or(registry);
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let network = QuicRuntime::start(NETWORK_THREADS).map_err(CommandError::defect)?;
    let settings = Settings::default();
    let mut stop = interrupt.take_stop_requested();
    let target = certificate::JoinTarget {
        manager,
        network: &network,
        settings: &settings,
        clock: &clock,
        readiness: &readiness,
    };
    if !network.handle().block_on(certificate::obtain(args, &target, &mut stop))? {
        info!("the worker has left");
        return Ok(());
    }
    let credentials = super::credentials(&args.certs, Role::Worker)?;
    record_expiry(&credentials);
    let capacity = Capacity::open(args, accelerators)?;
    let until = args.until.map(moment);
    let hello = capacity.hello(until).with_operations(registry);
    let reporter = RefusalReporter::new(Arc::clone(&clock), Arc::new(|notice| warn!("{notice}")));
    let (version, certs) = (Version::current(), Arc::clone(&credentials));
    let connector =
        Connector::new(&network, manager, certs, version, settings.clone(), &clock, reporter.clone())
            .map_err(CommandError::defect)?;
    let ledger = Arc::new(MemoryCounter::default());
    let ram = Arc::new(RamTier::new(Arc::clone(&ledger)));
    let exchange = ExchangeSetup {
        credentials,
        hello: hello.clone(),
        version: Version::current(),
        settings: Settings { handshake: SILENT_PEER, ..settings.clone() },
        clock,
        board: reporter,
        ram: Arc::clone(&ram),
        spill: capacity.spill.clone(),
        shared: args.shm_dir.is_dir().then(|| args.shm_dir.clone()),
    };
    let exchange = Exchange::start(&network, args.listen, exchange).map_err(CommandError::input)?;
    // The scratch folder is removed when the command ends.
    let (inputs, _scratch) = input_folder(args)?;
    let (ask, asks) = unbounded_channel();
    let files = InputFileStore::open(inputs.clone(), ask)
        .map_err(|error| CommandError::Input(format!("{}: {error}", inputs.display())))?;
    let files = Arc::new(files);
    let (events, worker_events) = unbounded_channel();
    let loader = code_loader(args)?;
    let remote = RemoteSetup {
        incarnation: random::number()?,
        exchange: exchange.clone(),
        opener: Arc::new(InputFileReader),
        code: loader,
        files: Arc::clone(&files),
        asks: Some(asks),
        events,
        window: args.prefetch_buckets,
    };
    let node = WorkerNode { capacity, registry: registry.clone(), ledger, ram, exchange, remote };
    let process = Process { args, manager, hello, connector, settings, files, until, readiness };
    System::new().block_on(process.run(node, worker_events, stop, exporter))
}

/// Serves metrics and probes at `--metrics`, if given, before anything else: the manager may take long to appear.
/// Returns the address of the manager, the readiness that probes report, and the server.
fn serve_probes(
    args: &WorkerProcessArgs,
) -> CommandResult<(SocketAddr, WorkerReadiness, Option<listener::Server>)> {
    let listener = args.metrics.map(exporter::bind).transpose()?;
    if let Some(at) = listener.as_ref().and_then(|listener| listener.local_addr().ok()) {
        info!("metrics are at http://{at}/metrics");
    }
    let manager = resolve(&args.manager)?;
    let readiness = WorkerReadiness::new(manager);
    let Some(listener) = listener else { return Ok((manager, readiness, None)) };
    // Install metrics before any code records one.
    let exposition = Exposition::install(pleach_telemetry::ProcessRole::Worker, env!("CARGO_PKG_VERSION"))
        .map_err(CommandError::defect)?;
    let server = exporter::serve(listener, exposition, Box::new(readiness.clone()))?;
    Ok((manager, readiness, Some(server)))
}

/// Slots, memory and spill tiers of the worker.
struct Capacity {
    slots: NonZeroU32,
    accelerators: Accelerators,
    memory_bytes: u64,
    active_paths: Option<NonZeroU32>,
    spill: Option<Arc<SpillStore>>,
    /// Task cache, which several workers may share.
    cache: Option<Arc<Cache>>,
    /// Name and capacity of each spill tier, from fast to slow.
    spill_tiers: Vec<(String, u64)>,
}

impl Capacity {
    /// Sets the memory limit of the process and opens the spill tiers.
    fn open(args: &WorkerProcessArgs, accelerators: Accelerators) -> CommandResult<Self> {
        let slots = workers(args.cores);
        let memory_bytes = args.memory.map_or_else(default_memory_bytes, MemorySize::bytes);
        pleach_pages::set_limit_bytes(memory_bytes);
        let tiers = spill::open(&args.spill.options())?;
        let (spill, sizes) = tiers.map(|tiers| (tiers.spill, tiers.sizes)).unzip();
        let cache = args.cache.options().map(cache_walk::open).transpose()?;
        let (active_paths, spill_tiers) = (args.active_paths, sizes.unwrap_or_default());
        Ok(Self { slots, accelerators, memory_bytes, active_paths, spill, cache, spill_tiers })
    }

    /// Returns the hello message of the worker, without its operations.
    fn hello(&self, until: Option<u64>) -> Hello {
        let ram = ("ram".to_owned(), self.memory_bytes);
        let tiers = std::iter::once(ram).chain(self.spill_tiers.iter().cloned());
        Hello {
            cores: self.slots.get(),
            memory_bytes: self.memory_bytes,
            tiers: tiers.map(|(name, bytes)| TierSize { name, bytes }).collect(),
            accelerator_slots: self.accelerators.len(),
            lease_end_seconds: until,
            host_name: memory_limit::host_name(),
            ..Hello::default()
        }
    }
}

/// Returns the loader of clients' code, if the operator allows it.
fn code_loader(args: &WorkerProcessArgs) -> CommandResult<Option<Arc<dyn CodeLoader>>> {
    if !args.code.allow_code {
        return Ok(None);
    }
    let folder = operations::CodeFolder::new(scratch()?, args.operations.python.python.clone());
    Ok(Some(Arc::new(folder)))
}

/// Returns the folder for input files, in `--ssd` or in a scratch folder.
fn input_folder(args: &WorkerProcessArgs) -> CommandResult<(PathBuf, Option<Scratch>)> {
    if let Some(ssd) = &args.spill.ssd {
        return Ok((ssd.join("inputs"), None));
    }
    let scratch = scratch()?;
    Ok((scratch.path().join("inputs"), Some(scratch)))
}

/// Creates a scratch folder for input files of a worker without a disk of its own. Removes those of killed workers.
fn scratch() -> CommandResult<Scratch> {
    let parent = std::env::temp_dir();
    let scratch = Scratch::create(&parent, SCRATCH).map_err(|error| {
        CommandError::Input(format!(
            "{}: {error}; set TMPDIR or --ssd to use another folder",
            parent.display()
        ))
    })?;
    // Without locks across machines, a live worker's folder on another machine would look abandoned.
    if !locks_are_local(&parent).unwrap_or(true) {
        match Scratch::sweep(&parent, SCRATCH) {
            Ok(gone) => gone.iter().for_each(|gone| {
                info!("removed {}, the scratch folder of a killed worker", gone.display());
            }),
            // A temporary folder need not be readable.
            Err(error) => {
                warn!("cannot remove the scratch folders of killed workers in {}: {error}", parent.display())
            }
        }
    }
    Ok(scratch)
}

/// Parts of the worker actor that exist before the actor system.
struct WorkerNode {
    capacity: Capacity,
    registry: Registry,
    ledger: Arc<MemoryCounter>,
    ram: Arc<RamTier>,
    exchange: Exchange,
    remote: RemoteSetup,
}

impl WorkerNode {
    /// Starts the storage actor and the worker actor. Adds the worker to `readiness`.
    fn start(self, readiness: &WorkerReadiness) -> CommandResult<Addr<WorkerActor>> {
        let Self { capacity, registry, ledger, ram, exchange, remote } = self;
        let Capacity { slots, accelerators, memory_bytes, active_paths, spill, cache, .. } = capacity;
        operations::limit_processes(memory_bytes);
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(slots.get() as usize)
            .thread_name(|number| format!("{THREAD_NAME}{number}"))
            .build()
            .map_err(CommandError::defect)?;
        let pool = Arc::new(pool);
        let storage = StorageActor::new(HashMap::new(), Arc::clone(&pool), Arc::clone(&ram));
        let storage = storage.with_spill(spill.clone()).with_exchange(exchange.clone()).start();
        let setup = WorkerSetup {
            resources: Resources { slots, accelerators, memory_bytes, active_paths, meter, process_bytes },
            registry,
            storage,
            pool,
            ram: Arc::clone(&ram),
            spill: spill.clone(),
            ledger,
            costs: Arc::default(),
            prior: PriorResults { cache: cache.clone(), ..PriorResults::default() },
            peak_bytes: Arc::default(),
            remote: Some(remote),
        };
        let worker = WorkerActor::unconnected(setup).start();
        readiness.begin(WorkerSampler { worker: worker.clone(), ram, spill, exchange, cache });
        Ok(worker)
    }
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
    readiness: WorkerReadiness,
}

impl Process<'_> {
    /// Starts the worker, serves it until it has left, and closes the network.
    async fn run(
        self,
        node: WorkerNode,
        events: UnboundedReceiver<WorkerEvent>,
        stop: oneshot::Receiver<()>,
        exporter: Option<listener::Server>,
    ) -> CommandResult {
        let (exchange, cache) = (node.exchange.clone(), node.capacity.cache.clone());
        let worker = node.start(&self.readiness)?;
        if let Some(until) = self.until {
            worker.do_send(SetTimeLimit(Instant::now() + remaining(until, Duration::ZERO)));
        }
        let served = self.serve(&worker, events, stop).await;
        let ExchangeStats { fetched, fetched_bytes, .. } = exchange.counts();
        info!("fetched {fetched} regions ({}) from other workers", human(fetched_bytes));
        drop(exporter);
        if let Some(cache) = cache {
            // On this thread: the worker has left, and nothing else waits for it.
            cache.flush();
            cache.take_reports().into_iter().for_each(|report| warn!("--cache: {report}"));
        }
        exchange.close().await;
        // The last messages may still be in transit. A manager that takes longer than the idle timeout counts as lost.
        let _ = tokio::time::timeout(self.settings.idle, self.connector.idle()).await;
        self.connector.close().await;
        served
    }

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
            self.until.map(|until| tokio::time::Instant::now() + remaining(until, self.args.drain_timeout.0));
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
                        self.readiness.joined();
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
                    info!("stop requested: the worker drains (it finishes running tasks and returns unstarted ones)");
                    leaving = Some(tokio::time::Instant::now() + self.args.drain_timeout.0);
                    // Before the drain: no task may start that would not end within the timeout.
                    worker.do_send(SetTimeLimit(Instant::now() + self.args.drain_timeout.0));
                    worker.do_send(StartDrain);
                }
                () = tokio::time::sleep_until(ends.unwrap_or(never)), if ends.is_some() && leaving.is_none() => {
                    info!(
                        "the time limit is near (--until): the worker drains (it finishes running tasks and returns \
                         unstarted ones)"
                    );
                    // `run` has already set the actor's time limit.
                    leaving = Some(tokio::time::Instant::now() + self.args.drain_timeout.0);
                    worker.do_send(StartDrain);
                }
                () = tokio::time::sleep_until(leaving.unwrap_or(never)), if leaving.is_some() => {
                    info!("the drain timed out (--drain-timeout): the worker leaves at once");
                    worker.do_send(LeaveNow);
                    // `LeaveNow` is sent once. The actor's `Left` ends the loop.
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
            warn!("lost the connection to the manager; running tasks continue");
        } else if let Some(refusal) = refusal {
            self.readiness.failed(&refusal.to_string());
            // Logged once for each cause, because the attempts may continue for hours.
            if refused.replace(refusal.cause) != Some(refusal.cause) {
                warn!(
                    "the manager at {} refused this worker: {refusal}; trying again with increasing delay",
                    self.manager
                );
            }
        }
        wait
    }

    async fn connect(&self, retry: &mut Retry, not_before: tokio::time::Instant) -> CommandResult<Peer> {
        // A moment and not a duration: any other event of the caller's loop drops this future and begins it again.
        tokio::time::sleep_until(not_before).await;
        let mut last = String::new();
        let wait = async |refusal: &Refusal, wait: Duration| {
            let text = refusal.to_string();
            self.readiness.failed(&text);
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
                let stored = tokio::task::spawn_blocking(move || files.arrived(arrival)).await;
                if stored.is_err() {
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
    found.next().ok_or_else(|| fail("no address found".to_owned()))
}

/// Converts the time limit to seconds since 1970.
fn moment(until: TimeArg) -> u64 {
    until.seconds(now())
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |passed| passed.as_secs())
}

/// Returns the time until the worker must start draining.
fn remaining(until: u64, drain: Duration) -> Duration {
    Duration::from_secs(until.saturating_sub(now())).saturating_sub(drain)
}
