//! One worker's shard of the directory: the results and claims of the keys that rendezvous hashing assigns to it.
//!
//! All state is soft: a shard that is lost with its worker costs repeated work. The results are with their holders.
//! A claim ends with its lease, so a claimer that hangs holds up no other worker for longer.

use super::message::{MemberId, Reply, Request, TaskRecord};
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

/// Result of a message to a shard, besides its replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Accepted,
    /// The worker announces other content than the result has: the operation is not deterministic, or memory is faulty.
    Differs,
}

/// A shard. Replies are collected with their receivers.
#[derive(Debug, Default)]
pub(super) struct Shard {
    entries: HashMap<TaskKey, Entry>,
    /// Keys with a claim, to find expired ones.
    claimed: BTreeSet<TaskKey>,
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
            Request::Hold { key, record } => return self.hold(from, key, record),
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
            _ => {
                entry.claim = Some(Claim { by: from, until: now + LEASE });
                // A worker that runs the task itself waits for no other.
                entry.subscribers.remove(&from);
                self.claimed.insert(key);
                self.replies.push((from, Reply::Claimed { key }));
            }
        }
    }

    fn hold(&mut self, from: MemberId, key: TaskKey, record: TaskRecord) -> Outcome {
        if self.entries.len() >= MAX_ENTRIES && !self.entries.contains_key(&key) {
            return Outcome::Accepted;
        }
        let entry = self.entries.entry(key).or_default();
        let own_claim = entry.claim.is_some_and(|claim| claim.by == from);
        let held: Vec<bool> = record.outputs.iter().map(Option::is_some).collect();
        let is_complete = |known: &TaskRecord| {
            known.outputs.iter().zip(&held).all(|(output, held)| *held || output.is_none())
        };
        if let Some(known) = &entry.record
            && !entry.holders.is_empty()
            && !known.agrees_with(&record)
        {
            // The first result stays, because readers may have used it.
            if own_claim {
                self.release(&key);
            }
            return Outcome::Differs;
        }
        // The claimer ran the task for more outputs than the record has, or the record lost its last holder.
        let replaces = entry.record.as_ref().is_none_or(|known| known.known() < record.known());
        if replaces || entry.holders.is_empty() {
            entry.record = Some(record);
            entry.holders.clear();
        }
        // A worker that kept fewer outputs than the record has cannot send the others.
        let has_all = entry.record.as_ref().is_none_or(is_complete);
        if has_all && !entry.holders.contains(&from) && entry.holders.len() < MAX_HOLDERS {
            entry.holders.push(from);
        }
        if own_claim {
            entry.claim = None;
            self.claimed.remove(&key);
        }
        let (record, holders) = (entry.record.clone(), entry.holders.clone());
        for subscriber in std::mem::take(&mut entry.subscribers) {
            let Some(record) = record.clone() else { continue };
            self.replies.push((subscriber, Reply::Found { key, record, holders: holders.clone() }));
        }
        Outcome::Accepted
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
