//! `pleach manager`: runs the process that accepts submissions and workers.

mod publish;

use crate::cli::{ManagerProcessArgs, Placement};
use crate::exit::{CommandError, CommandResult};
use crate::interrupt::Interrupt;
use crate::log;
use actix::prelude::*;
use pleach_actors::manager::{Connect, ManagerActor, PauseGrants, PendingWorker, ServiceHooks};
use pleach_actors::transport::certs::{CA_KEY_FILE, Credentials};
use pleach_actors::transport::clock::{Clock, SystemClock};
use pleach_actors::transport::hello::{Hello, Version};
use pleach_actors::transport::https;
use pleach_actors::transport::identity::Role;
use pleach_actors::transport::quic::{JoinService, Peer, QuicRuntime, RefusalReporter, Server, ServerSetup};
use pleach_actors::transport::settings::Settings;
use pleach_api::token::ApiToken;
use pleach_dispatch::manager::WorkerInfo;
use pleach_planner::memory_limit;
use pleach_planner::memory_size::MemorySize;
use pleach_results::cache_walk;
use pleach_server::drivers::DriverContext;
use pleach_server::http::{self, Limits};
use pleach_server::input_store::InputStore;
use pleach_server::kubernetes::Namespace;
use pleach_server::pools::{DriverKind, Pools};
use pleach_server::service::metrics::record_expiry;
use pleach_server::service::pod_deletion_cost::{self, PodCosts};
use pleach_server::service::provision::Provisioning;
use pleach_server::service::scaled_pools::ScaledPools;
use pleach_server::service::state::StateDir;
use pleach_server::service::studies::{Retention, ServiceControl, StudyContext};
use pleach_storage::files::private;
use pleach_telemetry::Exposition;
use pleach_workflow::Registry;
use std::net::{SocketAddr, TcpListener};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tracing::{info, warn};

/// Threads for network I/O.
const NETWORK_THREADS: usize = 2;

/// Limit of large blocks that are live or kept for reuse. A manager fills large tables once, and recycled blocks would be
/// memory that it does not use.
const RECYCLED_BYTES: u64 = 64 << 20;

/// Grace period for workers to reattach: their maximum reconnect delay of 2 s, and a margin of 0.5 s.
const COMING_BACK: Duration = Duration::from_millis(2500);

/// Runs the command.
pub(in crate::command) fn execute(args: &ManagerProcessArgs, registry: &Registry) -> CommandResult {
    log::start(args.log_format)?;
    pleach_pages::set_limit_bytes(RECYCLED_BYTES);
    let mut interrupt = Interrupt::listen()?;
    let pools = args.pools.as_deref().map(Pools::read).transpose().map_err(CommandError::input)?;
    let namespace = namespace(args, pools.as_ref())?;
    // Workers create the folder, before or after the manager starts.
    // A bucket that cannot be reached now may be when a study starts.
    if let Some(folder) = args.cache.as_deref().filter(|folder| folder.exists()) {
        cache_walk::open_to_read(folder)?;
    }
    // A manager writes only into its state directory, which other users must not read.
    private::restrict_process();
    let state = StateDir::open(&args.state)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let credentials = super::credentials(&args.certs, Role::Manager)?;
    let token = match &args.token_file {
        Some(file) => ApiToken::read(file),
        None => ApiToken::read_or_make(&state.token()),
    };
    let token = token.map_err(CommandError::input)?;
    let inputs = Arc::new(InputStore::open(&state.inputs()).map_err(CommandError::input)?);
    let network = QuicRuntime::start(NETWORK_THREADS).map_err(CommandError::defect)?;
    let for_workers = worker_server(args, &credentials, &clock)?;
    let for_clients = client_server(args, &credentials, &clock, token, Arc::clone(&inputs))?;
    let exposition = exposition(args)?;
    record_expiry(&credentials);
    let stop = interrupt.take_stop_requested();
    let process = Process { args, registry, state, inputs, pools, namespace, clock, network, exposition };
    System::new().block_on(process.run(for_workers, for_clients, stop))
}

/// Configures the server that workers connect to.
fn worker_server(
    args: &ManagerProcessArgs,
    credentials: &Arc<Credentials>,
    clock: &Arc<dyn Clock>,
) -> CommandResult<ServerSetup> {
    Ok(ServerSetup {
        credentials: Arc::clone(credentials),
        hello: Hello::default(),
        version: Version::current(),
        roles: vec![Role::Worker],
        settings: Settings::default(),
        clock: Arc::clone(clock),
        board: RefusalReporter::new(Arc::clone(clock), Arc::new(|notice| warn!("{notice}"))),
        desk: desk(args)?,
    })
}

/// Binds the socket of `--http`. Returns a function that configures the server for clients, once the operations that
/// they call exist.
fn client_server(
    args: &ManagerProcessArgs,
    credentials: &Credentials,
    clock: &Arc<dyn Clock>,
    token: ApiToken,
    inputs: Arc<InputStore>,
) -> CommandResult<impl FnOnce(Arc<ServiceControl>) -> http::Setup + use<>> {
    let tls = https::server(credentials, clock).map_err(CommandError::input)?;
    // Bound before the studies are opened: a taken address ends the command first.
    let listener = TcpListener::bind(args.http)
        .map_err(|error| CommandError::Input(format!("--http {}: {error}", args.http)))?;
    let limits = Limits::default();
    Ok(move |control: Arc<ServiceControl>| http::Setup { listener, tls, control, token, inputs, limits })
}

/// Installs the metrics of the process, before any code records one. `--no-metrics` discards them.
fn exposition(args: &ManagerProcessArgs) -> CommandResult<Exposition> {
    let (role, version) = (pleach_telemetry::ProcessRole::Manager, env!("CARGO_PKG_VERSION"));
    let exposition = match args.no_metrics {
        true => Exposition::detached(role),
        false => Exposition::install(role, version),
    };
    exposition.map_err(CommandError::defect)
}

/// Process around the manager actor.
struct Process<'a> {
    args: &'a ManagerProcessArgs,
    registry: &'a Registry,
    state: StateDir,
    inputs: Arc<InputStore>,
    pools: Option<Pools>,
    namespace: Option<Namespace>,
    clock: Arc<dyn Clock>,
    network: QuicRuntime,
    exposition: Exposition,
}

impl Process<'_> {
    /// Starts the manager with the studies of its state directory, and serves workers and clients until the process is
    /// asked to stop.
    async fn run(
        self,
        for_workers: ServerSetup,
        for_clients: impl FnOnce(Arc<ServiceControl>) -> http::Setup,
        stop: oneshot::Receiver<()>,
    ) -> CommandResult {
        let shared: Arc<OnceLock<Arc<StudyContext>>> = Arc::default();
        let hooks = self.hooks(&shared);
        let Self { args, registry, state, inputs, pools, namespace, network, exposition, .. } = self;
        // Start the actor only after the last operation that can fail. Dropping an actor that was never polled starts
        // it outside a runtime, which panics. Until then, messages wait in its context.
        let context = Context::<ManagerActor>::new();
        let manager = context.address();
        let (handle, cache) = (network.handle().clone(), args.cache.clone());
        let studies = StudyContext::open(
            state,
            inputs,
            manager.clone(),
            handle,
            pools.clone(),
            cache,
            registry.clone(),
        )?;
        let costs = namespace.as_ref().map(|namespace| PodCosts::new(namespace.clone(), &studies));
        spawn_background_tasks(args, &studies, costs.clone(), network.handle());
        // Grant no leases until workers have had time to reattach with theirs.
        if studies.has_unfinished() {
            manager.do_send(PauseGrants(COMING_BACK));
        }
        // No other code sets this cell.
        let _ = shared.set(Arc::clone(&studies));
        let (server, peers) =
            Server::listen(&network, args.listen, for_workers).map_err(CommandError::input)?;
        let provisioning = provisioning(args, &studies, pools.as_ref(), server.address())?;
        let scaled = match (&pools, &namespace, costs) {
            (Some(pools), Some(namespace), Some(costs)) => {
                ScaledPools::open(Arc::clone(&studies), pools, namespace, costs)
            }
            _ => None,
        };
        let for_clients = for_clients(Arc::new(ServiceControl(studies, Arc::new(exposition))));
        let http = for_clients.listener.local_addr().map_err(CommandError::defect)?;
        let served = http::serve(for_clients).map_err(CommandError::defect)?;
        publish::publish(&args.publish, server.address().port(), http.port())?;
        context.run(ManagerActor::for_service(hooks));
        info!("workers connect to {}, clients to https://{http}", server.address());
        let mut suppliers = Suppliers::default();
        if let Some(provisioning) = provisioning {
            suppliers.spawn(network.handle(), |end| provisioning.run(end));
        }
        if let Some(scaled) = scaled {
            suppliers.spawn(network.handle(), |end| scaled.run(end));
        }
        let mut peers = peers;
        pass_on_workers(&manager, &mut peers, stop).await;
        // Workers drain while the manager still serves them.
        let (_open, never) = oneshot::channel();
        tokio::select! {
            () = suppliers.end() => {}
            () = pass_on_workers(&manager, &mut peers, never) => {}
        }
        shared.get().into_iter().for_each(|studies| studies.stop());
        info!("the manager stops; its studies continue after its next start");
        // Before the actor ends: requests in progress still get its answers.
        served.stop();
        Ok(())
    }

    /// Returns the functions that the actor calls. They find no file before `shared` is set.
    fn hooks(&self, shared: &Arc<OnceLock<Arc<StudyContext>>>) -> ServiceHooks {
        let (files, checked) = (Arc::clone(shared), Arc::clone(shared));
        ServiceHooks {
            number: self.state.number(),
            epoch: self.state.starts(),
            find_file: Arc::new(move |digest| files.get().and_then(|shared| shared.find_file(digest))),
            check_file: Arc::new(move |digest, path, again| {
                checked.get().is_none_or(|shared| shared.check_file(digest, path, again))
            }),
            clock: Arc::clone(&self.clock),
            network: self.network.handle().clone(),
            by_data: self.args.placement == Placement::Locality,
        }
    }
}

/// Tasks that start and end workers, until they are asked to end.
#[derive(Default)]
struct Suppliers(Vec<(oneshot::Sender<()>, tokio::task::JoinHandle<()>)>);

impl Suppliers {
    fn spawn<T>(&mut self, runtime: &tokio::runtime::Handle, task: impl FnOnce(oneshot::Receiver<()>) -> T)
    where
        T: Future<Output = ()> + Send + 'static,
    {
        let (end, ended) = oneshot::channel();
        self.0.push((end, runtime.spawn(task(ended))));
    }

    /// Asks all tasks to end and waits for them.
    async fn end(self) {
        let (ends, tasks): (Vec<_>, Vec<_>) = self.0.into_iter().unzip();
        for end in ends {
            // The task may have ended with the manager actor.
            let _ = end.send(());
        }
        for task in tasks {
            // A panic has already ended the process.
            let _ = task.await;
        }
    }
}

/// Reads the service account if the cluster is needed: for deletion costs, or for pools that it scales.
fn namespace(args: &ManagerProcessArgs, pools: Option<&Pools>) -> CommandResult<Option<Namespace>> {
    let is_scaled = |pools: &Pools| {
        let drivers = pools.0.iter().filter_map(|pool| pool.driver.as_ref());
        drivers.into_iter().any(|driver| matches!(driver.kind, DriverKind::Kubernetes { .. }))
    };
    let reason = match pools.is_some_and(is_scaled) {
        true => "driver \"kubernetes\"",
        false if args.pod_deletion_cost => "--pod-deletion-cost",
        false => return Ok(None),
    };
    let namespace = Namespace::of_account(&args.service_account);
    namespace.map(Some).map_err(|error| CommandError::Input(format!("{reason}: {error}")))
}

/// Starts the tasks that run until the process ends: scaling, retention and, with pods of a cluster, their deletion costs.
fn spawn_background_tasks(
    args: &ManagerProcessArgs,
    studies: &Arc<StudyContext>,
    costs: Option<PodCosts>,
    network: &tokio::runtime::Handle,
) {
    network.spawn(Arc::clone(studies).run_scaler());
    let retention =
        Retention { days: args.keep_days.map(NonZeroU32::get), bytes: args.keep_size.map(MemorySize::bytes) };
    network.spawn(Arc::clone(studies).enforce_retention(retention));
    if let Some(costs) = costs {
        network.spawn(pod_deletion_cost::run(Arc::clone(studies), costs));
    }
}

/// Opens the provisioning of pools with a driver. `None` without one.
fn provisioning(
    args: &ManagerProcessArgs,
    studies: &Arc<StudyContext>,
    pools: Option<&Pools>,
    listen: SocketAddr,
) -> CommandResult<Option<Provisioning>> {
    let Some(pools) = pools else { return Ok(None) };
    let context = DriverContext {
        owner: studies.state.number(),
        state: std::path::absolute(&args.state).map_err(CommandError::defect)?,
        listen,
        host: memory_limit::host_name().unwrap_or_else(|| "localhost".to_owned()),
        authority: authority(args).map(Path::to_owned),
    };
    Provisioning::open(Arc::clone(studies), pools, &context).map_err(CommandError::input)
}

/// Passes workers that connect to the manager, until the process is asked to stop or the server has ended.
async fn pass_on_workers(
    manager: &Addr<ManagerActor>,
    peers: &mut mpsc::Receiver<Peer>,
    mut stop: oneshot::Receiver<()>,
) {
    loop {
        tokio::select! {
            peer = peers.recv() => match peer {
                Some(peer) => manager.do_send(connect(peer)),
                None => break,
            },
            _ = &mut stop => break,
        }
    }
}

/// Returns the folder with the authority's key. `None` without the key.
fn authority(args: &ManagerProcessArgs) -> Option<&Path> {
    let places = [args.certs.as_path(), args.certs.parent().unwrap_or(&args.certs)];
    places.into_iter().find(|folder| folder.join(CA_KEY_FILE).is_file())
}

/// Opens the service that issues certificates for tokens. `None` without the authority's key, which is in the folder of
/// certificates or in its parent, where `pleach certs issue` creates folders for nodes.
fn desk(args: &ManagerProcessArgs) -> CommandResult<Option<Arc<JoinService>>> {
    let Some(folder) = authority(args) else { return Ok(None) };
    let desk = JoinService::open(folder);
    let desk = desk.map_err(|error| CommandError::Input(format!("--certs {}: {error}", folder.display())))?;
    Ok(Some(Arc::new(desk)))
}

fn connect(peer: Peer) -> Connect {
    let Peer { identity, hello, address, link, incoming, regions, arrivals: _ } = peer;
    // The first tier is the worker's RAM. Saturates, because the sizes come from the peer.
    let below = hello.tiers.iter().skip(1).fold(0_u64, |sum, tier| sum.saturating_add(tier.bytes));
    let location = hello.location(address);
    let operations = hello.operations.into_iter().map(|operation| (operation.name, operation.version));
    Connect {
        link: Box::new(link),
        incoming,
        newcomer: PendingWorker {
            name: identity.name.to_string(),
            host: Some(address.ip()),
            location,
            facts: WorkerInfo {
                slots: hello.cores,
                memory_bytes: hello.memory_bytes,
                spill_bytes: below,
                operations: Some(operations.collect()),
                accelerators: hello.accelerator_slots,
                device_bytes: 0,
                host: Some(address.ip()),
            },
            regions: Some(regions),
            lease_end_seconds: hello.lease_end_seconds,
        },
    }
}
