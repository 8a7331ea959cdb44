//! Data regions between workers: each offers what it holds, and fetches from others what it lacks.
//!
//! An [`Exchange`] listens for other workers and connects to them when it needs something. Which worker holds what is
//! said by the manager; a [`fetch`](Exchange::fetch) is given the addresses of holders and tries one after the other.
//! Between processes of one machine the bytes pass through shared memory, and through QUIC everywhere else and whenever
//! that fails. Fetched regions are handed to whoever asked: nothing is inserted into the tier, and nothing is decided
//! here about what is kept.
//!
//! All work is done on the network's threads, or beside them where it takes long. Everything is bounded: connections,
//! requests, bytes under way, and the time for which a holder may be silent.

mod error;
mod fetch;
mod file;
mod message;
mod peer;
mod send;
mod shared_memory;
mod state;

pub use error::{FailedHolder, FetchError, HolderError};
pub use file::{SendFileError, file_key, send_file};

use crate::spill::SpillStore;
use crate::transport::LinkStats;
use crate::transport::certs::Credentials;
use crate::transport::clock::Clock;
use crate::transport::hello::{Hello, Version};
use crate::transport::identity::Role;
use crate::transport::quic::{Connector, NetworkError, QuicRuntime, RefusalReporter, Server, ServerSetup};
use crate::transport::settings::Settings;
use pleach_regions::{DataRegion, RamTier, RegionKey};
use send::UNIT_BYTES;
use shared_memory::SharedMemoryFolder;
use state::{ExchangeSnapshot, ExchangeState};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{Semaphore, watch};

/// What a worker needs to exchange regions.
pub struct ExchangeSetup {
    /// Who this worker is.
    pub credentials: Arc<Credentials>,
    /// What it says of itself.
    pub hello: Hello,
    /// What it speaks.
    pub version: Version,
    /// What peers may take.
    pub settings: Settings,
    /// For certificates.
    pub clock: Arc<dyn Clock>,
    /// Tells the operator.
    pub board: RefusalReporter,
    /// What it offers: whatever is in here.
    pub ram: Arc<RamTier>,
    /// And whatever is below it.
    pub below: Option<Arc<SpillStore>>,
    /// A folder in memory that processes of this machine share, such as `/dev/shm`. Without one, or where it is full,
    /// regions cross the network's loopback.
    pub shared: Option<PathBuf>,
}

impl fmt::Debug for ExchangeSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExchangeSetup").field("credentials", &self.credentials).finish_non_exhaustive()
    }
}

/// What has been exchanged since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeStats {
    /// Regions fetched from others.
    pub fetched: u64,
    /// Of these, those that came through shared memory.
    pub fetched_shared: u64,
    /// Bytes of the regions fetched, as they are held.
    pub fetched_bytes: u64,
    /// Regions sent to others.
    pub sent: u64,
    /// Of these, those that went through shared memory.
    pub sent_shared: u64,
    /// Bytes of the regions sent, as they are held.
    pub sent_bytes: u64,
}

/// See the module. Clones are the same exchange; when the last one is dropped, it ends.
#[derive(Clone, Debug)]
pub struct Exchange {
    end: Arc<End>,
}

/// Ends the exchange with its last clone.
#[derive(Debug)]
struct End(Arc<ExchangeState>);

impl Drop for End {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl Exchange {
    /// Listens at `listen`, for workers and the manager.
    ///
    /// # Errors
    /// [`NetworkError`]. A shared folder that cannot be used is no error: regions go over the network.
    pub fn start(
        network: &QuicRuntime,
        listen: SocketAddr,
        setup: ExchangeSetup,
    ) -> Result<Self, NetworkError> {
        let ExchangeSetup { credentials, hello, version, mut settings, clock, board, ram, below, shared } =
            setup;
        settings.socket_bytes.get_or_insert(Settings::REGIONS_SOCKET_BYTES);
        // Few messages, and somebody waits for each.
        settings.between_frames = std::time::Duration::ZERO;
        let connector = Connector::new(
            network,
            listen,
            Arc::clone(&credentials),
            version.clone(),
            settings.clone(),
            &clock,
            board.clone(),
        )?;
        let server = ServerSetup {
            credentials,
            hello: hello.clone(),
            version,
            roles: vec![Role::Worker, Role::Manager],
            settings: settings.clone(),
            clock,
            board,
            desk: None,
        };
        let (server, peers) = Server::listen(network, listen, server)?;
        let sending_units = (settings.sending_bytes / UNIT_BYTES).clamp(1, u64::from(u32::MAX));
        let folder = shared.and_then(|path| SharedMemoryFolder::open(&path, settings.shared_bytes).ok());
        let hub = Arc::new(ExchangeState {
            handle: network.handle().clone(),
            address: server.address(),
            ram,
            below,
            folder: folder.map(Arc::new),
            hello,
            server,
            connector,
            fetching: Semaphore::new(settings.fetches.max(1)),
            sending: Semaphore::new(sending_units as usize),
            sending_units,
            settings,
            working: watch::Sender::new(()),
            now: ExchangeSnapshot::default(),
        });
        hub.spawn(Arc::clone(&hub).let_in(peers));
        Ok(Self { end: Arc::new(End(hub)) })
    }

    /// Where it listens; the port is the one that it got. The manager tells other workers.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.hub().address
    }

    /// Whether regions can pass through shared memory.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.hub().folder.is_some()
    }

    /// Fetches a region from the first of these holders that gives it, in an order that differs by region and by
    /// worker, so that holders share the work. It may be called, and awaited, on any runtime.
    ///
    /// Whoever fetches a key that is being fetched waits for the same transfer, which also tries the holders that they
    /// know of. A transfer that nobody waits for any more is given up. The region is not inserted into the tier; one that
    /// is there already is not fetched again.
    ///
    /// # Errors
    /// [`FetchError`], which says for each holder why it did not give it.
    pub fn fetch(
        &self,
        key: RegionKey,
        from: &[SocketAddr],
    ) -> impl Future<Output = Result<Arc<DataRegion>, FetchError>> + Send + 'static + use<> {
        let hub = self.hub();
        let begun = match hub.ram.get(key) {
            Some(region) => Ok(region),
            None => Err((fetch::join(hub, key, from), from.to_vec())),
        };
        async move {
            match begun {
                Ok(region) => Ok(region),
                Err((fetched, from)) => fetch::wait(key, from, fetched).await,
            }
        }
    }

    /// Workers that are connected, whoever has opened the connection.
    #[must_use]
    pub fn peers(&self) -> usize {
        self.hub().neighbors()
    }

    /// What the connections to other workers have carried, those included that have ended.
    #[must_use]
    pub fn link_figures(&self) -> LinkStats {
        self.hub().link_figures()
    }

    /// What has been exchanged until now.
    #[must_use]
    pub fn counts(&self) -> ExchangeStats {
        self.hub().counts()
    }

    /// Ends it: transfers fail, the others are told, and nothing is left in the shared folder when this returns.
    pub async fn close(self) {
        let hub = Arc::clone(self.hub());
        hub.end();
        hub.server.idle().await;
        hub.connector.idle().await;
        drop(self);
        hub.is_over().await;
    }

    fn hub(&self) -> &Arc<ExchangeState> {
        &self.end.0
    }
}
