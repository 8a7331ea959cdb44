//! Data regions between workers: each worker offers the regions it holds and fetches those it lacks.
//!
//! An [`Exchange`] listens for other workers and connects to them on demand. The manager tracks the holders of each region.
//! A [`fetch`](Exchange::fetch) gets their addresses and tries one after the other. Between processes of one machine the
//! bytes pass through shared memory. They pass through QUIC between machines, and whenever shared memory fails. A fetched
//! region goes to the caller: the exchange neither inserts it into the tier nor decides about its retention.
//!
//! All work runs on the network's threads, or on blocking threads where it takes long. Limits bound connections, requests,
//! bytes in transfer, and the silence of a holder.

mod directory;
mod error;
mod fetch;
mod file;
mod message;
mod peer;
mod query;
mod send;
mod shared_memory;
mod state;

pub use directory::{DirectoryEvent, ResultSource};
pub use error::{FailedHolder, FetchError, HolderError};
pub use file::{SendFileError, file_key, send_file};
pub use query::QueryRegion;

use crate::spill::SpillStore;
use crate::transport::LinkStats;
use crate::transport::certs::Credentials;
use crate::transport::clock::Clock;
use crate::transport::hello::{Hello, Version};
use crate::transport::identity::Role;
use crate::transport::quic::{Connector, NetworkError, QuicRuntime, RefusalReporter, Server, ServerSetup};
use crate::transport::settings::Settings;
use directory::Outbox;
use parking_lot::MutexGuard;
use pleach_dispatch::storage::Links;
use pleach_regions::{DataRegion, Digest, RamTier, RegionKey};
use send::UNIT_BYTES;
use shared_memory::SharedMemoryFolder;
use state::{ExchangeSnapshot, ExchangeState};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// Configuration of a worker's exchange.
pub struct ExchangeSetup {
    /// Credentials of this worker.
    pub credentials: Arc<Credentials>,
    /// Hello message of this worker.
    pub hello: Hello,
    /// Protocol version of this worker.
    pub version: Version,
    /// Limits for peers.
    pub settings: Settings,
    /// Clock for certificates.
    pub clock: Arc<dyn Clock>,
    /// Reports refusals to the operator.
    pub board: RefusalReporter,
    /// Memory tier with the offered regions.
    pub ram: Arc<RamTier>,
    /// Spill tiers with further offered regions.
    pub spill: Option<Arc<SpillStore>>,
    /// A folder in memory shared by the processes of this machine, such as `/dev/shm`. Without one, or if it is full,
    /// regions cross the network's loopback.
    pub shared: Option<PathBuf>,
}

impl fmt::Debug for ExchangeSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExchangeSetup").field("credentials", &self.credentials).finish_non_exhaustive()
    }
}

/// Transfer statistics since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExchangeStats {
    /// Regions fetched from peers.
    pub fetched: u64,
    /// Fetched regions that came through shared memory.
    pub fetched_shared: u64,
    /// Bytes of fetched regions in memory.
    pub fetched_bytes: u64,
    /// Tasks run again because fetching their outputs takes longer.
    pub recomputed: u64,
    /// Regions sent to peers.
    pub sent: u64,
    /// Sent regions that went through shared memory.
    pub sent_shared: u64,
    /// Bytes of sent regions in memory.
    pub sent_bytes: u64,
}

/// Handle of a worker's exchange. Clones refer to the same exchange, which ends with the last one.
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
    /// Starts an exchange at `listen`, for workers and the manager.
    ///
    /// # Errors
    /// Returns [`NetworkError`]. An unusable shared folder is no error: regions cross the network.
    pub fn start(
        network: &QuicRuntime,
        listen: SocketAddr,
        setup: ExchangeSetup,
    ) -> Result<Self, NetworkError> {
        let ExchangeSetup { credentials, hello, version, mut settings, clock, board, ram, spill, shared } =
            setup;
        // Only these connections carry regions between workers, which overrun the default buffer.
        settings.socket_bytes.get_or_insert(Settings::REGIONS_SOCKET_BYTES);
        // Messages are few, and a task waits for each.
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
            spill,
            folder: folder.map(Arc::new),
            hello,
            server,
            connector,
            fetching: Semaphore::new(settings.fetches.max(1)),
            sending: Semaphore::new(sending_units as usize),
            sending_units,
            directory: OnceLock::new(),
            storage: OnceLock::new(),
            outbox: Outbox::default(),
            settings,
            working: watch::Sender::new(()),
            now: ExchangeSnapshot::default(),
        });
        hub.spawn(Arc::clone(&hub).let_in(peers));
        Ok(Self { end: Arc::new(End(hub)) })
    }

    /// Returns the listening address with its actual port. The manager sends it to other workers.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.hub().address
    }

    /// Returns whether regions can pass through shared memory.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.hub().folder.is_some()
    }

    /// Fetches a region from the first of these holders that sends it. The order of holders differs by region and by worker,
    /// so that holders share the load. The caller may use any runtime.
    ///
    /// Concurrent fetches of a key share one transfer, which tries the holders of all of them. A transfer without waiting
    /// callers is canceled. The region is not inserted into the tier. A region in the tier is not fetched again.
    ///
    /// # Errors
    /// Returns [`FetchError`] with the failure of each holder.
    pub fn fetch(
        &self,
        key: RegionKey,
        from: &[SocketAddr],
    ) -> impl Future<Output = Result<Arc<DataRegion>, FetchError>> + Send + 'static + use<> {
        let fetched = self.fetch_digested(key, from);
        async move { fetched.await.map(|(region, _)| region) }
    }

    /// Fetches a region like [`fetch`](Self::fetch), with the verified digest of its content. `None` for a region that was
    /// in the tier already.
    ///
    /// # Errors
    /// Returns [`FetchError`] with the failure of each holder.
    pub fn fetch_digested(
        &self,
        key: RegionKey,
        from: &[SocketAddr],
    ) -> impl Future<Output = Result<(Arc<DataRegion>, Option<Digest>), FetchError>> + Send + 'static + use<>
    {
        let hub = self.hub();
        // Joined outside of the future, which therefore neither borrows the exchange nor keeps it open.
        let begun = match hub.ram.get(key) {
            Some(region) => Ok(region),
            None => Err((fetch::join(hub, key, None, from), from.to_vec())),
        };
        async move {
            match begun {
                Ok(region) => Ok((region, None)),
                Err((fetched, from)) => {
                    fetch::wait(key, from, fetched).await.map(|(region, digest)| (region, Some(digest)))
                }
            }
        }
    }

    /// Fetches a task result from one of its holders. A holder that sends other content than `digest` counts as failed.
    ///
    /// # Errors
    /// Returns [`FetchError`] with the failure of each holder.
    pub fn fetch_result(
        &self,
        key: RegionKey,
        digest: Digest,
        from: &[SocketAddr],
    ) -> impl Future<Output = Result<Arc<DataRegion>, FetchError>> + Send + 'static + use<> {
        let (fetched, from) = (fetch::join(self.hub(), key, Some(digest), from), from.to_vec());
        async move { fetch::wait(key, from, fetched).await.map(|(region, _)| region) }
    }

    /// Returns the measured links to other workers.
    pub(crate) fn links(&self) -> MutexGuard<'_, Links> {
        self.hub().links()
    }

    /// Records a transfer from another worker, as the exchange does with its own.
    pub fn observe_link(&self, from: SocketAddr, bytes: u64, time: Duration) {
        self.hub().links().observe(from, bytes, time);
    }

    /// Counts tasks that run again because fetching their outputs takes longer.
    pub(crate) fn count_recomputed(&self, tasks: u64) {
        self.hub().count(|counts| counts.recomputed += tasks);
    }

    /// Returns the number of connected workers, in either direction.
    #[must_use]
    pub fn peers(&self) -> usize {
        self.hub().neighbors()
    }

    /// Returns the totals of all connections to other workers, including ended ones.
    #[must_use]
    pub fn link_figures(&self) -> LinkStats {
        self.hub().link_figures()
    }

    /// Returns the transfer statistics so far.
    #[must_use]
    pub fn counts(&self) -> ExchangeStats {
        self.hub().counts()
    }

    /// Ends the exchange: transfers fail and peers are notified. Afterwards the shared folder contains no file of this
    /// process.
    pub async fn close(self) {
        // The clone outlives the handle, so that the files in shared memory are gone before the return.
        let hub = Arc::clone(self.hub());
        hub.end();
        hub.server.idle().await;
        hub.connector.idle().await;
        drop(self);
        hub.finished().await;
    }

    fn hub(&self) -> &Arc<ExchangeState> {
        &self.end.0
    }
}
