//! What every tier can do, whatever it keeps its regions in.
//!
//! Nothing here decides what goes where.

use crate::TierError;
use crate::{Quarantined, RegionFile};
use pleach_regions::{DataRegion, RegionKey};
use std::fmt;
use std::sync::Arc;

/// What a region that was inserted survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    /// It goes with the process, or may go when the power fails.
    Process,
    /// It is there after the process was killed, and after the power failed.
    PowerLoss,
}

/// What became of a region that was inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inserted {
    /// It is there from now on.
    New,
    /// There was one under its key before, which stays: equal keys mean equal bytes.
    AlreadyPresent,
}

/// A place that holds data regions by key, for any number of threads.
pub trait Tier: fmt::Debug + Send + Sync {
    /// Stores a region. It is as durable as [`durability`](Self::durability) says when this returns; after an error it is
    /// not listed.
    ///
    /// # Errors
    /// [`TierError`] when there is no room for it, or it cannot be written.
    fn insert(&self, key: RegionKey, region: &Arc<DataRegion>) -> Result<Inserted, TierError>;

    /// The region stored under `key`; none where there is none.
    ///
    /// # Errors
    /// [`TierError::Lost`], once, when there was one that is no more what it was; other errors when it cannot be read.
    fn get(&self, key: RegionKey) -> Result<Option<Arc<DataRegion>>, TierError>;

    /// Takes a region out, and says whether there was one. It does not come back, whatever happens.
    ///
    /// # Errors
    /// [`TierError`] when it cannot be removed.
    fn remove(&self, key: RegionKey) -> Result<bool, TierError>;

    /// Whether there is a region under `key`; getting it may still find it lost.
    ///
    /// # Errors
    /// [`TierError`] when that cannot be found out.
    fn contains(&self, key: RegionKey) -> Result<bool, TierError>;

    /// The keys of all regions, lowest first.
    ///
    /// # Errors
    /// [`TierError`] when that cannot be found out.
    fn list(&self) -> Result<Vec<RegionKey>, TierError>;

    /// Bytes taken: by regions, by what goes with storing them, and by those that are being inserted.
    fn held_bytes(&self) -> u64;

    /// What [`held_bytes`](Self::held_bytes) never exceeds by inserting.
    fn capacity_bytes(&self) -> u64;

    /// What could still be stored, as far as capacity and disk go; what goes with storing it comes off that.
    fn free_bytes(&self) -> u64 {
        self.capacity_bytes().saturating_sub(self.held_bytes())
    }

    /// What a region that was inserted survives.
    fn durability(&self) -> Durability;
}

/// What whoever looks after a tier can ask of it. Nothing here decides what may go.
pub trait TierMaintenance: Tier {
    /// All regions, lowest key first.
    ///
    /// # Errors
    /// [`TierError`] when they cannot be listed.
    fn inventory(&self) -> Result<Vec<RegionFile>, TierError>;

    /// What is in quarantine, in no order.
    ///
    /// # Errors
    /// [`TierError`] when it cannot be listed.
    fn quarantine_files(&self) -> Result<Vec<Quarantined>, TierError>;

    /// Removes what is in quarantine.
    ///
    /// # Errors
    /// [`TierError`] when it cannot be removed.
    fn discard(&self, file: &Quarantined) -> Result<(), TierError>;

    /// Regains the room of regions that were removed, whatever that takes, and says how many files are gone.
    fn compact(&self) -> usize;
}
