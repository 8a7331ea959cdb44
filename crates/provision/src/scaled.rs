//! Scaled pools: a controller, such as a Deployment of Kubernetes, keeps as many workers as the manager sets.
//!
//! A pure state machine for one pool. [`ScaledPool::step`] takes the desired and the connected workers,
//! [`ScaledPool::answer`] the answer of the driver, and both return [`ScaleEffect`]s for the caller to execute.
//!
//! Protocol:
//! - The number is the only state, and the controller stores it. Setting it twice has the effect of setting it once, so
//!   there is no journal, and a restarted manager continues from the number that it reads.
//! - One call is in progress at a time. The number is set only after it was read once.
//! - The controller chooses the workers that end and replaces lost ones. The caller marks the surplus workers first.
//! - A number that another party has set is reported, and set again if it differs from the desired one.

mod remark;

pub use remark::ScaleRemark;

use super::pool::PoolState;
use super::{OwnedWorkers, ProvisionPool};

/// 60 s between two observations without changes, as between two lists of other drivers.
const OBSERVE_EVERY_SECONDS: f64 = 60.0;

/// 5 s between two observations with changes of workers that are not watched: two requests, which a cluster answers within milliseconds.
const OBSERVE_AGAIN_SECONDS: f64 = 5.0;

/// 1 s between two observations at changes of watched workers: a hundred workers start with several changes each.
const OBSERVE_CHANGES_SECONDS: f64 = 1.0;

/// 30 s after a refused request: missing rights and expired credentials need longer than one step.
const RETRY_SECONDS: f64 = 30.0;

/// Workers that do not come within 3 start-up times do not come, as in pools of single workers.
const MAX_STARTUPS: f64 = 3.0;

/// 60 s at least before a pool counts as exhausted: a busy node needs longer than a short start-up time.
const MIN_JOIN_SECONDS: f64 = 60.0;

/// One warning a minute of numbers that another party sets: an autoscaler sets them every 15 s.
const WARN_EVERY_SECONDS: f64 = 60.0;

/// State of a scaled pool, as its driver reads it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScaleObservation {
    /// Number of workers that the controller keeps.
    pub replicas: u32,
    /// Workers that exist, those that are ending included.
    pub existing: u32,
    /// Reason why a worker does not start.
    pub obstacle: Option<String>,
    /// Whether the driver reports changes of the workers by [`ScaledPool::observe_soon`].
    pub is_watched: bool,
}

/// Input of a step.
#[derive(Clone, Copy, Debug)]
pub struct ScaleInput {
    /// Seconds on any monotonic clock.
    pub now_seconds: f64,
    /// Desired workers. `None` while the work is unknown: the number stays.
    pub desired: Option<u32>,
    /// Connected workers that do not drain.
    pub serving: u32,
    /// Connected workers that drain.
    pub draining: u32,
    /// Whether a study is queued or running.
    pub has_studies: bool,
}

/// Action that the caller executes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScaleEffect {
    /// Reads the number and the workers.
    Observe,
    /// Sets the number.
    Set {
        /// The number of workers.
        replicas: u32,
        /// Whether it is smaller than before. Surplus workers are marked first, so that the controller ends them.
        is_less: bool,
    },
    /// Logs a remark.
    Remark(ScaleRemark),
}

/// Answer of the driver to an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScaleAnswer {
    /// The state of the pool.
    Observed(ScaleObservation),
    /// The state is unknown.
    NotObserved {
        /// Reason.
        reason: String,
    },
    /// The number was set.
    Set {
        /// The number before.
        before: u32,
        /// The number now.
        replicas: u32,
    },
    /// The number was not set, or it is unknown whether it was.
    NotSet {
        /// Reason.
        reason: String,
    },
}

/// State machine of one scaled pool.
#[derive(Debug)]
pub struct ScaledPool {
    pool: PoolState,
    /// Last known state. `None` before the first observation.
    seen: Option<ScaleObservation>,
    is_calling: bool,
    /// Whether workers have changed since the last observation was requested.
    has_news: bool,
    /// Time of the last request of an observation.
    observed_seconds: f64,
    serving: u32,
    draining: u32,
    /// Time since which workers have been missing without any joining.
    short_since_seconds: Option<f64>,
    /// Time of the next periodic observation.
    next_observation_seconds: f64,
    /// Earliest time of the next observation.
    observe_after_seconds: f64,
    /// Earliest time of the next request to set the number.
    set_after_seconds: f64,
    /// Earliest time of the next warning of another party.
    warn_after_seconds: f64,
    now_seconds: f64,
    is_ending: bool,
}

impl ScaledPool {
    /// Creates the state machine. The prefix and the lag of lists are unused.
    #[must_use]
    pub fn new(settings: ProvisionPool, now_seconds: f64) -> Self {
        Self {
            pool: PoolState::new(settings),
            seen: None,
            is_calling: false,
            has_news: false,
            observed_seconds: f64::NEG_INFINITY,
            serving: 0,
            draining: 0,
            short_since_seconds: None,
            next_observation_seconds: f64::NEG_INFINITY,
            observe_after_seconds: f64::NEG_INFINITY,
            set_after_seconds: f64::NEG_INFINITY,
            warn_after_seconds: f64::NEG_INFINITY,
            now_seconds,
            is_ending: false,
        }
    }

    /// Follows the connected workers and moves the number towards the desired one.
    pub fn step(&mut self, input: ScaleInput) -> Vec<ScaleEffect> {
        self.advance(input.now_seconds);
        let has_joined = input.serving > self.serving;
        (self.serving, self.draining) = (input.serving, input.draining);
        let mut effects = Vec::new();
        self.follow(has_joined, &mut effects);
        if self.is_calling {
            return effects;
        }
        let Some(seen) = &self.seen else {
            effects.extend(self.observe(true));
            return effects;
        };
        let replicas = seen.replicas;
        let target = self.target(replicas, &input);
        let may_set = self.now_seconds >= self.set_after_seconds
            && (target < replicas || self.pool.may_start(0, self.now_seconds));
        if target != replicas && may_set {
            effects.push(self.set(target));
            return effects;
        }
        let is_settled = target == replicas && self.serving == replicas && self.draining == 0;
        effects.extend(self.observe(!is_settled));
        effects
    }

    /// Takes the answer of the driver.
    pub fn answer(&mut self, now_seconds: f64, answer: ScaleAnswer) -> Vec<ScaleEffect> {
        self.advance(now_seconds);
        self.is_calling = false;
        let now = self.now_seconds;
        let mut effects = Vec::new();
        match answer {
            ScaleAnswer::Observed(observation) => {
                (self.pool.is_listed, self.pool.is_unlistable) = (true, false);
                self.observe_after_seconds = now + OBSERVE_AGAIN_SECONDS;
                self.next_observation_seconds = now + OBSERVE_EVERY_SECONDS;
                self.compare(observation.replicas, &mut effects);
                self.seen = Some(observation);
            }
            ScaleAnswer::NotObserved { reason } => {
                self.observe_after_seconds = now + RETRY_SECONDS;
                // One remark until the next success: a refusal may last for hours.
                if !std::mem::replace(&mut self.pool.is_unlistable, true) {
                    effects.push(self.remark(|pool| ScaleRemark::NotObserved { pool, reason }));
                }
            }
            ScaleAnswer::Set { before, replicas } => {
                self.compare(before, &mut effects);
                let mut seen = self.seen.take().unwrap_or_default();
                seen.replicas = replicas;
                self.seen = Some(seen);
                // The workers of this number have their start-up time from now on.
                self.short_since_seconds = (replicas > self.serving).then_some(now);
                self.observe_after_seconds = now + OBSERVE_AGAIN_SECONDS;
                // Workers that the controller does not create cause no change.
                self.next_observation_seconds = self.observe_after_seconds;
                effects.push(self.remark(|pool| ScaleRemark::Set { pool, before, replicas }));
            }
            ScaleAnswer::NotSet { reason } => {
                self.set_after_seconds = now + RETRY_SECONDS;
                let failures = self.pool.record_failure(now);
                let again = reason.clone();
                effects.push(self.remark(|pool| ScaleRemark::NotSet { pool, reason }));
                if failures.is_some() {
                    effects.push(self.remark(|pool| ScaleRemark::NoCapacity { pool, reason: again }));
                }
            }
        }
        effects
    }

    /// Takes a change of the watched workers, which are observed now, or with the next step during a call.
    pub fn observe_soon(&mut self, now_seconds: f64) -> Option<ScaleEffect> {
        self.advance(now_seconds);
        self.has_news = true;
        if self.is_calling || self.seen.is_none() { None } else { self.observe(false) }
    }

    /// Returns the numbers of the pool.
    #[must_use]
    pub fn counts(&self) -> OwnedWorkers {
        let (replicas, existing) = self.seen.as_ref().map_or((0, 0), |seen| (seen.replicas, seen.existing));
        OwnedWorkers {
            starting: replicas.saturating_sub(self.serving),
            starting_seconds: self.short_since_seconds.map_or(0.0, |since| self.now_seconds - since),
            joined: self.serving,
            leaving: self.draining.max(existing.saturating_sub(replicas.max(self.serving))),
            failed_starts: self.pool.failed_starts,
            has_no_capacity: self.pool.has_no_capacity(self.now_seconds),
        }
    }

    /// Returns the number of workers that the controller keeps. `None` before the first observation.
    #[must_use]
    pub fn replicas(&self) -> Option<u32> {
        self.seen.as_ref().map(|seen| seen.replicas)
    }

    /// Sets the minimum because the manager ends.
    pub fn end(&mut self, now_seconds: f64) -> Vec<ScaleEffect> {
        self.advance(now_seconds);
        self.is_ending = true;
        if self.is_calling || self.has_ended() { Vec::new() } else { vec![self.set(self.pool.settings.min)] }
    }

    /// Returns whether the manager ends and the controller keeps no more than the minimum.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let min = self.pool.settings.min;
        self.is_ending && !self.is_calling && self.seen.as_ref().is_none_or(|seen| seen.replicas <= min)
    }

    fn advance(&mut self, now_seconds: f64) {
        // A clock that is set back does not move the pool back.
        self.now_seconds = self.now_seconds.max(now_seconds);
    }

    /// Notices workers that joined, and those that do not come.
    fn follow(&mut self, has_joined: bool, effects: &mut Vec<ScaleEffect>) {
        let now = self.now_seconds;
        if has_joined {
            self.pool.record_join(now);
        }
        let Some(seen) = &self.seen else { return };
        if self.serving >= seen.replicas {
            self.short_since_seconds = None;
            return;
        }
        // A worker that joins shows that the cluster has capacity.
        let since = *self.short_since_seconds.get_or_insert(now);
        if has_joined {
            self.short_since_seconds = Some(now);
            return;
        }
        let max_join = (MAX_STARTUPS * self.pool.settings.startup_seconds).max(MIN_JOIN_SECONDS);
        if now - since <= max_join || self.pool.has_no_capacity(now) {
            return;
        }
        let missing = seen.replicas - self.serving;
        let late = format!("{missing} of {} workers have not joined within {max_join} s", seen.replicas);
        let reason = seen.obstacle.as_ref().map_or(late.clone(), |obstacle| format!("{late}: {obstacle}"));
        self.pool.exhaust(now);
        self.short_since_seconds = Some(now);
        effects.push(self.remark(|pool| ScaleRemark::NoCapacity { pool, reason }));
    }

    /// Returns the number to be set now. A pool without capacity keeps the workers that have joined.
    fn target(&mut self, replicas: u32, input: &ScaleInput) -> u32 {
        let now = self.now_seconds;
        let min = self.pool.settings.min;
        if self.is_ending {
            return min.min(replicas);
        }
        let desired = input.desired.unwrap_or(replicas);
        let target = self.pool.target(replicas, desired, input.has_studies, now);
        if self.pool.has_no_capacity(now) { target.min(self.serving.max(min)) } else { target }
    }

    fn set(&mut self, replicas: u32) -> ScaleEffect {
        self.is_calling = true;
        let is_less = self.seen.as_ref().is_some_and(|seen| replicas < seen.replicas);
        ScaleEffect::Set { replicas, is_less }
    }

    fn observe(&mut self, has_changes: bool) -> Option<ScaleEffect> {
        let is_watched = self.seen.as_ref().is_some_and(|seen| seen.is_watched);
        let is_periodic = self.now_seconds >= self.observe_after_seconds
            && (self.now_seconds >= self.next_observation_seconds || (has_changes && !is_watched));
        // After a refused observation, news wait as well.
        let is_new = self.has_news
            && !self.pool.is_unlistable
            && self.now_seconds >= self.observed_seconds + OBSERVE_CHANGES_SECONDS;
        if !is_periodic && !is_new {
            return None;
        }
        (self.has_news, self.observed_seconds) = (false, self.now_seconds);
        self.is_calling = true;
        Some(ScaleEffect::Observe)
    }

    /// Reports a number that differs from the last known one: another party has set it.
    fn compare(&mut self, found: u32, effects: &mut Vec<ScaleEffect>) {
        let Some(known) = self.seen.as_ref().map(|seen| seen.replicas).filter(|known| *known != found) else {
            return;
        };
        if self.now_seconds >= self.warn_after_seconds {
            self.warn_after_seconds = self.now_seconds + WARN_EVERY_SECONDS;
            effects.push(self.remark(|pool| ScaleRemark::ChangedElsewhere { pool, known, found }));
        }
    }

    fn remark(&self, remark: impl FnOnce(String) -> ScaleRemark) -> ScaleEffect {
        ScaleEffect::Remark(remark(self.pool.settings.name.clone()))
    }
}
