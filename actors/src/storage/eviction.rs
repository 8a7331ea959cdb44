//! Eviction under memory pressure: selects the regions that leave memory, and the way.
//!
//! Regions leave in order of their last request or insertion, oldest first. Regions from files and regions already spilled
//! are dropped, because they can be read again. Other regions are spilled first and leave memory once they are written.

use super::{RegionOrigin, StorageActor};
use actix::prelude::*;
use pleach_regions::{RamRegion, RegionKey};
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Requests at least a number of free bytes. The answer follows once all possible evictions are done.
#[derive(Debug, Message)]
#[rtype(result = "MemoryFreed")]
pub struct FreeMemory {
    /// Requested bytes.
    pub bytes: u64,
    /// Regions that must stay in memory.
    pub but: HashSet<RegionKey>,
    /// Replicas of other workers' regions, dropped if there is no spill tier.
    pub replicas: Vec<RegionKey>,
}

/// Result of an eviction.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MemoryFreed {
    /// Bytes that have left memory.
    pub bytes: u64,
    /// Dropped replicas.
    pub removed: Vec<RegionKey>,
}

impl Handler<FreeMemory> for StorageActor {
    type Result = ResponseFuture<MemoryFreed>;

    fn handle(&mut self, room: FreeMemory, _: &mut Self::Context) -> Self::Result {
        let FreeMemory { bytes, but, replicas } = room;
        let Some(below) = self.spill.clone() else {
            let made = self.drop_some(bytes, replicas);
            return Box::pin(async move { made });
        };
        let mut held = self.ram.regions();
        held.retain(|region| !but.contains(&region.key));
        held.sort_unstable_by_key(|region| (self.last_use(region), region.key));
        let (mut made, mut left, mut written) = (0, 0, Vec::new());
        for RamRegion { key, bytes: of, .. } in held {
            if made >= bytes {
                break;
            }
            made += of;
            if matches!(self.origins.get(&key), Some(RegionOrigin::Source(_))) || below.bytes(key).is_some() {
                self.ram.remove(key);
                below.dropped(of);
                left += of;
                continue;
            }
            let Some(region) = self.ram.get(key) else { continue };
            let (done, is_done) = oneshot::channel();
            written.push((of, is_done));
            let (ram, to) = (Arc::clone(&self.ram), Arc::clone(&below));
            let wished = self.wished.get(&key).copied();
            below.spawn(move || {
                // A region that cannot be written stays. One removed meanwhile has been released.
                let is_below = to.write(key, &region, wished);
                if is_below && ram.remove(key).is_none() {
                    to.remove(key);
                }
                drop(region);
                // The requester may have ended.
                let _ = done.send(is_below);
            });
        }
        Box::pin(async move {
            for (of, is_done) in written {
                left += if is_done.await.unwrap_or(false) { of } else { 0 };
            }
            MemoryFreed { bytes: left, removed: Vec::new() }
        })
    }
}

impl StorageActor {
    /// Drops replicas until enough bytes are free.
    fn drop_some(&self, bytes: u64, mut replicas: Vec<RegionKey>) -> MemoryFreed {
        replicas.sort_unstable();
        let mut made = 0;
        replicas.retain(|key| {
            let goes = made < bytes;
            if goes {
                made += self.ram.remove(*key).map_or(0, |region| region.bytes());
            }
            goes
        });
        MemoryFreed { bytes: made, removed: replicas }
    }

    fn last_use(&self, region: &RamRegion) -> u64 {
        self.requested.get(&region.key).map_or(region.since, |asked| region.since.max(*asked))
    }
}
