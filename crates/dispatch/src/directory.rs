//! The result directory: which worker of the cluster has run a task, or is running it (value reuse across workers).
//!
//! Each worker has a [`Directory`]: the client of its stages, and one shard of the entries. The shard of a key is at the
//! member that rendezvous hashing selects. A worker that is about to run a task looks its key up and gets the
//! result (its digests and holders), the claim (the exclusive, leased right to run the task), or the notice that another
//! worker has the claim, followed by the result. It waits for a claimer as long as a run of its own is not expected to be
//! finished sooner.
//!
//! The state is soft. No result depends on an entry: a worker verifies the digest of each output that it fetches, and runs
//! a task itself if the shard does not answer. Bounds on waiting: a shard answers a look-up in [`PATIENCE`], a claimer
//! finishes, renews or loses its claim in 10 s, and a subscriber asks again every [`RECHECK`], in case that a
//! notification is lost.
//!
//! A claimer waits for bytes only, never for another claim, so claims cannot wait for each other in a circle.
//!
//! A shard lists a result only under the claim of its announcer (ADR 19). `announcements` has the announcer's side. Tasks of tiles
//! that one worker alone executes are not looked up, and announced together (ADR 62).

mod announcements;
mod interface;
mod members;
pub mod message;
mod shard;

pub use interface::{DirectoryStats, Effect, RefusalReason, Resolution};
use members::Members;
pub use message::{
    ClaimId, DirectoryMessage, Member, MemberChange, MemberId, NodeDigest, Reply, Request, ResultOutput,
    TaskRecord,
};
use pleach_regions::TaskKey;
use shard::{LEASE, Outcome, RENEWAL, Shard};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::Duration;

/// A look-up without an answer for 1 s has failed: the worker runs the task without a claim. Answers take milliseconds.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// A member that did not answer is not asked for 5 s. Its keys are run without a claim meanwhile.
const AVOIDED: Duration = Duration::from_secs(5);

/// Each further failure doubles the time, up to 64-fold: workers behind a firewall would cost a wait every 5 s.
const MAX_DOUBLINGS: u32 = 6;

/// A worker that waits for a claimer asks again after 5 s: the shard or its notification may be lost.
pub const RECHECK: Duration = Duration::from_secs(5);

/// Maximum number of remembered rejections, some 100 bytes each. Beyond it all are forgotten: a holder is then asked once
/// more for a result.
const MAX_REJECTIONS: usize = 16 << 10;

/// Maximum of requests and replies in one message. With four outputs each, they fit a frame of 64 KiB.
const MAX_ITEMS: usize = 128;

/// A look-up without an answer, or with a claimer to wait for.
#[derive(Clone, Debug)]
struct LookUp {
    wanted: Vec<bool>,
    owner: MemberId,
    /// Time of the last request.
    asked: Duration,
    /// Another worker has the claim.
    subscribed: bool,
    /// End of the wait for another worker.
    until: Duration,
}

/// A claim of this worker.
#[derive(Clone, Copy, Debug)]
struct OwnClaim {
    owner: MemberId,
    /// `None` until the shard has answered: the key has moved there.
    id: Option<ClaimId>,
    renewed: Duration,
}

/// A member that did not answer.
#[derive(Clone, Copy, Debug)]
struct Avoidance {
    until: Duration,
    /// Failures since its last message.
    failures: u32,
}

/// A result that this worker can send.
#[derive(Clone, Debug)]
struct Held {
    record: TaskRecord,
    owner: MemberId,
    /// The shard does not list it yet: this worker has asked for the claim, to announce it.
    is_offered: bool,
}

/// The directory of one worker.
#[derive(Debug)]
pub struct Directory {
    me: MemberId,
    members: Members,
    shard: Shard,
    look_ups: HashMap<TaskKey, LookUp>,
    claims: HashMap<TaskKey, OwnClaim>,
    held: HashMap<TaskKey, Held>,
    /// Results of this worker's own tiles that are not announced yet.
    deferred: Vec<TaskKey>,
    /// Holders that did not send a result as announced. They are not asked for it again, whatever its shard answers.
    rejections: BTreeSet<(TaskKey, MemberId)>,
    /// Members that did not answer.
    avoided: BTreeMap<MemberId, Avoidance>,
    outgoing: BTreeMap<MemberId, (Vec<Request>, Vec<Reply>)>,
    effects: VecDeque<Effect>,
    /// Look-ups that have begun to wait for another worker.
    waiting: VecDeque<TaskKey>,
    /// Members whose announcements without a claim have been reported.
    reported_unclaimed: BTreeSet<MemberId>,
    /// Members whose announcements with identities of other tasks have been reported.
    reported_misnamed: BTreeSet<MemberId>,
    /// Members in whose name another node has sent messages, as reported.
    reported_impersonated: BTreeSet<MemberId>,
    stats: DirectoryStats,
}

impl Directory {
    /// Creates the directory of a worker, without other members.
    #[must_use]
    pub fn new(me: MemberId) -> Self {
        Self {
            me,
            members: Members::default(),
            shard: Shard::default(),
            look_ups: HashMap::new(),
            claims: HashMap::new(),
            held: HashMap::new(),
            deferred: Vec::new(),
            rejections: BTreeSet::new(),
            avoided: BTreeMap::new(),
            outgoing: BTreeMap::new(),
            effects: VecDeque::new(),
            waiting: VecDeque::new(),
            reported_unclaimed: BTreeSet::new(),
            reported_misnamed: BTreeSet::new(),
            reported_impersonated: BTreeSet::new(),
            stats: DirectoryStats::default(),
        }
    }

    /// Returns whether there is another member. Without one, the results of this worker suffice.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.members.ids().any(|member| member != self.me)
    }

    /// Returns the counters.
    #[must_use]
    pub fn stats(&self) -> DirectoryStats {
        self.stats
    }

    /// Counts keys with a result or a claim in this shard.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.shard.len()
    }

    /// Counts members.
    #[must_use]
    pub fn members(&self) -> usize {
        self.members.len()
    }

    /// Looks up a task whose inputs are resolved. [`Effect::Resolved`] follows. `longest` limits the wait for another worker
    /// that runs the task.
    pub fn look_up(&mut self, key: TaskKey, wanted: Vec<bool>, longest: Duration, now: Duration) {
        self.stats.look_ups += 1;
        let owner = self.members.owner(&key, self.me);
        let look_up =
            LookUp { wanted, owner, asked: now, subscribed: false, until: now.saturating_add(longest) };
        let before = self.look_ups.insert(key, look_up);
        assert!(before.is_none(), "a task is looked up twice at once");
        self.ask(key, now);
    }

    /// Sends a look-up to the present owner of its key.
    fn ask(&mut self, key: TaskKey, now: Duration) {
        let owner = self.members.owner(&key, self.me);
        if self.avoided.get(&owner).is_some_and(|avoided| avoided.until > now) {
            return self.give_up(key);
        }
        let Some(look_up) = self.look_ups.get_mut(&key) else { return };
        (look_up.owner, look_up.asked, look_up.subscribed) = (owner, now, false);
        let wanted = look_up.wanted.clone();
        self.request(owner, Request::LookUp { key, wanted }, now);
    }

    /// Ends a look-up without an answer.
    fn give_up(&mut self, key: TaskKey) {
        if self.look_ups.remove(&key).is_some() {
            self.stats.unanswered += 1;
            self.effects.push_back(Effect::Resolved { key, resolution: Resolution::Unclaimed });
        }
    }

    /// Removes a holder that did not send an output as announced.
    pub fn reject(&mut self, key: TaskKey, holder: MemberId, now: Duration) {
        self.stats.rejected += 1;
        if self.rejections.len() >= MAX_REJECTIONS {
            self.rejections.clear();
        }
        self.rejections.insert((key, holder));
        let owner = self.members.owner(&key, self.me);
        self.request(owner, Request::Reject { key, holder }, now);
    }

    /// Handles a message of another member. `sender` is the node that sent it, by its certificate. A message in the name of
    /// another node's worker is dropped.
    pub fn handle_message(&mut self, message: DirectoryMessage, sender: NodeDigest, now: Duration) {
        let DirectoryMessage { from, requests, replies } = message;
        let node = self.members.node(from);
        if from == self.me || node.is_some_and(|node| node != sender) {
            self.stats.impersonated += 1;
            if self.reported_impersonated.insert(from) {
                self.effects.push_back(Effect::Impersonated { member: from });
            }
            return;
        }
        self.avoided.remove(&from);
        for request in requests {
            // A worker may look tasks up before the manager's announcement of it arrives. It gets the answers once it is
            // announced, so only a member can have a claim or a result.
            if node.is_some() || matches!(request, Request::LookUp { .. }) {
                self.handle_request(from, request, now);
            } else if matches!(request, Request::Hold { .. }) {
                self.stats.unclaimed += 1;
            }
        }
        for reply in replies {
            self.handle_reply(from, reply, now);
        }
    }

    fn handle_request(&mut self, from: MemberId, request: Request, now: Duration) {
        let key = request.key();
        let refused = match self.shard.handle(from, request, now) {
            Outcome::Accepted => None,
            Outcome::Unclaimed => {
                self.stats.unclaimed += 1;
                self.reported_unclaimed.insert(from).then_some(RefusalReason::Unclaimed)
            }
            Outcome::Misnamed => {
                self.stats.misnamed += 1;
                self.reported_misnamed.insert(from).then_some(RefusalReason::Misnamed)
            }
            Outcome::Differs => {
                self.stats.differing += 1;
                Some(RefusalReason::Differs)
            }
        };
        if let Some(reason) = refused {
            self.effects.push_back(Effect::Refused { key, member: from, reason });
        }
        self.send_replies(now);
    }

    /// Sends the replies of the shard, those to this worker directly.
    fn send_replies(&mut self, now: Duration) {
        for (to, reply) in std::mem::take(&mut self.shard.replies) {
            if to == self.me {
                self.handle_reply(self.me, reply, now);
            } else {
                self.queue(to, |_, replies| replies.push(reply));
            }
        }
    }

    fn handle_reply(&mut self, from: MemberId, reply: Reply, now: Duration) {
        let key = reply.key();
        // Only the present owner of the key answers. A reply of a former one is late: the look-up has been repeated.
        let Some(look_up) = self.look_ups.get_mut(&key).filter(|look_up| look_up.owner == from) else {
            return self.handle_other_reply(from, reply, now);
        };
        match reply {
            Reply::Claimed { claim, .. } => {
                self.look_ups.remove(&key);
                self.stats.claimed += 1;
                self.claims.insert(key, OwnClaim { owner: from, id: Some(claim), renewed: now });
                self.effects.push_back(Effect::Resolved { key, resolution: Resolution::Claimed });
            }
            Reply::Computing { .. } => {
                if !look_up.subscribed {
                    self.stats.waited += 1;
                    self.waiting.push_back(key);
                }
                look_up.subscribed = true;
                look_up.asked = now;
            }
            Reply::Found { record, holders, .. } => {
                if !record.is_of(&key) {
                    // The shard is faulty: it refuses such records.
                    return self.give_up(key);
                }
                let has_outputs = record.has(&look_up.wanted);
                let is_asked = |id: &MemberId| *id != self.me && !self.rejections.contains(&(key, *id));
                let holders = holders.into_iter().filter(is_asked);
                let holders: Vec<Member> = holders.filter_map(|id| self.members.get(id)).collect();
                if !has_outputs || holders.is_empty() {
                    // The claimer kept fewer outputs than this worker wants, so it runs the task itself.
                    return self.ask_again(key, has_outputs, now);
                }
                self.look_ups.remove(&key);
                self.stats.found += 1;
                let resolution = Resolution::Found { record, holders };
                self.effects.push_back(Effect::Resolved { key, resolution });
            }
            Reply::Released { .. } => self.ask(key, now),
        }
    }

    /// Repeats a look-up after an unusable result. With `has_outputs`, only its holders are unusable: the members of the shard
    /// and of this worker differ for a moment, or this worker has rejected them. Asking at once would get the same answer.
    fn ask_again(&mut self, key: TaskKey, has_outputs: bool, now: Duration) {
        if has_outputs { self.give_up(key) } else { self.ask(key, now) }
    }

    /// Handles a member that cannot be reached: its answers will not come.
    pub fn handle_unreachable(&mut self, address: SocketAddr, now: Duration) {
        if let Some(member) = self.members.at(address) {
            self.avoid(member, now);
        }
    }

    fn avoid(&mut self, member: MemberId, now: Duration) {
        let avoided = self.avoided.entry(member).or_insert(Avoidance { until: now, failures: 0 });
        // Look-ups of one failure are given up at different times.
        if avoided.until <= now {
            avoided.until = now + AVOIDED * 2_u32.pow(avoided.failures.min(MAX_DOUBLINGS));
            avoided.failures += 1;
        }
        let lost = self.look_ups.iter().filter(|(_, look_up)| look_up.owner == member);
        let mut lost: Vec<TaskKey> = lost.map(|(key, _)| *key).collect();
        // Sorted, because the order of a hash map differs from run to run.
        lost.sort_unstable();
        lost.into_iter().for_each(|key| self.give_up(key));
    }

    /// Handles joined and lost members. Keys whose shard moves are looked up and announced again.
    pub fn handle_members(&mut self, change: &MemberChange, now: Duration) {
        let shards: Vec<MemberId> = self.members.shards().collect();
        let mut left: BTreeSet<MemberId> = change.left.iter().copied().collect();
        if change.is_complete {
            let stays = |id: &MemberId| change.joined.iter().any(|member| member.id == *id);
            left.extend(self.members.ids().filter(|id| !stays(id)));
        }
        left.retain(|member| self.members.remove(*member));
        change.joined.iter().for_each(|member| _ = self.members.add(*member));
        for member in &left {
            self.avoided.remove(member);
            self.outgoing.remove(member);
            self.reported_unclaimed.remove(member);
            self.reported_misnamed.remove(member);
            self.reported_impersonated.remove(member);
            self.shard.remove_member(*member);
        }
        self.send_replies(now);
        if self.members.shards().eq(shards) {
            return;
        }
        let (members, me) = (&self.members, self.me);
        let new_owner =
            |key: &TaskKey, owner: MemberId| Some(members.owner(key, me)).filter(|new| *new != owner);
        let look_ups = self.look_ups.iter().filter(|(key, look_up)| new_owner(key, look_up.owner).is_some());
        let mut look_ups: Vec<TaskKey> = look_ups.map(|(key, _)| *key).collect();
        let claims = self.claims.iter().filter_map(|(key, claim)| Some((*key, new_owner(key, claim.owner)?)));
        let mut claims: Vec<(TaskKey, MemberId)> = claims.collect();
        let held = self.held.iter().filter_map(|(key, held)| Some((*key, new_owner(key, held.owner)?)));
        let mut held: Vec<(TaskKey, MemberId)> = held.collect();
        // Sorted, because the order of a hash map differs from run to run.
        look_ups.sort_unstable();
        claims.sort_unstable();
        held.sort_unstable();
        // The new shard has no claims: each holder asks for one, and those that come second become further holders.
        held.into_iter().for_each(|(key, owner)| self.offer(key, owner, now));
        for (key, owner) in claims {
            self.claims.insert(key, OwnClaim { owner, id: None, renewed: now });
            // The task runs already. The reply has the number of its claim there.
            self.request(owner, Request::LookUp { key, wanted: Vec::new() }, now);
        }
        look_ups.into_iter().for_each(|key| self.ask(key, now));
    }

    /// Handles the time: results to announce, unanswered look-ups, claims to renew, expired claims of the shard, and replies to
    /// members that are still unknown. Call it several times in [`PATIENCE`].
    pub fn handle_time(&mut self, now: Duration) {
        self.announce_deferred(now);
        // They have left, or give up their look-ups soon.
        self.outgoing.retain(|member, _| self.members.address(*member).is_some());
        // Polled after each event, or not at all.
        self.waiting.clear();
        self.stats.expired += self.shard.expire(now) as u64;
        self.send_replies(now);
        let is_late = |look_up: &&LookUp| !look_up.subscribed && now >= look_up.asked + PATIENCE;
        let silent: BTreeSet<MemberId> =
            self.look_ups.values().filter(is_late).map(|look_up| look_up.owner).collect();
        silent.into_iter().for_each(|member| self.avoid(member, now));
        let is_over = |look_up: &LookUp| look_up.subscribed && now >= look_up.until;
        let mut over: Vec<TaskKey> =
            self.look_ups.iter().filter(|(_, look_up)| is_over(look_up)).map(|(key, _)| *key).collect();
        over.sort_unstable();
        over.into_iter().for_each(|key| self.give_up(key));
        let waits = |look_up: &LookUp| look_up.subscribed && now >= look_up.asked + RECHECK;
        let mut again: Vec<TaskKey> =
            self.look_ups.iter().filter(|(_, look_up)| waits(look_up)).map(|(key, _)| *key).collect();
        again.sort_unstable();
        for key in again {
            // The shard of a lost member has no answer: `handle_members` repeats the look-up elsewhere.
            self.ask(key, now);
        }
        let mut due: Vec<(TaskKey, MemberId)> = Vec::new();
        for (key, claim) in &mut self.claims {
            if now >= claim.renewed + RENEWAL {
                claim.renewed = now;
                due.push((*key, claim.owner));
            }
        }
        due.sort_unstable();
        due.into_iter().for_each(|(key, owner)| self.request(owner, Request::Renew { key }, now));
    }

    /// Passes a request to the shard of this worker, or queues it for another.
    fn request(&mut self, owner: MemberId, request: Request, now: Duration) {
        if owner == self.me {
            return self.handle_request(owner, request, now);
        }
        self.queue(owner, |requests, _| requests.push(request));
    }

    /// Queues an item for a member. Everything queued since the last event goes in one message.
    fn queue(&mut self, member: MemberId, push: impl FnOnce(&mut Vec<Request>, &mut Vec<Reply>)) {
        let (requests, replies) = self.outgoing.entry(member).or_default();
        push(requests, replies);
        if requests.len() + replies.len() >= MAX_ITEMS {
            self.flush(member);
        }
    }

    fn flush(&mut self, member: MemberId) {
        // A member may ask here before the manager's announcement of it arrives. Until then its address is unknown.
        let Some(to) = self.members.address(member) else { return };
        let Some((requests, replies)) = self.outgoing.remove(&member) else { return };
        let message = DirectoryMessage { from: self.me, requests, replies };
        self.effects.push_back(Effect::Send { to, message });
    }

    /// Returns the next effect, in order. `None` if none is pending.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        if self.effects.is_empty() {
            let members: Vec<MemberId> = self.outgoing.keys().copied().collect();
            members.into_iter().for_each(|member| self.flush(member));
        }
        self.effects.pop_front()
    }

    /// Returns the next task whose look-up has begun to wait for another worker: the stage can look up another one
    /// meanwhile. Poll it after each event. A repeated look-up of the same task may return it again.
    pub fn poll_waiting(&mut self) -> Option<TaskKey> {
        self.waiting.pop_front()
    }

    /// Checks the invariants: every claim ends with its lease, and no task is both claimed and looked up by this worker.
    ///
    /// # Errors
    /// Names the violated invariant.
    pub fn check(&self, now: Duration) -> Result<(), String> {
        if let Some((_, by, until)) = self.shard.claims().find(|(_, _, until)| *until > now + LEASE) {
            return Err(format!("the claim of {by} ends at {until:?}, more than a lease after {now:?}"));
        }
        if self.look_ups.keys().any(|key| self.claims.contains_key(key)) {
            return Err("a claimed task is looked up".to_owned());
        }
        Ok(())
    }
}
