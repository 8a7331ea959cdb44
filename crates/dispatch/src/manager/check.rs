//! The manager's invariants, checked after every event in tests and whenever a debugger asks.

use super::{Manager, State};
use crate::InstanceId;
use std::collections::HashMap;

impl Manager {
    /// Compares all redundant state with a recount.
    ///
    /// # Errors
    /// The first invariant that does not hold, in words.
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
                // One that was finished before may be done before its parents are, for others; one that is granted may
                // have what its parents are to write again.
                State::Ready if open > 0 => {
                    return Err(format!("{id} is {:?} before its parents are done", instance.state));
                }
                _ => {}
            }
        }
        if unfinished != self.unfinished {
            return Err(format!("{unfinished} instances unfinished, {} counted", self.unfinished));
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
            let queued = self.ready.iter().any(|(_, id)| id.index() == number);
            if ready != queued {
                return Err(format!("bucket {number} is ready: {ready}, queued: {queued}"));
            }
        }
        for (id, lease) in &self.leases {
            let known = self.members.get(&lease.worker).is_some_and(|member| member.leases.contains(id));
            if !known || lease.open.is_empty() {
                return Err(format!("{id} is empty or its worker does not know it"));
            }
            let granted = |open: &InstanceId| self.instances[open.index()].state == State::Leased(*id);
            let bucket = lease.open.first().map(|first| self.instances[first.index()].bucket);
            let open = bucket.map(|bucket| &self.buckets[bucket.index()].open);
            if open != Some(&lease.open) || !lease.open.iter().all(granted) {
                return Err(format!("{id} is not the one lease of all that is open in its bucket"));
            }
        }
        for (worker, member) in &self.members {
            let queued = self.queue.count(*worker);
            if queued != (usize::from(member.wanted > 0), usize::from(member.wants_later)) {
                return Err(format!("{worker} is queued {queued:?} times, and is {member:?}"));
            }
        }
        if let Some((stage, _)) = self.ready.first().filter(|_| !self.stopping)
            && self.queue.is_waiting_for(stage.0)
        {
            return Err("buckets are ready and workers wait for them".to_owned());
        }
        let mut users = HashMap::new();
        let open = self.plan.instances.iter().zip(&self.instances).filter(|(_, run)| !run.state.is_final());
        for key in open.flat_map(|(plan, _)| plan.used()) {
            *users.entry(key).or_insert(0) += 1;
        }
        for (key, holders) in &self.holders {
            let there = holders.iter().all(|worker| self.members.contains_key(worker));
            if holders.is_empty() || !there || !users.contains_key(key) {
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
