//! In-memory transport: two queues between actors of one process.

use super::{Disconnected, Frame, Incoming, Link};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// The sending half of one end.
#[derive(Debug)]
pub struct MemoryLink(UnboundedSender<Frame>);

impl Link for MemoryLink {
    fn send(&self, frame: Vec<u8>) -> Result<(), Disconnected> {
        self.0.send(frame.into()).map_err(|_| Disconnected)
    }
}

/// One end of a link.
#[derive(Debug)]
pub struct MemoryEnd {
    /// Sending half.
    pub link: MemoryLink,
    /// Frames from the other end. The channel ends when the other end is dropped.
    pub incoming: Incoming,
}

/// Creates two connected ends. The queues need no limit: a worker sends one report per granted instance, and the manager
/// sends only requested buckets.
#[must_use]
pub fn pair() -> (MemoryEnd, MemoryEnd) {
    let (to_b, from_a) = unbounded_channel();
    let (to_a, from_b) = unbounded_channel();
    let a = MemoryEnd { link: MemoryLink(to_b), incoming: from_b };
    let b = MemoryEnd { link: MemoryLink(to_a), incoming: from_a };
    (a, b)
}
