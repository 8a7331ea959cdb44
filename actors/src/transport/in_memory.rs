//! The in-memory transport: two queues between actors of one process.

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

/// One end: what it sends, and what arrives.
#[derive(Debug)]
pub struct MemoryEnd {
    /// For sending.
    pub link: MemoryLink,
    /// Frames from the other end; ends when that is dropped.
    pub incoming: Incoming,
}

/// Two connected ends. The queues need no bound: a worker sends a report for each instance it was given, and
/// the manager sends no bucket that was not asked for.
#[must_use]
pub fn pair() -> (MemoryEnd, MemoryEnd) {
    let (to_b, from_a) = unbounded_channel();
    let (to_a, from_b) = unbounded_channel();
    let a = MemoryEnd { link: MemoryLink(to_b), incoming: from_b };
    let b = MemoryEnd { link: MemoryLink(to_a), incoming: from_a };
    (a, b)
}
