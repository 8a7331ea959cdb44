//! Connections between manager and workers: ordered frames of bytes in both directions.
//!
//! A [`Link`] is the sending half of one end, [`Incoming`] the receiving half. Every transport uses the encoding of
//! [`codec`], so the messages of an embedded run are those that cross a network.
//!
//! - [`in_memory`]: two ends in one process.
//! - [`quic`]: ends on different nodes. Each presents a certificate ([`certs`], [`identity`]) and a first frame ([`hello`]).
//!   Nodes without a certificate get one for a [`token`]. Data regions travel on separate streams.
//! - [`https`]: TLS for HTTP clients of a manager, with the same certificates.
//!
//! [`settings`] bounds the resources of peers. Refused peers get the reason ([`refusal`]), and the operator gets it once
//! ([`refusal_log`]).

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
#[error("the link is disconnected")]
pub struct Disconnected;

/// Statistics of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Estimated round-trip time.
    pub round_trip: Duration,
    /// Packets sent.
    pub sent_packets: u64,
    /// Sent packets that were lost.
    pub lost_packets: u64,
    /// Bytes sent, including packet headers.
    pub sent_bytes: u64,
    /// Bytes received.
    pub received_bytes: u64,
}

impl LinkStats {
    /// Combines the statistics of several links. The longest round trip counts.
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
    /// Sends one frame. Frames arrive in order or not at all.
    ///
    /// # Errors
    /// Returns [`Disconnected`] if the other end is gone.
    fn send(&self, frame: Vec<u8>) -> Result<(), Disconnected>;

    /// Returns the statistics. `None` without a network.
    fn figures(&self) -> Option<LinkStats> {
        None
    }

    /// Ends the link after an invalid message, and sends the reason if the transport can.
    fn refuse(&self, _why: &dyn fmt::Display) {}

    /// Ends the link because another process has the other end's name. The other end may retry later.
    fn refuse_name(&self, _why: &dyn fmt::Display) {}
}

/// Frames from the other end. The channel ends with the link.
pub type Incoming = UnboundedReceiver<Frame>;

/// A received frame.
///
/// Until it is dropped or read, it may count toward the sender's limit of unread bytes. A sender faster than the reader
/// therefore waits, wherever frames are queued.
pub struct Frame {
    bytes: Vec<u8>,
    /// Released with the frame.
    unread: Option<OwnedSemaphorePermit>,
}

impl Frame {
    /// Creates a frame that counts as unread while `unread` is held.
    pub(crate) fn with_credit(bytes: Vec<u8>, unread: OwnedSemaphorePermit) -> Self {
        Self { bytes, unread: Some(unread) }
    }

    /// Returns the bytes. The frame counts as read from now on.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl From<Vec<u8>> for Frame {
    /// Creates an uncounted frame.
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
