//! Receives one region on its stream, from the header to the last byte.

use super::{Header, ReceivedRegion, Seal, UNIT_BYTES};
use crate::transport::refusal::{Cause, Refusal};
use crate::transport::settings::Settings;
use bytes::Bytes;
use pleach_regions::{Decoder, Digest, RegionKey};
use quinn::{ReadError, RecvStream, VarInt};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Initial allocation for a region that exceeds the budget, 1 MiB.
const FIRST_BYTES: usize = 1 << 20;

/// Growth factor of the memory of a region that exceeds the budget. Allocation stays within 4 times the received bytes, and
/// growing copies each byte at most 4/3 times on average.
const GROWTH: usize = 4;

/// Bytes digested at once, 128 KiB. They are still in the L2 cache from the copy, and fill every SIMD lane of the hash.
const PIECE_BYTES: usize = 128 << 10;

/// Maximum number of chunks read from a stream at once.
const PIECES: usize = 32;

/// Error code of a stream whose region the receiver refuses.
const NOT_TAKEN: VarInt = VarInt::from_u32(1);

/// Hash state of the bytes as they arrive.
enum Sum {
    /// Hasher of the bytes, and their expected digest.
    Bytes(Box<blake3::Hasher>, Digest),
    /// Decoder of the encoding. Its caller verifies the decoded region.
    Content(Box<Decoder>),
}

impl Sum {
    /// Creates the state for a body with this seal. A seal that is no valid head is refused.
    fn new(seal: Seal) -> Result<Self, Refusal> {
        Ok(match seal {
            Seal::Digest(digest) => Self::Bytes(Box::default(), digest),
            Seal::Head(head) => {
                let decoder = Decoder::new(&head).map_err(|error| Refusal::new(Cause::Language, error))?;
                Self::Content(Box::new(decoder))
            }
        })
    }

    fn see(&mut self, piece: &[u8]) {
        match self {
            Self::Bytes(hasher, _) => {
                hasher.update(piece);
            }
            Self::Content(decoder) => decoder.see(piece),
        }
    }

    /// Refuses bytes of another digest than the expected one.
    fn verify(&self) -> Result<(), Refusal> {
        if let Self::Bytes(hasher, digest) = self
            && Digest(*hasher.finalize().as_bytes()) != *digest
        {
            let text = format!("content does not match digest {digest}");
            return Err(Refusal::new(Cause::Language, text));
        }
        Ok(())
    }
}

/// Limits of arriving regions from one peer.
pub(super) struct Bounds {
    pub(super) settings: Settings,
    /// Budget of all regions, in units.
    pub(super) units: u64,
    pub(super) budget: Arc<Semaphore>,
    /// Bytes of all regions received from this peer.
    pub(super) received: Arc<AtomicU64>,
}

/// Receives one region. Errors contain the region's key, if known.
pub(super) async fn receive(
    mut stream: RecvStream,
    bounds: &Bounds,
) -> Result<ReceivedRegion, (Option<RegionKey>, Refusal)> {
    let mut header = [0; Header::BYTES];
    // The timeout frees the turn of a peer that opens a stream and sends nothing.
    let read = timeout(bounds.settings.stalled, stream.read_exact(&mut header)).await;
    match read {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            return Err((None, Refusal::new(Cause::Language, format!("no region header: {error}"))));
        }
        Err(_) => return Err((None, stalled(&bounds.settings))),
    }
    let header = Header::of_bytes(&header);
    let body = receive_body(&mut stream, &header, bounds).await;
    let (bytes, sum, held) = body.map_err(|refusal| {
        // The stream may have ended already.
        let _ = stream.stop(NOT_TAKEN);
        (Some(header.key), refusal)
    })?;
    let (digest, decoder) = match sum {
        Sum::Bytes(_, digest) => (digest, None),
        Sum::Content(decoder) => (decoder.digest(), Some(decoder)),
    };
    Ok(ReceivedRegion { key: header.key, digest, bytes, decoder, _held: held })
}

/// Receives the bytes after the header, digests them and verifies their digest.
async fn receive_body(
    stream: &mut RecvStream,
    &Header { length, seal, .. }: &Header,
    Bounds { settings, units, budget, received }: &Bounds,
) -> Result<(Vec<u8>, Sum, OwnedSemaphorePermit), Refusal> {
    // Checked first: a refused length must not take any of the budget.
    let length = allowed_length(length, settings)?;
    let wanted_units = (length as u64).div_ceil(UNIT_BYTES).max(1);
    // A region that exceeds the budget takes all of it and arrives alone.
    let share = wanted_units.min(*units) as u32;
    // Waits before any byte is read, so that flow control stops the sender.
    let Ok(held) = Arc::clone(budget).acquire_many_owned(share).await else {
        return Err(ended(&ReadError::ClosedStream));
    };
    // Within the budget, memory is allocated at once. Beyond it, the length is only a claim, and memory grows as bytes
    // arrive.
    let at_first = if wanted_units <= *units { length } else { length.min(FIRST_BYTES) };
    let mut bytes = Vec::with_capacity(at_first);
    let mut sum = Sum::new(seal)?;
    let mut digested = 0;
    let mut pieces: [Bytes; PIECES] = Default::default();
    while let Some(count) = read_pieces(stream, &mut pieces, settings).await? {
        for piece in &mut pieces[..count] {
            let piece = std::mem::take(piece);
            append(&mut bytes, &piece, length)?;
            // Relaxed: a waiting request only compares two readings for progress.
            received.fetch_add(piece.len() as u64, Ordering::Relaxed);
        }
        // Complete pieces only, because the hash fills its SIMD lanes if each update begins at a multiple of them.
        let whole = bytes.len() - bytes.len() % PIECE_BYTES;
        if whole > digested {
            sum.see(&bytes[digested..whole]);
            digested = whole;
        }
    }
    // A sender that cannot read its source ends the stream early.
    if bytes.len() < length {
        let text = format!("truncated: {} of {length} bytes received", bytes.len());
        return Err(Refusal::new(Cause::Language, text));
    }
    sum.see(&bytes[digested..]);
    sum.verify()?;
    Ok((bytes, sum, held))
}

/// Returns the length in the header, if a region may have it.
fn allowed_length(length: u64, settings: &Settings) -> Result<usize, Refusal> {
    let longest = settings.longest_region_bytes;
    match usize::try_from(length) {
        Ok(bytes) if length <= longest => Ok(bytes),
        _ => {
            let text = format!("{length} bytes; at most {longest} bytes are allowed");
            Err(Refusal::new(Cause::TooLong, text))
        }
    }
}

/// Reads the next chunks of a stream and returns their number. `None` at its end.
async fn read_pieces(
    stream: &mut RecvStream,
    pieces: &mut [Bytes; PIECES],
    settings: &Settings,
) -> Result<Option<usize>, Refusal> {
    match timeout(settings.stalled, stream.read_chunks(pieces)).await {
        Err(_) => Err(stalled(settings)),
        Ok(read) => read.map_err(|error| ended(&error)),
    }
}

/// Appends a piece to the bytes of a region of `length`. A longer region is refused.
fn append(bytes: &mut Vec<u8>, piece: &[u8], length: usize) -> Result<(), Refusal> {
    let wanted = bytes.len() + piece.len();
    if wanted > length {
        return Err(Refusal::new(Cause::Language, format!("longer than the declared {length} bytes")));
    }
    if wanted > bytes.capacity() {
        bytes.reserve_exact((bytes.len() * GROWTH).clamp(wanted, length) - bytes.len());
    }
    bytes.extend_from_slice(piece);
    Ok(())
}

fn stalled(settings: &Settings) -> Refusal {
    let seconds = settings.stalled.as_secs_f64();
    Refusal::new(Cause::Deadline, format!("no data for {seconds} s"))
}

fn ended(error: &ReadError) -> Refusal {
    match error {
        ReadError::ConnectionLost(error) => Refusal::of_connection(error),
        error => Refusal::new(Cause::Lost, error),
    }
}
