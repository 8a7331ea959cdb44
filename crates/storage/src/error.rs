//! Why a tier did not do what it was asked for. Every error names the place and the cause.

use pleach_regions::{DecodeError, RegionKey};
use std::fmt;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Where a tier keeps what it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TierLocation {
    /// In memory.
    Ram,
    /// In a folder.
    Folder(PathBuf),
    /// In object storage, under this address.
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

/// How a region was lost.
#[derive(Debug, Error)]
pub enum RegionLoss {
    /// Its file is gone, and the tier has not removed it.
    #[error("its file is gone")]
    Missing,
    /// Its file holds something else.
    #[error("{source}; {}", quarantined.as_ref().map_or_else(
        || "the file could not be moved away".to_owned(), |path| format!("the file is now {}", path.display())))]
    Damaged {
        /// Where the file is now; none where it could not be moved, and lies where it did.
        quarantined: Option<PathBuf>,
        /// What is wrong with it.
        source: DecodeError,
    },
}

/// Why a tier cannot be used, or did not do something.
#[derive(Debug, Error)]
pub enum TierError {
    /// The system refused.
    #[error("{action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// With which file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The path of a tier is no folder.
    #[error("open the tier {}: it is no folder; name one that exists", path.display())]
    NotAFolder {
        /// The path.
        path: PathBuf,
    },
    /// The folder holds something else.
    #[error("open the tier {}: the folder holds other files, such as {found:?}; name an empty one", path.display())]
    NotATier {
        /// The folder.
        path: PathBuf,
        /// One of them.
        found: String,
    },
    /// Another version of the program wrote it.
    #[error("open the tier {}: its FORMAT says {found:?}, only {allowed:?} is allowed; name another folder", path.display())]
    Version {
        /// The folder.
        path: PathBuf,
        /// The first line of its marker.
        found: String,
        /// What it has to be.
        allowed: &'static str,
    },
    /// A folder that is to be shared has been scratch.
    #[error(
        "open the tier {}: it was a scratch tier, of which nothing is sure to be on the medium; name another folder",
        path.display()
    )]
    Scratch {
        /// The folder.
        path: PathBuf,
    },
    /// A private folder is open elsewhere, or a shared one as a private one.
    #[error("open the tier {}: another tier has it open", path.display())]
    InUse {
        /// The folder.
        path: PathBuf,
    },
    /// The capacity leaves no room for regions.
    #[error("open the tier {}: of {capacity_bytes} bytes, its empty folders take {overhead_bytes}", path.display())]
    Capacity {
        /// The folder.
        path: PathBuf,
        /// The capacity given.
        capacity_bytes: u64,
        /// What is taken without any region.
        overhead_bytes: u64,
    },
    /// The capacity does not suffice.
    #[error(
        "store region {key} in {place}: {needed_bytes} bytes beside {held_bytes} exceed its {capacity_bytes}"
    )]
    Full {
        /// The region.
        key: RegionKey,
        /// The tier.
        place: TierLocation,
        /// What the region would take at most.
        needed_bytes: u64,
        /// What is held already.
        held_bytes: u64,
        /// What may be.
        capacity_bytes: u64,
    },
    /// The disk has no room, whatever the tier's capacity.
    #[error(
        "store region {key} in {}: {needed_bytes} bytes of the {free_bytes} that are free would leave less than the \
         reserve of {reserve_bytes}", path.display()
    )]
    DiskFull {
        /// The region.
        key: RegionKey,
        /// The folder.
        path: PathBuf,
        /// What it would take at most, with others that are being inserted.
        needed_bytes: u64,
        /// What is free.
        free_bytes: u64,
        /// What has to stay free.
        reserve_bytes: u64,
    },
    /// The region is too small for a file of its own.
    #[error("store region {key} in {}: its {bytes} bytes are fewer than {least_bytes}", path.display())]
    TooSmall {
        /// The region.
        key: RegionKey,
        /// The folder.
        path: PathBuf,
        /// Its bytes in memory.
        bytes: u64,
        /// The fewest that are allowed.
        least_bytes: u64,
    },
    /// Nothing more is written, since nobody knows what became of what was written before.
    #[error("store region {key} in {}: a folder could not be synced earlier; open the tier anew", path.display())]
    Stopped {
        /// The region.
        key: RegionKey,
        /// The folder.
        path: PathBuf,
    },
    /// No level of a stack is of the kind that the region needs.
    #[error("store region {key}: none of the tiers is {wanted}")]
    NoSuchLevel {
        /// The region.
        key: RegionKey,
        /// The kind.
        wanted: &'static str,
    },
    /// A region that was stored is there no more. It is not listed any longer.
    #[error("read region {key} from {}: {source}", path.display())]
    Lost {
        /// The region.
        key: RegionKey,
        /// Its file.
        path: PathBuf,
        /// How.
        source: RegionLoss,
    },
}

impl TierError {
    /// Whether there was no room for a region: another tier may have some.
    #[must_use]
    pub fn is_lack_of_room(&self) -> bool {
        let is_full = |source: &io::Error| {
            matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        };
        match self {
            Self::TooSmall { .. } | Self::Full { .. } | Self::DiskFull { .. } => true,
            // Somebody else took the room while it was written.
            Self::Io { source, .. } => is_full(source),
            _ => false,
        }
    }

    /// What has to be free for another try, if the region was refused for that.
    #[must_use]
    pub fn needed_bytes(&self) -> Option<u64> {
        match self {
            Self::Full { needed_bytes, .. } | Self::DiskFull { needed_bytes, .. } => Some(*needed_bytes),
            _ => None,
        }
    }
}
