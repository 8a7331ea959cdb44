//! Transfer of data regions: each on its own stream, beside the frames and with lower priority.
//!
//! A stream begins with a header: the region's key, its length and its `Seal`, usually the digest of its bytes. The receiver
//! stays within its budget, digests bytes as they arrive, and accepts nothing with another digest. Callers encode regions
//! and select them.

mod receive;

use super::RefusalReporter;
use crate::transport::refusal::Refusal;
use crate::transport::settings::Settings;
use bytes::Bytes;
use pleach_regions::{Decoder, Digest, Head, RegionKey};
use quinn::{Connection, SendStream, VarInt};
use receive::{Bounds, receive};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use thiserror::Error;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// Unit of the receive budget, 64 KiB. With it, the budget fits 32 bits.
const UNIT_BYTES: u64 = 64 << 10;

/// Priority of region streams, below the 0 of frames, so that regions do not delay messages.
const PRIORITY: i32 = -1;

/// Data region that has arrived completely.
#[derive(Debug)]
pub struct ReceivedRegion {
    /// Key in the header.
    pub key: RegionKey,
    /// Digest of the bytes, verified. With a decoder, the sender's digest of the encoded region, unverified.
    pub digest: Digest,
    /// Decoder that has digested the bytes, if they are the body of an encoding. Finishing it verifies the digest.
    pub decoder: Option<Box<Decoder>>,
    /// Bytes of the region, or of the body of its encoding.
    pub bytes: Vec<u8>,
    /// Share of the receive budget, released with the region.
    _held: OwnedSemaphorePermit,
}

/// Result of a stream for a region.
pub type RegionArrival = Result<ReceivedRegion, ReceiveError>;

/// An announced region that did not arrive.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("data region {key}: {refusal}")]
pub struct ReceiveError {
    /// Key in the header.
    pub key: RegionKey,
    /// Reason.
    pub refusal: Refusal,
}

/// Reason for a region that was not sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SendError {
    /// The connection is gone.
    #[error("{0}")]
    Lost(Refusal),
    /// The receiver refused the region: it is too long or has another digest.
    #[error("the receiver rejected the region")]
    NotTaken,
    /// The receiver has taken no bytes for too long.
    #[error("the receiver has read no data for {} s", .0.as_secs_f64())]
    Stalled(Duration),
    /// The source of the bytes stopped before their end.
    #[error("failed to read the content")]
    Cut,
}

/// Proof of a region's content.
#[derive(Clone, Copy, Debug)]
enum Seal {
    /// Digest of the bytes, which the receiver digests as they arrive.
    Digest(Digest),
    /// Head of the encoding, if the bytes are its body. It contains the digest of the encoded region, so the body needs no
    /// other.
    Head(Head),
}

/// Header of a stream.
#[derive(Clone, Copy, Debug)]
struct Header {
    key: RegionKey,
    length: u64,
    seal: Seal,
}

impl Header {
    /// Key, length, kind of seal, seal.
    const BYTES: usize = 16 + 8 + 1 + Head::BYTES;

    fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..16].copy_from_slice(&self.key.0);
        bytes[16..24].copy_from_slice(&self.length.to_le_bytes());
        match self.seal {
            Seal::Digest(digest) => bytes[25..57].copy_from_slice(&digest.0),
            Seal::Head(head) => {
                bytes[24] = 1;
                bytes[25..].copy_from_slice(&head.0);
            }
        }
        bytes
    }

    fn of_bytes(bytes: &[u8; Self::BYTES]) -> Self {
        let (mut key, mut length, mut digest, mut head) = ([0; 16], [0; 8], [0; 32], [0; Head::BYTES]);
        key.copy_from_slice(&bytes[..16]);
        length.copy_from_slice(&bytes[16..24]);
        digest.copy_from_slice(&bytes[25..57]);
        head.copy_from_slice(&bytes[25..]);
        let seal = if bytes[24] == 0 { Seal::Digest(Digest(digest)) } else { Seal::Head(Head(head)) };
        Self { key: RegionKey(key), length: u64::from_le_bytes(length), seal }
    }
}

/// Bytes handed to a stream at once when the sender monitors its progress.
const WRITTEN_BYTES: usize = 1 << 20;

/// Error code of a stream that the sender aborts.
const BROKEN_OFF: VarInt = VarInt::from_u32(2);

/// Sending half of the region streams of a connection.
#[derive(Clone, Debug)]
pub struct RegionStreams {
    connection: Connection,
    under_way: Arc<Semaphore>,
    received: Arc<AtomicU64>,
}

impl RegionStreams {
    /// Sends a region with the digest of its bytes, once fewer than the agreed number of regions are being sent. At the
    /// return, the region has arrived at the other machine, but the receiver may not have verified it yet.
    ///
    /// # Errors
    /// Returns [`SendError`].
    pub async fn send(&self, key: RegionKey, digest: Digest, bytes: Bytes) -> Result<(), SendError> {
        // Held until the receiver has all bytes: more regions at once would only share the bandwidth.
        let _turn = self.turn().await;
        let header = Header { key, length: bytes.len() as u64, seal: Seal::Digest(digest) };
        let mut send = self.begin(header).await?;
        send.write_chunk(bytes).await.map_err(|_| self.lost())?;
        self.end(send).await
    }

    /// Sends a region like [`send`](Self::send), with bytes from `pieces`. The receiver accepts it only if they are `length`
    /// bytes in all.
    ///
    /// # Errors
    /// Returns [`SendError`], and [`SendError::Cut`] if `pieces` ends too early.
    pub async fn send_pieces(
        &self,
        key: RegionKey,
        digest: Digest,
        length: u64,
        mut pieces: Receiver<Bytes>,
    ) -> Result<(), SendError> {
        let _turn = self.turn().await;
        let mut send = self.begin(Header { key, length, seal: Seal::Digest(digest) }).await?;
        let mut left = length;
        while let Some(piece) = pieces.recv().await {
            // Saturates if the source sends too much. The receiver refuses a region longer than announced.
            left = left.saturating_sub(piece.len() as u64);
            send.write_chunk(piece).await.map_err(|_| self.lost())?;
        }
        if left > 0 {
            // The early end of the stream reports the failure under the region's key. The stream may have ended already.
            let _ = send.finish();
            return Err(SendError::Cut);
        }
        self.end(send).await
    }

    /// Sends the body of an encoding. Waits as long as the receiver takes some of it within `patience`. The receiver
    /// verifies the digest when it decodes the body.
    ///
    /// # Errors
    /// Returns [`SendError`].
    pub async fn send_encoded(
        &self,
        key: RegionKey,
        head: Head,
        mut body: Bytes,
        patience: Duration,
    ) -> Result<(), SendError> {
        let stalled = |_| SendError::Stalled(patience);
        let _turn = timeout(patience, self.turn()).await.map_err(stalled)?;
        let header = Header { key, length: body.len() as u64, seal: Seal::Head(head) };
        let mut send = timeout(patience, self.begin(header)).await.map_err(stalled)??;
        // Pieces show progress: one write of the whole body could exceed `patience` on a slow link.
        while !body.is_empty() {
            let piece = body.split_to(body.len().min(WRITTEN_BYTES));
            let written = timeout(patience, send.write_chunk(piece)).await;
            if written.is_err() {
                // The stream may have ended already.
                let _ = send.reset(BROKEN_OFF);
            }
            written.map_err(stalled)?.map_err(|_| self.lost())?;
        }
        timeout(patience, self.end(send)).await.map_err(stalled)?
    }

    /// Returns the received bytes of regions from this peer. They distinguish a slow peer from a silent one.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Waits for a turn. The semaphore is never closed.
    async fn turn(&self) -> Option<SemaphorePermit<'_>> {
        self.under_way.acquire().await.ok()
    }

    async fn begin(&self, header: Header) -> Result<SendStream, SendError> {
        let mut send = self.connection.open_uni().await.map_err(|_| self.lost())?;
        // A write to a lost stream returns the error.
        let _ = send.set_priority(PRIORITY);
        send.write_all(&header.to_bytes()).await.map_err(|_| self.lost())?;
        Ok(send)
    }

    async fn end(&self, mut send: SendStream) -> Result<(), SendError> {
        send.finish().map_err(|_| self.lost())?;
        // Without a code, the peer has acknowledged all bytes. A code comes from a receiver that refuses the region.
        match send.stopped().await {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err(SendError::NotTaken),
            Err(_) => Err(self.lost()),
        }
    }

    fn lost(&self) -> SendError {
        match self.connection.close_reason() {
            Some(error) => SendError::Lost(Refusal::of_connection(&error)),
            None => SendError::NotTaken,
        }
    }
}

/// Starts the transfer of regions over `connection`.
pub(super) fn start(
    connection: &Connection,
    settings: &Settings,
    board: &RefusalReporter,
) -> (RegionStreams, Receiver<RegionArrival>) {
    let count = settings.regions as usize;
    // Space for 1: received regions wait for their receiver with their turns.
    let (arrived, arrivals) = channel(1);
    let received = Arc::new(AtomicU64::new(0));
    // At least 1 unit, so that regions can arrive one by one with any budget.
    let units = (settings.arriving_bytes / UNIT_BYTES).clamp(1, u64::from(u32::MAX));
    let budget = Arc::new(Semaphore::new(units as usize));
    let bounds = Bounds { settings: settings.clone(), units, budget, received: Arc::clone(&received) };
    tokio::spawn(receive_all(connection.clone(), bounds, board.clone(), arrived));
    let under_way = Arc::new(Semaphore::new(count));
    (RegionStreams { connection: connection.clone(), under_way, received }, arrivals)
}

/// Receives regions until the connection ends, with a limited number at once. The limit includes regions not taken yet and
/// failed ones, so that a peer cannot accumulate either.
async fn receive_all(
    connection: Connection,
    bounds: Bounds,
    board: RefusalReporter,
    arrived: Sender<RegionArrival>,
) {
    let bounds = Arc::new(bounds);
    let turns = Arc::new(Semaphore::new(bounds.settings.regions.max(1) as usize));
    // The semaphore is never closed.
    while let Ok(turn) = Arc::clone(&turns).acquire_owned().await {
        // Accepted only with a turn: data of further streams stays within the windows of QUIC.
        let Ok(stream) = connection.accept_uni().await else { return };
        let (bounds, board) = (Arc::clone(&bounds), board.clone());
        let (arrived, peer) = (arrived.clone(), connection.remote_address().ip());
        tokio::spawn(async move {
            let arrival = receive(stream, &bounds).await;
            if let Err((key, refusal)) = &arrival {
                board.note(peer, &Refusal::new(refusal.cause, format!("data region: {refusal}")));
                // No receiver waits for a region without a key.
                if key.is_none() {
                    return;
                }
            }
            let arrival = arrival
                .map_err(|(key, refusal)| ReceiveError { key: key.unwrap_or(RegionKey([0; 16])), refusal });
            // The receiver may be dropped.
            let _ = arrived.send(arrival).await;
            // Returned after the handover, because a region that waits for its receiver still takes memory.
            drop(turn);
        });
    }
}
