//! The control stream of a connection as a link of actors.
//!
//! Frames enter through a queue and leave through another. Both queues are limited in bytes. A peer that stops reading is
//! disconnected. A peer that sends faster than this side reads must wait. A dropped link first sends its queue.

use super::RefusalReporter;
use crate::transport::codec::MAX_FRAME_BYTES;
use crate::transport::frames::{self, FrameError};
use crate::transport::refusal::{Cause, Refusal};
use crate::transport::settings::Settings;
use crate::transport::{Disconnected, Frame, Incoming, Link, LinkStats};
use quinn::{Connection, RecvStream, SendStream};
use std::fmt::Display;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::BufReader;
use tokio::sync::Semaphore;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep_until, timeout};

/// Maximum bytes of a batch of queued frames, 64 KiB: enough to fill a packet of any size.
const TOGETHER_BYTES: usize = 64 << 10;

/// Overhead per frame in the limits, 64 bytes, because a queue entry takes memory even without content.
const FRAME_BYTES: usize = 64;

/// Read buffer, 32 KiB. One access to the connection then returns many short frames.
const PIECE_BYTES: usize = 32 << 10;

/// Sending half of a connection's control stream.
#[derive(Debug)]
pub struct QuicLink {
    queue: UnboundedSender<Vec<u8>>,
    /// Bytes of frames not yet written to the stream.
    unsent: Arc<AtomicUsize>,
    max_unsent: usize,
    connection: Connection,
    board: RefusalReporter,
}

impl QuicLink {
    fn disconnect(&self, refusal: &Refusal) {
        self.board.note(self.connection.remote_address().ip(), refusal);
        refusal.close(&self.connection);
    }

    /// Ends the connection at once. Queued frames are lost.
    pub(crate) fn end(&self, refusal: &Refusal) {
        refusal.close(&self.connection);
    }

    /// Returns the reason for the end of the connection. `None` while it lives.
    #[must_use]
    pub fn ended(&self) -> Option<Refusal> {
        self.end_of().ended()
    }

    /// Returns access to the reason for the link's end, for use after an actor owns the link.
    #[must_use]
    pub fn end_of(&self) -> LinkEnd {
        LinkEnd(self.connection.clone())
    }
}

/// Access to the reason for a link's end. It does not keep the link open.
#[derive(Clone, Debug)]
pub struct LinkEnd(Connection);

impl LinkEnd {
    /// Returns the same as [`QuicLink::ended`].
    #[must_use]
    pub fn ended(&self) -> Option<Refusal> {
        self.0.close_reason().map(|error| Refusal::of_connection(&error))
    }
}

impl Link for QuicLink {
    fn send(&self, frame: Vec<u8>) -> Result<(), Disconnected> {
        if self.connection.close_reason().is_some() {
            return Err(Disconnected);
        }
        let bytes = frame.len() + FRAME_BYTES;
        // Relaxed: the counter only bounds memory, and the channel orders the frames.
        let before = self.unsent.fetch_add(bytes, Ordering::Relaxed);
        // A frame on an empty queue may exceed the limit.
        if before > 0 && before + bytes > self.max_unsent {
            let text = format!(
                "the peer does not read: {before} bytes are unsent, at most {} are allowed",
                self.max_unsent
            );
            self.disconnect(&Refusal::new(Cause::Busy, text));
            return Err(Disconnected);
        }
        self.queue.send(frame).map_err(|_| Disconnected)
    }

    fn figures(&self) -> Option<LinkStats> {
        let stats = self.connection.stats();
        Some(LinkStats {
            round_trip: stats.path.rtt,
            sent_packets: stats.path.sent_packets,
            lost_packets: stats.path.lost_packets,
            sent_bytes: stats.udp_tx.bytes,
            received_bytes: stats.udp_rx.bytes,
        })
    }

    fn refuse(&self, why: &dyn Display) {
        self.disconnect(&Refusal::new(Cause::Language, format!("invalid message: {why}")));
    }

    fn refuse_name(&self, why: &dyn Display) {
        self.disconnect(&Refusal::new(Cause::NameInUse, why));
    }
}

/// Starts the transfer of frames over the streams of `connection`.
pub(super) fn start(
    connection: &Connection,
    (send, recv): (SendStream, BufReader<RecvStream>),
    settings: &Settings,
    board: &RefusalReporter,
) -> (QuicLink, Incoming) {
    let (queue, unsent_frames) = unbounded_channel();
    let (arrived, incoming) = unbounded_channel();
    let unsent = Arc::new(AtomicUsize::new(0));
    let writing = write(unsent_frames, send, Arc::clone(&unsent), settings.between_frames);
    let reading = read(recv, arrived, settings.unread_bytes);
    // The task has its own handle of the connection, so that queued frames arrive after the link is dropped.
    tokio::spawn(carry(connection.clone(), board.clone(), settings.stalled, writing, reading));
    let max_unsent = settings.unsent_bytes;
    let (connection, board) = (connection.clone(), board.clone());
    (QuicLink { queue, unsent, max_unsent, connection, board }, incoming)
}

/// Creates the receiving half of a control stream.
pub(super) fn buffered(recv: RecvStream) -> BufReader<RecvStream> {
    BufReader::with_capacity(PIECE_BYTES, recv)
}

/// Runs both directions until both have ended or one has failed. After one side ends, the other gets time to finish, because
/// closing the connection at once could lose unread data.
async fn carry(
    connection: Connection,
    board: RefusalReporter,
    patience: Duration,
    writing: impl Future<Output = ()> + Send,
    reading: impl Future<Output = Result<(), FrameError>> + Send,
) {
    let mut writing = pin!(writing);
    let mut reading = pin!(reading);
    let end = tokio::select! {
        end = &mut reading => {
            if end.is_ok() {
                // After the time limit, the connection is closed in any case.
                let _ = timeout(patience, writing).await;
            }
            end
        }
        () = &mut writing => timeout(patience, reading).await.unwrap_or(Ok(())),
    };
    let refusal = match end {
        Err(error @ FrameError::TooLong { .. }) => Refusal::new(Cause::TooLong, error),
        Err(error @ FrameError::Cut) => Refusal::new(Cause::Language, error),
        Err(FrameError::Stream(_)) | Ok(()) => Refusal::new(
            Cause::Ended,
            "the connection has ended \
                                                                           normally",
        ),
    };
    // A reason of the connection wins, because a stream error is only its consequence.
    let ended = connection.close_reason().map_or(refusal, |error| Refusal::of_connection(&error));
    board.note(connection.remote_address().ip(), &ended);
    ended.close(&connection);
}

/// Sends frames until the queue is closed, then waits for their arrival or for the end of the connection.
async fn write(
    mut frames: UnboundedReceiver<Vec<u8>>,
    mut send: SendStream,
    unsent: Arc<AtomicUsize>,
    between: Duration,
) {
    let mut together = Vec::new();
    let mut next_send = Instant::now();
    while let Some(frame) = frames.recv().await {
        // A short delay collects a batch, unless a complete batch is queued.
        if unsent.load(Ordering::Relaxed) < TOGETHER_BYTES && Instant::now() < next_send {
            sleep_until(next_send).await;
        }
        let mut next = Some(frame);
        let mut bytes = 0;
        while let Some(frame) = next {
            frames::append(&frame, &mut together);
            bytes += frame.len() + FRAME_BYTES;
            next = if together.len() < TOGETHER_BYTES { frames.try_recv().ok() } else { None };
        }
        if send.write_all(&together).await.is_err() {
            return;
        }
        next_send = Instant::now() + between;
        // Counted as unsent until here: a frame that waits for flow control still takes memory.
        unsent.fetch_sub(bytes, Ordering::Relaxed);
        together.clear();
        // Releases the memory of a long frame.
        together.shrink_to(TOGETHER_BYTES);
    }
    if send.finish().is_ok() {
        // An error means that the connection has ended, so nothing is left to send.
        let _ = send.stopped().await;
    }
}

/// Reads frames to the end of the stream, even after the receiver is dropped.
async fn read(
    mut recv: BufReader<RecvStream>,
    arrived: UnboundedSender<Frame>,
    max_unread: usize,
) -> Result<(), FrameError> {
    // At least one frame of maximum length: a permit beyond the limit would never be granted.
    let most_unread = max_unread.clamp(MAX_FRAME_BYTES + FRAME_BYTES, u32::MAX as usize);
    let unread = Arc::new(Semaphore::new(most_unread));
    while let Some(length) = frames::read_length(&mut recv, MAX_FRAME_BYTES).await? {
        // Counted before the body is read, so that QUIC's flow control stops a sender that is too fast.
        let counted = (length + FRAME_BYTES) as u32;
        // The semaphore is never closed.
        let Ok(permit) = Arc::clone(&unread).acquire_many_owned(counted).await else { return Ok(()) };
        let frame = frames::read_body(&mut recv, length).await?;
        // The receiver may be dropped. The stream is still read to its end.
        let _ = arrived.send(Frame::with_credit(frame, permit));
    }
    Ok(())
}
