//! Connection to one peer: requests in both directions, and the time of last use.
//!
//! Either side may send requests, independent of the side that opened the connection.

use super::ExchangeState;
use super::directory::DirectoryEvent;
use super::error::HolderError;
use super::message::{self, DenyReason, Message, TransferPath};
use super::query::{self, PendingQueries};
use super::send::give;
use super::shared_memory::receive_buffers::ReceiveBuffers;
use super::shared_memory::send_buffers::{BufferName, SendBuffers};
use crate::transport::quic::{QuicLink, ReceivedRegion, RegionArrival, RegionStreams};
use crate::transport::refusal::{Cause, Refusal};
use crate::transport::{Incoming, Link, LinkStats};
use parking_lot::Mutex;
use pleach_dispatch::directory::NodeDigest;
use pleach_regions::{DataRegion, Decoder, Digest, Head, RegionKey};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

/// Smaller regions are decoded on the receiving thread, because a handover to another thread and back takes longer.
const SHORT_BYTES: usize = 256 << 10;

/// Number of liveness checks within the time limit for silence.
const LOOKS: u32 = 8;

/// Result of a request.
#[derive(Debug)]
pub(super) enum Answer {
    /// The region, its verified digest, and whether it came through shared memory.
    Region(DataRegion, Digest, bool),
    /// The holder denies the region.
    NotGiven(DenyReason),
    /// The region arrived corrupt.
    Corrupt(String),
    /// The offered buffer cannot be read. The region may come over the network.
    NotShared,
}

/// A buffer offered to the peer and not returned yet.
#[derive(Debug)]
struct Lent {
    name: Arc<BufferName>,
    returned: oneshot::Sender<bool>,
}

#[derive(Debug)]
struct State {
    waiting: HashMap<RegionKey, oneshot::Sender<Answer>>,
    /// Regions being sent to the peer. The value is the way of a repetition if the peer has requested the region again.
    giving: HashMap<RegionKey, Option<TransferPath>>,
    lent: HashMap<u32, Lent>,
    used: Instant,
    has_ended: bool,
}

/// Connection to one peer.
#[derive(Debug)]
pub(super) struct PeerConnection {
    /// Address of the peer, as seen from this worker.
    pub(super) address: SocketAddr,
    /// Node of the peer, by its certificate.
    node: NodeDigest,
    /// Whether this worker opened the connection.
    pub(super) is_ours: bool,
    link: QuicLink,
    pub(super) regions: RegionStreams,
    pub(super) slots: Mutex<SendBuffers>,
    views: ReceiveBuffers,
    pub(super) queries: PendingQueries,
    /// The peer shares memory with this worker, without a failure so far.
    shares: AtomicBool,
    /// The peer has sent its listening port.
    is_placed: AtomicBool,
    /// Messages from the peer.
    heard: AtomicU64,
    state: Mutex<State>,
}

impl PeerConnection {
    pub(super) fn new(
        address: SocketAddr,
        node: NodeDigest,
        is_ours: bool,
        link: QuicLink,
        regions: RegionStreams,
    ) -> Self {
        let state = State {
            waiting: HashMap::new(),
            giving: HashMap::new(),
            lent: HashMap::new(),
            used: Instant::now(),
            has_ended: false,
        };
        Self {
            address,
            node,
            is_ours,
            link,
            regions,
            slots: Mutex::default(),
            views: ReceiveBuffers::default(),
            queries: PendingQueries::default(),
            shares: AtomicBool::new(false),
            is_placed: AtomicBool::new(false),
            heard: AtomicU64::new(0),
            state: Mutex::new(state),
        }
    }

    /// Returns the statistics of the connection.
    pub(super) fn link_figures(&self) -> LinkStats {
        self.link.figures().unwrap_or_default()
    }

    /// Sends a message. The end of a lost connection is handled separately.
    pub(super) fn say(&self, message: &Message) {
        // A message of this worker always fits: its longest part is a file name.
        if let Ok(frame) = message.write() {
            let _ = self.link.send(frame);
        }
    }

    /// Sends a message that needs no answer on this connection. Returns `false` if the connection has ended.
    pub(super) fn post(&self, message: &Message) -> bool {
        let mut state = self.state.lock();
        state.used = Instant::now();
        // Under the lock, so that the connection does not end as unused meanwhile.
        !state.has_ended && message.write().is_ok_and(|frame| self.link.send(frame).is_ok())
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state.lock().has_ended
    }

    pub(super) fn shares(&self) -> bool {
        // Relaxed: a stale value costs at most one transfer over the slower path.
        self.shares.load(Ordering::Relaxed)
    }

    /// Stops sharing memory with this peer.
    fn stop_sharing(&self) {
        self.shares.store(false, Ordering::Relaxed);
    }

    /// Returns the reason for the end of the connection.
    fn ended(&self) -> Refusal {
        self.link.ended().unwrap_or_else(|| Refusal::new(Cause::Lost, "the connection has ended"))
    }

    /// Ends the connection at once.
    pub(super) fn end(&self, refusal: &Refusal) {
        self.state.lock().has_ended = true;
        self.link.end(refusal);
    }

    /// Returns whether there is no request in either direction.
    fn is_free(&self, state: &State) -> bool {
        let is_asked = !state.waiting.is_empty() || self.queries.is_open();
        !is_asked && state.giving.is_empty() && state.lent.is_empty()
    }

    /// Returns the time since the last request in either direction. `None` during a request.
    pub(super) fn unused(&self) -> Option<Duration> {
        let state = self.state.lock();
        let is_free = self.is_free(&state);
        is_free.then(|| state.used.elapsed())
    }

    /// Ends the connection unless it had a request in the last `within`.
    pub(super) fn end_if_unused(&self, within: Duration) -> bool {
        let mut state = self.state.lock();
        // Check and end share one lock, so that no request can start on a connection that ends as unused.
        let is_free = self.is_free(&state);
        if is_free && state.used.elapsed() >= within {
            state.has_ended = true;
            self.link.end(&Refusal::new(Cause::Ended, "the connection was idle"));
        }
        state.has_ended
    }

    /// Requests a region. Waits as long as the peer is not silent for `patience`.
    pub(super) async fn ask(
        &self,
        key: RegionKey,
        path: TransferPath,
        patience: Duration,
    ) -> Result<Answer, HolderError> {
        let (answer, mut answered) = oneshot::channel();
        {
            let mut state = self.state.lock();
            if state.has_ended {
                return Err(HolderError::Refused(self.ended()));
            }
            state.used = Instant::now();
            // May replace the entry of a canceled request. The first arrival then answers this one.
            state.waiting.insert(key, answer);
        }
        // Sent after the registration, so that every answer finds the request.
        self.say(&Message::Request { key, path });
        let mut heard = self.heard_bytes();
        let mut silent = 0;
        loop {
            // Waits in parts, because any data from the peer, also for other requests, proves that it is alive.
            match tokio::time::timeout(patience / LOOKS, &mut answered).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(_)) => return Err(HolderError::Refused(self.ended())),
                Err(_) => {}
            }
            let now = self.heard_bytes();
            // Without an entry, the region has arrived and is being decoded, so the peer is not silent.
            let is_waited_for = self.state.lock().waiting.contains_key(&key);
            silent = if now == heard && is_waited_for { silent + 1 } else { 0 };
            heard = now;
            if silent >= LOOKS {
                // A late answer finds no request and is dropped. The next request for the region keeps its entry.
                answered.close();
                let waiting = &mut self.state.lock().waiting;
                if waiting.get(&key).is_some_and(oneshot::Sender::is_closed) {
                    waiting.remove(&key);
                }
                return Err(HolderError::Silent(patience));
            }
        }
    }

    /// Returns a counter that grows with everything received from the peer.
    fn heard_bytes(&self) -> u64 {
        // Wraps, because only a change matters.
        self.heard.load(Ordering::Relaxed).wrapping_add(self.regions.received_bytes())
    }

    /// Returns the sender for a waiting request. `None` if the request was canceled or never made.
    fn waiting(&self, key: RegionKey) -> Option<oneshot::Sender<Answer>> {
        let mut state = self.state.lock();
        state.used = Instant::now();
        state.waiting.remove(&key)
    }

    /// Starts sending a region to the peer. If the region is being sent already, it is sent again afterwards, because the
    /// first copy may be corrupt. Returns `false` if there is nothing to do now.
    fn begin_giving(&self, key: RegionKey, way: TransferPath, most: usize) -> Result<bool, DenyReason> {
        let mut state = self.state.lock();
        state.used = Instant::now();
        let count = state.giving.len();
        match state.giving.entry(key) {
            Entry::Occupied(mut given) => {
                given.insert(Some(way));
                Ok(false)
            }
            Entry::Vacant(_) if count >= most => Err(DenyReason::Busy),
            Entry::Vacant(free) => {
                free.insert(None);
                Ok(true)
            }
        }
    }

    /// Ends the sending of a region. Returns the way of a repetition, if requested.
    pub(super) fn end_giving(&self, key: RegionKey) -> Option<TransferPath> {
        let mut state = self.state.lock();
        state.used = Instant::now();
        let again = state.giving.get_mut(&key).and_then(Option::take);
        // The entry stays for a repetition, which counts toward the limit of requests.
        if again.is_none() || state.has_ended {
            state.giving.remove(&key);
        }
        again.filter(|_| !state.has_ended)
    }

    /// Registers an offered buffer. The receiver gets whether the peer could read it, once the peer returns it. It gets an
    /// error if the connection ends.
    pub(super) fn offer_buffer(&self, slot: u32, name: Arc<BufferName>) -> oneshot::Receiver<bool> {
        let (returned, waits) = oneshot::channel();
        let mut state = self.state.lock();
        // After the end, the sender is dropped here, so that the wait for the buffer ends at once.
        if !state.has_ended {
            state.lent.insert(slot, Lent { name, returned });
        }
        waits
    }

    /// Removes a buffer that has been given up.
    pub(super) fn forget(&self, slot: u32) {
        self.state.lock().lent.remove(&slot);
    }
}

/// Handles messages of a peer until its connection ends.
pub(super) async fn listen(
    hub: Arc<ExchangeState>,
    neighbor: Arc<PeerConnection>,
    mut incoming: Incoming,
    mut arrivals: Receiver<RegionArrival>,
) {
    // At least 1 ms, because tokio panics on an interval of 0. At most 1 s, so that unused buffers are released soon.
    let often = hub.settings.unused / LOOKS;
    let mut look = tokio::time::interval(often.clamp(Duration::from_millis(1), Duration::from_secs(1)));
    loop {
        tokio::select! {
            frame = incoming.recv() => {
                let Some(frame) = frame else { break };
                neighbor.heard.fetch_add(1, Ordering::Relaxed);
                match Message::read(&frame) {
                    Ok(Message::ObjectsFound { call, answer }) => {
                        neighbor.queries.answer(call, (answer, frame.len() as u64));
                    }
                    Ok(message) => hear(&hub, &neighbor, message),
                    Err(error) => {
                        neighbor.link.refuse(&error);
                        break;
                    }
                }
            }
            arrival = arrivals.recv() => match arrival {
                Some(arrival) => take(&neighbor, arrival),
                None => break,
            },
            _ = look.tick() => {
                let trimmed = neighbor.slots.lock().trim();
                for slot in trimmed {
                    neighbor.say(&Message::BufferWithdrawn { slot });
                }
                if neighbor.end_if_unused(hub.settings.unused) {
                    break;
                }
            }
        }
    }
    // Marks the end before the entries are cleared, so that no request is added afterwards.
    neighbor.end(&Refusal::new(Cause::Ended, "the connection has ended"));
    // Removed before the senders are dropped, so that a repeated request opens a new connection.
    hub.remove_peer(&neighbor);
    // Dropping the senders notifies all waiting requests.
    let mut state = neighbor.state.lock();
    state.waiting.clear();
    neighbor.queries.close();
    state.lent.clear();
}

fn hear(hub: &Arc<ExchangeState>, neighbor: &Arc<PeerConnection>, message: Message) {
    match message {
        // A second message of this kind is ignored.
        Message::Listening { .. } if neighbor.is_placed.swap(true, Ordering::Relaxed) => {}
        Message::Listening { port, place } => {
            hub.is_at(neighbor, port);
            let is_here = hub.folder.as_ref().is_some_and(|folder| Some(folder.id()) == place.as_ref());
            neighbor.shares.store(is_here, Ordering::Relaxed);
        }
        Message::Request { key, path } => match neighbor.begin_giving(key, path, hub.settings.requests) {
            Ok(true) => {
                // A task of its own: waiting for the send budget must not block messages of this peer.
                hub.spawn(give(Arc::clone(hub), Arc::clone(neighbor), key, path));
            }
            Ok(false) => {}
            Err(why) => neighbor.say(&Message::NotGiven { key, why }),
        },
        Message::NotGiven { key, why } => {
            if let Some(waiting) = neighbor.waiting(key) {
                // The request may have been canceled.
                let _ = waiting.send(Answer::NotGiven(why));
            }
        }
        Message::BufferOffered { key, slot, file, bytes, head } => {
            let head = message::head(&head);
            borrow(hub, neighbor, key, head, (slot, file, bytes));
        }
        Message::BufferMapped { slot } => {
            if let Some(lent) = neighbor.state.lock().lent.get(&slot) {
                // Removed under the lock: the file is in memory, so its removal is short.
                lent.name.remove();
            }
        }
        Message::BufferReturned { slot, is_read } => {
            if !is_read {
                neighbor.stop_sharing();
            }
            // A separate statement, so that the lock is released before the answer wakes the sender.
            let lent = neighbor.state.lock().lent.remove(&slot);
            if let Some(lent) = lent {
                // The buffer may have been given up meanwhile.
                let _ = lent.returned.send(is_read);
            }
        }
        Message::BufferWithdrawn { slot } => neighbor.views.close(slot),
        Message::FindObjects { call, key, query } => {
            hub.spawn(query::answer(Arc::clone(hub), Arc::clone(neighbor), call, key, query));
        }
        // Received by `listen`, which knows its length.
        Message::ObjectsFound { .. } => {}
        Message::Directory(message) => {
            neighbor.state.lock().used = Instant::now();
            hub.pass_to_directory(DirectoryEvent::Message(neighbor.node, message.into_vec()));
        }
    }
}

/// Reads an offered buffer if its region was requested.
fn borrow(
    hub: &ExchangeState,
    neighbor: &Arc<PeerConnection>,
    key: RegionKey,
    head: Option<Head>,
    (slot, file, bytes): (u32, Option<String>, u64),
) {
    let (Some(waiting), Some(folder), Some(head)) = (neighbor.waiting(key), &hub.folder, head) else {
        // An unrequested buffer is returned as read, because `false` would end sharing although nothing has failed.
        neighbor.say(&Message::BufferReturned { slot, is_read: true });
        return;
    };
    let (neighbor, folder, longest) =
        (Arc::clone(neighbor), Arc::clone(folder), hub.settings.longest_region_bytes);
    hub.spawn_blocking(move || {
        // The length is a claim of the peer, and the copy allocates it at once.
        let opened = if bytes <= longest {
            neighbor.views.open(slot, folder.path(), file.as_deref(), bytes).ok()
        } else {
            None
        };
        if opened.is_some() && file.is_some() {
            // Sent before the copy: a file without a name leaves no memory behind after a kill.
            neighbor.say(&Message::BufferMapped { slot });
        }
        let read = opened.zip(Decoder::new(&head).ok()).map(|(view, decoder)| view.read(decoder));
        let is_read = read.is_some();
        // Returned before the decoding, which needs only the copy, so that the peer can fill the buffer again.
        neighbor.say(&Message::BufferReturned { slot, is_read });
        let decoded = read.and_then(|(decoder, body)| {
            let digest = decoder.digest();
            Some((decoder.finish(body).ok()?, digest))
        });
        let answer = match decoded {
            Some((region, digest)) => Answer::Region(region, digest, true),
            None => {
                // The region comes again over the network, and this side offers no further buffers to the peer.
                neighbor.stop_sharing();
                Answer::NotShared
            }
        };
        // The request may have been canceled.
        let _ = waiting.send(answer);
    });
}

/// Handles a region from the network if it was requested.
fn take(neighbor: &PeerConnection, arrival: RegionArrival) {
    let key = arrival.as_ref().map_or_else(|not_arrived| not_arrived.key, |region| region.key);
    // A region without a request is dropped here, which returns its share of the receive budget.
    let Some(waiting) = neighbor.waiting(key) else { return };
    let region = match arrival {
        Ok(region) => region,
        Err(not_arrived) => {
            let answer = Answer::Corrupt(not_arrived.refusal.to_string());
            // The request may have been canceled.
            let _ = waiting.send(answer);
            return;
        }
    };
    let is_short = region.bytes.len() <= SHORT_BYTES;
    let decode = move || {
        // The request may have been canceled.
        let _ = waiting.send(decode(region));
    };
    if is_short {
        decode();
    } else {
        spawn_blocking(decode);
    }
}

fn decode(region: ReceivedRegion) -> Answer {
    let Some(decoder) = region.decoder else {
        return Answer::Corrupt("no header".to_owned());
    };
    // Verified by `finish`.
    let digest = decoder.digest();
    match decoder.finish(region.bytes) {
        Ok(region) => Answer::Region(region, digest, false),
        Err(error) => Answer::Corrupt(error.to_string()),
    }
}
