//! Errors of tiers. Every error names the location and the cause.

use pleach_regions::{DecodeError, RegionKey};
use std::fmt;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Location of a tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TierLocation {
    /// RAM.
    Ram,
    /// A folder.
    Folder(PathBuf),
    /// Object storage at this address.
    Bucket(String),
}

impl fmt::Display for TierLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ram => f.write_str("RAM"),
            Self::Folder(path) => write!(f, "{}", path.display()),
            Self::Bucket(address) => f.write_str(address),
        }
    }
}

/// Cause of the loss of a region.
#[derive(Debug, Error)]
pub enum RegionLoss {
    /// Its file is gone, and the tier has not removed it.
    #[error("the file is missing")]
    Missing,
    /// Its file is corrupt.
    #[error("{source}; {}", quarantined.as_ref().map_or_else(
        || "the file could not be moved away".to_owned(), |path| format!("the file is now {}", path.display())))]
    Damaged {
        /// Path in quarantine. `None` if the file could not be moved and is still in place.
        quarantined: Option<PathBuf>,
        /// The decoding error.
        source: DecodeError,
    },
}

/// Errors of opening or using a tier.
#[derive(Debug, Error)]
pub enum TierError {
    /// A system call failed.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system error.
        source: io::Error,
    },
    /// The path of a tier is not a folder.
    #[error("open the tier {}: not a folder; an existing folder is allowed", path.display())]
    NotAFolder {
        /// The path.
        path: PathBuf,
    },
    /// The folder holds something else.
    #[error("open the tier {}: the folder contains other files, such as {found:?}; an empty folder is \
             allowed", path.display())]
    NotATier {
        /// The folder.
        path: PathBuf,
        /// Name of one foreign entry.
        found: String,
    },
    /// The folder was written by another version of the program.
    #[error("open the tier {}: FORMAT is {found:?}; {allowed:?} is allowed; name another folder", path.display())]
    Version {
        /// The folder.
        path: PathBuf,
        /// The first line of its marker.
        found: String,
        /// The required marker.
        allowed: &'static str,
    },
    /// A folder opened as shared was scratch.
    #[error(
        "open the tier {}: formerly a scratch tier, whose writes are not durable; name another folder",
        path.display()
    )]
    Scratch {
        /// The folder.
        path: PathBuf,
    },
    /// A private folder is open elsewhere, or a shared one is open as private.
    #[error("open the tier {}: the folder is in use by another tier", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The capacity leaves no space for regions.
    #[error("open the tier {}: capacity of {capacity_bytes} bytes; more than {overhead_bytes} bytes are \
             needed for its empty folders", path.display())]
    Capacity {
        /// The folder.
        path: PathBuf,
        /// The requested capacity.
        capacity_bytes: u64,
        /// Bytes in use without any region.
        overhead_bytes: u64,
    },
    /// The region exceeds the capacity.
    #[error(
        "store region {key} in {place}: {needed_bytes} bytes do not fit; {held_bytes} of {capacity_bytes} \
         bytes are in use"
    )]
    Full {
        /// The region.
        key: RegionKey,
        /// The tier.
        place: TierLocation,
        /// Maximum bytes of the region.
        needed_bytes: u64,
        /// Bytes in use.
        held_bytes: u64,
        /// The capacity.
        capacity_bytes: u64,
    },
    /// The disk has no space, regardless of the tier's capacity.
    #[error(
        "store region {key} in {}: {needed_bytes} bytes do not fit; {free_bytes} bytes are free, \
         {reserve_bytes} of them reserved", path.display()
    )]
    DiskFull {
        /// The region.
        key: RegionKey,
        /// The folder.
        path: PathBuf,
        /// Maximum bytes of the region and of other insertions in progress.
        needed_bytes: u64,
        /// Free bytes.
        free_bytes: u64,
        /// Bytes that must stay free.
        reserve_bytes: u64,
    },
    /// The region is too small for a file of its own.
    #[error("store region {key} in {}: {bytes} bytes; at least {least_bytes} bytes are needed", path.display())]
    TooSmall {
        /// The region.
        key: RegionKey,
        /// The folder.
        path: PathBuf,
        /// Its bytes in memory.
        bytes: u64,
        /// The minimum.
        least_bytes: u64,
    },
    /// Writing has stopped, since the fate of earlier writes is unknown.
    #[error("store region {key} in {}: an earlier sync of a folder failed; reopen the tier", path.display())]
    Stopped {
        /// The region.
        key: RegionKey,
        /// The folder.
        path: PathBuf,
    },
    /// The tier does not answer, or has failed several times, and is left alone for a while ([`GuardedTier`](crate::GuardedTier)).
    #[error("the tier {place} is unavailable: {cause}")]
    Unavailable {
        /// The tier.
        place: TierLocation,
        /// The last failure.
        cause: String,
    },
    /// No level of a stack has the property that the region needs.
    #[error("store region {key}: no tier is {property}")]
    NoSuchLevel {
        /// The region.
        key: RegionKey,
        /// The property.
        property: &'static str,
    },
    /// A stored region has been lost. It is no longer listed.
    #[error("read region {key} from {}: {source}", path.display())]
    Lost {
        /// The region.
        key: RegionKey,
        /// Its file.
        path: PathBuf,
        /// The cause.
        source: RegionLoss,
    },
}

impl TierError {
    /// Returns whether the region did not fit. Another tier may have space.
    #[must_use]
    pub fn is_lack_of_room(&self) -> bool {
        let is_full = |source: &io::Error| {
            matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        };
        match self {
            Self::TooSmall { .. } | Self::Full { .. } | Self::DiskFull { .. } => true,
            // Another process used the space during the write.
            Self::Io { source, .. } => is_full(source),
            _ => false,
        }
    }

    /// Returns the bytes that must be free for a retry, if the region was refused for lack of space.
    #[must_use]
    pub fn needed_bytes(&self) -> Option<u64> {
        match self {
            Self::Full { needed_bytes, .. } | Self::DiskFull { needed_bytes, .. } => Some(*needed_bytes),
            _ => None,
        }
    }
}
