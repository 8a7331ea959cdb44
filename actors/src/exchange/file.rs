//! A file by the digest of its content, sent as a data region is: how workers get input files that they do not have.

use crate::transport::quic::Regions;
use crate::transport::quic::regions::NotSent;
use pleach_regions::{Digest, RegionKey};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

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
    NotSent(#[from] NotSent),
}

/// The key under which a file of this content is sent: the first half of its digest.
#[must_use]
pub fn file_key(digest: &Digest) -> RegionKey {
    let mut key = [0; 16];
    key.copy_from_slice(&digest.0[..16]);
    RegionKey(key)
}

/// Sends the file at `path`, whose content has this digest ([`Digest::of_bytes`]), piece by piece as it is read. It
/// arrives as any region does ([`Arrival`](crate::transport::quic::Arrival)). To be called on the network's threads.
///
/// # Errors
/// [`SendFileError`]; then nothing arrives.
pub async fn send_file(
    regions: &Regions,
    key: RegionKey,
    digest: Digest,
    path: &Path,
) -> Result<(), SendFileError> {
    let fail = |source| SendFileError::File { path: path.to_owned(), source };
    let bytes = std::fs::read(path).map_err(fail)?;
    regions.send(key, digest, bytes.into()).await.map_err(SendFileError::NotSent)
}
