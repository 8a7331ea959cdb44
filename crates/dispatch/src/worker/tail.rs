//! The end of the work: long paths first, over all buckets of the worker and with those of other workers.
//!
//! Depth-first needs least memory, but leaves long tasks for the end, where few workers have work. Once few tasks are open on
//! the worker, the task with the longest path is next. Before it runs a last task of an instance, the worker asks the manager
//! for an instance with a longer path. The manager collects such instances: a worker whose slots are all busy returns an
//! instance with a ready task that it was asked for, now or as soon as it has one.

use super::state::{BucketEntry, Rank};
use super::{Effect, Worker};
use crate::LeaseId;
use crate::memory_model::BucketDemand;
use crate::message::GrantReason;
use std::cmp::Reverse;
use std::time::Duration;

impl Worker {
    /// Runs long paths first and shares instances by their paths, once at most `max_tasks` tasks for each slot are open.
    #[must_use]
    pub fn with_tail(mut self, max_tasks: u32) -> Self {
        self.tail.set_max_tasks(max_tasks);
        self
    }

    /// Handles the manager's request to return instances of a lease with a longer path than `longer_than`.
    pub fn handle_steal_request(&mut self, lease: LeaseId, longer_than: Duration) {
        if self.buckets.get(lease).is_some() {
            self.tail.ask(lease, longer_than);
            self.balance();
        }
    }

    /// Handles the manager's answer to [`Effect::Query`], after the bucket that it has granted.
    pub fn handle_query_answer(&mut self, found: bool) {
        if self.tail.end_query(found) && !found {
            self.requests.record_grant(GrantReason::Request);
        }
        self.balance();
    }

    /// Returns whether few tasks are open.
    fn is_tail(&self) -> bool {
        self.buckets.open_tasks() <= u64::from(self.tail.max_tasks()) * self.slots.count() as u64
    }

    /// Returns the buckets with a ready task in the order of their paths, later stages first. `None` before the end of the
    /// work.
    pub(super) fn by_path(
        &self,
        ready: impl Iterator<Item = (Rank, BucketDemand)>,
    ) -> Option<Vec<(Rank, BucketDemand)>> {
        if !self.tail.is_enabled() || !self.is_tail() {
            return None;
        }
        let mut ready: Vec<(Rank, BucketDemand)> = ready.collect();
        // A claimed task has no path here, and others may wait for it.
        let claimed = |demand: &BucketDemand| demand.tail.next_path > Duration::ZERO;
        ready.sort_by_key(|(rank, demand)| (rank.0, claimed(demand), Reverse(demand.tail.next_path), *rank));
        Some(ready)
    }

    /// Returns whether the next task of a bucket has to wait, because instances with longer paths may exist. Asks the manager
    /// for one.
    pub(super) fn waits_for_longer(&mut self, lease: LeaseId) -> bool {
        let Some(demand) = self.buckets.get(lease).and_then(BucketEntry::demand) else { return false };
        let may_ask = self.tail.is_enabled() && !self.requests.is_draining() && !self.tail.is_refused();
        if !may_ask || !demand.tail.is_last || !self.is_tail() {
            return false;
        }
        // A bucket that has just arrived, or a task that is being looked up, has the longer path.
        if self.buckets.has_coming() {
            return true;
        }
        if self.tail.begin_query() {
            self.requests.record_query();
            self.effects.push_back(Effect::Query { longer_than: demand.tail.next_path });
        }
        true
    }

    /// Answers requests for instances of leases: at once for buckets with many open tasks, otherwise while all slots are busy,
    /// or memory or active paths admit no further task. `waits` means that a free slot waits for the manager's answer.
    pub(super) fn share(&mut self, waits: bool) {
        let is_limited = self.running() > 0 && !waits && !self.buckets.has_coming();
        let is_busy = self.slots.free() == 0 || is_limited;
        let mut answered = Vec::new();
        for (lease, longer_than) in self.tail.asked() {
            let Some(demand) = self.buckets.get(lease).and_then(BucketEntry::demand) else { continue };
            if !self.tail.is_enabled() || !demand.tail.is_tail {
                answered.push(Effect::ShareHalf { lease });
            } else if is_busy && demand.tail.spare_path.is_some_and(|path| path > longer_than) {
                answered.push(Effect::ShareSpare { lease, longer_than });
            }
        }
        for effect in answered {
            if let Effect::ShareHalf { lease } | Effect::ShareSpare { lease, .. } = effect {
                self.tail.answer(lease);
            }
            self.effects.push_back(effect);
        }
    }
}
