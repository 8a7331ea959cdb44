//! Pools: their limits, and the back-off of failed starts.

/// 5 s before the second attempt to start: a refusal that passes, such as a rate limit, passes within seconds.
const FIRST_WAIT_SECONDS: f64 = 5.0;

/// At most 5 min between two attempts: a study of hours notices new capacity early enough.
const MAX_WAIT_SECONDS: f64 = 300.0;

/// After 3 failures in a row the pool counts as exhausted, so that other pools replace it. Two may be chance.
const MAX_FAILURES: u32 = 3;

/// 5 min without attempts in an exhausted pool, the waiting time that clouds recommend before another request.
const COOL_DOWN_SECONDS: f64 = 300.0;

/// Pool with a driver.
#[derive(Clone, Debug, PartialEq)]
pub struct ProvisionPool {
    /// Its name in the journal.
    pub name: String,
    /// First part of the names of its workers.
    pub prefix: String,
    /// Minimum of workers.
    pub min: u32,
    /// Maximum of workers, leaving ones included.
    pub max: u32,
    /// Seconds from the request of a worker to its first task.
    pub startup_seconds: f64,
    /// Seconds without a study after which all workers above the minimum are drained.
    pub idle_seconds: f64,
    /// Seconds by which lists of the driver may lag behind.
    pub list_lag_seconds: f64,
}

/// State of a pool.
#[derive(Debug)]
pub(crate) struct PoolState {
    pub(crate) settings: ProvisionPool,
    /// Tick of the list request in progress.
    pub(crate) list_request: Option<u64>,
    /// Time of the next periodic list.
    pub(crate) next_list_seconds: f64,
    /// Earliest time of the next list.
    pub(crate) list_after_seconds: f64,
    /// Whether a driver has listed the workers since the start.
    pub(crate) is_listed: bool,
    /// Failed starts in a row.
    failures: u32,
    /// Workers in a row that were lost soon after they joined.
    early_losses: u32,
    /// Earliest time of the next start.
    next_start_seconds: f64,
    pub(crate) failed_starts: u64,
    /// Time since which no study is open.
    pub(crate) idle_since_seconds: Option<f64>,
    /// Whether the last call of the driver for a list failed.
    pub(crate) is_unlistable: bool,
}

impl PoolState {
    pub(crate) fn new(settings: ProvisionPool) -> Self {
        Self {
            settings,
            list_request: None,
            next_list_seconds: f64::NEG_INFINITY,
            list_after_seconds: f64::NEG_INFINITY,
            is_listed: false,
            failures: 0,
            early_losses: 0,
            next_start_seconds: f64::NEG_INFINITY,
            failed_starts: 0,
            idle_since_seconds: None,
            is_unlistable: false,
        }
    }

    /// Counts a failed start. Returns the number of failures in a row if the pool is now exhausted.
    pub(crate) fn record_failure(&mut self, now_seconds: f64) -> Option<u32> {
        self.failed_starts += 1;
        self.failures = self.failures.saturating_add(1);
        let doublings = (self.failures - 1).min(16);
        let mut wait = (FIRST_WAIT_SECONDS * 2.0_f64.powi(doublings as i32)).min(MAX_WAIT_SECONDS);
        let is_exhausted = self.failures >= MAX_FAILURES;
        if is_exhausted {
            wait = wait.max(COOL_DOWN_SECONDS);
        }
        self.next_start_seconds = now_seconds + wait;
        is_exhausted.then_some(self.failures)
    }

    /// Suspends starts because workers that were requested do not come.
    pub(crate) fn exhaust(&mut self, now_seconds: f64) {
        self.failures = self.failures.max(MAX_FAILURES - 1);
        self.record_failure(now_seconds);
    }

    /// Counts a worker that joined.
    pub(crate) fn record_join(&mut self, now_seconds: f64) {
        self.failures = self.early_losses;
        self.next_start_seconds = self.next_start_seconds.min(now_seconds);
    }

    /// Counts a worker that was lost soon after it joined.
    pub(crate) fn record_early_loss(&mut self, now_seconds: f64) -> Option<u32> {
        self.early_losses = self.early_losses.saturating_add(1);
        self.failures = self.failures.max(self.early_losses - 1);
        self.record_failure(now_seconds)
    }

    /// Forgets early losses: a worker has stayed.
    pub(crate) fn record_stay(&mut self) {
        self.early_losses = 0;
    }

    /// Returns the number of workers that the pool should have now. Without a study, the present number stays for the idle
    /// time, and then is the minimum.
    pub(crate) fn target(&mut self, present: u32, desired: u32, has_studies: bool, now_seconds: f64) -> u32 {
        let (min, max) = (self.settings.min, self.settings.max);
        if has_studies {
            self.idle_since_seconds = None;
            return desired.max(min).min(max);
        }
        let since = *self.idle_since_seconds.get_or_insert(now_seconds);
        if now_seconds - since < self.settings.idle_seconds { present.max(min).min(max) } else { min }
    }

    /// Returns whether a start is allowed. After a failure, at most one worker may be starting.
    pub(crate) fn may_start(&self, starting: u32, now_seconds: f64) -> bool {
        self.is_listed && now_seconds >= self.next_start_seconds && (self.failures == 0 || starting == 0)
    }

    pub(crate) fn has_no_capacity(&self, now_seconds: f64) -> bool {
        self.failures >= MAX_FAILURES && now_seconds < self.next_start_seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_starts_wait_longer_and_longer_and_exhaust_the_pool() {
        let settings = ProvisionPool {
            name: "spot".to_owned(),
            prefix: "spot-".to_owned(),
            min: 0,
            max: 9,
            startup_seconds: 60.0,
            idle_seconds: 60.0,
            list_lag_seconds: 30.0,
        };
        let mut pool = PoolState { is_listed: true, ..PoolState::new(settings) };
        assert!(pool.may_start(5, 0.0));
        assert_eq!(pool.record_failure(0.0), None);
        assert!(!pool.may_start(0, 4.0) && pool.may_start(0, 5.0) && !pool.may_start(1, 5.0));
        assert_eq!(pool.record_failure(5.0), None);
        assert!(!pool.may_start(0, 14.0) && pool.may_start(0, 15.0));
        assert_eq!(pool.record_failure(15.0), Some(3));
        assert!(pool.has_no_capacity(314.0) && !pool.may_start(0, 314.0));
        assert!(!pool.has_no_capacity(315.0) && pool.may_start(0, 315.0));
        for _ in 0..100 {
            pool.record_failure(315.0);
        }
        assert!(pool.may_start(0, 315.0 + MAX_WAIT_SECONDS));
        pool.record_join(320.0);
        assert!(pool.may_start(7, 320.0) && !pool.has_no_capacity(320.0));
        // Workers that are lost at once do not reset the back-off.
        assert_eq!(
            [0, 1, 2].map(|_| {
                pool.record_join(330.0);
                pool.record_early_loss(330.0)
            }),
            [None, None, Some(3)]
        );
        pool.record_stay();
        pool.record_join(900.0);
        assert!(pool.may_start(7, 900.0));
    }
}
