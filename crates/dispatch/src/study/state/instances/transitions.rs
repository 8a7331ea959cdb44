//! Transitions of instances between states, and of open instances between buckets.

use super::{Bucket, Instance, InstanceState, Instances};
use crate::plan::BucketPlan;
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
        let before = self.instances[id.index()].state;
        assert!(matches!(before, InstanceState::Leased(_)), "{id} is returned, was {before:?}");
        self.wait_for(id, unfinished_parents);
    }

    /// Marks an open instance as done.
    pub(crate) fn finish(&mut self, id: InstanceId) {
        self.close(id, InstanceState::Done);
    }

    /// Marks an open instance without a lease as failed.
    pub(crate) fn fail(&mut self, id: InstanceId) {
        let before = self.instances[id.index()].state;
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
        let instance = &mut self.instances[id.index()];
        let InstanceState::Waiting(parents) = instance.state else { return None };
        assert!(parents > 0, "{id} waits for no parent");
        if parents > 1 {
            instance.state = InstanceState::Waiting(parents - 1);
            return None;
        }
        instance.state = InstanceState::Ready;
        let bucket = instance.bucket;
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
        let instance = &mut self.instances[id.index()];
        match &mut instance.state {
            InstanceState::Waiting(parents) => *parents += 1,
            state @ InstanceState::Ready => {
                *state = InstanceState::Waiting(1);
                let bucket = instance.bucket;
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
        let before = self.instances[id.index()].state;
        assert!(before == InstanceState::Reopened, "{id} is readmitted, was {before:?}");
        let bucket = self.bucket_of(id);
        let is_new = self.buckets[bucket.index()].open.insert(id);
        assert!(is_new, "{id} was reopened and is open in {bucket}");
        self.wait_for(id, unfinished_parents);
    }

    fn wait_for(&mut self, id: InstanceId, parents: usize) {
        let instance = &mut self.instances[id.index()];
        if parents == 0 {
            instance.state = InstanceState::Ready;
        } else {
            instance.state = InstanceState::Waiting(parents);
            let bucket = instance.bucket;
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
            let Instance { state, bucket, .. } = &mut self.instances[id.index()];
            let number = std::mem::replace(bucket, new);
            let old = &mut self.buckets[number.index()];
            let was_open = old.open.remove(id);
            assert!(was_open, "{id} is {state:?} and not open in {number}, and cannot move to {new}");
            let waits = usize::from(state.waits());
            assert!(old.waiting >= waits, "{id} leaves {number}, which counts no waiting instance");
            old.waiting -= waits;
            waiting += waits;
        }
        self.buckets.push(Bucket { open: instances, waiting, isolated: false, ready_since: now });
        new
    }

    /// Moves all open instances of some buckets into new ones, which follow all existing ones in the given order. The
    /// caller has checked that both have the same instances.
    pub(crate) fn replan(&mut self, replaced: &BTreeSet<BucketId>, new: &[BucketPlan], now: Duration) {
        let mut before = 0;
        for id in replaced {
            let bucket = &mut self.buckets[id.index()];
            before += std::mem::take(&mut bucket.open).len();
            bucket.waiting = 0;
        }
        let mut after = 0;
        for plan in new {
            let bucket = BucketId(self.buckets.len() as u32);
            let open: BTreeSet<InstanceId> = plan.instances.iter().copied().collect();
            let mut waiting = 0;
            for id in &open {
                let instance = &mut self.instances[id.index()];
                let old = std::mem::replace(&mut instance.bucket, bucket);
                // With equal counts below, this shows that the set of open instances is the same.
                debug_assert!(
                    replaced.contains(&old),
                    "{id} moves from {old} to {bucket}, not from {replaced:?}"
                );
                waiting += usize::from(instance.state.waits());
            }
            after += open.len();
            self.buckets.push(Bucket { open, waiting, isolated: false, ready_since: now });
        }
        assert!(before == after, "{replaced:?} had {before} open instances, their replacements have {after}");
    }

    fn replace(&mut self, id: InstanceId, state: InstanceState) -> InstanceState {
        std::mem::replace(&mut self.instances[id.index()].state, state)
    }

    /// Compares states, open instances of buckets, and counts.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (id, instance) in (0u32..).map(InstanceId).zip(&self.instances) {
            let in_bucket = self.buckets[instance.bucket.index()].open.contains(&id);
            if instance.state.is_final() == in_bucket || instance.state == InstanceState::Reopened {
                return Err(format!("{id} is {:?}, open in its bucket: {in_bucket}", instance.state));
            }
        }
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
