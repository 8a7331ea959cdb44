//! Regions of other workers: fetched from a worker that holds them or from a shared tier, whichever has been faster so far.
//! After a failure the other source is tried.

use super::{Loaded, RegionUnavailable, StorageActor};
use actix::prelude::*;
use pleach_regions::{DataRegion, RegionKey};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Source of a remote region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RemoteSource {
    /// A worker.
    Worker,
    /// A shared tier.
    Shared,
}

/// Weight of the last region in the moving average.
const WEIGHT: f64 = 0.2;

/// Seconds per byte by source, as moving averages.
#[derive(Debug, Default)]
pub(super) struct FetchRates {
    worker: Option<f64>,
    shared: Option<f64>,
}

impl FetchRates {
    #[expect(clippy::cast_precision_loss, reason = "an average")]
    pub(super) fn observe(&mut self, way: RemoteSource, bytes: u64, time: Duration) {
        let now = time.as_secs_f64() / bytes.max(1) as f64;
        let average = match way {
            RemoteSource::Worker => &mut self.worker,
            RemoteSource::Shared => &mut self.shared,
        };
        *average = Some(average.map_or(now, |before| before + WEIGHT * (now - before)));
    }

    /// Returns the source to try first if both are available. An untried source comes first, workers before tiers.
    pub(super) fn preferred(&self) -> RemoteSource {
        match (self.worker, self.shared) {
            (Some(worker), Some(shared)) if shared < worker => RemoteSource::Shared,
            (Some(_), None) => RemoteSource::Shared,
            _ => RemoteSource::Worker,
        }
    }
}

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
        let first = match (&below, &exchange) {
            (Some(_), Some(_)) => self.rates.preferred(),
            (Some(_), None) => RemoteSource::Shared,
            _ => RemoteSource::Worker,
        };
        let second = if first == RemoteSource::Worker { RemoteSource::Shared } else { RemoteSource::Worker };
        let workers = workers.to_vec();
        let fetch = async move {
            for way in [first, second] {
                let begun = Instant::now();
                // A failed holder is not reported: the manager detects it, and the cause, when it requests the region
                // itself.
                let region: Option<Arc<DataRegion>> = match (way, &exchange, &below) {
                    (RemoteSource::Worker, Some(exchange), _) => exchange.fetch(key, &workers).await.ok(),
                    (RemoteSource::Shared, _, Some(below)) => {
                        let (answer, answered) = oneshot::channel();
                        let from = Arc::clone(below);
                        // The actor may have ended.
                        below.spawn(move || _ = answer.send(from.get_shared(key)));
                        answered.await.ok().flatten()
                    }
                    _ => None,
                };
                if let Some(region) = region {
                    let took = Some((way, begun.elapsed()));
                    return storage.do_send(Loaded { key, result: Ok(region), took });
                }
            }
            storage.do_send(Loaded { key, result: Err(RegionUnavailable::Lacks(key)), took: None });
        };
        ctx.spawn(fetch.into_actor(self));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faster_source_is_preferred_once_both_are_measured() {
        let mut rates = FetchRates::default();
        assert_eq!(rates.preferred(), RemoteSource::Worker);
        rates.observe(RemoteSource::Worker, 1000, Duration::from_millis(2));
        assert_eq!(rates.preferred(), RemoteSource::Shared, "not tried yet");
        rates.observe(RemoteSource::Shared, 1000, Duration::from_millis(1));
        assert_eq!(rates.preferred(), RemoteSource::Shared);
        // A single slow region does not change the preference.
        rates.observe(RemoteSource::Shared, 1000, Duration::from_millis(3));
        assert_eq!(rates.preferred(), RemoteSource::Shared);
        (0..10).for_each(|_| rates.observe(RemoteSource::Shared, 1000, Duration::from_millis(3)));
        assert_eq!(rates.preferred(), RemoteSource::Worker);
    }
}
