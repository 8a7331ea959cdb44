//! What workers say to each other about regions. The regions themselves travel beside the messages.

use super::shared_memory::SharedMemoryId;
use crate::transport::codec::{self, CodecError};
use pleach_regions::{Head, RegionKey};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use thiserror::Error;

/// No message is longer: a name of a file and some numbers.
pub(super) const MAX_BYTES: usize = 4096;

/// How a region may come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum TransferPath {
    /// However it is fastest.
    Any,
    /// Over the network: the other way has been tried.
    Network,
}

/// Why a region is not given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum DenyReason {
    /// It is not here.
    Lacking,
    /// As many are under way to this peer as may be.
    Busy,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Message {
    /// The first one, either way: where this worker listens, and where it could share memory.
    Listening {
        /// At the address that the other side sees.
        port: u16,
        /// None where there is no folder for it.
        place: Option<SharedMemoryId>,
    },
    /// Asks for a region: it comes on a stream of its own, as [`Lent`](Self::BufferOffered), or is [`NotGiven`](Self::NotGiven).
    Request {
        /// Its key.
        key: RegionKey,
        /// How it may come.
        way: TransferPath,
    },
    /// A region that was asked for does not come.
    NotGiven {
        /// Its key.
        key: RegionKey,
        /// Why.
        why: DenyReason,
    },
    /// A region that was asked for is in shared memory, and stays there until it is returned.
    BufferOffered {
        /// Its key.
        key: RegionKey,
        /// Which piece of shared memory.
        slot: u32,
        /// The name of its file in the folder, when it is lent for the first time.
        file: Option<String>,
        /// Bytes of the body, from the beginning.
        bytes: u64,
        /// The head of the encoding whose body it is.
        head: ByteBuf,
    },
    /// A piece of shared memory is open here, and its file needs no name any more.
    BufferMapped {
        /// Which.
        slot: u32,
    },
    /// A piece of shared memory has been read, or cannot be.
    BufferReturned {
        /// Which.
        slot: u32,
        /// Nothing else need be lent if it cannot.
        is_read: bool,
    },
    /// A piece of shared memory will not be lent again.
    BufferWithdrawn {
        /// Which.
        slot: u32,
    },
}

/// Why a frame is no message.
#[derive(Debug, Error)]
pub(super) enum MessageError {
    #[error("a message of {0} bytes; at most {MAX_BYTES} are allowed")]
    TooLong(usize),
    #[error(transparent)]
    Codec(#[from] CodecError),
}

impl Message {
    pub(super) fn read(frame: &[u8]) -> Result<Self, MessageError> {
        if frame.len() > MAX_BYTES {
            return Err(MessageError::TooLong(frame.len()));
        }
        Ok(codec::decode(frame)?)
    }

    pub(super) fn write(&self) -> Result<Vec<u8>, MessageError> {
        Ok(codec::encode(self)?)
    }
}

/// The head in a message, if it is one.
pub(super) fn head(bytes: &ByteBuf) -> Option<Head> {
    <[u8; Head::BYTES]>::try_from(bytes.as_slice()).ok().map(Head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_longest_one_fits() {
        let lent = Message::BufferOffered {
            key: RegionKey([255; 16]),
            slot: u32::MAX,
            file: Some("x".repeat(255)),
            bytes: u64::MAX,
            head: ByteBuf::from([255; Head::BYTES]),
        };
        let frame = lent.write().unwrap();
        assert!(frame.len() < MAX_BYTES / 4, "{}", frame.len());
        assert_eq!(Message::read(&frame).unwrap(), lent);
        assert!(matches!(Message::read(&[0; MAX_BYTES + 1]), Err(MessageError::TooLong(_))));
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(noise in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = Message::read(&noise);
        }
    }
}
