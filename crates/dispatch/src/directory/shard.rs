//! One worker's shard of the directory: the results and claims of the keys that rendezvous hashing assigns to it.
//!
//! All state is soft: a shard that is lost with its worker costs repeated work. The results are with their holders.
//! A claim ends with its lease, so a claimer that hangs holds up no other worker for longer.
//!
//! A result enters an entry under the claim of its announcer only: a claim that has ended, or of another worker, announces
//! nothing. A worker without a claim can become a further holder of the digests that the entry has.

use super::message::{ClaimId, MemberId, Reply, Request, TaskRecord};
use pleach_regions::TaskKey;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// A claim without renewal ends after 10 s. Claimers renew after a third of it ([`RENEWAL`]), so two lost renewals are
/// tolerated. A shorter lease would end the claims of a worker whose processors are oversubscribed.
pub(super) const LEASE: Duration = Duration::from_secs(10);

/// Interval of renewals.
pub(super) const RENEWAL: Duration = Duration::from_millis(3333);

/// Maximum number of listed holders of a result. More would spread the load of a popular result no further.
const MAX_HOLDERS: usize = 8;

/// Maximum number of entries: about 300 MB. Beyond it, results stay with their workers, unlisted.
const MAX_ENTRIES: usize = 1 << 20;

/// The exclusive right to run a task.
#[derive(Clone, Copy, Debug)]
struct Claim {
    by: MemberId,
    id: ClaimId,
    /// End of the lease.
    until: Duration,
}

#[derive(Debug, Default)]
struct Entry {
    claim: Option<Claim>,
    record: Option<TaskRecord>,
    holders: Vec<MemberId>,
    /// Workers that wait for the claimer.
    subscribers: BTreeSet<MemberId>,
}

impl Entry {
    /// Lists a worker that has `record`, unless it has fewer outputs than the entry: it could not send the others.
    fn add_holder(&mut self, worker: MemberId, record: &TaskRecord) {
        let Some(known) = &self.record else { return };
        let mut outputs = known.outputs.iter().zip(&record.outputs);
        let has_all = outputs.all(|(known, held)| known.is_none() || held.is_some());
        if has_all && !self.holders.contains(&worker) && self.holders.len() < MAX_HOLDERS {
            self.holders.push(worker);
        }
    }
}

/// Result of a message to a shard, besides its replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Accepted,
    /// The worker announces a result without its claim: the claim has ended, is another worker's, or never existed.
    Unclaimed,
    /// The record cannot be one of the task.
    Misnamed,
    /// The worker announces other content than the result has: the operation is not deterministic, or memory is faulty.
    Differs,
}

/// A shard. Replies are collected with their receivers.
#[derive(Debug, Default)]
pub(super) struct Shard {
    entries: HashMap<TaskKey, Entry>,
    /// Keys with a claim, to find expired ones.
    claimed: BTreeSet<TaskKey>,
    /// Claims since the start. The next one gets this number.
    granted: u64,
    pub(super) replies: Vec<(MemberId, Reply)>,
}

impl Shard {
    pub(super) fn handle(&mut self, from: MemberId, request: Request, now: Duration) -> Outcome {
        match request {
            Request::LookUp { key, wanted } => self.look_up(from, key, &wanted, now),
            Request::Renew { key } => {
                let claim = self.entries.get_mut(&key).and_then(|entry| entry.claim.as_mut());
                if let Some(claim) = claim.filter(|claim| claim.by == from) {
                    claim.until = now + LEASE;
                }
            }
            Request::Hold { key, record, claim } => return self.hold(from, key, record, claim, now),
            Request::Replica { key, record } => return self.add_replica(from, &key, &record),
            Request::Abandon { key } => {
                if self.claimer(&key) == Some(from) {
                    self.release(&key);
                }
            }
            Request::Drop { key } => self.remove_holder(&key, from),
            Request::Reject { key, holder } => self.remove_holder(&key, holder),
        }
        Outcome::Accepted
    }

    fn claimer(&self, key: &TaskKey) -> Option<MemberId> {
        self.entries.get(key)?.claim.map(|claim| claim.by)
    }

    fn look_up(&mut self, from: MemberId, key: TaskKey, wanted: &[bool], now: Duration) {
        let entry = self.entries.entry(key).or_default();
        // A holder that asks has evicted the outputs meanwhile.
        let holders: Vec<MemberId> = entry.holders.iter().copied().filter(|holder| *holder != from).collect();
        if let Some(record) = entry.record.as_ref().filter(|record| !holders.is_empty() && record.has(wanted))
        {
            let record = record.clone();
            return self.replies.push((from, Reply::Found { key, record, holders }));
        }
        match entry.claim {
            Some(claim) if claim.by != from && claim.until > now => {
                entry.subscribers.insert(from);
                self.replies.push((from, Reply::Computing { key }));
            }
            claim => {
                // A repeated look-up of the claimer gets the claim that it has.
                let own = claim.filter(|claim| claim.by == from && claim.until > now);
                let id = own.map_or(ClaimId(self.granted), |claim| claim.id);
                self.granted += u64::from(own.is_none());
                entry.claim = Some(Claim { by: from, id, until: now + LEASE });
                // A worker that runs the task itself waits for no other.
                entry.subscribers.remove(&from);
                self.claimed.insert(key);
                self.replies.push((from, Reply::Claimed { key, claim: id }));
            }
        }
    }

    /// Lists a result that the worker has computed under its claim, and ends the claim.
    fn hold(
        &mut self,
        from: MemberId,
        key: TaskKey,
        record: TaskRecord,
        id: ClaimId,
        now: Duration,
    ) -> Outcome {
        let is_own = |claim: &Claim| claim.by == from && claim.id == id && claim.until > now;
        let Some(entry) = self.entries.get_mut(&key).filter(|entry| entry.claim.as_ref().is_some_and(is_own))
        else {
            return Outcome::Unclaimed;
        };
        if !record.is_of(&key) {
            self.release(&key);
            return Outcome::Misnamed;
        }
        if let Some(known) = &entry.record
            && !entry.holders.is_empty()
            && !known.agrees_with(&record)
        {
            // The first result stays, because readers may have used it.
            self.release(&key);
            return Outcome::Differs;
        }
        // The claimer ran the task for more outputs than the record has, or the record lost its last holder.
        let replaces = entry.record.as_ref().is_none_or(|known| known.known() < record.known());
        if replaces || entry.holders.is_empty() {
            entry.record = Some(record.clone());
            entry.holders.clear();
        }
        entry.add_holder(from, &record);
        entry.claim = None;
        self.claimed.remove(&key);
        let (record, holders) = (entry.record.clone(), entry.holders.clone());
        for subscriber in std::mem::take(&mut entry.subscribers) {
            let Some(record) = record.clone() else { continue };
            self.replies.push((subscriber, Reply::Found { key, record, holders: holders.clone() }));
        }
        self.limit(&key);
        Outcome::Accepted
    }

    /// Lists a further holder of a known result. A result without an entry stays unlisted: its last holder may have evicted
    /// it while the worker fetched it.
    fn add_replica(&mut self, from: MemberId, key: &TaskKey, record: &TaskRecord) -> Outcome {
        let Some(entry) = self.entries.get_mut(key) else { return Outcome::Accepted };
        let Some(known) = entry.record.as_ref().filter(|_| !entry.holders.is_empty()) else {
            return Outcome::Accepted;
        };
        if !known.agrees_with(record) {
            return Outcome::Differs;
        }
        entry.add_holder(from, record);
        Outcome::Accepted
    }

    /// Removes an entry beyond the limit, unless a claim is in it.
    fn limit(&mut self, key: &TaskKey) {
        if self.entries.len() > MAX_ENTRIES
            && self.entries.get(key).is_some_and(|entry| entry.claim.is_none())
        {
            self.entries.remove(key);
        }
    }

    /// Ends a claim without a result, and has the waiting workers ask again.
    fn release(&mut self, key: &TaskKey) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.claim = None;
        self.claimed.remove(key);
        for subscriber in std::mem::take(&mut entry.subscribers) {
            self.replies.push((subscriber, Reply::Released { key: *key }));
        }
        self.remove_if_empty(key);
    }

    fn remove_holder(&mut self, key: &TaskKey, holder: MemberId) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.holders.retain(|other| *other != holder);
        if entry.holders.is_empty() {
            entry.record = None;
        }
        self.remove_if_empty(key);
    }

    fn remove_if_empty(&mut self, key: &TaskKey) {
        if self.entries.get(key).is_some_and(|entry| entry.claim.is_none() && entry.holders.is_empty()) {
            let gone = self.entries.remove(key);
            let waits = gone.map_or(0, |entry| entry.subscribers.len());
            assert!(waits == 0, "{waits} workers wait for a task without a claim");
        }
    }

    /// Forgets a lost worker: its claims end, and its results cannot be fetched.
    pub(super) fn remove_member(&mut self, member: MemberId) {
        let of_member = |entry: &Entry| {
            entry.claim.is_some_and(|claim| claim.by == member)
                || entry.holders.contains(&member)
                || entry.subscribers.contains(&member)
        };
        let mut keys: Vec<TaskKey> =
            self.entries.iter().filter(|(_, entry)| of_member(entry)).map(|(key, _)| *key).collect();
        // Sorted, because the order of a hash map differs from run to run.
        keys.sort_unstable();
        for key in keys {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.subscribers.remove(&member);
            }
            if self.claimer(&key) == Some(member) {
                self.release(&key);
            }
            self.remove_holder(&key, member);
        }
    }

    /// Ends claims whose lease has passed. Returns their number.
    pub(super) fn expire(&mut self, now: Duration) -> usize {
        let is_over = |key: &&TaskKey| {
            let claim = self.entries.get(*key).and_then(|entry| entry.claim);
            claim.is_none_or(|claim| claim.until <= now)
        };
        let over: Vec<TaskKey> = self.claimed.iter().filter(is_over).copied().collect();
        over.iter().for_each(|key| self.release(key));
        over.len()
    }

    /// Counts keys with a result or a claim.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the claims with the ends of their leases, for checks.
    pub(super) fn claims(&self) -> impl Iterator<Item = (TaskKey, MemberId, Duration)> {
        let claim = |key: &TaskKey| {
            let claim = self.entries.get(key)?.claim?;
            Some((*key, claim.by, claim.until))
        };
        self.claimed.iter().filter_map(claim)
    }
}
