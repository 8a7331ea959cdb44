//! Regions that will be asked for soon: brought from slow tiers to the fastest one below memory, while others compute.
//!
//! Only what would come from a slow tier. What comes from another worker is not asked of it twice, and memory is for
//! buckets that have begun.

use super::{RegionOrigin, RemoteSource, StorageActor};
use actix::prelude::*;
use pleach_regions::RegionKey;

/// Says what a bucket will read that waits for a slot.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Prefetch(pub Vec<RegionKey>);

impl Handler<Prefetch> for StorageActor {
    type Result = ();

    fn handle(&mut self, Prefetch(keys): Prefetch, _: &mut Self::Context) {
        let Some(below) = self.below.clone() else { return };
        let lies_below = |key: &RegionKey| {
            let is_there = below.bytes(*key).is_some() || self.would_come_from_shared(*key);
            is_there && self.ram.get(*key).is_none() && !self.waiting.contains_key(key)
        };
        below.prefetch(keys.into_iter().filter(lies_below));
    }
}

impl StorageActor {
    fn would_come_from_shared(&self, key: RegionKey) -> bool {
        match self.origins.get(&key) {
            Some(RegionOrigin::Elsewhere { workers, shared: true }) => {
                workers.is_empty()
                    || self.exchange.is_none()
                    || self.rates.preferred() == RemoteSource::Shared
            }
            // Who has read it first may have shared it.
            Some(RegionOrigin::Source(_)) => self.shares_inputs,
            _ => false,
        }
    }
}
