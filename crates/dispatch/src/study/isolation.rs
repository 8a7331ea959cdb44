//! Isolation of instances that crash workers.
//!
//! A worker may be lost for any reason. An instance that was on several lost workers is a suspect and runs on
//! an otherwise empty worker. A crash there takes no other lease with it, and no other instance can cause it.
//! If such workers crash as well, the suspect fails. All other instances continue.

use super::{Rank, State, StragglerPolicy, Study};
use crate::message::TaskFailure;
use crate::{InstanceId, WorkerId};
use std::collections::BTreeSet;
use std::time::Duration;

/// Crash count of a suspect instance. One lost worker is an accident, and two at once may be one as well.
const SUSPECTED_AFTER: u32 = 2;

/// Crash limit: a suspect fails after 3 more lost workers that ran nothing else.
const GIVEN_UP_AFTER: u32 = SUSPECTED_AFTER + 3;

impl Study {
    /// Counts a lost worker for each instance that it had.
    pub(super) fn record_crash(&mut self, instances: &BTreeSet<InstanceId>) {
        instances.iter().for_each(|id| *self.losses.entry(*id).or_default() += 1);
    }

    /// Gives each suspect among instances without a lease a bucket of its own, or fails it once it has reached the crash
    /// limit.
    pub(super) fn isolate_or_fail(&mut self, instances: &BTreeSet<InstanceId>) {
        for &id in instances {
            let state = self.instances[id.index()].state;
            if !self.is_suspected(id) || state.is_final() || matches!(state, State::Leased(_)) {
                continue;
            }
            let losses = self.losses.get(&id).copied().unwrap_or_default();
            if losses >= GIVEN_UP_AFTER {
                let cause = format!(
                    "{losses} workers were lost while they ran it, the last {} with nothing else to do",
                    GIVEN_UP_AFTER - SUSPECTED_AFTER
                );
                self.fail(id, id, &TaskFailure { at: "worker".to_owned(), cause });
                continue;
            }
            let old = self.instances[id.index()].bucket;
            if self.buckets[old.index()].alone {
                continue;
            }
            self.unqueue(old);
            let bucket = self.regroup(BTreeSet::from([id]));
            self.queue_if_ready(old);
            self.buckets[bucket.index()].alone = true;
            self.queue_if_ready(bucket);
        }
    }

    /// Returns whether any bucket waits for an otherwise empty worker.
    pub(crate) fn has_ready_isolated(&self) -> bool {
        !self.ready_alone.is_empty()
    }

    /// Returns the stages of isolated buckets that have been ready for longer than the timeout of a straggler, in order.
    pub(crate) fn overdue(&mut self, now: Duration, behind: StragglerPolicy) -> Vec<usize> {
        self.alone_since.retain(|rank, _| self.ready_alone.contains(rank));
        for rank in &self.ready_alone {
            self.alone_since.entry(*rank).or_insert(now);
        }
        let is_overdue = |(rank, since): (&Rank, &Duration)| {
            let stage = rank.0.0;
            let bound = self.straggler_timeout(stage, behind).unwrap_or(behind.least);
            (now.saturating_sub(*since) > bound).then_some(stage)
        };
        self.alone_since.iter().filter_map(is_overdue).collect()
    }

    /// Clears an instance that has been finished of suspicion.
    pub(super) fn clear(&mut self, instance: InstanceId) {
        if self.losses.remove(&instance).is_some() {
            let bucket = self.instances[instance.index()].bucket;
            self.buckets[bucket.index()].alone = false;
        }
    }

    /// Takes back a crash of these instances: their worker has reattached, so they did not crash it.
    pub(super) fn retract_crash(&mut self, instances: &[InstanceId]) {
        for &id in instances {
            let Some(losses) = self.losses.get_mut(&id) else { continue };
            *losses = losses.saturating_sub(1);
            let bucket = self.instances[id.index()].bucket;
            if *losses < SUSPECTED_AFTER && self.buckets[bucket.index()].alone {
                self.unqueue(bucket);
                self.buckets[bucket.index()].alone = false;
                self.queue_if_ready(bucket);
            }
        }
    }

    /// Returns whether the crash count of an instance requires isolation.
    pub(super) fn is_suspected(&self, instance: InstanceId) -> bool {
        self.losses.get(&instance).is_some_and(|losses| *losses >= SUSPECTED_AFTER)
    }

    /// Returns whether a worker has a suspect instance, so that it gets nothing else.
    #[must_use]
    pub fn runs_isolated(&self, worker: WorkerId) -> bool {
        // Fast path: most studies have no crashes.
        if self.losses.is_empty() {
            return false;
        }
        let leases =
            self.granted.get(&worker).into_iter().flatten().filter_map(|lease| self.leases.get(lease));
        leases.flat_map(|lease| &lease.open).any(|id| self.is_suspected(*id))
    }
}
