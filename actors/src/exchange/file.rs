//! A file by the digest of its content, sent as a data region is: how workers get input files that they do not have.

use crate::transport::quic::RegionStreams;
use crate::transport::quic::regions::SendError;
use bytes::Bytes;
use pleach_regions::{Digest, RegionKey};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use thiserror::Error;
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::spawn_blocking;

/// Why a file was not sent.
#[derive(Debug, Error)]
pub enum SendFileError {
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It does not hold what it should: somebody has changed it.
    #[error("{}: its content is not that of digest {digest}; it has changed", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// What it should hold.
        digest: Digest,
    },
    /// The receiver did not get it.
    #[error("{0}")]
    NotSent(#[from] SendError),
}

/// The key under which a file of this content is sent: the first half of its digest.
#[must_use]
pub fn file_key(digest: &Digest) -> RegionKey {
    let mut key = [0; 16];
    key.copy_from_slice(&digest.0[..16]);
    RegionKey(key)
}

/// Read at once, and sent at once: long enough to keep a disk and a line busy, and a few of them in memory.
const PIECE_BYTES: usize = 1 << 20;

/// Pieces that are read before they can be sent.
const AHEAD: usize = 2;

/// Sends the file at `path`, whose content has this digest ([`Digest::of_bytes`]), piece by piece as it is read. It
/// arrives as any region does ([`RegionArrival`](crate::transport::quic::RegionArrival)). It may be called on any tokio runtime.
///
/// # Errors
/// [`SendFileError`]; then nothing arrives.
pub async fn send_file(
    regions: &RegionStreams,
    key: RegionKey,
    digest: Digest,
    path: &Path,
) -> Result<(), SendFileError> {
    let fail = |source| SendFileError::File { path: path.to_owned(), source };
    let file = File::open(path).map_err(fail)?;
    let length = file.metadata().map_err(fail)?.len();
    let (pieces, read) = channel(AHEAD);
    let reading = spawn_blocking(move || read_all(file, length, digest, &pieces));
    let sent = regions.send_pieces(key, digest, length, read).await;
    match reading.await.unwrap_or_else(|panic| Err(io::Error::other(panic))).map_err(fail)? {
        Content::Changed => Err(SendFileError::Changed { path: path.to_owned(), digest }),
        Content::AsItWas => Ok(sent?),
    }
}

/// Whether a file held what it should.
enum Content {
    AsItWas,
    Changed,
}

/// Reads a file of `length` bytes. The last piece is handed on only when all of them have the digest.
fn read_all(mut file: File, length: u64, digest: Digest, pieces: &Sender<Bytes>) -> io::Result<Content> {
    let mut hasher = blake3::Hasher::new();
    let mut left = length;
    loop {
        let count = left.min(PIECE_BYTES as u64) as usize;
        let mut piece = vec![0; count];
        match file.read_exact(&mut piece) {
            // Somebody has made it shorter.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Content::Changed),
            read => read?,
        }
        hasher.update(&piece);
        left -= count as u64;
        if left == 0 && hasher.finalize() != blake3::Hash::from_bytes(digest.0) {
            return Ok(Content::Changed);
        }
        // Nobody takes them where the peer is gone.
        if (count > 0 && pieces.blocking_send(piece.into()).is_err()) || left == 0 {
            return Ok(Content::AsItWas);
        }
    }
}
