//! A study's invariants, checked after every event in tests and on demand in a debugger.

use super::{State, Study};
use crate::InstanceId;
use std::collections::HashMap;

impl Study {
    /// Compares all redundant state with a recount.
    ///
    /// # Errors
    /// A description of the first violated invariant.
    pub fn sanity_check(&self) -> Result<(), String> {
        let mut unfinished = 0;
        for (id, instance) in (0u32..).map(InstanceId).zip(&self.instances) {
            let in_bucket = self.buckets[instance.bucket.index()].open.contains(&id);
            if instance.state.is_final() == in_bucket {
                return Err(format!("{id} is {:?}, open in its bucket: {in_bucket}", instance.state));
            }
            unfinished += usize::from(!instance.state.is_final());
            if let State::Leased(lease) = instance.state
                && !self.leases.get(&lease).is_some_and(|lease| lease.open.contains(&id))
            {
                return Err(format!("{id} is leased under {lease}, which does not know it"));
            }
            let parents = &self.plan.instances[id.index()].parents;
            let open = parents.iter().filter(|p| self.instances[p.index()].state != State::Done).count();
            match instance.state {
                State::Waiting(count) if count != open => {
                    return Err(format!("{id} waits for {count} parents, {open} are open"));
                }
                // Done and leased instances may have open parents: a finished one from before whose parents run again for
                // other readers, and a leased one that has the inputs its parents must write again.
                State::Ready if open > 0 => {
                    return Err(format!("{id} is {:?} before its parents are done", instance.state));
                }
                _ => {}
            }
        }
        if unfinished != self.unfinished {
            return Err(format!("{unfinished} instances unfinished, {} counted", self.unfinished));
        }
        let census = self.census();
        if census.waiting + census.ready + census.leased != unfinished
            || unfinished + census.finished + census.failed != self.instances.len()
        {
            return Err(format!("{census:?} of {} instances, {unfinished} unfinished", self.instances.len()));
        }
        for (number, bucket) in self.buckets.iter().enumerate() {
            let count = |wanted: fn(State) -> bool| {
                bucket.open.iter().filter(|id| wanted(self.instances[id.index()].state)).count()
            };
            let waiting = count(|state| matches!(state, State::Waiting(_)));
            if waiting != bucket.waiting {
                return Err(format!("bucket {number} counts {} waiting, has {waiting}", bucket.waiting));
            }
            let ready = !bucket.open.is_empty() && count(|state| state == State::Ready) == bucket.open.len();
            let queue = if bucket.alone { &self.ready_alone } else { &self.ready };
            let queued = queue.iter().any(|(_, id)| id.index() == number);
            if ready != queued {
                return Err(format!("bucket {number} is ready: {ready}, queued: {queued}"));
            }
        }
        for (id, lease) in &self.leases {
            let known = self.granted.get(&lease.worker).is_some_and(|leases| leases.contains(id));
            if !known || lease.open.is_empty() {
                return Err(format!("{id} is empty or its worker does not know it"));
            }
            let twin = lease.twin.map(|twin| (twin, self.leases.get(&twin).map(|twin| twin.twin)));
            if twin.is_some_and(|(_, back)| back != Some(Some(*id))) {
                return Err(format!("{id} has a twin that is not its own: {twin:?}"));
            }
            let is_granted = |open: &InstanceId| {
                let state = self.instances[open.index()].state;
                state == State::Leased(*id) || twin.is_some_and(|(twin, _)| state == State::Leased(twin))
            };
            let bucket = lease.open.first().map(|first| self.instances[first.index()].bucket);
            let open = bucket.map(|bucket| &self.buckets[bucket.index()].open);
            let is_whole = lease.twin.is_some() || open == Some(&lease.open);
            if !is_whole || !lease.open.iter().all(is_granted) {
                return Err(format!("{id} is not the one lease of all that is open in its bucket"));
            }
        }
        if self.granted.values().map(std::collections::BTreeSet::len).sum::<usize>() != self.leases.len() {
            return Err("workers have leases that there are not".to_owned());
        }
        let mut users = HashMap::new();
        let open = self.plan.instances.iter().zip(&self.instances).filter(|(_, run)| !run.state.is_final());
        for key in open.flat_map(|(plan, _)| plan.used()) {
            *users.entry(key).or_insert(0) += 1;
        }
        for (key, holders) in &self.holders {
            if holders.is_empty() || !users.contains_key(key) {
                return Err(format!("{key} is held by {holders:?}, users of regions are {users:?}"));
            }
        }
        for (key, producer) in &self.producers {
            let is_done = self.instances[producer.index()].state == State::Done;
            if is_done && users.contains_key(key) && !self.holders.contains_key(key) {
                return Err(format!("{key} will be read, and is nowhere, but {producer} is done"));
            }
        }
        if users != self.users {
            return Err(format!("users of regions are {users:?}, counted are {:?}", self.users));
        }
        Ok(())
    }
}
