//! Input files by content digest, sent like data regions to workers that lack them.

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

/// Reason for a file that was not sent.
#[derive(Debug, Error)]
pub enum SendFileError {
    /// The file cannot be read.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// The content differs from its digest: the file has changed.
    #[error("{}: content does not match digest {digest}; the file has changed", path.display())]
    Changed {
        /// The file.
        path: PathBuf,
        /// Expected digest.
        digest: Digest,
    },
    /// The receiver did not get the file.
    #[error("{0}")]
    NotSent(#[from] SendError),
}

/// Returns the key for sending a file of this content: the first half of its digest.
#[must_use]
pub fn file_key(digest: &Digest) -> RegionKey {
    let mut key = [0; 16];
    key.copy_from_slice(&digest.0[..16]);
    RegionKey(key)
}

/// Bytes read and sent at once: enough to keep a disk and a network link busy, and few enough to hold several in memory.
const PIECE_BYTES: usize = 1 << 20;

/// Pieces read before they can be sent.
const AHEAD: usize = 2;

/// Sends the file at `path`, piece by piece as it is read. Its content has the digest `digest` ([`Digest::of_bytes`]). The
/// file arrives like a region ([`RegionArrival`](crate::transport::quic::RegionArrival)). The caller may use any tokio
/// runtime.
///
/// # Errors
/// Returns [`SendFileError`]. Then nothing arrives.
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
    // The reader ends with the channel: a failed transfer drops the receiver, so the wait below is short.
    let sent = regions.send_pieces(key, digest, length, read).await;
    // The reader's error comes first, because it is the cause of a transfer that ended early.
    match reading.await.unwrap_or_else(|panic| Err(io::Error::other(panic))).map_err(fail)? {
        Content::Changed => Err(SendFileError::Changed { path: path.to_owned(), digest }),
        Content::AsItWas => Ok(sent?),
    }
}

/// Result of the comparison of a file with its digest.
enum Content {
    AsItWas,
    Changed,
}

/// Reads a file of `length` bytes. It sends the last piece only if all pieces together match the digest.
fn read_all(mut file: File, length: u64, digest: Digest, pieces: &Sender<Bytes>) -> io::Result<Content> {
    let mut hasher = blake3::Hasher::new();
    let mut left = length;
    loop {
        let count = left.min(PIECE_BYTES as u64) as usize;
        let mut piece = vec![0; count];
        match file.read_exact(&mut piece) {
            // The file was truncated meanwhile.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Content::Changed),
            read => read?,
        }
        hasher.update(&piece);
        left -= count as u64;
        // Withholding the last piece makes the receiver see a truncated file, so a changed one never arrives whole.
        if left == 0 && hasher.finalize() != blake3::Hash::from_bytes(digest.0) {
            return Ok(Content::Changed);
        }
        // The receiver is dropped when the peer is gone.
        if (count > 0 && pieces.blocking_send(piece.into()).is_err()) || left == 0 {
            return Ok(Content::AsItWas);
        }
    }
}
