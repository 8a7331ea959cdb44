//! Regions of other workers: fetched from the sources that `pleach_dispatch` chooses by their measured rates, one after the
//! other.

use super::{Loaded, RegionUnavailable, StorageActor};
use actix::prelude::*;
use pleach_dispatch::storage::RemoteSource;
use pleach_regions::{DataRegion, RegionIdentity, RegionKey};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;

impl StorageActor {
    pub(super) fn fetch(
        &self,
        key: RegionKey,
        workers: &[SocketAddr],
        shared: bool,
        ctx: &mut Context<Self>,
    ) {
        let storage = ctx.address();
        let below = self.spill.clone().filter(|_| shared);
        let exchange = self.exchange.clone().filter(|_| !workers.is_empty());
        // The order is fixed at the start: the future cannot read the actor's state.
        let sources = self.rates.sources(exchange.is_some(), below.is_some());
        let workers = workers.to_vec();
        let fetch = async move {
            for way in sources {
                let begun = Instant::now();
                // A failed holder is not reported: the manager detects it, and the cause, when it requests the region
                // itself.
                let mut digest = None;
                let region: Option<Arc<DataRegion>> = match (way, &exchange, &below) {
                    (RemoteSource::Worker, Some(exchange), _) => {
                        let fetched = exchange.fetch_digested(key, &workers).await.ok();
                        fetched.map(|(region, verified)| {
                            digest = verified;
                            region
                        })
                    }
                    (RemoteSource::Shared, _, Some(below)) => {
                        let (answer, answered) = oneshot::channel();
                        let from = Arc::clone(below);
                        // The actor may have ended.
                        below.send_shared(key, move || _ = answer.send(from.get_shared(key)));
                        answered.await.ok().flatten()
                    }
                    _ => None,
                };
                if let Some(region) = region {
                    let took = Some((way, begun.elapsed()));
                    // The worker that computed the region uses the same identity in task keys.
                    let identity = digest.map(|digest| RegionIdentity(digest.0));
                    return storage.do_send(Loaded { key, result: Ok(region), took, identity });
                }
            }
            storage.do_send(Loaded::failed(key, RegionUnavailable::Lacks(key)));
        };
        ctx.spawn(fetch.into_actor(self));
    }
}
