//! Data regions on their way: each on a stream of its own, beside the frames and behind them where both want to go.
//!
//! A stream begins with a header: the region's key, its length and the digest of its bytes, which the sender knows. The
//! receiver holds no more than its budget, gives memory as bytes arrive, digests them as they do, and takes nothing that
//! has another digest. How a region becomes bytes, and who needs which, is decided elsewhere.

use super::Board;
use crate::transport::refusal::{Cause, Refusal};
use crate::transport::settings::Settings;
use bytes::Bytes;
use pleach_regions::{Digest, RegionKey};
use quinn::{Connection, ReadError, RecvStream, VarInt};
use std::sync::Arc;
use thiserror::Error;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Key, length, digest.
const HEADER_BYTES: usize = 16 + 8 + 32;

/// Allocated before any byte of a region has arrived.
const FIRST_BYTES: usize = 1 << 20;

/// What has arrived is copied this many times over at most into larger memory, and never more than so many times what
/// has arrived is allocated.
const GROWTH: usize = 4;

/// Digested at once: what is copied is still in the second cache, and fills every lane of the hash.
const PIECE_BYTES: usize = 128 << 10;

/// Pieces of a stream taken at once.
const PIECES: usize = 32;

/// The budget is counted in units of this size, so that its count fits 32 bits.
const UNIT_BYTES: u64 = 64 << 10;

/// Frames go first.
const PRIORITY: i32 = -1;

/// The code with which a receiver stops a stream whose region it does not take.
const NOT_TAKEN: VarInt = VarInt::from_u32(1);

/// A data region that has arrived whole, with the digest that it was announced with.
#[derive(Debug)]
pub struct Region {
    /// The key it was sent under.
    pub key: RegionKey,
    /// Of its bytes.
    pub digest: Digest,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// Its share of what may be held; let go of with it.
    _held: OwnedSemaphorePermit,
}

/// What came on a stream for a region.
pub type Arrival = Result<Region, NotArrived>;

/// A region was announced and did not arrive.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("data region {key}: {refusal}")]
pub struct NotArrived {
    /// Its key.
    pub key: RegionKey,
    /// Why.
    pub refusal: Refusal,
}

/// Why a region was not sent.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotSent {
    /// The connection is gone.
    #[error("{0}")]
    Lost(Refusal),
    /// The receiver did not take it: it is too long for it, or has another digest.
    #[error("the receiver does not take it")]
    NotTaken,
}

/// For data regions to a peer.
#[derive(Clone, Debug)]
pub struct Regions {
    connection: Connection,
    under_way: Arc<Semaphore>,
}

impl Regions {
    /// Sends a region, when fewer than the agreed number are under way; `digest` is that of its bytes. It has arrived at
    /// the other machine when this returns, but may not have been looked at.
    ///
    /// # Errors
    /// [`NotSent`].
    pub async fn send(&self, key: RegionKey, digest: Digest, bytes: Bytes) -> Result<(), NotSent> {
        // The semaphore is never closed.
        let _turn = self.under_way.acquire().await;
        let lost = || {
            let reason = self.connection.close_reason();
            match reason {
                Some(error) => NotSent::Lost(Refusal::of_connection(&error)),
                None => NotSent::NotTaken,
            }
        };
        let mut send = self.connection.open_uni().await.map_err(|_| lost())?;
        // A stream that is gone says so when it is written to.
        let _ = send.set_priority(PRIORITY);
        let header = header(key, bytes.len() as u64, digest);
        send.write_all(&header).await.map_err(|_| lost())?;
        send.write_chunk(bytes).await.map_err(|_| lost())?;
        send.finish().map_err(|_| lost())?;
        match send.stopped().await {
            Ok(None) => Ok(()),
            Ok(Some(_)) => Err(NotSent::NotTaken),
            Err(_) => Err(lost()),
        }
    }
}

fn header(key: RegionKey, length: u64, digest: Digest) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..16].copy_from_slice(&key.0);
    header[16..24].copy_from_slice(&length.to_le_bytes());
    header[24..].copy_from_slice(&digest.0);
    header
}

fn read_header(header: &[u8; HEADER_BYTES]) -> (RegionKey, u64, Digest) {
    let (mut key, mut length, mut digest) = ([0; 16], [0; 8], [0; 32]);
    key.copy_from_slice(&header[..16]);
    length.copy_from_slice(&header[16..24]);
    digest.copy_from_slice(&header[24..]);
    (RegionKey(key), u64::from_le_bytes(length), Digest(digest))
}

/// Starts to carry regions over `connection`.
pub(super) fn start(
    connection: &Connection,
    settings: &Settings,
    board: &Board,
) -> (Regions, Receiver<Arrival>) {
    let count = settings.regions as usize;
    // Those that have arrived wait with their turns.
    let (arrived, arrivals) = channel(1);
    tokio::spawn(receive_all(connection.clone(), settings.clone(), board.clone(), arrived));
    (Regions { connection: connection.clone(), under_way: Arc::new(Semaphore::new(count)) }, arrivals)
}

/// Takes regions until the connection ends: so many at once, which includes those that nobody has taken yet and those that
/// failed, so that a peer cannot pile up either.
async fn receive_all(connection: Connection, settings: Settings, board: Board, arrived: Sender<Arrival>) {
    let units = (settings.arriving_bytes / UNIT_BYTES).clamp(1, u64::from(u32::MAX));
    let budget = Arc::new(Semaphore::new(units as usize));
    let turns = Arc::new(Semaphore::new(settings.regions.max(1) as usize));
    // The semaphore is never closed.
    while let Ok(turn) = Arc::clone(&turns).acquire_owned().await {
        let Ok(stream) = connection.accept_uni().await else { return };
        let (settings, budget, board) = (settings.clone(), Arc::clone(&budget), board.clone());
        let (arrived, peer) = (arrived.clone(), connection.remote_address().ip());
        tokio::spawn(async move {
            let arrival = receive(stream, &settings, units, budget).await;
            if let Err((key, refusal)) = &arrival {
                board.note(peer, &Refusal::new(refusal.cause, format!("data region: {refusal}")));
                // Without a key nobody can wait for it.
                if key.is_none() {
                    return;
                }
            }
            let arrival = arrival
                .map_err(|(key, refusal)| NotArrived { key: key.unwrap_or(RegionKey([0; 16])), refusal });
            // Nobody may want it any more.
            let _ = arrived.send(arrival).await;
            drop(turn);
        });
    }
}

/// One region, or why not, with its key where that is known.
async fn receive(
    mut stream: RecvStream,
    settings: &Settings,
    units: u64,
    budget: Arc<Semaphore>,
) -> Result<Region, (Option<RegionKey>, Refusal)> {
    let mut header = [0; HEADER_BYTES];
    let read = timeout(settings.stalled, stream.read_exact(&mut header)).await;
    match read {
        Ok(Ok(())) => {}
        Ok(Err(error)) => {
            return Err((
                None,
                Refusal::new(Cause::Language, format!("no header of a data region: {error}")),
            ));
        }
        Err(_) => return Err((None, stalled(settings))),
    }
    let (key, length, digest) = read_header(&header);
    let body = receive_body(&mut stream, length, digest, settings, units, budget).await;
    let (bytes, held) = body.map_err(|refusal| {
        // It may have ended by itself.
        let _ = stream.stop(NOT_TAKEN);
        (Some(key), refusal)
    })?;
    Ok(Region { key, digest, bytes, _held: held })
}

async fn receive_body(
    stream: &mut RecvStream,
    length: u64,
    digest: Digest,
    settings: &Settings,
    units: u64,
    budget: Arc<Semaphore>,
) -> Result<(Vec<u8>, OwnedSemaphorePermit), Refusal> {
    let longest = settings.longest_region_bytes;
    let length = match usize::try_from(length) {
        Ok(bytes) if length <= longest => bytes,
        _ => {
            let text = format!("it claims {length} bytes; at most {longest} are allowed");
            return Err(Refusal::new(Cause::TooLong, text));
        }
    };
    let share = (length as u64).div_ceil(UNIT_BYTES).clamp(1, units) as u32;
    let Ok(held) = budget.acquire_many_owned(share).await else {
        return Err(ended(&ReadError::ClosedStream));
    };
    let mut bytes = Vec::with_capacity(length.min(FIRST_BYTES));
    let mut hasher = blake3::Hasher::new();
    let mut digested = 0;
    let mut pieces: [Bytes; PIECES] = Default::default();
    loop {
        let read = timeout(settings.stalled, stream.read_chunks(&mut pieces)).await;
        let count = match read {
            Err(_) => return Err(stalled(settings)),
            Ok(Err(error)) => return Err(ended(&error)),
            Ok(Ok(None)) => break,
            Ok(Ok(Some(count))) => count,
        };
        for piece in &mut pieces[..count] {
            let piece = std::mem::take(piece);
            let wanted = bytes.len() + piece.len();
            if wanted > length {
                return Err(Refusal::new(
                    Cause::Language,
                    format!("it is longer than the {length} bytes it claims"),
                ));
            }
            if wanted > bytes.capacity() {
                bytes.reserve_exact((bytes.len() * GROWTH).clamp(wanted, length) - bytes.len());
            }
            bytes.extend_from_slice(&piece);
        }
        if bytes.len() - digested >= PIECE_BYTES {
            hasher.update(&bytes[digested..]);
            digested = bytes.len();
        }
    }
    hasher.update(&bytes[digested..]);
    if bytes.len() < length {
        let text = format!("it ends after {} of the {length} bytes it claims", bytes.len());
        return Err(Refusal::new(Cause::Language, text));
    }
    if Digest(*hasher.finalize().as_bytes()) != digest {
        return Err(Refusal::new(Cause::Language, format!("its bytes are not those of digest {digest}")));
    }
    Ok((bytes, held))
}

fn stalled(settings: &Settings) -> Refusal {
    let seconds = settings.stalled.as_secs_f64();
    Refusal::new(Cause::Deadline, format!("nothing of it has arrived for {seconds} s"))
}

fn ended(error: &ReadError) -> Refusal {
    match error {
        ReadError::ConnectionLost(error) => Refusal::of_connection(error),
        error => Refusal::new(Cause::Lost, error),
    }
}
