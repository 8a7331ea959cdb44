//! Messages of the result directory, and task results that other workers fetch.
//!
//! A message to a connected peer is sent at once. Messages to other peers wait in order until the connection is open.

use super::Exchange;
use super::message::Message;
use super::state::ExchangeState;
use actix::WeakRecipient;
use parking_lot::Mutex;
use pleach_dispatch::directory::NodeDigest;
use pleach_regions::{CachedForm, RegionKey};
use serde_bytes::ByteBuf;
use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

/// Maximum of messages that wait for a connection. Further ones are dropped: a look-up without an answer ends with its time,
/// and a result that is not listed is computed again.
const MAX_WAITING: usize = 1024;

/// A message of a peer's directory, or the loss of the peer.
#[derive(Clone, Debug, PartialEq, Eq, actix::Message)]
#[rtype(result = "()")]
pub enum DirectoryEvent {
    /// A message has arrived from this node, by its certificate.
    Message(NodeDigest, Vec<u8>),
    /// No connection to the worker at this address can be opened.
    Unreachable(SocketAddr),
}

/// Source of task results, by the key that `result_key` of the task results computes.
pub trait ResultSource: Send + Sync {
    /// Returns a result in memory.
    fn form(&self, key: RegionKey) -> Option<CachedForm>;
}

/// The directory of this worker, as the exchange knows it.
pub(super) struct DirectoryPort {
    /// Weak, because the directory holds the exchange, which ends with its last handle.
    events: WeakRecipient<DirectoryEvent>,
    results: Box<dyn ResultSource>,
}

impl fmt::Debug for DirectoryPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectoryPort").finish_non_exhaustive()
    }
}

/// Waiting messages by address. An entry exists while its connection is being opened.
#[derive(Debug, Default)]
pub(super) struct Outbox(Mutex<HashMap<SocketAddr, Vec<Message>>>);

impl Exchange {
    /// Connects the result directory: peers can fetch its results, and their messages are passed on as events. The first
    /// call counts.
    pub fn attach_directory(&self, results: Box<dyn ResultSource>, events: WeakRecipient<DirectoryEvent>) {
        let is_first = self.hub().directory.set(DirectoryPort { events, results }).is_ok();
        debug_assert!(is_first, "a worker has one directory");
    }

    /// Sends a message to the directory of the worker at an address. [`DirectoryEvent::Unreachable`] follows if that is
    /// impossible.
    pub fn send_to_directory(&self, to: SocketAddr, message: Vec<u8>) {
        let (hub, message) = (self.hub(), Message::Directory(ByteBuf::from(message)));
        let mut outbox = hub.outbox.0.lock();
        if let Some(waiting) = outbox.get_mut(&to) {
            if waiting.len() < MAX_WAITING {
                waiting.push(message);
            }
            return;
        }
        if let Some(peer) = hub.connected(to)
            && peer.post(&message)
        {
            return;
        }
        outbox.insert(to, vec![message]);
        // Released before the spawn: a runtime that has ended drops the task at once.
        drop(outbox);
        hub.spawn(deliver(Arc::clone(hub), to));
    }
}

/// Opens a connection, and sends the messages that wait for it.
async fn deliver(hub: Arc<ExchangeState>, to: SocketAddr) {
    let mut peer = hub.neighbor(to).await;
    // The peer may have closed an unused connection at the same moment.
    if let Ok((known, false)) = &peer
        && known.has_ended()
    {
        hub.remove_peer(known);
        peer = hub.neighbor(to).await;
    }
    // The lock keeps later messages behind these.
    let mut outbox = hub.outbox.0.lock();
    let waiting = outbox.remove(&to).unwrap_or_default();
    let is_sent = match &peer {
        Ok((peer, _)) => waiting.iter().all(|message| peer.post(message)),
        Err(_) => false,
    };
    drop(outbox);
    if !is_sent {
        hub.pass_to_directory(DirectoryEvent::Unreachable(to));
    }
}

impl ExchangeState {
    /// Passes an event to the directory of this worker.
    pub(super) fn pass_to_directory(&self, event: DirectoryEvent) {
        // Without a directory, the peer has a wrong list of members, and its look-up ends with its time.
        if let Some(events) = self.directory.get().and_then(|port| port.events.upgrade()) {
            events.do_send(event);
        }
    }

    /// Returns a task result in memory.
    pub(super) fn result(&self, key: RegionKey) -> Option<CachedForm> {
        self.directory.get()?.results.form(key)
    }
}
