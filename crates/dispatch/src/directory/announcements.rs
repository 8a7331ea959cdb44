//! The announcer's side of a result: under the claim of its task, or, without one, after asking for the claim.
//!
//! Results without a claim are those of tasks that were run because a look-up was not answered, of tasks cheaper than a
//! look-up or of the worker's own tiles, of claims that ended or moved, and those of a shard that was lost. Their worker asks for the claim, as
//! for any task, and gets one of three answers. Without another result or claimer, it gets the claim and announces its
//! result. A known result makes it a further holder, if the digests agree. While another worker has the claim, it waits for
//! that worker's result, and its own stays unlisted. So no result replaces another, and lost answers cost repeated work only.

use super::message::{MemberId, Reply, Request, TaskRecord};
use super::{Directory, Held, OwnClaim};
use pleach_regions::TaskKey;
use std::time::Duration;

impl Directory {
    /// Lists a task that this worker has run.
    pub fn hold(&mut self, key: TaskKey, record: TaskRecord, now: Duration) {
        let owner = self.members.owner(&key, self.me);
        let claim = self.claims.remove(&key).filter(|claim| claim.owner == owner);
        self.held.insert(key, Held { record: record.clone(), owner, is_offered: false });
        match claim.and_then(|claim| claim.id) {
            Some(claim) => self.request(owner, Request::Hold { key, record, claim }, now),
            None => self.offer(key, owner, now),
        }
    }

    /// Lists a task of this worker's own tile, which was not looked up: together with others at the next
    /// [`handle_time`](Self::handle_time), since no other worker asks for it before.
    pub fn hold_later(&mut self, key: TaskKey, record: TaskRecord, now: Duration) {
        if self.claims.contains_key(&key) {
            return self.hold(key, record, now);
        }
        let owner = self.members.owner(&key, self.me);
        self.held.insert(key, Held { record, owner, is_offered: false });
        self.deferred.push(key);
    }

    /// Announces the results that were put off: their tiles have other users now.
    pub fn announce_deferred(&mut self, now: Duration) {
        for key in std::mem::take(&mut self.deferred) {
            let owner = self.members.owner(&key, self.me);
            self.offer(key, owner, now);
        }
    }

    /// Lists this worker as a further holder of a task, whose outputs it has fetched and verified.
    pub fn hold_replica(&mut self, key: TaskKey, record: TaskRecord, now: Duration) {
        let owner = self.members.owner(&key, self.me);
        self.held.insert(key, Held { record: record.clone(), owner, is_offered: false });
        self.request(owner, Request::Replica { key, record }, now);
    }

    /// Asks for the claim of a task with a result, to announce it.
    pub(super) fn offer(&mut self, key: TaskKey, owner: MemberId, now: Duration) {
        let Some(held) = self.held.get_mut(&key) else { return };
        (held.owner, held.is_offered) = (owner, true);
        let wanted = held.record.outputs.iter().map(Option::is_some).collect();
        self.request(owner, Request::LookUp { key, wanted }, now);
    }

    /// Gives up a claim.
    pub fn abandon(&mut self, key: TaskKey, now: Duration) {
        if let Some(claim) = self.claims.remove(&key) {
            self.request(claim.owner, Request::Abandon { key }, now);
        }
    }

    /// Removes a result that this worker has evicted.
    pub fn drop_held(&mut self, key: TaskKey, now: Duration) {
        if let Some(held) = self.held.remove(&key) {
            self.request(held.owner, Request::Drop { key }, now);
        }
    }

    /// Handles a reply without a look-up: about a claim that has moved, or about an offered result.
    pub(super) fn handle_other_reply(&mut self, from: MemberId, reply: Reply, now: Duration) {
        let key = reply.key();
        let offered = self.held.get_mut(&key).filter(|held| held.is_offered && held.owner == from);
        match (reply, offered) {
            (Reply::Claimed { claim, .. }, offered) => {
                if let Some(OwnClaim { id, .. }) =
                    self.claims.get_mut(&key).filter(|claim| claim.owner == from)
                {
                    *id = Some(claim);
                } else if let Some(held) = offered {
                    held.is_offered = false;
                    let record = held.record.clone();
                    self.request(from, Request::Hold { key, record, claim }, now);
                } else {
                    // No task waits for this claim.
                    self.request(from, Request::Abandon { key }, now);
                }
            }
            (Reply::Found { .. }, Some(held)) => {
                // The shard compares the digests, and reports those that differ.
                held.is_offered = false;
                let record = held.record.clone();
                self.request(from, Request::Replica { key, record }, now);
            }
            (Reply::Released { .. }, Some(_)) => self.offer(key, from, now),
            // The result of the other worker, or the end of its claim, follows.
            (Reply::Computing { .. }, _) | (_, None) => {}
        }
    }
}
