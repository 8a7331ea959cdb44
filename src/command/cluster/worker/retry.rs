//! Computes how long a worker waits before it connects again.
//!
//! A worker replaces an accepted link at once if the link has lasted. Any other end counts as a failure, including an
//! accepted link that the manager soon closes. Each failure doubles the wait. The caller makes the connections.

use pleach_actors::transport::backoff::Backoff;
use pleach_actors::transport::refusal::Cause;
use pleach_actors::transport::settings::Settings;
use std::time::Duration;

/// First wait after a refusal because the name is in use. The manager has probed the other worker by then, so an
/// immediate attempt would fail in the same way.
const FIRST_IN_USE: Duration = Duration::from_secs(1);

/// Maximum wait after such a refusal. When an operator stops the other worker, this one takes over within that time.
/// The attempts of 100 copies cost the manager next to nothing.
const MAX_IN_USE: Duration = Duration::from_secs(30);

/// Backoff of a worker's connection attempts.
#[derive(Debug)]
pub(super) struct Retry {
    /// Backoff after lost links and attempts without an answer.
    pub(super) lost: Backoff,
    /// Backoff after refusals because the name is in use.
    in_use: Backoff,
    /// Minimum duration of a link that does not count as a failure.
    steady: Duration,
}

impl Retry {
    pub(super) fn new(settings: &Settings, seed: u64) -> Self {
        Self {
            lost: Backoff::new(settings.first_wait, settings.longest_wait, seed),
            in_use: Backoff::new(FIRST_IN_USE, MAX_IN_USE, seed),
            // The idle timeout: a link to a dead peer ends within it.
            steady: settings.idle,
        }
    }

    /// Records the end of a link and returns the wait before the next attempt. `lasted` is the time since the manager
    /// accepted the worker, if it did.
    pub(super) fn record_end(&mut self, lasted: Option<Duration>, cause: Option<Cause>) -> Duration {
        if lasted.is_some_and(|lasted| lasted >= self.steady) {
            self.lost.succeeded();
            self.in_use.succeeded();
            return Duration::ZERO;
        }
        if cause == Some(Cause::NameInUse) { self.in_use.failed() } else { self.lost.failed() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn retry() -> Retry {
        Retry::new(&Settings::default(), 7)
    }

    #[test]
    fn link_that_lasted_is_replaced_at_once() {
        let mut retry = retry();
        let steady = Some(Settings::default().idle);
        for _ in 0..10 {
            retry.record_end(None, None);
        }
        assert_eq!(retry.record_end(steady, Some(Cause::Lost)), Duration::ZERO);
        let settings = Settings::default();
        let again = retry.record_end(Some(Duration::ZERO), Some(Cause::Lost));
        assert!(again >= settings.first_wait / 2 && again <= settings.first_wait, "{again:?}");
    }

    #[test]
    fn link_that_ends_at_once_is_tried_less_and_less() {
        let mut retry = retry();
        let attempts = |retry: &mut Retry, cause| {
            let mut waited = Duration::ZERO;
            (0..)
                .take_while(|_| {
                    waited += retry.record_end(None, Some(cause));
                    waited < Duration::from_secs(60)
                })
                .count()
        };
        assert!(attempts(&mut retry, Cause::NameInUse) <= 10);
        assert!(attempts(&mut retry, Cause::Lost) <= 80);
    }

    #[test]
    fn manager_that_was_started_again_finds_its_workers_within_the_longest_wait() {
        let mut retry = retry();
        let longest = (0..100).map(|_| retry.record_end(Some(Duration::ZERO), Some(Cause::Lost))).max();
        assert!(longest <= Some(Settings::default().longest_wait), "{longest:?}");
    }
}
