//! Sends requested regions to a peer.

use super::ExchangeState;
use super::fetch::{self, Transfer};
use super::message::{DenyReason, Message, TransferPath};
use super::peer::PeerConnection;
use super::shared_memory::SharedMemoryFolder;
use super::state::Turn;
use bytes::Bytes;
use pleach_regions::{DataRegion, Digest, ElementType, Head, Raster, RegionKey};
use serde_bytes::ByteBuf;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// Smaller regions go over the network, because shared memory takes two more messages.
const MIN_SHARED_BYTES: u64 = 128 << 10;

/// Smaller regions are sent to all at once: a transfer takes less than the messages of a redirection.
const MIN_BROADCAST_BYTES: u64 = 1 << 20;

/// Maximum of the wait for a region that another worker is sending here. The requesting worker asks its other holders then.
const RECEIVING: Duration = Duration::from_secs(2);

/// Unit of the send budget. With it, the budget fits 32 bits.
pub(super) const UNIT_BYTES: u64 = 64 << 10;

/// Sends a region, and repeats it if the peer has requested it again meanwhile.
pub(super) async fn give(
    hub: Arc<ExchangeState>,
    neighbor: Arc<PeerConnection>,
    key: RegionKey,
    mut way: TransferPath,
) {
    loop {
        give_once(&hub, &neighbor, key, way).await;
        match neighbor.end_giving(key) {
            Some(again) => way = again,
            None => return,
        }
    }
}

async fn give_once(hub: &ExchangeState, neighbor: &Arc<PeerConnection>, key: RegionKey, way: TransferPath) {
    let Some(region) = find(hub, key).await else {
        neighbor.say(&Message::NotGiven { key, why: DenyReason::Lacking });
        return;
    };
    if region.bytes() < MIN_BROADCAST_BYTES {
        send_region(hub, neighbor, key, way, region).await;
        return;
    }
    match hub.turn(key).await {
        Turn::Send => {
            let is_sent = send_region(hub, neighbor, key, way, region).await;
            hub.end_turn(key, hub.listening_address(neighbor).filter(|_| is_sent));
        }
        Turn::Redirect(to) => neighbor.say(&Message::NotGiven { key, why: DenyReason::Redirected(to) }),
    }
}

/// Sends a region. Returns whether the peer has it, or is about to.
async fn send_region(
    hub: &ExchangeState,
    neighbor: &PeerConnection,
    key: RegionKey,
    way: TransferPath,
    region: Arc<DataRegion>,
) -> bool {
    let bytes = region.bytes();
    // A region beyond the budget takes all of it, so that it is sent alone instead of never.
    let units = (bytes.div_ceil(UNIT_BYTES)).clamp(1, hub.sending_units) as u32;
    // The semaphore is never closed.
    let Ok(_room) = hub.sending.acquire_many(units).await else { return false };
    let digest = match hub.digest(key) {
        Some(digest) => digest,
        None => {
            let whole = Arc::clone(&region);
            let Ok(digest) = spawn_blocking(move || whole.digest()).await else { return false };
            hub.store_digest(key, digest);
            digest
        }
    };
    if way == TransferPath::Any
        && region.bytes() >= MIN_SHARED_BYTES
        && let Some(folder) = hub.folder.as_ref().filter(|_| neighbor.shares())
        && lend(hub, neighbor, folder, key, &region, digest).await
    {
        hub.count(|counts| {
            counts.sent += 1;
            counts.sent_shared += 1;
            counts.sent_bytes += bytes;
        });
        return true;
    }
    let Some((head, body)) = encode(region, digest).await else { return false };
    // The peer knows the reason for the missing region.
    let is_sent = neighbor.regions.send_encoded(key, head, body, hub.settings.stalled).await.is_ok();
    if is_sent {
        hub.count(|counts| {
            counts.sent += 1;
            counts.sent_bytes += bytes;
        });
    }
    is_sent
}

/// Returns a region from memory or from a spill tier, or the task result that is being received.
async fn find(hub: &ExchangeState, key: RegionKey) -> Option<Arc<DataRegion>> {
    if let Some(region) = find_present(hub, key).await {
        return Some(region);
    }
    // A redirected request may arrive before the last bytes of the region.
    let fetched = hub.transfers().get(&key).map(Transfer::subscribe)?;
    let fetched = timeout(RECEIVING, fetch::wait(key, Vec::new(), fetched)).await;
    fetched.ok()?.ok().map(|(region, _)| region)
}

async fn find_present(hub: &ExchangeState, key: RegionKey) -> Option<Arc<DataRegion>> {
    if let Some(region) = hub.ram.get(key).or_else(|| hub.received(key)) {
        return Some(region);
    }
    match hub.result(key) {
        // Decoding would hold up the connections of a network thread.
        Some(form) if form.is_encoded() => return spawn_blocking(move || form.region()).await.ok().flatten(),
        Some(form) => return form.region(),
        None => {}
    }
    // Looks up the index first, so that a missing region waits for no tier.
    let below = hub.spill.clone().filter(|below| below.bytes(key).is_some())?;
    below.read_remote(key).await
}

/// Offers a region in shared memory. Returns `false` if the region must go over the network, or was requested again.
async fn lend(
    hub: &ExchangeState,
    neighbor: &PeerConnection,
    folder: &Arc<SharedMemoryFolder>,
    key: RegionKey,
    region: &Arc<DataRegion>,
    digest: Digest,
) -> bool {
    let slots = || neighbor.slots.lock();
    // Locked only for the selection: other transfers take buffers while this one is filled.
    let (slot, gone) = slots().take(folder, region.bytes());
    if let Some(slot) = gone {
        neighbor.say(&Message::BufferWithdrawn { slot });
    }
    let Some(mut slot) = slot else { return false };
    let number = slot.number;
    let whole = Arc::clone(region);
    // Encoding and copying would hold up the connections of a network thread.
    let filling = spawn_blocking(move || {
        let (head, body) = whole.encode_parts(&digest, false);
        let name = slot.fill(&body);
        (slot, name.map(|name| (name, head, body.len() as u64)))
    });
    let Ok((slot, filled)) = filling.await else { return false };
    // Usually because the folder is full.
    let Ok((name, head, bytes)) = filled else {
        slots().lose(slot);
        neighbor.say(&Message::BufferWithdrawn { slot: number });
        return false;
    };
    // Registered before the offer is sent, so that every answer finds the buffer.
    let returned = neighbor.offer_buffer(number, Arc::clone(&name));
    let file = name.get().map(str::to_owned);
    neighbor.say(&Message::BufferOffered { key, slot: number, file, bytes, head: ByteBuf::from(head.0) });
    // A peer that returns no buffer must not hold the send budget.
    let is_read = matches!(timeout(hub.settings.stalled, returned).await, Ok(Ok(true)));
    if is_read {
        slots().release(slot);
    } else {
        // The peer may still read the buffer, so it must not be overwritten.
        neighbor.forget(number);
        slots().lose(slot);
        neighbor.say(&Message::BufferWithdrawn { slot: number });
    }
    // A peer that could not read the buffer sends another request.
    true
}

/// Encodes a region. No compression faster than the network shrinks images much, but masks and labels shrink.
async fn encode(region: Arc<DataRegion>, digest: Digest) -> Option<(Head, Bytes)> {
    let is_small = matches!(region.element(), ElementType::Mask | ElementType::Labels);
    // Pixels are sent without a copy and tables are short, so both take no time. Other regions are copied.
    let takes_time = !matches!(region.element(), ElementType::Bgr8 | ElementType::Gray8 | ElementType::Table);
    let encode = move || {
        let (head, body) = region.encode_parts(&digest, is_small);
        match body {
            Cow::Owned(bytes) => (head, bytes.into()),
            Cow::Borrowed(_) => (head, Bytes::from_owner(Pixels(Arc::clone(&region)))),
        }
    };
    if takes_time { spawn_blocking(encode).await.ok() } else { Some(encode()) }
}

/// Pixels of a region, sent without a copy.
struct Pixels(Arc<DataRegion>);

impl AsRef<[u8]> for Pixels {
    fn as_ref(&self) -> &[u8] {
        self.0.raster(self.0.element()).map(Raster::data).unwrap_or_default()
    }
}
