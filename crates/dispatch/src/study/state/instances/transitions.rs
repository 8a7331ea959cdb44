//! Transitions of instances between states, and of open instances between buckets.

use super::{Bucket, InstanceState, Instances};
use crate::{BucketId, InstanceId, LeaseId};
use std::collections::BTreeSet;
use std::time::Duration;

impl Instances {
    /// Leases a ready bucket. Returns its open instances.
    pub(crate) fn lease(&mut self, bucket: BucketId, lease: LeaseId) -> BTreeSet<InstanceId> {
        let open = self.buckets[bucket.index()].open.clone();
        assert!(!open.is_empty(), "{bucket} is leased under {lease} and has no open instance");
        let waiting = self.buckets[bucket.index()].waiting;
        assert!(waiting == 0, "{bucket} is leased under {lease} with {waiting} waiting instances");
        for id in &open {
            let before = self.replace(*id, InstanceState::Leased(lease));
            assert!(
                before == InstanceState::Ready,
                "{id} of {bucket} is leased under {lease}, was {before:?}"
            );
        }
        open
    }

    /// Leases a bucket that a worker executes already, so that its instances wait for no parent. Returns its open
    /// instances.
    pub(crate) fn lease_running(&mut self, bucket: BucketId, lease: LeaseId) -> BTreeSet<InstanceId> {
        let open = self.buckets[bucket.index()].open.clone();
        self.buckets[bucket.index()].waiting = 0;
        for id in &open {
            let before = self.replace(*id, InstanceState::Leased(lease));
            assert!(before.is_unstarted(), "{id} of {bucket} reattaches to {lease}, was {before:?}");
        }
        open
    }

    /// Moves a leased instance to the other lease of a speculative execution.
    pub(crate) fn lease_to_twin(&mut self, id: InstanceId, twin: LeaseId) {
        let before = self.replace(id, InstanceState::Leased(twin));
        assert!(matches!(before, InstanceState::Leased(_)), "{id} stays in {twin}, was {before:?}");
    }

    /// Ends the lease of an open instance, which waits for its unfinished parents from now on.
    pub(crate) fn end_lease(&mut self, id: InstanceId, unfinished_parents: usize) {
        let before = self.state(id);
        assert!(matches!(before, InstanceState::Leased(_)), "{id} is returned, was {before:?}");
        self.wait_for(id, unfinished_parents);
    }

    /// Marks an open instance as done.
    pub(crate) fn finish(&mut self, id: InstanceId) {
        self.close(id, InstanceState::Done);
    }

    /// Marks an open instance without a lease as failed.
    pub(crate) fn fail(&mut self, id: InstanceId) {
        let before = self.state(id);
        assert!(before.is_unstarted(), "{id} fails, was {before:?}");
        self.close(id, InstanceState::Failed);
    }

    fn close(&mut self, id: InstanceId, state: InstanceState) {
        let before = self.replace(id, state);
        let number = self.bucket_of(id);
        let bucket = &mut self.buckets[number.index()];
        let was_open = bucket.open.remove(&id);
        assert!(was_open, "{id} becomes {state:?}, was {before:?} and not open in {number}");
        let waited = usize::from(before.waits());
        assert!(bucket.waiting >= waited, "{id} becomes {state:?}, and {number} counts no waiting instance");
        assert!(self.unfinished > 0, "{id} becomes {state:?}, and no instance is counted as open");
        bucket.waiting -= waited;
        self.unfinished -= 1;
    }

    /// Counts a finished parent of an instance. Returns the instance's bucket if the instance is ready now. Instances
    /// that do not wait stay as they are: they are leased, or failed with another parent.
    pub(crate) fn finish_parent(&mut self, id: InstanceId) -> Option<BucketId> {
        let InstanceState::Waiting(parents) = self.state(id) else { return None };
        assert!(parents > 0, "{id} waits for no parent");
        if parents > 1 {
            self.replace(id, InstanceState::Waiting(parents - 1));
            return None;
        }
        self.replace(id, InstanceState::Ready);
        let bucket = self.bucket_of(id);
        let waiting = &mut self.buckets[bucket.index()].waiting;
        assert!(*waiting > 0, "{id} is ready, and {bucket} counts no waiting instance");
        *waiting -= 1;
        Some(bucket)
    }

    /// Marks a done instance as reopened. [`readmit`](Self::readmit) returns it to its bucket.
    pub(crate) fn reopen(&mut self, id: InstanceId) {
        let before = self.replace(id, InstanceState::Reopened);
        assert!(before == InstanceState::Done, "{id} is reopened, was {before:?}");
        self.unfinished += 1;
    }

    /// Counts a reopened parent of an instance. Returns the instance's bucket if the instance was ready before. A
    /// leased child stays, since its worker may have its inputs, and a reopened one is counted by
    /// [`readmit`](Self::readmit).
    pub(crate) fn reopen_parent(&mut self, id: InstanceId) -> Option<BucketId> {
        match self.state(id) {
            InstanceState::Waiting(parents) => _ = self.replace(id, InstanceState::Waiting(parents + 1)),
            InstanceState::Ready => {
                self.replace(id, InstanceState::Waiting(1));
                let bucket = self.bucket_of[id.index()];
                self.buckets[bucket.index()].waiting += 1;
                self.assert_waiting(bucket, id);
                return Some(bucket);
            }
            InstanceState::Reopened
            | InstanceState::Leased(_)
            | InstanceState::Done
            | InstanceState::Failed => {}
        }
        None
    }

    /// Returns a reopened instance to its bucket.
    pub(crate) fn readmit(&mut self, id: InstanceId, unfinished_parents: usize) {
        let before = self.state(id);
        assert!(before == InstanceState::Reopened, "{id} is readmitted, was {before:?}");
        let bucket = self.bucket_of(id);
        let is_new = self.buckets[bucket.index()].open.insert(id);
        assert!(is_new, "{id} was reopened and is open in {bucket}");
        self.wait_for(id, unfinished_parents);
    }

    fn wait_for(&mut self, id: InstanceId, parents: usize) {
        if parents == 0 {
            self.replace(id, InstanceState::Ready);
        } else {
            self.replace(id, InstanceState::Waiting(parents));
            let bucket = self.bucket_of(id);
            self.buckets[bucket.index()].waiting += 1;
            self.assert_waiting(bucket, id);
        }
    }

    /// Asserts that a bucket counts no more waiting instances than it has open ones, after `last` was counted.
    fn assert_waiting(&self, id: BucketId, last: InstanceId) {
        let Bucket { open, waiting, .. } = &self.buckets[id.index()];
        assert!(*waiting <= open.len(), "{id} counts {waiting} of {} after {last} waits", open.len());
    }

    /// Moves open instances from their buckets into a new one.
    pub(crate) fn regroup(&mut self, instances: BTreeSet<InstanceId>, now: Duration) -> BucketId {
        let new = BucketId(self.buckets.len() as u32);
        assert!(!instances.is_empty(), "{new} has no instance");
        let mut waiting = 0;
        for id in &instances {
            let state = self.states[id.index()];
            let number = std::mem::replace(&mut self.bucket_of[id.index()], new);
            let old = &mut self.buckets[number.index()];
            let was_open = old.open.remove(id);
            assert!(was_open, "{id} is {state:?} and not open in {number}, and cannot move to {new}");
            let waits = usize::from(state.waits());
            assert!(old.waiting >= waits, "{id} leaves {number}, which counts no waiting instance");
            old.waiting -= waits;
            waiting += waits;
        }
        let moved: Vec<InstanceId> = instances.iter().copied().collect();
        self.buckets.push(Bucket { open: instances, waiting, isolated: false, ready_since: now });
        moved.into_iter().for_each(|id| self.update_movable(id));
        new
    }

    /// Moves all open instances of some buckets into new ones, which follow all existing ones in the given order. The
    /// caller has checked that both have the same instances. Returns the former sets of open instances: dropping them
    /// takes as long as the move.
    pub(crate) fn replan(
        &mut self,
        replaced: &BTreeSet<BucketId>,
        new: Vec<BTreeSet<InstanceId>>,
        now: Duration,
    ) -> Vec<BTreeSet<InstanceId>> {
        let mut former = Vec::with_capacity(replaced.len());
        for id in replaced {
            let bucket = &mut self.buckets[id.index()];
            assert!(!bucket.isolated, "{id} is isolated, and is replanned");
            former.push(std::mem::take(&mut bucket.open));
            bucket.waiting = 0;
        }
        let mut after = 0;
        for open in new {
            let bucket = BucketId(self.buckets.len() as u32);
            let mut waiting = 0;
            for id in &open {
                let old = std::mem::replace(&mut self.bucket_of[id.index()], bucket);
                // With equal counts below, this shows that the set of open instances is the same.
                debug_assert!(
                    replaced.contains(&old),
                    "{id} moves from {old} to {bucket}, not from {replaced:?}"
                );
                waiting += usize::from(self.states[id.index()].waits());
            }
            after += open.len();
            self.buckets.push(Bucket { open, waiting, isolated: false, ready_since: now });
        }
        let before: usize = former.iter().map(BTreeSet::len).sum();
        assert!(before == after, "{replaced:?} had {before} open instances, their replacements have {after}");
        former
    }

    fn replace(&mut self, id: InstanceId, state: InstanceState) -> InstanceState {
        let before = std::mem::replace(&mut self.states[id.index()], state);
        self.census.record(id, before, state);
        if before.is_unstarted() != state.is_unstarted() {
            self.update_movable(id);
        }
        before
    }

    /// Compares states, open instances of buckets, and counts.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (id, state) in (0u32..).map(InstanceId).zip(self.states()) {
            let in_bucket = self.bucket(self.bucket_of(id)).open.contains(&id);
            if state.is_final() == in_bucket || state == InstanceState::Reopened {
                return Err(format!("{id} is {state:?}, open in its bucket: {in_bucket}"));
            }
            if self.is_movable(id) != self.is_movable_by_state(id) {
                return Err(format!("{id} is {state:?}, movable: {}", self.is_movable(id)));
            }
        }
        let movable = self.movable.iter().filter(|movable| **movable).count();
        if movable != self.movable_count {
            return Err(format!("{movable} instances are movable, {} are counted", self.movable_count));
        }
        self.check_census()?;
        for (id, bucket) in self.buckets() {
            let waiting = bucket.open.iter().filter(|id| self.state(**id).waits()).count();
            if waiting != bucket.waiting {
                return Err(format!("{id} counts {} waiting instances, has {waiting}", bucket.waiting));
            }
        }
        let open: usize = self.buckets.iter().map(|bucket| bucket.open.len()).sum();
        if open != self.unfinished {
            return Err(format!("{open} instances are open, {} are counted", self.unfinished));
        }
        Ok(())
    }
}
