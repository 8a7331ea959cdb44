//! Tiers that store data regions (hop 7 of a study): RAM, and folders on disks of any kind.
//!
//! ```
//! use pleach_regions::{DataRegion, Raster, RegionKey};
//! use pleach_storage::files::OsFileSystem;
//! use pleach_storage::{FolderKind, FolderSettings, FolderTier, Tier};
//! use std::sync::Arc;
//!
//! let folder = tempfile::tempdir()?;
//! let settings = FolderSettings::new(FolderKind::Ssd, 64 << 20);
//! let tier = FolderTier::open(Arc::new(OsFileSystem), folder.path(), settings)?;
//! let (key, region) = (RegionKey([7; 16]), Arc::new(DataRegion::Mask(Raster::filled(64, 64, 1, 255)?)));
//! tier.insert(key, &region)?; // on disk from here on
//! assert_eq!(tier.get(key)?, Some(region));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A tier confirms an insertion once the region is as durable as the tier promises ([`Tier::durability`]). It never exceeds
//! its capacity, and never returns content whose digest differs from the stored one.
//!
//! A full tier returns an error. [`GuardedTier`] limits the time of a tier that may hang. [`TierStack`] combines several tiers from fast to slow, and moves regions between them.
//!
//! Not in this crate: the list of tiers, object storage, and actors.

mod error;
mod folder;
mod guard;
mod locks;
pub mod lustre;
mod policy;
mod ram;
mod stack;
mod tier;

pub use pleach_files as files;

pub use error::{RegionLoss, TierError, TierLocation};
pub use folder::{FolderKind, FolderSettings, FolderTier, MARKER, Quarantined, RegionFile};
pub use guard::{Availability, GuardTimes, GuardedTier};
pub use locks::locks_are_local;
pub use policy::{EvictionPolicy, EvictionQueue};
pub use ram::BoundedRam;
pub use stack::{
    LevelId, LevelStats, PlacedAt, PlacementHints, Prefetcher, ReadTime, RetentionValue, SpillStats,
    TierLevel, TierStack, WriteMode,
};
pub use tier::{Durability, Inserted, Tier, TierMaintenance};
