//! Replicas of other workers' regions: fetched into a spill tier, or into memory without one.

use super::StorageActor;
use crate::spill::SpillStore;
use actix::prelude::*;
use pleach_regions::{DataRegion, RegionKey};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Fetches a region that this worker does not read. Returns whether it is stored.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "bool")]
pub struct FetchReplica {
    /// The region.
    pub key: RegionKey,
    /// Worker that holds the region.
    pub from: SocketAddr,
    /// Bytes of the region, as reported by its holder.
    pub bytes: u64,
}

impl Handler<FetchReplica> for StorageActor {
    type Result = ResponseFuture<bool>;

    fn handle(
        &mut self,
        FetchReplica { key, from, bytes }: FetchReplica,
        _: &mut Self::Context,
    ) -> Self::Result {
        let is_below = self.spill.as_ref().is_some_and(|below| below.bytes(key).is_some());
        if is_below || self.ram.get(key).is_some() {
            return Box::pin(async { true });
        }
        let Some(exchange) = self.exchange.clone() else { return Box::pin(async { false }) };
        match self.spill.clone() {
            // Checked before the fetch: a region that fits no tier would cross the network in vain.
            Some(below) if below.free_bytes() < bytes || !below.begin_writing(bytes) => {
                Box::pin(async { false })
            }
            Some(below) => Box::pin(async move {
                let fetched = exchange.fetch(key, &[from]).await.ok();
                let is_kept = match fetched {
                    Some(region) => put(&below, key, region).await,
                    None => false,
                };
                // The region is in memory until here, and no ledger counts it.
                below.end_writing(bytes);
                is_kept
            }),
            None => {
                let ram = Arc::clone(&self.ram);
                Box::pin(async move {
                    let fetched = exchange.fetch(key, &[from]).await.ok();
                    // A region larger than reported would exceed the admitted bytes.
                    let fetched = fetched.filter(|region| region.bytes() <= bytes);
                    fetched.is_some_and(|region| {
                        // A region computed on this node meanwhile is equal.
                        let _ = ram.insert(key, region);
                        true
                    })
                })
            }
        }
    }
}

async fn put(spill: &Arc<SpillStore>, key: RegionKey, region: Arc<DataRegion>) -> bool {
    let (done, is_done) = oneshot::channel();
    let to = Arc::clone(spill);
    spill.send_write(key, move || {
        // The requester may have ended.
        let _ = done.send(to.write(key, &region, None));
    });
    is_done.await.unwrap_or(false)
}
