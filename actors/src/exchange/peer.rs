//! One other worker that is connected: what was asked of it, what it has asked for, and when it was last needed.
//!
//! Either side may ask; it does not matter who opened the connection.

use super::ExchangeState;
use super::error::HolderError;
use super::message::{self, DenyReason, Message, TransferPath};
use super::send::give;
use super::shared_memory::receive_buffers::ReceiveBuffers;
use super::shared_memory::send_buffers::{BufferName, SendBuffers};
use crate::transport::quic::{QuicLink, ReceivedRegion, RegionArrival, RegionStreams};
use crate::transport::refusal::{Cause, Refusal};
use crate::transport::{Incoming, Link, LinkStats};
use pleach_regions::{DataRegion, Decoder, Head, RegionKey};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::Receiver;
use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

/// Regions of so few bytes are decoded where they arrive: it takes less than to hand them to another thread and back.
const SHORT_BYTES: usize = 256 << 10;

/// How often silence is looked at within the time that makes it too long.
const LOOKS: u32 = 8;

/// What came of a request.
#[derive(Debug)]
pub(super) enum Answer {
    /// The region, and whether it came through shared memory.
    Region(DataRegion, bool),
    /// The holder does not give it.
    NotGiven(DenyReason),
    /// It came and cannot be used.
    Damaged(String),
    /// It was lent and cannot be read; it may come over the network.
    NotShared,
}

/// What a neighbor has borrowed.
#[derive(Debug)]
struct Lent {
    name: Arc<BufferName>,
    returned: oneshot::Sender<bool>,
}

#[derive(Debug)]
struct State {
    waiting: HashMap<RegionKey, oneshot::Sender<Answer>>,
    /// What it is given; and how once more where it has asked again meanwhile.
    giving: HashMap<RegionKey, Option<TransferPath>>,
    lent: HashMap<u32, Lent>,
    used: Instant,
    has_ended: bool,
}

/// See the module.
#[derive(Debug)]
pub(super) struct PeerConnection {
    /// Where it is, as seen from here.
    pub(super) address: SocketAddr,
    /// Whether it was connected to from here.
    pub(super) is_ours: bool,
    link: QuicLink,
    pub(super) regions: RegionStreams,
    pub(super) slots: Mutex<SendBuffers>,
    views: ReceiveBuffers,
    /// It is on this machine, and nothing has gone wrong with that yet.
    shares: AtomicBool,
    /// It has said where it is.
    is_placed: AtomicBool,
    /// Messages from it.
    heard: AtomicU64,
    state: Mutex<State>,
}

impl PeerConnection {
    pub(super) fn new(address: SocketAddr, is_ours: bool, link: QuicLink, regions: RegionStreams) -> Self {
        let state = State {
            waiting: HashMap::new(),
            giving: HashMap::new(),
            lent: HashMap::new(),
            used: Instant::now(),
            has_ended: false,
        };
        Self {
            address,
            is_ours,
            link,
            regions,
            slots: Mutex::default(),
            views: ReceiveBuffers::default(),
            shares: AtomicBool::new(false),
            is_placed: AtomicBool::new(false),
            heard: AtomicU64::new(0),
            state: Mutex::new(state),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What has passed between it and here.
    pub(super) fn link_figures(&self) -> LinkStats {
        self.link.figures().unwrap_or_default()
    }

    /// Says something; where it is gone, its end says so.
    pub(super) fn say(&self, message: &Message) {
        if let Ok(frame) = message.write() {
            let _ = self.link.send(frame);
        }
    }

    pub(super) fn shares(&self) -> bool {
        self.shares.load(Ordering::Relaxed)
    }

    /// Sharing memory does not work with this one.
    fn stop_sharing(&self) {
        self.shares.store(false, Ordering::Relaxed);
    }

    /// Why it is gone.
    fn ended(&self) -> Refusal {
        self.link.ended().unwrap_or_else(|| Refusal::new(Cause::Lost, "the connection has ended"))
    }

    /// Ends the connection, at once.
    pub(super) fn end(&self, refusal: &Refusal) {
        self.state().has_ended = true;
        self.link.end(refusal);
    }

    /// How long nothing has been asked by either side; none while something is.
    pub(super) fn unused(&self) -> Option<Duration> {
        let state = self.state();
        let is_free = state.waiting.is_empty() && state.giving.is_empty() && state.lent.is_empty();
        is_free.then(|| state.used.elapsed())
    }

    /// Ends the connection unless something was asked within `within`.
    pub(super) fn end_if_unused(&self, within: Duration) -> bool {
        let mut state = self.state();
        let is_free = state.waiting.is_empty() && state.giving.is_empty() && state.lent.is_empty();
        if is_free && state.used.elapsed() >= within {
            state.has_ended = true;
            self.link.end(&Refusal::new(Cause::Ended, "nothing was asked for a while"));
        }
        state.has_ended
    }

    /// Asks for a region, and waits as long as anything is heard within `patience`.
    pub(super) async fn ask(
        &self,
        key: RegionKey,
        way: TransferPath,
        patience: Duration,
    ) -> Result<Answer, HolderError> {
        let (answer, mut answered) = oneshot::channel();
        {
            let mut state = self.state();
            if state.has_ended {
                return Err(HolderError::Refused(self.ended()));
            }
            state.used = Instant::now();
            state.waiting.insert(key, answer);
        }
        self.say(&Message::Request { key, way });
        let mut heard = self.heard_bytes();
        let mut silent = 0;
        loop {
            match tokio::time::timeout(patience / LOOKS, &mut answered).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(_)) => return Err(HolderError::Refused(self.ended())),
                Err(_) => {}
            }
            let now = self.heard_bytes();
            // What has arrived is being decoded here.
            let is_waited_for = self.state().waiting.contains_key(&key);
            silent = if now == heard && is_waited_for { silent + 1 } else { 0 };
            heard = now;
            if silent >= LOOKS {
                self.state().waiting.remove(&key);
                return Err(HolderError::Silent(patience));
            }
        }
    }

    /// Something that grows whenever it is heard.
    fn heard_bytes(&self) -> u64 {
        self.heard.load(Ordering::Relaxed).wrapping_add(self.regions.received_bytes())
    }

    /// Whoever waits for a region; nobody, when it was given up or never asked for.
    fn waiting(&self, key: RegionKey) -> Option<oneshot::Sender<Answer>> {
        let mut state = self.state();
        state.used = Instant::now();
        state.waiting.remove(&key)
    }

    /// Begins to give it a region, unless it is given it already: then it gets it again when that is over, since what it
    /// has got until now may be damaged. False when nothing is to be done.
    fn begin_giving(&self, key: RegionKey, way: TransferPath, most: usize) -> Result<bool, DenyReason> {
        let mut state = self.state();
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

    /// A region has been given; how to give it once more, if it is to be.
    pub(super) fn end_giving(&self, key: RegionKey) -> Option<TransferPath> {
        let mut state = self.state();
        state.used = Instant::now();
        let again = state.giving.get_mut(&key).and_then(Option::take);
        if again.is_none() || state.has_ended {
            state.giving.remove(&key);
        }
        again.filter(|_| !state.has_ended)
    }

    /// A piece of shared memory is lent from now on; says when it is returned, and whether it could be read.
    pub(super) fn offer_buffer(&self, slot: u32, name: Arc<BufferName>) -> oneshot::Receiver<bool> {
        let (returned, waits) = oneshot::channel();
        let mut state = self.state();
        if !state.has_ended {
            state.lent.insert(slot, Lent { name, returned });
        }
        waits
    }

    /// A piece of shared memory that has been given up.
    pub(super) fn forget(&self, slot: u32) {
        self.state().lent.remove(&slot);
    }
}

/// Listens to a neighbor until it is gone.
pub(super) async fn listen(
    hub: Arc<ExchangeState>,
    neighbor: Arc<PeerConnection>,
    mut incoming: Incoming,
    mut arrivals: Receiver<RegionArrival>,
) {
    let often = hub.settings.unused / LOOKS;
    let mut look = tokio::time::interval(often.clamp(Duration::from_millis(1), Duration::from_secs(1)));
    loop {
        tokio::select! {
            frame = incoming.recv() => {
                let Some(frame) = frame else { break };
                neighbor.heard.fetch_add(1, Ordering::Relaxed);
                match Message::read(&frame) {
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
                let trimmed = neighbor.slots.lock().unwrap_or_else(PoisonError::into_inner).trim();
                for slot in trimmed {
                    neighbor.say(&Message::BufferWithdrawn { slot });
                }
                if neighbor.end_if_unused(hub.settings.unused) {
                    break;
                }
            }
        }
    }
    neighbor.end(&Refusal::new(Cause::Ended, "the connection has ended"));
    hub.gone(&neighbor);
    // Whoever waits is told by this.
    let mut state = neighbor.state();
    state.waiting.clear();
    state.lent.clear();
}

fn hear(hub: &Arc<ExchangeState>, neighbor: &Arc<PeerConnection>, message: Message) {
    match message {
        // Said once.
        Message::Listening { .. } if neighbor.is_placed.swap(true, Ordering::Relaxed) => {}
        Message::Listening { port, place } => {
            hub.is_at(neighbor, port);
            let is_here = hub.folder.as_ref().is_some_and(|folder| Some(folder.place()) == place.as_ref());
            neighbor.shares.store(is_here, Ordering::Relaxed);
        }
        Message::Request { key, way } => match neighbor.begin_giving(key, way, hub.settings.requests) {
            Ok(true) => {
                hub.spawn(give(Arc::clone(hub), Arc::clone(neighbor), key, way));
            }
            Ok(false) => {}
            Err(why) => neighbor.say(&Message::NotGiven { key, why }),
        },
        Message::NotGiven { key, why } => {
            if let Some(waiting) = neighbor.waiting(key) {
                // Nobody may wait any more.
                let _ = waiting.send(Answer::NotGiven(why));
            }
        }
        Message::BufferOffered { key, slot, file, bytes, head } => {
            let head = message::head(&head);
            borrow(hub, neighbor, key, head, (slot, file, bytes));
        }
        Message::BufferMapped { slot } => {
            if let Some(lent) = neighbor.state().lent.get(&slot) {
                lent.name.remove();
            }
        }
        Message::BufferReturned { slot, is_read } => {
            if !is_read {
                neighbor.stop_sharing();
            }
            let lent = neighbor.state().lent.remove(&slot);
            if let Some(lent) = lent {
                // It may have been given up meanwhile.
                let _ = lent.returned.send(is_read);
            }
        }
        Message::BufferWithdrawn { slot } => neighbor.views.close(slot),
    }
}

/// Reads what has been lent, where it was asked for.
fn borrow(
    hub: &ExchangeState,
    neighbor: &Arc<PeerConnection>,
    key: RegionKey,
    head: Option<Head>,
    (slot, file, bytes): (u32, Option<String>, u64),
) {
    let (Some(waiting), Some(folder), Some(head)) = (neighbor.waiting(key), &hub.folder, head) else {
        neighbor.say(&Message::BufferReturned { slot, is_read: true });
        return;
    };
    let (neighbor, folder, longest) =
        (Arc::clone(neighbor), Arc::clone(folder), hub.settings.longest_region_bytes);
    hub.spawn_blocking(move || {
        let opened = if bytes <= longest {
            neighbor.views.open(slot, folder.path(), file.as_deref(), bytes).ok()
        } else {
            None
        };
        if opened.is_some() && file.is_some() {
            neighbor.say(&Message::BufferMapped { slot });
        }
        let read = opened.zip(Decoder::new(&head).ok()).map(|(view, decoder)| view.read(decoder));
        let is_read = read.is_some();
        neighbor.say(&Message::BufferReturned { slot, is_read });
        let answer = match read.and_then(|(decoder, body)| decoder.finish(body).ok()) {
            Some(region) => Answer::Region(region, true),
            None => {
                neighbor.stop_sharing();
                Answer::NotShared
            }
        };
        // Nobody may wait any more.
        let _ = waiting.send(answer);
    });
}

/// Takes what has come over the network, where it was asked for.
fn take(neighbor: &PeerConnection, arrival: RegionArrival) {
    let key = arrival.as_ref().map_or_else(|not_arrived| not_arrived.key, |region| region.key);
    let Some(waiting) = neighbor.waiting(key) else { return };
    let region = match arrival {
        Ok(region) => region,
        Err(not_arrived) => {
            let answer = Answer::Damaged(not_arrived.refusal.to_string());
            // Nobody may wait any more.
            let _ = waiting.send(answer);
            return;
        }
    };
    let is_short = region.bytes.len() <= SHORT_BYTES;
    let decode = move || {
        // Nobody may wait any more.
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
        return Answer::Damaged("it does not say what it is".to_owned());
    };
    match decoder.finish(region.bytes) {
        Ok(region) => Answer::Region(region, false),
        Err(error) => Answer::Damaged(error.to_string()),
    }
}
