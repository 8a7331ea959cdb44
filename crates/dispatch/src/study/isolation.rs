//! Instances that kill workers. A worker that is lost may have been lost for any reason; an instance that was on several
//! of them is suspected, runs where nothing else can be lost with it and nothing else can be to blame, and is given up
//! when that kills workers as well. Everything else goes on.

use super::{Rank, State, StragglerPolicy, Study};
use crate::message::TaskFailure;
use crate::{InstanceId, WorkerId};
use std::collections::BTreeSet;
use std::time::Duration;

/// Lost workers after which an instance runs alone. One is an accident, and so may be two at once.
const SUSPECTED_AFTER: u32 = 2;

/// Lost workers after which it is given up: three of them when it was the only thing they did.
const GIVEN_UP_AFTER: u32 = SUSPECTED_AFTER + 3;

impl Study {
    /// A worker was lost that had these instances.
    pub(super) fn record_crash(&mut self, instances: &BTreeSet<InstanceId>) {
        instances.iter().for_each(|id| *self.losses.entry(*id).or_default() += 1);
    }

    /// Of instances that nobody has, gives those that are suspected a bucket of their own each, or fails them when they have
    /// done enough harm.
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

    /// Whether anything waits for a worker that has nothing else.
    pub(crate) fn has_ready_isolated(&self) -> bool {
        !self.ready_alone.is_empty()
    }

    /// The stages of what has been ready for a worker of its own for as long as a lease would be far behind, in order.
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

    /// What has been finished kills nobody.
    pub(super) fn clear(&mut self, instance: InstanceId) {
        if self.losses.remove(&instance).is_some() {
            let bucket = self.instances[instance.index()].bucket;
            self.buckets[bucket.index()].alone = false;
        }
    }

    /// A worker that was counted as lost is back, and has these instances: they did not kill it.
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

    /// Whether too many workers were lost with an instance for it to run beside anything else.
    pub(super) fn is_suspected(&self, instance: InstanceId) -> bool {
        self.losses.get(&instance).is_some_and(|losses| *losses >= SUSPECTED_AFTER)
    }

    /// Whether a worker has an instance that is suspected: it gets nothing else.
    #[must_use]
    pub fn runs_isolated(&self, worker: WorkerId) -> bool {
        // As a rule nothing is suspected at all.
        if self.losses.is_empty() {
            return false;
        }
        let leases =
            self.granted.get(&worker).into_iter().flatten().filter_map(|lease| self.leases.get(lease));
        leases.flat_map(|lease| &lease.open).any(|id| self.is_suspected(*id))
    }
}
