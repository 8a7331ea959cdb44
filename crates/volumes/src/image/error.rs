//! Errors of image files.

use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// An image cannot be read. The message names the file, and the field, plane or chunk.
#[derive(Debug, Error)]
#[error("{}: {problem}", path.display())]
pub struct VolumeError {
    path: PathBuf,
    #[source]
    problem: Box<Problem>,
}

impl VolumeError {
    pub(super) fn new(path: &Path, problem: impl Into<Problem>) -> Self {
        Self { path: path.to_owned(), problem: Box::new(problem.into()) }
    }

    /// Returns whether the file does not exist.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(&*self.problem, Problem::Unreadable(cause) if cause.kind() == io::ErrorKind::NotFound)
    }
}

/// Reason why an image cannot be read.
#[derive(Debug, Error)]
pub(super) enum Problem {
    #[error("failed to read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("no valid JSON metadata: {0}")]
    Json(#[from] serde_json::Error),
    #[error("no valid OME-XML: {0}")]
    Xml(#[from] roxmltree::Error),
    #[error("no valid TIFF: {0}")]
    Tiff(#[from] tiff::TiffError),
    #[error("{field}: missing; {needed} is needed")]
    Missing { field: String, needed: &'static str },
    #[error("{field}: {found} is not allowed; allowed: {allowed}")]
    Field { field: String, found: String, allowed: String },
    #[error("plane of channel {0}, z {1}, time {2} is missing: the file has {3} planes", of[0], of[1], of[2], planes)]
    NoPlane { of: [u32; 3], planes: usize },
    #[error("plane of channel {0}, z {1}, time {2}: {cause}", of[0], of[1], of[2])]
    Plane { of: [u32; 3], cause: tiff::TiffError },
    #[error("chunk {key}: {cause}")]
    Chunk { key: String, cause: ChunkProblem },
    #[error("a block beyond the image, or of more than {} values", super::MAX_BLOCK_VALUES)]
    Outside,
}

impl Problem {
    pub(super) fn field(
        field: impl Into<String>,
        found: impl Into<String>,
        allowed: impl Into<String>,
    ) -> Self {
        Self::Field { field: field.into(), found: found.into(), allowed: allowed.into() }
    }

    pub(super) fn missing(field: impl Into<String>, needed: &'static str) -> Self {
        Self::Missing { field: field.into(), needed }
    }
}

/// Reason why a chunk cannot be decoded.
#[derive(Debug, Error)]
pub(super) enum ChunkProblem {
    #[error("failed to read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("{codec}: {cause}")]
    Codec { codec: &'static str, cause: io::Error },
    #[error("{found} bytes; {allowed} are allowed (a truncated file has fewer)")]
    Length { found: u64, allowed: u64 },
    #[error("crc32c: the checksum is wrong")]
    Checksum,
    #[error("a shard of {bytes} bytes has no inner chunk at {offset}, {length} bytes long")]
    Inner { offset: u64, length: u64, bytes: u64 },
}
