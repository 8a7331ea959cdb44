//! Fetches regions: one transfer for all callers that request the same region, from one holder after the other.

use super::ExchangeState;
use super::error::{FailedHolder, FetchError, HolderError};
use super::message::{DenyReason, TransferPath};
use super::peer::Answer;
use parking_lot::Mutex;
use pleach_regions::{DataRegion, Digest, RegionKey};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::watch;

/// Maximum of redirections of one transfer: with each one the number of holders has doubled.
const MAX_REDIRECTIONS: u32 = 32;

/// Result of a transfer: the region, and the verified digest of its content.
pub(super) type Fetched = Result<(Arc<DataRegion>, Digest), FetchError>;

/// A running transfer.
#[derive(Debug)]
pub(super) struct Transfer {
    done: watch::Sender<Option<Fetched>>,
    holders: Arc<Mutex<Vec<SocketAddr>>>,
}

impl Transfer {
    /// Returns the result, once there is one.
    pub(super) fn subscribe(&self) -> watch::Receiver<Option<Fetched>> {
        self.done.subscribe()
    }

    fn is_awaited(&self) -> bool {
        self.done.receiver_count() > 0
    }
}

/// Joins the transfer of a region, or starts it. A key has one content, so joining callers expect the same.
pub(super) fn join(
    hub: &Arc<ExchangeState>,
    key: RegionKey,
    expected: Option<Digest>,
    from: &[SocketAddr],
) -> watch::Receiver<Option<Fetched>> {
    // One lock for the lookup and the insertion, so that two callers cannot start two transfers.
    let mut transfers = hub.transfers();
    // One without waiting callers is being canceled. The new transfer takes its place.
    if let Some(transfer) = transfers.get(&key).filter(|transfer| transfer.is_awaited()) {
        transfer.holders.lock().extend_from_slice(from);
        return transfer.done.subscribe();
    }
    let (done, fetched) = watch::channel(None);
    let holders = Arc::new(Mutex::new(from.to_vec()));
    transfers.insert(key, Transfer { done: done.clone(), holders: Arc::clone(&holders) });
    // Released before the spawn, because a runtime that has ended drops the task at once, and its drop takes this lock.
    drop(transfers);
    hub.spawn(run(UnderWay { hub: Arc::clone(hub), key, expected, done }, holders));
    fetched
}

/// Entry of a running transfer. Drop removes the entry, even if the network's threads end.
struct UnderWay {
    hub: Arc<ExchangeState>,
    key: RegionKey,
    /// Digest of the content, if known before.
    expected: Option<Digest>,
    done: watch::Sender<Option<Fetched>>,
}

impl UnderWay {
    /// Removes the entry of this transfer. The next one of the same key may have started, and keeps its own.
    fn remove_from(&self, transfers: &mut HashMap<RegionKey, Transfer>) {
        if transfers.get(&self.key).is_some_and(|transfer| transfer.done.same_channel(&self.done)) {
            transfers.remove(&self.key);
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.remove_from(&mut self.hub.transfers());
    }
}

/// Waits for the end of a transfer.
pub(super) async fn wait(
    key: RegionKey,
    from: Vec<SocketAddr>,
    mut fetched: watch::Receiver<Option<Fetched>>,
) -> Fetched {
    if let Ok(fetched) = fetched.wait_for(Option::is_some).await
        && let Some(fetched) = &*fetched
    {
        return fetched.clone();
    }
    // The network's threads have ended.
    let tried = from.into_iter().map(|holder| FailedHolder { holder, failure: HolderError::Ended }).collect();
    Err(FetchError { key, tried })
}

async fn run(under_way: UnderWay, holders: Arc<Mutex<Vec<SocketAddr>>>) {
    let UnderWay { hub, key, expected, done } = &under_way;
    let mut transfer = std::pin::pin!(transfer(hub, *key, *expected, &holders));
    loop {
        let fetched = tokio::select! {
            fetched = &mut transfer => Some(fetched),
            () = done.closed() => None,
        };
        // The lock keeps callers from joining meanwhile.
        let mut transfers = hub.transfers();
        if fetched.is_some() || done.receiver_count() == 0 {
            // Removed under the lock that also covers the result, so that no caller joins an ended transfer.
            under_way.remove_from(&mut transfers);
            done.send_replace(fetched);
            return;
        }
    }
}

async fn transfer(
    hub: &Arc<ExchangeState>,
    key: RegionKey,
    expected: Option<Digest>,
    holders: &Mutex<Vec<SocketAddr>>,
) -> Fetched {
    // The semaphore is never closed.
    let _turn = hub.fetching.acquire().await.ok();
    let mut tried: Vec<FailedHolder> = Vec::new();
    let (mut redirected, mut redirections) = (None, 0);
    loop {
        // Chosen again for each attempt, because joining callers add holders during the transfer.
        let next = redirected.take().or_else(|| {
            let known = holders.lock();
            let untried = known.iter().filter(|holder| tried.iter().all(|tried| tried.holder != **holder));
            untried.min_by_key(|holder| rank(hub, key, **holder)).copied()
        });
        let Some(holder) = next else { return Err(FetchError { key, tried }) };
        let start = Instant::now();
        match fetch_from(hub, key, holder).await {
            Ok((_, digest, _)) if expected.is_some_and(|expected| expected != digest) => {
                let failure =
                    HolderError::Corrupt(format!("content {digest} differs from the announced one"));
                tried.push(FailedHolder { holder, failure });
            }
            Ok((region, digest, is_shared)) => {
                hub.count(|counts| {
                    counts.fetched += 1;
                    counts.fetched_shared += u64::from(is_shared);
                    counts.fetched_bytes += region.bytes();
                });
                hub.links().observe(holder, region.bytes(), start.elapsed());
                let region = Arc::new(region);
                // Others may be redirected here.
                hub.store_digest(key, digest);
                hub.add_received(key, &region);
                return Ok((region, digest));
            }
            // The holder stays untried: it is asked again if the other one fails. The other one may have lacked the region when
            // it was tried before.
            Err(HolderError::Redirected(to)) if redirections < MAX_REDIRECTIONS => {
                redirections += 1;
                tried.retain(|tried| tried.holder != to);
                redirected = Some(to);
            }
            Err(failure) => tried.push(FailedHolder { holder, failure }),
        }
    }
}

/// Orders holders with a recent failure last, and the rest by a hash of region, holder and fetching worker.
fn rank(hub: &ExchangeState, key: RegionKey, holder: SocketAddr) -> (bool, u64) {
    // Includes this worker's address, so that workers that fetch one region together spread over its holders.
    let mut hasher = DefaultHasher::new();
    (key, holder, hub.address).hash(&mut hasher);
    (hub.has_failed(holder), hasher.finish())
}

async fn fetch_from(
    hub: &Arc<ExchangeState>,
    key: RegionKey,
    holder: SocketAddr,
) -> Result<(DataRegion, Digest, bool), HolderError> {
    let (mut way, mut is_again) = (TransferPath::Any, false);
    loop {
        let (neighbor, is_new) = hub.neighbor(holder).await?;
        match neighbor.ask(key, way, hub.settings.stalled).await {
            // The peer may have closed the connection as unused at the same moment.
            Err(HolderError::Refused(_)) if !is_new && !is_again => {
                // Removed before the retry, which would otherwise get the ended connection again.
                hub.remove_peer(&neighbor);
                is_again = true;
            }
            Err(failure) => return Err(failure),
            Ok(Answer::Region(region, digest, is_shared)) => return Ok((region, digest, is_shared)),
            Ok(Answer::NotGiven(DenyReason::Lacking)) => return Err(HolderError::Missing),
            Ok(Answer::NotGiven(DenyReason::Busy)) => return Err(HolderError::Busy),
            Ok(Answer::NotGiven(DenyReason::Redirected(to))) => return Err(HolderError::Redirected(to)),
            // The holder stays the same: only its shared memory has failed.
            Ok(Answer::NotShared) if way == TransferPath::Any => way = TransferPath::Network,
            Ok(Answer::NotShared) => {
                return Err(HolderError::Corrupt("unrequested shared buffer".to_owned()));
            }
            Ok(Answer::Corrupt(what)) => return Err(HolderError::Corrupt(what)),
        }
    }
}
