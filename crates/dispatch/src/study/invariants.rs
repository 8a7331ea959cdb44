//! A study's invariants. Each context checks its own state, and this module compares the contexts with each other and
//! with the plan, after every event in tests and on demand in a debugger.

use super::Study;
use super::state::InstanceState;
use crate::InstanceId;

impl Study {
    /// Compares all redundant state with a recount.
    ///
    /// # Errors
    /// A description of the first violated invariant.
    pub fn sanity_check(&self) -> Result<(), String> {
        self.instances.check()?;
        self.leases.check()?;
        self.clocks.check(|worker, lease| self.leases.of(worker, lease).is_some())?;
        self.check_instances()?;
        self.check_counts()?;
        self.check_queue()?;
        self.check_leases()?;
        let open = self.plan.instances.iter().zip(self.instances.states());
        let open = open.filter(|(_, state)| !state.is_final()).map(|(plan, _)| plan);
        self.regions.check(open, |id| self.instances.state(id) == InstanceState::Done)
    }

    /// Asserts that nothing is left after the last instance: `Effect::Complete` makes the manager forget the study.
    pub(super) fn assert_complete(&self, last: InstanceId) {
        assert!(self.leases.is_empty(), "{last} was the last one, and leases are left: {:?}", self.leases);
        assert!(self.ready.is_empty(), "{last} was the last one, and buckets are queued: {:?}", self.ready);
        assert!(self.regions.is_empty(), "{last} was the last one, and regions are used: {:?}", self.regions);
        debug_assert!(
            self.instances.states().all(InstanceState::is_final),
            "{last} was counted as the last one, and others are open: {:?}",
            self.instances
        );
    }

    /// Compares instances with their leases and their parents.
    fn check_instances(&self) -> Result<(), String> {
        for (id, plan) in self.plan.instances.enumerate() {
            let state = self.instances.state(id);
            if let InstanceState::Leased(lease) = state
                && !self.leases.get(lease).is_some_and(|lease| lease.open().contains(&id))
            {
                return Err(format!("{id} is leased under {lease}, which does not have it"));
            }
            let open = self.unfinished_parents(id);
            match state {
                InstanceState::Waiting(count) if count != open => {
                    return Err(format!("{id} waits for {count} of {:?}, {open} are open", plan.parents));
                }
                // Done and leased instances may have open parents: a finished one from before whose parents run again for
                // other readers, and a leased one that has the inputs its parents must write again.
                InstanceState::Ready if open > 0 => {
                    return Err(format!("{id} is {state:?} before its parents are done: {:?}", plan.parents));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Compares the counts of instances with each other and with the failures.
    fn check_counts(&self) -> Result<(), String> {
        let (census, unfinished) = (self.census(), self.unfinished());
        if census.waiting + census.ready + census.leased != unfinished
            || unfinished + census.finished + census.failed != self.instances.len()
        {
            return Err(format!("{census:?} of {} instances, {unfinished} unfinished", self.instances.len()));
        }
        let is_failed = |id| self.instances.state(id) == InstanceState::Failed;
        self.failures.check(is_failed, census.failed)
    }

    /// Compares the queue with the buckets.
    fn check_queue(&self) -> Result<(), String> {
        self.ready.runs().check()?;
        let mut queued = 0;
        for (id, bucket) in self.instances.buckets() {
            let is_ready = |id: &InstanceId| self.instances.state(*id) == InstanceState::Ready;
            let ready = !bucket.open().is_empty() && bucket.open().iter().all(is_ready);
            let is_isolated = self.ready.contains_isolated(id);
            if ready != self.ready.contains(id) || is_isolated && !bucket.is_isolated() {
                return Err(format!("{id} is ready: {ready}, queued as isolated: {is_isolated}, {bucket:?}"));
            }
            if ready && bucket.is_isolated() && !is_isolated {
                return Err(format!("{id} is isolated, and is queued for any worker"));
            }
            queued += usize::from(ready);
        }
        if queued == self.ready.len() {
            Ok(())
        } else {
            Err(format!("{queued} buckets are ready, {} are queued", self.ready.len()))
        }
    }

    /// Compares leases with the states of their instances and with their buckets.
    fn check_leases(&self) -> Result<(), String> {
        for (id, lease) in self.leases.iter() {
            let is_granted =
                |open: &InstanceId| self.instances.state(*open).is_leased_under(id, lease.twin());
            let bucket = lease.open().first().map(|first| self.instances.bucket_of(*first));
            let open = bucket.map(|bucket| self.instances.bucket(bucket).open());
            let is_whole = lease.twin().is_some() || open == Some(lease.open());
            if !is_whole || !lease.open().iter().all(is_granted) {
                return Err(format!("{id} is not the one lease of all that is open in its bucket"));
            }
        }
        Ok(())
    }
}
