//! Eviction under memory pressure: selects the regions that leave memory, and the method.
//!
//! Regions leave in order of their last request or insertion, oldest first. Regions that can be read again are dropped: those
//! from files, and those that a spill tier already has. Other regions are spilled. Without a spill tier, only replicas leave,
//! because other workers have the same regions.

use pleach_regions::{RamRegion, RegionKey};

/// A region in memory that no running bucket reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdleRegion {
    key: RegionKey,
    bytes: u64,
    /// Change count of the memory at the last request or insertion.
    last_use: u64,
}

impl IdleRegion {
    /// Creates the entry of a region. `requested` is the change count of the memory at its last request, if any.
    #[must_use]
    pub fn new(region: &RamRegion, requested: Option<u64>) -> Self {
        let last_use = requested.map_or(region.since, |requested| region.since.max(requested));
        Self { key: region.key, bytes: region.bytes, last_use }
    }
}

/// How a region leaves memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eviction {
    /// Remove the region at once.
    Drop {
        /// The region.
        key: RegionKey,
        /// Its bytes.
        bytes: u64,
    },
    /// Write the region to a spill tier, and remove it once it is written.
    Spill {
        /// The region.
        key: RegionKey,
        /// Its bytes.
        bytes: u64,
    },
}

/// Selects regions until they have at least this number of bytes, and returns them in the order of their eviction. Returns all
/// regions if together they have less. `is_readable` tests whether a region can be read again from its file or from a spill
/// tier.
#[must_use]
pub fn select_evictions(
    mut regions: Vec<IdleRegion>,
    bytes: u64,
    is_readable: impl Fn(RegionKey) -> bool,
) -> Vec<Eviction> {
    regions.sort_unstable_by_key(|region| (region.last_use, region.key));
    let (mut selected_bytes, mut selected) = (0, Vec::new());
    for IdleRegion { key, bytes: of, .. } in regions {
        if selected_bytes >= bytes {
            break;
        }
        selected_bytes += of;
        selected.push(match is_readable(key) {
            true => Eviction::Drop { key, bytes: of },
            false => Eviction::Spill { key, bytes: of },
        });
    }
    selected
}

/// Selects replicas of other workers' regions until they have at least this number of bytes, by ascending key. `bytes_of`
/// returns the bytes of a replica in memory, 0 if it has left.
#[must_use]
pub fn select_replicas(
    mut replicas: Vec<RegionKey>,
    bytes: u64,
    bytes_of: impl Fn(RegionKey) -> u64,
) -> Vec<RegionKey> {
    // Callers list replicas in the order of a hash map.
    replicas.sort_unstable();
    let mut selected_bytes = 0;
    replicas.retain(|key| {
        let leaves = selected_bytes < bytes;
        if leaves {
            selected_bytes += bytes_of(*key);
        }
        leaves
    });
    replicas
}
