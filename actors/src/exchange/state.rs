//! Shared state of an exchange: peers, transfers and their limits.
//!
//! Lock order: transfers, holders of a transfer, peers, state of a connection.

use super::ExchangeStats;
use super::directory::{DirectoryPort, Outbox};
use super::error::HolderError;
use super::fetch::Transfer;
use super::message::Message;
use super::peer::{self, PeerConnection};
use super::query::StoragePort;
use super::shared_memory::SharedMemoryFolder;
use crate::spill::SpillStore;
use crate::transport::LinkStats;
use crate::transport::hello::Hello;
use crate::transport::identity::Role;
use crate::transport::quic::{Connector, Peer, Server};
use crate::transport::refusal::{Cause, Refusal};
use crate::transport::settings::Settings;
use parking_lot::{Mutex, MutexGuard};
use pleach_dispatch::directory::NodeDigest;
use pleach_dispatch::storage::Links;
use pleach_dispatch::storage::broadcast::{Broadcasts, Continuation};
use pleach_regions::{DataRegion, Digest, RamTier, RegionKey};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};
use tokio::runtime::Handle;
use tokio::sync::mpsc::Receiver;
use tokio::sync::{Semaphore, oneshot, watch};

/// Maximum number of remembered digests. Above it, all are dropped. A digest takes 48 bytes and saves digesting a region
/// again for another worker.
const DIGESTS: usize = 16 << 10;

/// Number of fetched regions above which those out of use are forgotten.
const MAX_RECEIVED: usize = 1 << 10;

/// An unreachable holder is tried last for 5 s.
const AVOIDED: Duration = Duration::from_secs(5);

/// Connected peers and failed attempts.
#[derive(Debug, Default)]
struct Neighbors {
    all: Vec<Arc<PeerConnection>>,
    /// Peers by listening address.
    by_address: HashMap<SocketAddr, Arc<PeerConnection>>,
    /// Locks that let one task open a connection while the others wait.
    opening: HashMap<SocketAddr, Arc<tokio::sync::Mutex<()>>>,
    /// Totals of ended connections.
    carried: LinkStats,
    /// Time and cause of the last failed attempt.
    failed: HashMap<SocketAddr, (Instant, HolderError)>,
}

/// Shared state of an exchange.
#[derive(Debug)]
pub(super) struct ExchangeState {
    pub(super) handle: Handle,
    pub(super) address: SocketAddr,
    pub(super) settings: Settings,
    pub(super) ram: Arc<RamTier>,
    pub(super) spill: Option<Arc<SpillStore>>,
    pub(super) folder: Option<Arc<SharedMemoryFolder>>,
    pub(super) hello: Hello,
    pub(super) server: Server,
    pub(super) connector: Connector,
    pub(super) fetching: Semaphore,
    pub(super) sending: Semaphore,
    pub(super) sending_units: u64,
    /// The result directory of this worker, if it has one.
    pub(super) directory: OnceLock<DirectoryPort>,
    /// The storage of this worker, if it answers queries of peers.
    pub(super) storage: OnceLock<StoragePort>,
    /// Messages for peers whose connection is being opened.
    pub(super) outbox: Outbox,
    /// Each running task holds a receiver.
    pub(super) working: watch::Sender<()>,
    pub(super) now: ExchangeSnapshot,
}

/// Peers, transfers, digests and statistics, each with its own lock.
#[derive(Debug, Default)]
pub(super) struct ExchangeSnapshot {
    neighbors: Mutex<Neighbors>,
    transfers: Mutex<HashMap<RegionKey, Transfer>>,
    digests: Mutex<HashMap<RegionKey, Digest>>,
    counts: Mutex<ExchangeStats>,
    links: Mutex<Links>,
    /// Regions that this worker has fetched, as long as it uses them. Its tier or its result cache has them later.
    received: Mutex<HashMap<RegionKey, Weak<DataRegion>>>,
    /// Transfers of regions that several peers request at once. A waiting peer gets the address to ask, or its turn.
    broadcasts: Mutex<Broadcasts<RegionKey, oneshot::Sender<Turn>>>,
}

/// Continuation of a request that has waited for other transfers of the region.
#[derive(Clone, Copy, Debug)]
pub(super) enum Turn {
    /// Send the region.
    Send,
    /// The worker at this address sends it.
    Redirect(SocketAddr),
}

impl ExchangeState {
    pub(super) fn transfers(&self) -> MutexGuard<'_, HashMap<RegionKey, Transfer>> {
        self.now.transfers.lock()
    }

    pub(super) fn counts(&self) -> ExchangeStats {
        *self.now.counts.lock()
    }

    pub(super) fn links(&self) -> MutexGuard<'_, Links> {
        self.now.links.lock()
    }

    pub(super) fn count(&self, add: impl FnOnce(&mut ExchangeStats)) {
        add(&mut self.now.counts.lock());
    }

    /// Returns the digest of a region sent before. It stays valid, because a key identifies one content.
    pub(super) fn digest(&self, key: RegionKey) -> Option<Digest> {
        self.now.digests.lock().get(&key).copied()
    }

    pub(super) fn store_digest(&self, key: RegionKey, digest: Digest) {
        let mut digests = self.now.digests.lock();
        if digests.len() >= DIGESTS {
            // Digests can be computed again, so no order of use is tracked.
            digests.clear();
        }
        digests.insert(key, digest);
    }

    /// Offers a fetched region to other workers.
    pub(super) fn add_received(&self, key: RegionKey, region: &Arc<DataRegion>) {
        let mut received = self.now.received.lock();
        if received.len() >= MAX_RECEIVED {
            received.retain(|_, region| region.strong_count() > 0);
        }
        received.insert(key, Arc::downgrade(region));
    }

    /// Returns a fetched region that is in use.
    pub(super) fn received(&self, key: RegionKey) -> Option<Arc<DataRegion>> {
        self.now.received.lock().get(&key).and_then(Weak::upgrade)
    }

    /// Waits for the turn of a request, while the region is sent to others.
    pub(super) async fn turn(&self, key: RegionKey) -> Turn {
        let (turn, waits) = oneshot::channel();
        // A separate statement, so that the lock is released before the wait.
        let begins = self.now.broadcasts.lock().begin(key, turn).is_some();
        // The sender is dropped only with the exchange.
        if begins { Turn::Send } else { waits.await.unwrap_or(Turn::Send) }
    }

    /// Ends the transfer of a region to the peer that listens at `to`. `None` if the peer cannot send it on.
    pub(super) fn end_turn(&self, key: RegionKey, to: Option<SocketAddr>) {
        let mut is_received = to.is_some();
        loop {
            let Continuation { send, redirect } = self.now.broadcasts.lock().end(key, is_received);
            for turn in redirect {
                // The request may have ended with its connection.
                let _ = to.map(|to| turn.send(Turn::Redirect(to)));
            }
            let Some(turn) = send else { return };
            if turn.send(Turn::Send).is_ok() {
                return;
            }
            is_received = false;
        }
    }

    /// Returns the listening address of a peer, if known.
    pub(super) fn listening_address(&self, peer: &Arc<PeerConnection>) -> Option<SocketAddr> {
        let neighbors = self.now.neighbors.lock();
        neighbors.by_address.iter().find(|(_, known)| Arc::ptr_eq(known, peer)).map(|(address, _)| *address)
    }

    /// Returns whether a recent connection to a holder has failed.
    pub(super) fn has_failed(&self, holder: SocketAddr) -> bool {
        let neighbors = self.now.neighbors.lock();
        neighbors.failed.get(&canonical(holder)).is_some_and(|(when, _)| when.elapsed() < AVOIDED)
    }

    /// Returns the connection to the peer that listens at `address`, if there is one.
    pub(super) fn connected(&self, address: SocketAddr) -> Option<Arc<PeerConnection>> {
        self.now.neighbors.lock().by_address.get(&canonical(address)).cloned()
    }

    /// Returns the peer that listens at `address`, and whether the connection is new.
    pub(super) async fn neighbor(
        self: &Arc<Self>,
        address: SocketAddr,
    ) -> Result<(Arc<PeerConnection>, bool), HolderError> {
        let (address, since) = (canonical(address), Instant::now());
        // The short lock only finds the entry. The async lock below is held during network round trips.
        let opening = {
            let mut neighbors = self.now.neighbors.lock();
            if let Some(neighbor) = neighbors.by_address.get(&address) {
                return Ok((Arc::clone(neighbor), false));
            }
            Arc::clone(neighbors.opening.entry(address).or_default())
        };
        let _only = opening.lock().await;
        {
            let mut neighbors = self.now.neighbors.lock();
            if let Some(neighbor) = neighbors.by_address.get(&address) {
                // Another task has just opened it, so it counts as new, and a failure on it is not retried.
                return Ok((Arc::clone(neighbor), true));
            }
            // The attempt failed in another task while this one waited.
            if let Some((when, failure)) = neighbors.failed.get(&address)
                && *when > since
            {
                return Err(failure.clone());
            }
            // Before the handshake: a connection beyond the limit must not be opened at all.
            if !neighbors.make_room(true, self.settings.neighbors) {
                neighbors.opening.remove(&address);
                return Err(HolderError::Busy);
            }
        }
        let connected = self.connector.connect(address, Role::Worker, self.hello.clone()).await;
        let mut neighbors = self.now.neighbors.lock();
        // Tasks that wait have the lock itself, so the entry can be removed in either case.
        neighbors.opening.remove(&address);
        match connected {
            Ok(peer) => {
                neighbors.failed.remove(&address);
                let neighbor = self.admit(&mut neighbors, peer, true);
                neighbors.by_address.insert(address, Arc::clone(&neighbor));
                Ok((neighbor, true))
            }
            Err(refusal) => {
                // Expired failures are removed here, so that the map does not grow with workers that have left.
                neighbors.failed.retain(|_, (when, _)| when.elapsed() < AVOIDED);
                neighbors.failed.insert(address, (Instant::now(), HolderError::Refused(refusal.clone())));
                Err(HolderError::Refused(refusal))
            }
        }
    }

    fn admit(
        self: &Arc<Self>,
        neighbors: &mut Neighbors,
        Peer { identity, address, link, incoming, regions, arrivals, .. }: Peer,
        is_ours: bool,
    ) -> Arc<PeerConnection> {
        let node = NodeDigest::of(identity.name.as_str());
        let neighbor = Arc::new(PeerConnection::new(address, node, is_ours, link, regions));
        neighbors.all.push(Arc::clone(&neighbor));
        // Sent before any request.
        neighbor.say(&Message::Listening {
            port: self.address.port(),
            place: self.folder.as_ref().map(|folder| folder.id().clone()),
        });
        self.spawn(peer::listen(Arc::clone(self), Arc::clone(&neighbor), incoming, arrivals));
        neighbor
    }

    /// Accepts incoming peers.
    pub(super) async fn let_in(self: Arc<Self>, mut peers: Receiver<Peer>) {
        while let Some(peer) = peers.recv().await {
            let mut neighbors = self.now.neighbors.lock();
            if neighbors.make_room(false, self.settings.neighbors) {
                self.admit(&mut neighbors, peer, false);
            } else {
                let most = self.settings.neighbors;
                let text = format!("{most} workers are connected and busy, the maximum");
                peer.link.end(&Refusal::new(Cause::Busy, text));
            }
        }
    }

    /// Registers the listening port of an incoming peer, so that requests to it use the same connection.
    pub(super) fn is_at(&self, neighbor: &Arc<PeerConnection>, port: u16) {
        if neighbor.is_ours {
            return;
        }
        let address = canonical(SocketAddr::new(neighbor.address.ip(), port));
        let mut neighbors = self.now.neighbors.lock();
        // An existing connection stays: if both sides connect at once, each continues with its own.
        neighbors.by_address.entry(address).or_insert_with(|| Arc::clone(neighbor));
    }

    /// Removes a disconnected peer.
    pub(super) fn remove_peer(&self, neighbor: &Arc<PeerConnection>) {
        self.now.neighbors.lock().remove(neighbor);
    }

    pub(super) fn neighbors(&self) -> usize {
        self.now.neighbors.lock().all.len()
    }

    pub(super) fn link_figures(&self) -> LinkStats {
        let neighbors = self.now.neighbors.lock();
        let now = neighbors.all.iter().map(|neighbor| neighbor.link_figures());
        now.fold(neighbors.carried, LinkStats::and)
    }

    /// Ends all connections. Running transfers fail.
    pub(super) fn end(&self) {
        // Operators get no notice, because the manager detects that a worker leaves.
        let refusal = Refusal::new(Cause::Ended, "the worker is shutting down");
        self.server.end(&refusal);
        self.connector.end(&refusal);
    }

    /// Runs a task on the network's threads.
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        // The receiver is dropped with the task, also if the runtime cancels it, so `finished` cannot hang.
        let is_working = self.working.subscribe();
        self.handle.spawn(async move {
            work.await;
            drop(is_working);
        });
    }

    /// Runs a long task on a blocking thread.
    pub(super) fn spawn_blocking(&self, work: impl FnOnce() + Send + 'static) {
        let is_working = self.working.subscribe();
        self.handle.spawn_blocking(move || {
            work();
            drop(is_working);
        });
    }

    /// Waits until all tasks have ended, after [`end`](Self::end).
    pub(super) async fn finished(&self) {
        self.working.closed().await;
    }
}

impl Neighbors {
    fn remove(&mut self, neighbor: &Arc<PeerConnection>) {
        let before = self.all.len();
        self.all.retain(|other| !Arc::ptr_eq(other, neighbor));
        if self.all.len() < before {
            // Only the counts remain, because the round trip is a maximum over open connections.
            let gone = LinkStats { round_trip: Duration::ZERO, ..neighbor.link_figures() };
            self.carried = self.carried.and(gone);
        }
        self.by_address.retain(|_, other| !Arc::ptr_eq(other, neighbor));
    }

    /// Makes space for one more connection, counted separately for each direction: closes the longest unused one if the
    /// limit is reached. Returns `false` if all are in use.
    fn make_room(&mut self, is_ours: bool, most: usize) -> bool {
        let same: Vec<_> = self.all.iter().filter(|other| other.is_ours == is_ours).cloned().collect();
        // Each direction has its own limit, so that incoming peers cannot keep this worker from connecting.
        if same.len() < most.max(1) {
            return true;
        }
        let unused = same.iter().filter_map(|other| Some((other.unused()?, other)));
        let Some((_, longest)) = unused.max_by_key(|(unused, _)| *unused) else { return false };
        // Checked again under the connection's lock: a request may have started meanwhile.
        let has_ended = longest.end_if_unused(Duration::ZERO);
        if has_ended {
            self.remove(longest);
        }
        has_ended
    }
}

/// Normalizes an address.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}
