//! How manager and workers reach each other: frames of bytes, in order, both ways.
//!
//! A [`Link`] is one end. What it carries is encoded by [`codec`] whichever way it goes, so that the messages
//! of an embedded run are the ones that cross a network.

pub mod codec;
pub mod memory;

use thiserror::Error;

/// The other end is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the other end of the link is gone")]
pub struct Disconnected;

/// The sending half of one end.
pub trait Link: Send + 'static {
    /// Sends one frame; frames arrive in order or not at all.
    ///
    /// # Errors
    /// [`Disconnected`] when nobody will receive it.
    fn send(&self, frame: Vec<u8>) -> Result<(), Disconnected>;
}
