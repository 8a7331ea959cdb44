//! Messages between workers about regions. The regions travel on separate streams.

use super::shared_memory::SharedMemoryId;
use crate::transport::codec::{self, CodecError};
use pleach_dispatch::message::RegionAnswer;
use pleach_regions::{Head, RegionKey, SpatialQuery};
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use std::net::SocketAddr;
use thiserror::Error;

/// Maximum length of a message: requests and replies of the result directory, and answers to queries. The others are a file name and some numbers.
pub(super) const MAX_BYTES: usize = 256 << 10;

/// Way of a region's transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum TransferPath {
    /// The fastest way.
    Any,
    /// Over the network, because shared memory has failed.
    Network,
}

/// Reason for a denied region.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum DenyReason {
    /// The region is not on this worker.
    Lacking,
    /// The transfers to this peer have reached their limit.
    Busy,
    /// Many peers have requested the region. The one at this address has just received it.
    Redirected(SocketAddr),
}

/// A message between workers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) enum Message {
    /// First message in both directions: listening port of this worker, and its shared memory.
    Listening {
        /// Port at the address that the peer sees.
        port: u16,
        /// `None` without a shared folder.
        place: Option<SharedMemoryId>,
    },
    /// Requests a region. The region comes on its own stream or as [`BufferOffered`](Self::BufferOffered), unless the answer
    /// is [`NotGiven`](Self::NotGiven).
    Request {
        /// Key of the region.
        key: RegionKey,
        /// Allowed way.
        path: TransferPath,
    },
    /// Denies a requested region.
    NotGiven {
        /// Key of the region.
        key: RegionKey,
        /// Reason.
        why: DenyReason,
    },
    /// Offers a requested region in shared memory. It stays there until the receiver returns the buffer.
    BufferOffered {
        /// Key of the region.
        key: RegionKey,
        /// Number of the buffer.
        slot: u32,
        /// Name of the buffer's file in the folder, at its first use.
        file: Option<String>,
        /// Bytes of the body, from the start of the buffer.
        bytes: u64,
        /// Head of the encoding with this body.
        head: ByteBuf,
    },
    /// The receiver has mapped a buffer, so its file needs no name any more.
    BufferMapped {
        /// Number of the buffer.
        slot: u32,
    },
    /// The receiver has read a buffer, or cannot read it.
    BufferReturned {
        /// Number of the buffer.
        slot: u32,
        /// `false` means that the peer should offer no further buffers.
        is_read: bool,
    },
    /// The sender does not offer a buffer again.
    BufferWithdrawn {
        /// Number of the buffer.
        slot: u32,
    },
    /// Message of the result directory, which interprets it.
    Directory(ByteBuf),
    /// Queries a region. Answered by [`ObjectsFound`](Self::ObjectsFound).
    FindObjects {
        /// Number of the query on this connection, by the asking side.
        call: u64,
        /// Key of the region.
        key: RegionKey,
        /// The query.
        query: SpatialQuery,
    },
    /// Answers a query.
    ObjectsFound {
        /// Number of the query.
        call: u64,
        /// `None` if the region is not on this worker.
        answer: Option<RegionAnswer>,
    },
}

/// Reason for a frame that is not a message.
#[derive(Debug, Error)]
pub(super) enum MessageError {
    #[error("message of {0} bytes; at most {MAX_BYTES} bytes are allowed")]
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

/// Returns the head in a message, if it is valid.
pub(super) fn head(bytes: &ByteBuf) -> Option<Head> {
    <[u8; Head::BYTES]>::try_from(bytes.as_slice()).ok().map(Head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_regions::{FoundObject, FoundObjects, MAX_FOUND};
    use proptest::prelude::*;

    #[test]
    fn longest_message_fits_frame_limit() {
        let lent = Message::BufferOffered {
            key: RegionKey([255; 16]),
            slot: u32::MAX,
            file: Some("x".repeat(255)),
            bytes: u64::MAX,
            head: ByteBuf::from([255; Head::BYTES]),
        };
        let frame = lent.write().unwrap();
        assert!(frame.len() < 1024, "{}", frame.len());
        assert_eq!(Message::read(&frame).unwrap(), lent);
        assert!(matches!(Message::read(&vec![0; MAX_BYTES + 1]), Err(MessageError::TooLong(_))));
    }

    #[test]
    fn longest_answer_fits_the_limit() {
        let position = vec![f64::MAX; 3];
        let object = FoundObject {
            id: u64::MAX,
            low: position.clone(),
            high: position.clone(),
            centroid: position,
            distance: Some(f64::MAX),
        };
        let found = FoundObjects { total: u64::MAX, objects: vec![object; MAX_FOUND as usize] };
        let answer = Some(RegionAnswer { found: Ok(found), region_bytes: u64::MAX, moved_bytes: u64::MAX });
        let message = Message::ObjectsFound { call: u64::MAX, answer };
        assert_eq!(Message::read(&message.write().unwrap()).unwrap(), message);
    }

    proptest! {
        #[test]
        fn reading_noise_does_not_panic(noise in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = Message::read(&noise);
        }
    }
}
