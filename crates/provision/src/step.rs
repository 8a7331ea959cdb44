//! The step: follows the connected workers, starts missing ones and drains surplus ones.

use super::worker::{OwnedWorker, STOP_AGAIN_SECONDS, WorkerPhase};
use super::{
    ConnectedWorker, DriverAnswer, ProvisionEffect, ProvisionInput, ProvisionRecord, ProvisionRemark,
    Provisioner,
};
use std::collections::{BTreeMap, BTreeSet};

/// At most 4 calls of a driver for starts at once: clouds and schedulers limit the rate of requests, and a call takes
/// seconds.
const MAX_CALLS: u32 = 4;

/// A worker that needs more than 3 times the start-up time of its pool does not come.
const MAX_STARTUPS: f64 = 3.0;

/// 60 s at least for a start: pools of processes state start-up times of few seconds, which a busy machine exceeds.
const MIN_JOIN_SECONDS: f64 = 60.0;

/// A worker that is lost within 60 s after it joined counts as a failed start, so that a crash loop is slowed down.
const STAY_SECONDS: f64 = 60.0;

/// 10 min to drain: running tasks take seconds to minutes, and sole copies of regions are replicated.
const MAX_DRAIN_SECONDS: f64 = 600.0;

impl Provisioner {
    /// Follows the connected workers and moves each pool towards its desired number of workers.
    ///
    /// Missing entries of `desired` count as 0.
    pub fn step(&mut self, input: &ProvisionInput<'_>) -> Vec<ProvisionEffect> {
        self.advance(input.now_seconds);
        let mut effects = Vec::new();
        let names: Vec<String> = self.workers.keys().cloned().collect();
        let connected: BTreeMap<&str, &ConnectedWorker> =
            input.connected.iter().map(|worker| (worker.name.as_str(), worker)).collect();
        let left: BTreeSet<&str> = input.left.iter().map(String::as_str).collect();
        for name in &names {
            self.follow(name, connected.get(name.as_str()).copied(), &mut effects);
            // It came and went between two steps. Its machine may still run.
            if left.contains(name.as_str())
                && self.workers.get(name).is_some_and(|worker| worker.phase == WorkerPhase::Starting)
            {
                self.stop(name, &mut effects);
            }
        }
        if !self.is_ending {
            for pool in 0..self.pools.len() {
                self.scale(pool, input, &mut effects);
            }
        }
        effects.extend(self.due_lists());
        effects
    }

    /// Takes the answer of a driver.
    pub fn answer(&mut self, now_seconds: f64, answer: DriverAnswer) -> Vec<ProvisionEffect> {
        let tick = self.advance(now_seconds);
        let mut effects = Vec::new();
        match answer {
            DriverAnswer::Started { name, handle } => {
                if let Some(worker) = self.calling(&name) {
                    worker.handle = Some(handle.clone());
                    worker.set(WorkerPhase::Starting, now_seconds, tick);
                    effects.push(ProvisionEffect::Write(ProvisionRecord::Started {
                        name: name.clone(),
                        handle,
                    }));
                    if self.is_ending {
                        self.stop(&name, &mut effects);
                    }
                }
            }
            DriverAnswer::NotStarted { name, reason } => {
                if let Some(pool) = self.calling(&name).map(|worker| worker.pool) {
                    self.forget(&name, &mut effects);
                    self.fail(pool, &name, reason, &mut effects);
                }
            }
            DriverAnswer::StartUnknown { name, reason } => {
                if let Some(worker) = self.calling(&name) {
                    worker.set(WorkerPhase::Unknown, now_seconds, tick);
                    let pool = worker.pool;
                    self.fail(pool, &name, reason, &mut effects);
                }
            }
            DriverAnswer::Stopped { name, handle } => {
                if let Some(worker) = self.stopping(&name, &handle) {
                    let again_seconds = now_seconds + STOP_AGAIN_SECONDS;
                    worker.phase = WorkerPhase::Stopping { is_calling: false, again_seconds };
                    worker.changed = tick;
                }
            }
            DriverAnswer::NotStopped { name, handle, reason } => {
                if let Some(worker) = self.stopping(&name, &handle) {
                    let again_seconds = now_seconds + STOP_AGAIN_SECONDS;
                    worker.phase = WorkerPhase::Stopping { is_calling: false, again_seconds };
                }
                effects.push(ProvisionEffect::Remark(ProvisionRemark::StopFailed { name, reason }));
            }
            DriverAnswer::Listed { pool, workers } => self.listed(pool, &workers, &mut effects),
            DriverAnswer::NotListed { pool, reason } => self.not_listed(pool, reason, &mut effects),
        }
        effects
    }

    fn calling(&mut self, name: &str) -> Option<&mut OwnedWorker> {
        self.workers.get_mut(name).filter(|worker| worker.phase == WorkerPhase::Calling)
    }

    fn stopping(&mut self, name: &str, handle: &str) -> Option<&mut OwnedWorker> {
        let worker = self.workers.get_mut(name)?;
        let is_it = worker.handle.as_deref() == Some(handle);
        (is_it && matches!(worker.phase, WorkerPhase::Stopping { .. })).then_some(worker)
    }

    /// Updates the phase of a worker.
    fn follow(
        &mut self,
        name: &str,
        connected: Option<&ConnectedWorker>,
        effects: &mut Vec<ProvisionEffect>,
    ) {
        let (now, tick) = (self.now_seconds, self.tick);
        let Some(worker) = self.workers.get_mut(name) else { return };
        let pool = worker.pool;
        let max_join = (MAX_STARTUPS * self.pools[pool].settings.startup_seconds).max(MIN_JOIN_SECONDS);
        worker.is_connected = connected.is_some();
        match (worker.phase, connected) {
            // Without a handle the worker cannot be stopped: a list has to return it first.
            (WorkerPhase::Calling | WorkerPhase::Unknown, _) => {}
            (WorkerPhase::Starting, Some(_)) => {
                worker.set(WorkerPhase::Joined, now, tick);
                self.pools[pool].record_join(now);
            }
            (WorkerPhase::Starting, None) if now - worker.since_seconds > max_join => {
                let is_inherited = worker.is_inherited;
                self.stop(name, effects);
                if !is_inherited {
                    self.fail(pool, name, format!("it has not joined within {max_join} s"), effects);
                }
            }
            (WorkerPhase::Joined, Some(link)) => {
                worker.away_since_seconds = None;
                if link.is_draining {
                    worker.set(WorkerPhase::Draining, now, tick);
                } else if now - worker.since_seconds >= STAY_SECONDS {
                    self.pools[pool].record_stay();
                }
            }
            (WorkerPhase::Joined, None) => match worker.away_since_seconds {
                None => (worker.away_since_seconds, worker.changed) = (Some(now), tick),
                Some(since) if now - since > max_join => self.stop(name, effects),
                Some(_) => {}
            },
            // The machine of a worker that has left may still run.
            (WorkerPhase::Draining, None) => self.stop(name, effects),
            (WorkerPhase::Draining, Some(_)) if now - worker.since_seconds > MAX_DRAIN_SECONDS => {
                self.stop(name, effects);
            }
            (WorkerPhase::Stopping { is_calling: false, again_seconds }, _) if now >= again_seconds => {
                worker.phase = WorkerPhase::Stopping { is_calling: true, again_seconds };
                effects.extend(stop_effect(name, worker));
            }
            (WorkerPhase::Starting | WorkerPhase::Draining | WorkerPhase::Stopping { .. }, _) => {}
        }
    }

    /// Starts missing workers of a pool, or drains surplus ones.
    fn scale(&mut self, pool: usize, input: &ProvisionInput<'_>, effects: &mut Vec<ProvisionEffect>) {
        let is_of =
            |worker: &&ConnectedWorker| worker.pool == Some(pool) && !self.workers.contains_key(&worker.name);
        let foreign: Vec<&ConnectedWorker> = input.connected.iter().filter(is_of).collect();
        let foreign_serving = foreign.iter().filter(|worker| !worker.is_draining).count();
        let own = || self.workers.values().filter(|worker| worker.pool == pool);
        let count = |workers: usize| u32::try_from(workers).unwrap_or(u32::MAX);
        let serving = count(own().filter(|worker| worker.serves()).count() + foreign_serving);
        let orphans = self.orphans.values().filter(|orphan| orphan.pool == pool).count();
        let existing = count(own().count() + foreign.len() + orphans);
        let starting = count(own().filter(|worker| worker.is_starting()).count());
        let calling = count(own().filter(|worker| worker.phase == WorkerPhase::Calling).count());
        let desired = input.desired.get(pool).copied().unwrap_or(0);
        let target = self.pools[pool].target(serving, desired, input.has_studies, self.now_seconds);
        let max = self.pools[pool].settings.max;
        let missing = target.saturating_sub(serving).min(max.saturating_sub(existing));
        for number in 0..missing.min(MAX_CALLS.saturating_sub(calling)) {
            if self.pools[pool].may_start(starting + number, self.now_seconds) {
                self.start(pool, effects);
            }
        }
        self.remove(pool, serving.saturating_sub(target), input, effects);
    }

    fn start(&mut self, pool: usize, effects: &mut Vec<ProvisionEffect>) {
        self.count += 1;
        let settings = &self.pools[pool].settings;
        let name = format!("{}{}-{}", settings.prefix, self.incarnation, self.count);
        let of = settings.name.clone();
        let worker = OwnedWorker::new(pool, None, WorkerPhase::Calling, self.now_seconds, self.tick);
        self.workers.insert(name.clone(), worker);
        // On disk before the driver is called: a manager that is killed in between knows the name.
        effects
            .push(ProvisionEffect::Write(ProvisionRecord::Intended { name: name.clone(), pool: of.clone() }));
        effects.push(ProvisionEffect::Remark(ProvisionRemark::Requested { name: name.clone(), pool: of }));
        effects.push(ProvisionEffect::Start { pool, name });
    }

    /// Removes surplus workers: those that have not joined are stopped, the newest first, and then others are drained
    /// in removal order.
    fn remove(
        &mut self,
        pool: usize,
        surplus: u32,
        input: &ProvisionInput<'_>,
        effects: &mut Vec<ProvisionEffect>,
    ) {
        let mut surplus = surplus as usize;
        let of = |worker: &OwnedWorker, phase| worker.pool == pool && worker.phase == phase;
        let own = |phase: WorkerPhase| {
            let names = self.workers.iter().filter(|(_, worker)| of(worker, phase));
            names.map(|(name, worker)| (worker.requested_seconds, name.clone())).collect::<Vec<_>>()
        };
        let mut starting = own(WorkerPhase::Starting);
        starting.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| b.1.cmp(&a.1)));
        let joined = own(WorkerPhase::Joined);
        for (_, name) in starting.into_iter().take(surplus) {
            surplus -= 1;
            self.stop(&name, effects);
        }
        // While studies are open, the scaling decision picks the workers: they hold the fewest buckets and data.
        let rank = |name: &str| input.removal_order.iter().position(|other| other == name);
        let mut joined: Vec<(usize, String)> = joined
            .into_iter()
            .filter_map(|(_, name)| match rank(&name) {
                None if input.has_studies => None,
                rank => Some((rank.unwrap_or(usize::MAX), name)),
            })
            .collect();
        joined.sort();
        for (_, name) in joined.into_iter().take(surplus) {
            if let Some(worker) = self.workers.get_mut(&name) {
                worker.set(WorkerPhase::Draining, self.now_seconds, self.tick);
                effects.push(ProvisionEffect::Drain { name });
            }
        }
    }

    /// Has the driver stop a worker. Without a handle, a list has to return it first.
    pub(crate) fn stop(&mut self, name: &str, effects: &mut Vec<ProvisionEffect>) {
        let (now, tick) = (self.now_seconds, self.tick);
        let Some(worker) = self.workers.get_mut(name) else { return };
        if worker.handle.is_none() || matches!(worker.phase, WorkerPhase::Stopping { .. }) {
            return;
        }
        let again_seconds = now + STOP_AGAIN_SECONDS;
        worker.set(WorkerPhase::Stopping { is_calling: true, again_seconds }, now, tick);
        effects.push(ProvisionEffect::Remark(ProvisionRemark::Stopping { name: name.to_owned() }));
        effects.extend(stop_effect(name, worker));
    }

    /// Removes a worker that does not exist any more.
    pub(crate) fn forget(&mut self, name: &str, effects: &mut Vec<ProvisionEffect>) {
        self.workers.remove(name);
        self.ended.insert(name.to_owned(), self.tick);
        effects.push(ProvisionEffect::Write(ProvisionRecord::Ended { name: name.to_owned() }));
    }

    /// Counts a failed start.
    pub(crate) fn fail(
        &mut self,
        pool: usize,
        name: &str,
        reason: String,
        effects: &mut Vec<ProvisionEffect>,
    ) {
        let failures = self.pools[pool].record_failure(self.now_seconds);
        self.remark_failure(pool, name, reason, failures, effects);
    }

    /// Counts a worker that was lost soon after it joined.
    pub(crate) fn lose(
        &mut self,
        pool: usize,
        since_seconds: f64,
        name: &str,
        effects: &mut Vec<ProvisionEffect>,
    ) {
        if self.now_seconds - since_seconds < STAY_SECONDS {
            let failures = self.pools[pool].record_early_loss(self.now_seconds);
            let reason = "it was lost soon after it joined".to_owned();
            self.remark_failure(pool, name, reason, failures, effects);
        }
    }

    fn remark_failure(
        &self,
        pool: usize,
        name: &str,
        reason: String,
        failures: Option<u32>,
        effects: &mut Vec<ProvisionEffect>,
    ) {
        let remark = ProvisionRemark::StartFailed { name: name.to_owned(), reason: reason.clone() };
        effects.push(ProvisionEffect::Remark(remark));
        if let Some(failures) = failures {
            let pool = self.pools[pool].settings.name.clone();
            effects.push(ProvisionEffect::Remark(ProvisionRemark::NoCapacity { pool, failures, reason }));
        }
    }
}

/// Returns the effect that stops a worker. `None` without a handle.
fn stop_effect(name: &str, worker: &OwnedWorker) -> Option<ProvisionEffect> {
    let handle = worker.handle.clone()?;
    Some(ProvisionEffect::Stop { pool: worker.pool, name: name.to_owned(), handle })
}
