//! How manager and workers reach each other: frames of bytes, in order, both ways.
//!
//! A [`Link`] is the sending half of one end, [`Incoming`] the receiving one. What they carry is encoded by [`codec`]
//! whichever way it goes, so that the messages of an embedded run are the ones that cross a network.
//!
//! - [`in_memory`]: two ends in one process;
//! - [`quic`]: ends on different nodes, each of which has shown a certificate ([`certs`], [`identity`]) and said what it
//!   is and has ([`hello`]); nodes without one get it for a [`token`]. Data regions travel beside the frames;
//! - [`https`]: TLS for whoever speaks HTTP to a manager, with the same certificates.
//!
//! What peers may take is bounded in one place ([`settings`]); who is turned away is told why ([`refusal`]), and the
//! operator once ([`refusal_log`]).

pub mod backoff;
pub mod certs;
pub mod clock;
pub mod codec;
pub mod frames;
pub mod hello;
pub mod https;
pub mod identity;
pub mod in_memory;
pub mod quic;
pub mod refusal;
pub mod refusal_log;
pub mod settings;
pub mod token;

use std::fmt;
use std::ops::Deref;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::OwnedSemaphorePermit;
use tokio::sync::mpsc::UnboundedReceiver;

/// The other end is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the other end of the link is gone")]
pub struct Disconnected;

/// What a link has carried until now, and how well.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// To the other end and back, as it is estimated.
    pub round_trip: Duration,
    /// Packets sent.
    pub sent_packets: u64,
    /// Of these, those that were lost.
    pub lost_packets: u64,
    /// Bytes sent, all that packets hold included.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
}

impl LinkStats {
    /// Those of several links together; the slowest counts.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            round_trip: self.round_trip.max(other.round_trip),
            sent_packets: self.sent_packets + other.sent_packets,
            lost_packets: self.lost_packets + other.lost_packets,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            received_bytes: self.received_bytes + other.received_bytes,
        }
    }
}

/// The sending half of one end.
pub trait Link: Send + 'static {
    /// Sends one frame; frames arrive in order or not at all.
    ///
    /// # Errors
    /// [`Disconnected`] when nobody will receive it.
    fn send(&self, frame: Vec<u8>) -> Result<(), Disconnected>;

    /// What it has carried; `None` where nothing is sent over a network.
    fn figures(&self) -> Option<LinkStats> {
        None
    }

    /// Ends the link, since what came over it cannot be understood, and says why where that can be said.
    fn refuse(&self, _why: &dyn fmt::Display) {}

    /// Ends the link, since another process has the other end's name. It may try again later.
    fn refuse_name(&self, _why: &dyn fmt::Display) {}
}

/// Frames from the other end; it ends when that is gone.
pub type Incoming = UnboundedReceiver<Frame>;

/// A frame that has arrived.
///
/// As long as it lives it may count among the bytes that its sender has been allowed to have unread, so that a sender
/// who is faster than the reader has to wait, wherever frames queue up.
pub struct Frame {
    bytes: Vec<u8>,
    /// Let go of with the frame.
    unread: Option<OwnedSemaphorePermit>,
}

impl Frame {
    /// A frame that counts as unread as long as `unread` is held.
    pub(crate) fn with_credit(bytes: Vec<u8>, unread: OwnedSemaphorePermit) -> Self {
        Self { bytes, unread: Some(unread) }
    }

    /// Its bytes; from now on it counts as read.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl From<Vec<u8>> for Frame {
    /// A frame that nobody counts.
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, unread: None }
    }
}

impl Deref for Frame {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = self.unread.is_some();
        f.debug_struct("Frame").field("bytes", &self.bytes.len()).field("counted", &counted).finish()
    }
}
