//! `pleach manager`: runs the process that accepts submissions and workers.

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
use pleach_planner::memory_size::MemorySize;
use pleach_server::http::{self, Limits};
use pleach_server::input_store::InputStore;
use pleach_server::kubernetes::Pods;
use pleach_server::pools::Pools;
use pleach_server::service::metrics::record_expiry;
use pleach_server::service::pod_deletion_cost;
use pleach_server::service::state::StateDir;
use pleach_server::service::studies::{Retention, ServiceControl, StudyContext};
use pleach_storage::files::private;
use pleach_telemetry::Exposition;
use std::net::TcpListener;
use std::num::NonZeroU32;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tracing::{info, warn};

/// Threads for network I/O.
const NETWORK_THREADS: usize = 2;

/// Grace period for workers to reattach: their maximum reconnect delay of 2 s, and a margin of 0.5 s.
const COMING_BACK: Duration = Duration::from_millis(2500);

/// Runs the command.
pub(in crate::command) fn execute(args: &ManagerProcessArgs) -> CommandResult {
    log::start(args.log_format)?;
    let mut interrupt = Interrupt::listen()?;
    let pools = args.pools.as_deref().map(Pools::read).transpose().map_err(CommandError::input)?;
    let pods = args.pod_deletion_cost.then(|| Pods::of_account(&args.service_account)).transpose();
    let pods = pods.map_err(|error| CommandError::Input(format!("--pod-deletion-cost: {error}")))?;
    // A manager writes only into its state directory, which other users must not read.
    private::restrict_process();
    let state = StateDir::open(&args.state)?;
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let certs = |error| CommandError::Input(format!("--certs {}: {error}", args.certs.display()));
    let credentials = Arc::new(Credentials::load(&args.certs).map_err(certs)?);
    if credentials.identity().role != Role::Manager {
        let found = credentials.identity();
        return Err(CommandError::Input(format!(
            "--certs {}: the certificate belongs to {found}; a manager certificate is allowed (pleach certs issue --role manager)",
            args.certs.display()
        )));
    }
    let token = match &args.token_file {
        Some(file) => ApiToken::read(file),
        None => ApiToken::read_or_make(&state.token()),
    };
    let token = token.map_err(CommandError::input)?;
    let store = Arc::new(InputStore::open(&state.inputs()).map_err(CommandError::input)?);
    let network = QuicRuntime::start(NETWORK_THREADS).map_err(CommandError::defect)?;
    let board = RefusalReporter::new(Arc::clone(&clock), Arc::new(|notice| warn!("{notice}")));
    let settings = Settings::default();
    let desk = desk(args)?;
    let setup = ServerSetup {
        credentials: Arc::clone(&credentials),
        hello: Hello::default(),
        version: Version::current(),
        roles: vec![Role::Worker],
        settings,
        clock: Arc::clone(&clock),
        board,
        desk,
    };
    let tls = https::server(&credentials, &clock).map_err(CommandError::input)?;
    let listener = TcpListener::bind(args.http)
        .map_err(|error| CommandError::Input(format!("--http {}: {error}", args.http)))?;
    // Install metrics before any code records one.
    let (role, version) = (pleach_telemetry::ProcessRole::Manager, env!("CARGO_PKG_VERSION"));
    let exposition = match args.no_metrics {
        true => Exposition::detached(role),
        false => Exposition::install(role, version),
    };
    let exposition = exposition.map_err(CommandError::defect)?;
    record_expiry(&credentials);
    let asked_to_stop = interrupt.take_stop_requested();
    System::new().block_on(async move {
        let shared: Arc<OnceLock<Arc<StudyContext>>> = Arc::default();
        let (files, checked) = (Arc::clone(&shared), Arc::clone(&shared));
        let service = ServiceHooks {
            number: state.number(),
            epoch: state.starts(),
            find_file: Arc::new(move |digest| files.get().and_then(|shared| shared.find_file(digest))),
            check_file: Arc::new(move |digest, path, again| {
                checked.get().is_none_or(|shared| shared.check_file(digest, path, again))
            }),
            clock: Arc::clone(&clock),
            network: network.handle().clone(),
            by_data: args.placement == Placement::Locality,
        };
        // Start the actor only after the last operation that can fail. Dropping an actor that was never polled starts
        // it outside a runtime, which panics. Until then, messages wait in its context.
        let context = Context::<ManagerActor>::new();
        let manager = context.address();
        let opened =
            StudyContext::open(state, Arc::clone(&store), manager.clone(), network.handle().clone(), pools)?;
        network.handle().spawn(Arc::clone(&opened).run_scaler());
        let retention = Retention {
            days: args.keep_days.map(NonZeroU32::get),
            bytes: args.keep_size.map(MemorySize::bytes),
        };
        network.handle().spawn(Arc::clone(&opened).enforce_retention(retention));
        if let Some(pods) = pods {
            network.handle().spawn(pod_deletion_cost::run(Arc::clone(&opened), pods));
        }
        // Grant no leases until workers have had time to reattach with theirs.
        if opened.has_unfinished() {
            manager.do_send(PauseGrants(COMING_BACK));
        }
        // No other code sets this cell.
        let _ = shared.set(Arc::clone(&opened));
        let (server, mut peers) =
            Server::listen(&network, args.listen, setup).map_err(CommandError::input)?;
        let http = listener.local_addr().map_err(CommandError::defect)?;
        let control = Arc::new(ServiceControl(opened, Arc::new(exposition)));
        let served = http::serve(http::Setup {
            listener,
            tls,
            control,
            token,
            inputs: store,
            limits: Limits::default(),
        });
        let served = served.map_err(CommandError::defect)?;
        context.run(ManagerActor::for_service(service));
        info!("workers connect to {}, clients to https://{http}", server.address());
        let mut asked_to_stop = asked_to_stop;
        loop {
            tokio::select! {
                peer = peers.recv() => match peer {
                    Some(peer) => manager.do_send(connect(peer)),
                    None => break,
                },
                _ = &mut asked_to_stop => break,
            }
        }
        info!("the manager stops; its studies continue after its next start");
        served.stop();
        Ok(())
    })
}

/// Opens the service that issues certificates for tokens. `None` without the authority's key, which is in the folder of
/// certificates or in its parent, where `pleach certs issue` creates folders for nodes.
fn desk(args: &ManagerProcessArgs) -> CommandResult<Option<Arc<JoinService>>> {
    let places = [args.certs.as_path(), args.certs.parent().unwrap_or(&args.certs)];
    let Some(folder) = places.into_iter().find(|folder| folder.join(CA_KEY_FILE).is_file()) else {
        return Ok(None);
    };
    let desk = JoinService::open(folder);
    let desk = desk.map_err(|error| CommandError::Input(format!("--certs {}: {error}", folder.display())))?;
    Ok(Some(Arc::new(desk)))
}

fn connect(peer: Peer) -> Connect {
    let Peer { identity, hello, address, link, incoming, regions, arrivals: _ } = peer;
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
                host: Some(address.ip()),
            },
            regions: Some(regions),
            lease_end_seconds: hello.lease_end_seconds,
        },
    }
}
