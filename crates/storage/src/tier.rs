//! Interface of all tiers, independent of their medium.
//!
//! Placement is decided by the caller.

use crate::TierError;
use crate::{Quarantined, RegionFile};
use pleach_regions::{DataRegion, RegionKey};
use std::fmt;
use std::sync::Arc;

/// Failures that an inserted region survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// It is lost with the process, or may be lost when the power fails.
    Process,
    /// It survives a kill of the process and a power loss.
    PowerLoss,
}

/// Result of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// The region is newly stored.
    New,
    /// The key was taken. The stored region stays, since equal keys mean equal bytes.
    AlreadyPresent,
}

/// Thread-safe store of data regions by key.
pub trait Tier: fmt::Debug + Send + Sync {
    /// Stores a region. It has the tier's [`durability`](Self::durability) when this returns. After an error it is not
    /// listed.
    ///
    /// # Errors
    /// Returns a [`TierError`] if the region does not fit or cannot be written.
    fn insert(&self, key: RegionKey, region: &Arc<DataRegion>) -> Result<Inserted, TierError>;

    /// Returns the region stored under `key`. `None` if there is no such region.
    ///
    /// # Errors
    /// Returns [`TierError::Lost`], once, if the stored region is missing or corrupt. Returns other errors if it cannot be
    /// read.
    fn get(&self, key: RegionKey) -> Result<Option<Arc<DataRegion>>, TierError>;

    /// Removes a region. Returns whether it existed. The region does not reappear after a failure.
    ///
    /// # Errors
    /// Returns a [`TierError`] if the region cannot be removed.
    fn remove(&self, key: RegionKey) -> Result<bool, TierError>;

    /// Returns whether a region is stored under `key`. A later `get` may still find it lost.
    ///
    /// # Errors
    /// Returns a [`TierError`] if the lookup fails.
    fn contains(&self, key: RegionKey) -> Result<bool, TierError>;

    /// Returns the keys of all regions in ascending order.
    ///
    /// # Errors
    /// Returns a [`TierError`] if the regions cannot be listed.
    fn list(&self) -> Result<Vec<RegionKey>, TierError>;

    /// Returns the bytes in use: regions, their overhead, and insertions in progress.
    fn held_bytes(&self) -> u64;

    /// Returns the limit that insertions never let [`held_bytes`](Self::held_bytes) exceed.
    fn capacity_bytes(&self) -> u64;

    /// Returns the bytes that can still be stored, by capacity and disk. Overhead counts against them.
    fn free_bytes(&self) -> u64 {
        self.capacity_bytes().saturating_sub(self.held_bytes())
    }

    /// Returns the failures that an inserted region survives.
    fn durability(&self) -> Durability;

    /// Returns whether the tier answers, as far as it is known without asking it.
    fn is_available(&self) -> bool {
        true
    }
}

/// Maintenance of a tier. The caller decides what to delete.
pub trait TierMaintenance: Tier {
    /// Returns all regions in ascending order of their keys.
    ///
    /// # Errors
    /// Returns a [`TierError`] if they cannot be listed.
    fn inventory(&self) -> Result<Vec<RegionFile>, TierError>;

    /// Returns the quarantined files in no particular order.
    ///
    /// # Errors
    /// Returns a [`TierError`] if they cannot be listed.
    fn quarantine_files(&self) -> Result<Vec<Quarantined>, TierError>;

    /// Deletes a quarantined file.
    ///
    /// # Errors
    /// Returns a [`TierError`] if it cannot be deleted.
    fn discard(&self, file: &Quarantined) -> Result<(), TierError>;

    /// Compacts everything with dead bytes, regardless of cost. Returns the number of files removed.
    fn compact(&self) -> usize;
}
