//! Spatial queries between workers: the holder of a region sends the found objects, not the region.

use super::Exchange;
use super::message::Message;
use super::peer::PeerConnection;
use super::state::ExchangeState;
use actix::WeakRecipient;
use parking_lot::Mutex;
use pleach_dispatch::message::RegionAnswer;
use pleach_regions::{RegionKey, SpatialQuery};
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Message to storage: queries a region here, or the peers if it is not here. `None` if no node holds the region.
#[derive(Debug, actix::Message)]
#[rtype(result = "Option<RegionAnswer>")]
pub struct QueryRegion {
    /// The region.
    pub key: RegionKey,
    /// The query.
    pub query: SpatialQuery,
    /// Addresses of workers that may hold the region.
    pub peers: Vec<SocketAddr>,
}

/// Answer of a peer, and the bytes of its message. No answer if the peer lacks the region.
pub(super) type PeerAnswer = (Option<RegionAnswer>, u64);

/// The storage of this worker, which answers the queries of peers.
pub(super) struct StoragePort(
    /// Weak, because storage holds the exchange, which ends with its last handle.
    WeakRecipient<QueryRegion>,
);

impl fmt::Debug for StoragePort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoragePort").finish_non_exhaustive()
    }
}

/// Queries of one connection that wait for their answers.
#[derive(Debug, Default)]
pub(super) struct PendingQueries(Mutex<Queries>);

#[derive(Debug, Default)]
struct Queries {
    /// Queries so far.
    begun: u64,
    has_ended: bool,
    waiting: HashMap<u64, oneshot::Sender<PeerAnswer>>,
}

impl PendingQueries {
    /// Begins a query. Returns its number and the receiver of the answer, `None` if the connection has ended.
    fn begin(&self) -> Option<(u64, oneshot::Receiver<PeerAnswer>)> {
        let mut queries = self.0.lock();
        if queries.has_ended {
            return None;
        }
        let (answer, answered) = oneshot::channel();
        queries.begun += 1;
        let call = queries.begun;
        queries.waiting.insert(call, answer);
        Some((call, answered))
    }

    /// Passes on the answer to a query. Ignores one that is not expected.
    pub(super) fn answer(&self, call: u64, answer: PeerAnswer) {
        let waiting = self.0.lock().waiting.remove(&call);
        // The query may have ended.
        let _ = waiting.map(|waiting| waiting.send(answer));
    }

    fn end(&self, call: u64) {
        self.0.lock().waiting.remove(&call);
    }

    /// Returns whether a query waits for its answer.
    pub(super) fn is_open(&self) -> bool {
        !self.0.lock().waiting.is_empty()
    }

    /// Ends all queries with their connection.
    pub(super) fn close(&self) {
        let mut queries = self.0.lock();
        queries.has_ended = true;
        queries.waiting.clear();
    }
}

impl Exchange {
    /// Connects the storage that answers queries of peers. The first call counts.
    pub fn attach_storage(&self, storage: WeakRecipient<QueryRegion>) {
        let is_first = self.hub().storage.set(StoragePort(storage)).is_ok();
        debug_assert!(is_first, "a worker has one storage");
    }

    /// Queries a region at peers. Returns the first answer, `None` if no peer holds the region. The region does not move. The
    /// caller may use any runtime.
    pub fn query(
        &self,
        key: RegionKey,
        query: SpatialQuery,
        peers: Vec<SocketAddr>,
    ) -> impl Future<Output = Option<RegionAnswer>> + Send + 'static + use<> {
        let hub = Arc::clone(self.hub());
        let (answer, answered) = oneshot::channel();
        self.hub().spawn(async move {
            // The caller may have ended.
            let _ = answer.send(ask_all(&hub, key, &query, peers).await);
        });
        async move { answered.await.ok().flatten() }
    }
}

/// Asks all peers at once: those without the region answer with a few bytes.
async fn ask_all(
    hub: &Arc<ExchangeState>,
    key: RegionKey,
    query: &SpatialQuery,
    peers: Vec<SocketAddr>,
) -> Option<RegionAnswer> {
    let mut asked = JoinSet::new();
    for peer in peers {
        asked.spawn(ask(Arc::clone(hub), peer, key, query.clone()));
    }
    let mut moved_bytes = 0;
    while let Some(answer) = asked.join_next().await {
        // A peer without a connection or an answer counts as one that lacks the region.
        let Some((answer, bytes)) = answer.ok().flatten() else { continue };
        moved_bytes += bytes;
        if let Some(answer) = answer {
            return Some(RegionAnswer { moved_bytes, ..answer });
        }
    }
    None
}

/// Asks one peer. Returns its answer and the bytes of both messages, `None` without a connection or an answer.
async fn ask(
    hub: Arc<ExchangeState>,
    peer: SocketAddr,
    key: RegionKey,
    query: SpatialQuery,
) -> Option<PeerAnswer> {
    let (mut connection, is_new) = hub.neighbor(peer).await.ok()?;
    // The peer may have closed an unused connection at the same moment.
    if !is_new && connection.has_ended() {
        hub.remove_peer(&connection);
        connection = hub.neighbor(peer).await.ok()?.0;
    }
    let (call, answered) = connection.queries.begin()?;
    let message = Message::FindObjects { call, key, query };
    let sent = message.write().map_or(0, |frame| frame.len() as u64);
    let answer = match connection.post(&message) {
        true => timeout(hub.settings.stalled, answered).await.ok().and_then(Result::ok),
        false => None,
    };
    connection.queries.end(call);
    answer.map(|(answer, bytes)| (answer, sent + bytes))
}

/// Has storage answer the query of a peer.
pub(super) async fn answer(
    hub: Arc<ExchangeState>,
    neighbor: Arc<PeerConnection>,
    call: u64,
    key: RegionKey,
    query: SpatialQuery,
) {
    let storage = hub.storage.get().and_then(|storage| storage.0.upgrade());
    let answer = match storage {
        // Without peers: the asking worker asks each of them itself.
        Some(storage) => storage.send(QueryRegion { key, query, peers: Vec::new() }).await.ok().flatten(),
        None => None,
    };
    // The connection may have ended.
    neighbor.post(&Message::ObjectsFound { call, answer });
}
