//! Lists of drivers: they adopt workers whose start is unknown, end those that have ended elsewhere, and show orphans.

use super::worker::{STOP_AGAIN_SECONDS, WorkerPhase};
use super::{Orphan, ProvisionEffect, ProvisionRecord, ProvisionRemark, Provisioner};

/// 60 s between two lists of a pool without changes: orphans cost little within a minute.
const LIST_EVERY_SECONDS: f64 = 60.0;

/// 5 s between two lists of a pool with changes: schedulers answer a few requests a minute without strain.
const LIST_AGAIN_SECONDS: f64 = 5.0;

/// 30 s after a failed list: expired credentials and overloaded schedulers need longer than one step.
const LIST_RETRY_SECONDS: f64 = 30.0;

/// 60 s and the lag of lists before a start without an answer counts as failed: the time limit of a call.
const UNKNOWN_SECONDS: f64 = 60.0;

impl Provisioner {
    /// Returns the list requests that are due.
    pub(crate) fn due_lists(&mut self) -> Vec<ProvisionEffect> {
        let now = self.now_seconds;
        let mut effects = Vec::new();
        for pool in 0..self.pools.len() {
            let has_changes = self.workers.values().any(|worker| worker.pool == pool && worker.needs_list())
                || self.orphans.values().any(|orphan| orphan.pool == pool);
            let state = &mut self.pools[pool];
            let is_due = now >= state.next_list_seconds || has_changes;
            if state.list_request.is_none() && is_due && now >= state.list_after_seconds {
                state.list_request = Some(self.tick);
                effects.push(ProvisionEffect::List { pool });
            }
        }
        effects
    }

    pub(crate) fn not_listed(&mut self, pool: usize, reason: String, effects: &mut Vec<ProvisionEffect>) {
        let now = self.now_seconds;
        let state = &mut self.pools[pool];
        state.list_request = None;
        state.list_after_seconds = now + LIST_RETRY_SECONDS;
        // One remark until the next success: a refusal may last for hours.
        if !std::mem::replace(&mut state.is_unlistable, true) {
            let pool = state.settings.name.clone();
            effects.push(ProvisionEffect::Remark(ProvisionRemark::ListFailed { pool, reason }));
        }
    }

    pub(crate) fn listed(
        &mut self,
        pool: usize,
        listed: &[(String, String)],
        effects: &mut Vec<ProvisionEffect>,
    ) {
        let now = self.now_seconds;
        let state = &mut self.pools[pool];
        let Some(requested) = state.list_request.take() else { return };
        (state.is_listed, state.is_unlistable) = (true, false);
        (state.next_list_seconds, state.list_after_seconds) =
            (now + LIST_EVERY_SECONDS, now + LIST_AGAIN_SECONDS);
        for (name, handle) in listed {
            let has = |other: &str| listed.iter().any(|(a, b)| a == name && b == other);
            self.recognize(pool, (name, handle), has, requested, effects);
        }
        let is_listed = |name: &str| listed.iter().any(|(other, _)| other == name);
        let absent = |name: &&String| !is_listed(name);
        let own = self.workers.iter().filter(|(_, worker)| worker.pool == pool && worker.changed < requested);
        let absent: Vec<String> = own.map(|(name, _)| name).filter(absent).cloned().collect();
        absent.iter().for_each(|name| self.miss(name, effects));
        self.orphans.retain(|(name, handle), orphan| {
            orphan.pool != pool || listed.iter().any(|(a, b)| a == name && b == handle)
        });
        // Only lists in progress can have ended workers.
        let oldest = self.pools.iter().filter_map(|state| state.list_request).min().unwrap_or(self.tick);
        self.ended.retain(|_, ended| *ended >= oldest);
    }

    /// Handles a worker that a list has. `has` returns whether the list has a handle under the same name.
    fn recognize(
        &mut self,
        pool: usize,
        (name, handle): (&str, &str),
        has: impl Fn(&str) -> bool,
        requested: u64,
        effects: &mut Vec<ProvisionEffect>,
    ) {
        let (now, tick, is_ending) = (self.now_seconds, self.tick, self.is_ending);
        let Some(worker) = self.workers.get_mut(name).filter(|worker| worker.pool == pool) else {
            if self.ended.get(name).is_none_or(|ended| *ended < requested) {
                self.stop_orphan(pool, name, handle, false, effects);
            }
            return;
        };
        worker.was_listed |= worker.phase != WorkerPhase::Calling;
        let is_new = match (&worker.phase, &worker.handle) {
            // The answer of the driver follows.
            (WorkerPhase::Calling, _) => return,
            (_, Some(own)) if own == handle => false,
            (_, Some(own)) if has(own) => {
                return self.stop_orphan(pool, name, handle, true, effects);
            }
            // The answer of the driver is newer than the list.
            (_, Some(_)) if worker.changed >= requested => return,
            // The scheduler has replaced the worker, or the answer was lost.
            _ => true,
        };
        if is_new {
            worker.handle = Some(handle.to_owned());
            let (name, handle) = (name.to_owned(), handle.to_owned());
            effects.push(ProvisionEffect::Write(ProvisionRecord::Started {
                name: name.clone(),
                handle: handle.clone(),
            }));
            effects.push(ProvisionEffect::Remark(ProvisionRemark::Adopted { name, handle }));
            if worker.phase == WorkerPhase::Unknown {
                worker.set(WorkerPhase::Starting, now, tick);
            }
        } else if worker.is_inherited && worker.changed == 0 {
            worker.changed = tick;
            let (name, handle) = (name.to_owned(), handle.to_owned());
            effects.push(ProvisionEffect::Remark(ProvisionRemark::Adopted { name, handle }));
        }
        if is_ending {
            self.stop(name, effects);
        }
    }

    /// Handles an owned worker that a list omits.
    fn miss(&mut self, name: &str, effects: &mut Vec<ProvisionEffect>) {
        let now = self.now_seconds;
        let Some(worker) = self.workers.get(name) else { return };
        let (pool, since, is_inherited) = (worker.pool, worker.since_seconds, worker.is_inherited);
        let lag = self.pools[pool].settings.list_lag_seconds;
        // A list may not have a young worker yet, unless an earlier one had it.
        if !worker.was_listed && now - worker.requested_seconds < lag {
            return;
        }
        let is_over = |seconds: f64| !worker.is_connected && now - since >= seconds;
        let ended =
            |reason| ProvisionEffect::Remark(ProvisionRemark::Ended { name: name.to_owned(), reason });
        match worker.phase {
            WorkerPhase::Unknown if is_over(UNKNOWN_SECONDS + lag) => {
                self.forget(name, effects);
                effects.push(ended("its driver does not list it"));
            }
            WorkerPhase::Starting if !worker.is_connected && (worker.was_listed || is_over(lag)) => {
                self.forget(name, effects);
                if is_inherited {
                    effects.push(ended("it ended while the manager was not running"));
                } else {
                    self.fail(pool, name, "its driver does not list it".to_owned(), effects);
                }
            }
            WorkerPhase::Joined if worker.away_since_seconds.is_some() => {
                self.forget(name, effects);
                effects.push(ended("it was lost"));
                self.lose(pool, since, name, effects);
            }
            WorkerPhase::Stopping { .. } => {
                self.forget(name, effects);
                effects.push(ended("it was stopped"));
            }
            WorkerPhase::Calling
            | WorkerPhase::Unknown
            | WorkerPhase::Starting
            | WorkerPhase::Joined
            | WorkerPhase::Draining => {}
        }
    }

    fn stop_orphan(
        &mut self,
        pool: usize,
        name: &str,
        handle: &str,
        is_double: bool,
        effects: &mut Vec<ProvisionEffect>,
    ) {
        let now = self.now_seconds;
        let key = (name.to_owned(), handle.to_owned());
        let known = self.orphans.get(&key);
        if known.is_some_and(|orphan| now < orphan.again_seconds) {
            return;
        }
        let (name, handle) = key.clone();
        if known.is_none() {
            let (name, handle) = (name.clone(), handle.clone());
            effects.push(ProvisionEffect::Remark(if is_double {
                ProvisionRemark::Double { name, handle }
            } else {
                ProvisionRemark::Orphan { name, handle }
            }));
        }
        self.orphans.insert(key, Orphan { pool, again_seconds: now + STOP_AGAIN_SECONDS });
        effects.push(ProvisionEffect::Stop { pool, name, handle });
    }
}
