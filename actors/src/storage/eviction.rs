//! Eviction under memory pressure: removes the regions that `pleach_dispatch` selects, after it has spilled those that cannot
//! be read again.

use super::{RegionOrigin, StorageActor};
use crate::spill::SpillStore;
use actix::prelude::*;
use pleach_dispatch::storage::{Eviction, IdleRegion, select_evictions, select_replicas};
use pleach_regions::RegionKey;
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
            let made = self.drop_replicas(bytes, replicas);
            return Box::pin(async move { made });
        };
        let idle = self.ram.regions().into_iter().filter(|region| !but.contains(&region.key));
        let idle = idle.map(|region| IdleRegion::new(&region, self.requested.get(&region.key).copied()));
        // A promoted region still has its spilled copy, so it need not be written again.
        let is_readable = |key: RegionKey| {
            matches!(self.origins.get(&key), Some(RegionOrigin::Source(_))) || below.bytes(key).is_some()
        };
        // Drops are counted at once. The answer waits for the writes, because their memory is not free before.
        let (mut left, mut written) = (0, Vec::new());
        for eviction in select_evictions(idle.collect(), bytes, is_readable) {
            match eviction {
                Eviction::Drop { key, bytes } => {
                    self.ram.move_down(key);
                    below.note_move(key);
                    below.dropped(bytes);
                    left += bytes;
                }
                Eviction::Spill { key, bytes } => {
                    written.extend(self.spill_region(key, &below).map(|is_done| (bytes, is_done)));
                }
            }
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
    /// Writes a region to a spill tier and removes it from memory afterwards. The answer is whether it has left. `None` if the
    /// region is not in memory.
    fn spill_region(&self, key: RegionKey, below: &Arc<SpillStore>) -> Option<oneshot::Receiver<bool>> {
        let region = self.ram.get(key)?;
        let (done, is_done) = oneshot::channel();
        let (ram, to) = (Arc::clone(&self.ram), Arc::clone(below));
        let wished = self.wished.get(&key).copied();
        below.send_write(key, move || {
            // A region that cannot be written stays. One removed meanwhile has been released.
            let is_below = to.write(key, &region, wished);
            if is_below && ram.move_down(key).is_none() {
                to.remove(key);
            }
            to.note_move(key);
            // Dropped before the answer, because the requester counts the memory as free.
            drop(region);
            // The requester may have ended.
            let _ = done.send(is_below);
        });
        Some(is_done)
    }

    /// Drops replicas until enough bytes are free.
    fn drop_replicas(&self, bytes: u64, replicas: Vec<RegionKey>) -> MemoryFreed {
        let removed = select_replicas(replicas, bytes, |key| self.ram.bytes(key).unwrap_or(0));
        let freed = removed.iter().filter_map(|key| self.ram.remove(*key));
        MemoryFreed { bytes: freed.map(|region| region.bytes()).sum(), removed }
    }
}
