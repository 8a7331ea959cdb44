//! Circuit breaker: closed while calls succeed, open after failures, and half open for one call after a pause.

use parking_lot::Mutex;
use std::time::{Duration, Instant};

/// 3 failures in a row: one may be chance, and each more costs its caller the time of a failing call.
pub(super) const MAX_FAILURES: u32 = 3;

/// Change of the availability of a tier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Availability {
    /// It has become unavailable.
    Unavailable {
        /// The failure.
        cause: String,
    },
    /// It has become available.
    Available {
        /// Time since it became unavailable.
        after: Duration,
    },
}

/// Open breaker.
#[derive(Debug)]
struct Open {
    since: Instant,
    /// Last failure.
    cause: String,
    pause: Duration,
    until: Instant,
    /// A call tries the tier.
    is_trying: bool,
}

#[derive(Debug, Default)]
struct State {
    /// Failures in a row.
    failures: u32,
    open: Option<Open>,
}

/// Circuit breaker. Callers pass the time.
#[derive(Debug)]
pub(super) struct Breaker {
    first_pause: Duration,
    max_pause: Duration,
    state: Mutex<State>,
}

impl Breaker {
    pub(super) fn new(first_pause: Duration, max_pause: Duration) -> Self {
        Self { first_pause, max_pause, state: Mutex::default() }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.lock().open.is_none()
    }

    /// Returns the time until a call is allowed, or half of the first pause while one is under way. `None` if the breaker is closed.
    pub(super) fn pause(&self, now: Instant) -> Option<Duration> {
        let state = self.state.lock();
        let open = state.open.as_ref()?;
        let half = self.first_pause / 2;
        Some(if open.is_trying { half } else { open.until.saturating_duration_since(now) })
    }

    /// Begins a call. [`succeed`](Self::succeed) or [`fail`](Self::fail) follows.
    ///
    /// # Errors
    /// Returns the last failure if no call is allowed now.
    pub(super) fn enter(&self, now: Instant) -> Result<(), String> {
        match &mut self.state.lock().open {
            Some(open) if open.is_trying || now < open.until => Err(open.cause.clone()),
            Some(open) => {
                open.is_trying = true;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// Ends a call that the tier has answered, also one that began before the breaker opened.
    pub(super) fn succeed(&self, now: Instant) -> Option<Availability> {
        let mut state = self.state.lock();
        state.failures = 0;
        let open = state.open.take()?;
        Some(Availability::Available { after: now.saturating_duration_since(open.since) })
    }

    /// Ends a call that has failed. It counts as `failures` failures.
    pub(super) fn fail(&self, now: Instant, cause: &str, failures: u32) -> Option<Availability> {
        let mut state = self.state.lock();
        state.failures = state.failures.saturating_add(failures);
        let (first_pause, max_pause) = (self.first_pause, self.max_pause);
        if let Some(open) = &mut state.open {
            // Of calls that began before the breaker opened, the pause does not become longer.
            if std::mem::take(&mut open.is_trying) {
                open.pause = open.pause.saturating_mul(2).min(max_pause);
                open.until = now + open.pause;
                cause.clone_into(&mut open.cause);
            }
            return None;
        }
        if state.failures < MAX_FAILURES {
            return None;
        }
        let (cause, pause) = (cause.to_owned(), first_pause);
        state.open =
            Some(Open { since: now, cause: cause.clone(), pause, until: now + pause, is_trying: false });
        Some(Availability::Unavailable { cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn third_failure_opens_and_pauses_double() {
        let (breaker, start) = (Breaker::new(SECOND, 3 * SECOND), Instant::now());
        let at = |seconds: u32| start + seconds * SECOND;
        for _ in 0..2 {
            breaker.enter(start).unwrap();
            assert_eq!(breaker.fail(start, "odd", 1), None);
        }
        breaker.enter(start).unwrap();
        assert_eq!(
            breaker.fail(start, "bad", 1),
            Some(Availability::Unavailable { cause: "bad".to_owned() })
        );
        assert_eq!(breaker.enter(start).unwrap_err(), "bad");
        // Calls at 1, 3 and 6 s: pauses of 1, 2 and 3 s.
        for (seconds, next) in [(1, 3), (3, 6), (6, 9)] {
            breaker.enter(at(seconds)).unwrap();
            assert!(breaker.enter(at(seconds)).is_err(), "one call tries");
            assert_eq!(breaker.fail(at(seconds), "worse", 3), None);
            assert_eq!(breaker.enter(at(next - 1)).unwrap_err(), "worse");
        }
        breaker.enter(at(9)).unwrap();
        assert_eq!(breaker.succeed(at(10)), Some(Availability::Available { after: 10 * SECOND }));
        assert!(breaker.is_closed());
        assert_eq!(breaker.succeed(at(10)), None);
    }

    #[test]
    fn success_ends_a_row_and_a_hang_opens_at_once() {
        let (breaker, now) = (Breaker::new(SECOND, SECOND), Instant::now());
        for _ in 0..5 {
            breaker.fail(now, "odd", 1);
            breaker.fail(now, "odd", 1);
            assert_eq!(breaker.succeed(now), None);
        }
        assert!(breaker.fail(now, "hangs", MAX_FAILURES).is_some());
        // A call from before fails as well.
        assert_eq!(breaker.fail(now + SECOND, "hangs too", MAX_FAILURES), None);
        breaker.enter(now + SECOND).unwrap();
    }
}
