//! Prefetch of regions from slow tiers to the fastest spill tier, in parallel with computation.
//!
//! Only regions in slow tiers are prefetched. A prefetch from another worker would transfer the region twice, and memory is
//! reserved for started buckets.

use super::{RegionOrigin, StorageActor};
use actix::prelude::*;
use pleach_dispatch::storage::RemoteSource;
use pleach_regions::RegionKey;

/// Lists the inputs of a bucket that waits for a slot.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Prefetch(pub Vec<RegionKey>);

impl Handler<Prefetch> for StorageActor {
    type Result = ();

    fn handle(&mut self, Prefetch(keys): Prefetch, _: &mut Self::Context) {
        let Some(below) = self.spill.clone() else { return };
        let lies_below = |key: &RegionKey| {
            let is_there = below.bytes(*key).is_some() || self.would_come_from_shared(*key);
            // A region in memory, or with a running load, needs no faster tier.
            is_there && self.ram.get(*key).is_none() && !self.waiting.contains_key(key)
        };
        below.prefetch(keys.into_iter().filter(lies_below));
    }
}

impl StorageActor {
    fn would_come_from_shared(&self, key: RegionKey) -> bool {
        match self.origins.get(&key) {
            Some(RegionOrigin::Elsewhere { workers, shared: true }) => {
                let has_worker = !workers.is_empty() && self.exchange.is_some();
                self.rates.sources(has_worker, true).next() == Some(RemoteSource::Shared)
            }
            // The node that read the file first may have shared the region.
            Some(RegionOrigin::Source(_)) => self.shares_inputs,
            _ => false,
        }
    }
}
