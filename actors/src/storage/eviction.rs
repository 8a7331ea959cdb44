//! Making room in memory: which regions leave it, and how.
//!
//! Those go first that were asked for, or stored, the longest time ago. What was read from a file is dropped: it is there
//! to be read again. So is what lies below already. The rest is written below first, and leaves memory when it is there.

use super::{RegionOrigin, StorageActor};
use actix::prelude::*;
use pleach_regions::{RamRegion, RegionKey};
use std::collections::HashSet;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Asks for so many bytes of memory, at least; answered when what could be done is done.
#[derive(Debug, Message)]
#[rtype(result = "MemoryFreed")]
pub struct FreeMemory {
    /// Bytes.
    pub bytes: u64,
    /// What has to stay in memory.
    pub but: HashSet<RegionKey>,
    /// Second copies of what other workers hold, which go where nothing is below memory.
    pub replicas: Vec<RegionKey>,
}

/// What came of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MemoryFreed {
    /// Bytes that have left memory.
    pub bytes: u64,
    /// Second copies that are gone for good.
    pub gone: Vec<RegionKey>,
}

impl Handler<FreeMemory> for StorageActor {
    type Result = ResponseFuture<MemoryFreed>;

    fn handle(&mut self, room: FreeMemory, _: &mut Self::Context) -> Self::Result {
        let FreeMemory { bytes, but, replicas } = room;
        let Some(below) = self.below.clone() else {
            let made = self.drop_some(bytes, replicas);
            return Box::pin(async move { made });
        };
        let mut held = self.ram.held();
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
                // One that cannot be written stays. One that is gone meanwhile has been released.
                let is_below = to.write(key, &region, wished);
                if is_below && ram.remove(key).is_none() {
                    to.remove(key);
                }
                drop(region);
                // Whoever asked may be gone.
                let _ = done.send(is_below);
            });
        }
        Box::pin(async move {
            for (of, is_done) in written {
                left += if is_done.await.unwrap_or(false) { of } else { 0 };
            }
            MemoryFreed { bytes: left, gone: Vec::new() }
        })
    }
}

impl StorageActor {
    /// Lets go of second copies until there is so much room.
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
        MemoryFreed { bytes: made, gone: replicas }
    }

    fn last_use(&self, region: &RamRegion) -> u64 {
        self.asked.get(&region.key).map_or(region.since, |asked| region.since.max(*asked))
    }
}
