//! Sources of a remote region: a worker that has it, or a shared tier, whichever has been faster on average.
//!
//! If the first source has lost the region, the second one follows. If both have, the stage reports the missing input, and
//! the manager has the region computed again.

use std::time::Duration;

/// Source of a remote region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RemoteSource {
    /// A worker.
    Worker,
    /// A shared tier.
    Shared,
}

/// Weight of the last region in the moving average.
const WEIGHT: f64 = 0.2;

/// Seconds per byte by source, as moving averages.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FetchRates {
    worker: Option<f64>,
    shared: Option<f64>,
}

impl FetchRates {
    /// Records the duration of a transfer.
    #[expect(clippy::cast_precision_loss, reason = "an average")]
    pub fn observe(&mut self, source: RemoteSource, bytes: u64, time: Duration) {
        // An empty region would give an infinite rate.
        let now = time.as_secs_f64() / bytes.max(1) as f64;
        let average = match source {
            RemoteSource::Worker => &mut self.worker,
            RemoteSource::Shared => &mut self.shared,
        };
        *average = Some(average.map_or(now, |before| before + WEIGHT * (now - before)));
    }

    /// Returns the available sources in the order of attempts.
    pub fn sources(&self, has_worker: bool, has_shared: bool) -> impl Iterator<Item = RemoteSource> + use<> {
        let order = match self.preferred() {
            RemoteSource::Worker => [RemoteSource::Worker, RemoteSource::Shared],
            RemoteSource::Shared => [RemoteSource::Shared, RemoteSource::Worker],
        };
        order.into_iter().filter(move |source| match source {
            RemoteSource::Worker => has_worker,
            RemoteSource::Shared => has_shared,
        })
    }

    /// Returns the source to try first if both are available. An untried source comes first, workers before tiers.
    fn preferred(&self) -> RemoteSource {
        match (self.worker, self.shared) {
            (Some(worker), Some(shared)) if shared < worker => RemoteSource::Shared,
            (Some(_), None) => RemoteSource::Shared,
            _ => RemoteSource::Worker,
        }
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

    #[test]
    fn missing_source_is_not_tried() {
        use RemoteSource::{Shared, Worker};
        let slow_workers = FetchRates { worker: Some(2.0), shared: Some(1.0) };
        let slow_tier = FetchRates { worker: Some(1.0), shared: Some(2.0) };
        let cases = [
            (slow_workers, true, true, vec![Shared, Worker]),
            (slow_tier, true, true, vec![Worker, Shared]),
            (FetchRates::default(), true, true, vec![Worker, Shared]),
            (slow_workers, true, false, vec![Worker]),
            (slow_tier, false, true, vec![Shared]),
            (slow_tier, false, false, Vec::new()),
        ];
        for (rates, has_worker, has_shared, expected) in cases {
            let sources: Vec<RemoteSource> = rates.sources(has_worker, has_shared).collect();
            assert_eq!(sources, expected, "{rates:?}, worker {has_worker}, shared {has_shared}");
        }
    }
}
