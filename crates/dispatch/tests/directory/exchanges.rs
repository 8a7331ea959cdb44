//! Single exchanges of messages between three directories.

use crate::records::{address, key, member, node, record, record_of};
use pleach_dispatch::directory::{
    Directory, DirectoryMessage, Effect, MemberChange, MemberId, RECHECK, RefusalReason, Reply, Resolution,
    TaskRecord,
};
use std::time::Duration;

pub(crate) const LONG: Duration = Duration::from_secs(3600);

/// Directories that deliver their messages at once, except those that a filter drops.
pub(crate) struct Group {
    pub(crate) all: Vec<(MemberId, Option<Directory>)>,
    pub(crate) now: Duration,
    resolved: Vec<(MemberId, Resolution)>,
    /// Refused announcements, by their workers. `None` are impersonations.
    pub(crate) refused: Vec<(u64, Option<RefusalReason>)>,
    /// Whether a message is lost.
    pub(crate) loses: fn(&DirectoryMessage) -> bool,
}

impl Group {
    pub(crate) fn new(members: u64) -> Self {
        let all = (1..=members).map(MemberId).map(|id| (id, Some(Directory::new(id)))).collect();
        let (resolved, refused) = (Vec::new(), Vec::new());
        let mut group = Self { all, now: Duration::ZERO, resolved, refused, loses: |_| false };
        let ids: Vec<MemberId> = group.all.iter().map(|(id, _)| *id).collect();
        group.change(&MemberChange {
            joined: ids.into_iter().map(member).collect(),
            ..MemberChange::default()
        });
        group
    }

    pub(crate) fn at(&mut self, id: u64) -> &mut Directory {
        let found = self.all.iter_mut().find(|(other, _)| *other == MemberId(id));
        found.and_then(|(_, directory)| directory.as_mut()).expect("the member lives")
    }

    pub(crate) fn change(&mut self, change: &MemberChange) {
        let now = self.now;
        for (_, directory) in &mut self.all {
            directory.iter_mut().for_each(|directory| directory.handle_members(change, now));
        }
        self.deliver();
    }

    /// Delivers messages until there are none.
    pub(crate) fn deliver(&mut self) {
        loop {
            let next = self
                .all
                .iter_mut()
                .find_map(|(id, directory)| Some((*id, directory.as_mut()?.poll_effect()?)));
            let Some((id, effect)) = next else { return };
            match effect {
                Effect::Send { message, .. } if (self.loses)(&message) => {}
                Effect::Send { to, message } => {
                    let now = self.now;
                    let to = self.all.iter_mut().find(|(id, _)| address(*id) == to);
                    if let Some(to) = to.and_then(|(_, directory)| directory.as_mut()) {
                        to.handle_message(message, node(id), now);
                    }
                }
                Effect::Resolved { resolution, .. } => self.resolved.push((id, resolution)),
                Effect::Refused { member, reason, .. } => self.refused.push((member.0, Some(reason))),
                Effect::Impersonated { member } => self.refused.push((member.0, None)),
            }
        }
    }

    pub(crate) fn look_up(&mut self, id: u64) {
        let now = self.now;
        self.at(id).look_up(key(TASK), vec![true], LONG, now);
        self.deliver();
    }

    pub(crate) fn hold(&mut self, id: u64, record: TaskRecord) {
        let now = self.now;
        self.at(id).hold(key(TASK), record, now);
        self.deliver();
    }

    /// Lets time pass in steps of the workers' ticks, for all members but these.
    pub(crate) fn pass(&mut self, time: Duration, hung: &[u64]) {
        let end = self.now + time;
        while self.now < end {
            self.now += crate::network::TICK;
            let now = self.now;
            for (id, directory) in &mut self.all {
                if !hung.contains(&id.0) {
                    directory.iter_mut().for_each(|directory| directory.handle_time(now));
                }
            }
            self.deliver();
        }
    }

    /// Takes the answers since the last call.
    pub(crate) fn answers(&mut self) -> Vec<(u64, Resolution)> {
        std::mem::take(&mut self.resolved).into_iter().map(|(id, resolution)| (id.0, resolution)).collect()
    }

    /// Returns the member whose shard has the task.
    fn owner(&mut self) -> u64 {
        let ids: Vec<u64> = self.all.iter().map(|(id, _)| id.0).collect();
        ids.into_iter().find(|id| self.at(*id).entries() > 0).expect("a shard has the task")
    }
}

pub(crate) const TASK: u64 = 4;

pub(crate) fn found(record: TaskRecord, holders: &[u64]) -> Resolution {
    Resolution::Found { record, holders: holders.iter().map(|id| member(MemberId(*id))).collect() }
}

/// Returns the member with the shard, and two others.
pub(crate) fn roles(group: &mut Group) -> (u64, u64, u64) {
    group.look_up(1);
    let owner = group.owner();
    let now = group.now;
    group.at(1).abandon(key(TASK), now);
    group.deliver();
    group.answers();
    let others: Vec<u64> = (1..=3).filter(|id| *id != owner).collect();
    (owner, others[0], others[1])
}

#[test]
fn result_reaches_the_waiting_workers() {
    let mut group = Group::new(3);
    group.look_up(1);
    group.look_up(2);
    group.look_up(3);
    assert_eq!(group.answers(), [(1, Resolution::Claimed)]);
    group.hold(1, record(TASK));
    let mut answers = group.answers();
    answers.sort_by_key(|(id, _)| *id);
    assert_eq!(answers, [(2, found(record(TASK), &[1])), (3, found(record(TASK), &[1]))]);
}

/// 300 results of a worker's own tile.
#[test]
fn results_of_an_own_tile_are_announced_together() {
    for is_shared in [false, true] {
        let mut group = Group::new(3);
        let now = group.now;
        for task in 0..300 {
            group.at(1).hold_later(key(task), record(task), now);
        }
        let sent = |group: &mut Group| -> usize {
            std::iter::from_fn(|| group.at(1).poll_effect())
                .map(|effect| match effect {
                    Effect::Send { message, .. } => message.requests.len(),
                    effect => panic!("{effect:?}"),
                })
                .sum()
        };
        assert_eq!(sent(&mut group), 0, "no other worker asks for them yet");
        match is_shared {
            true => group.at(1).announce_deferred(now),
            false => group.at(1).handle_time(now),
        }
        group.deliver();
        // Each is listed, and found by the others.
        let listed: usize = (1..=3).map(|id| group.at(id).entries()).sum();
        assert_eq!(listed, 300);
        group.look_up(2);
        assert_eq!(group.answers(), [(2, found(record(TASK), &[1]))]);
    }
}

/// A result that is evicted before it is announced is not listed.
#[test]
fn evicted_result_of_an_own_tile_is_not_announced() {
    let mut group = Group::new(3);
    let now = group.now;
    group.at(1).hold_later(key(TASK), record(TASK), now);
    group.at(1).drop_held(key(TASK), now);
    group.pass(LONG / 3600, &[]);
    group.look_up(2);
    assert_eq!(group.answers(), [(2, Resolution::Claimed)]);
}

#[test]
fn lost_notification_is_made_up_for() {
    let mut group = Group::new(3);
    let (_, claimer, waiter) = roles(&mut group);
    group.look_up(claimer);
    group.look_up(waiter);
    assert_eq!(group.answers(), [(claimer, Resolution::Claimed)]);
    group.loses = |message| message.replies.iter().any(|reply| matches!(reply, Reply::Found { .. }));
    group.hold(claimer, record(TASK));
    assert_eq!(group.answers(), []);
    group.loses = |_| false;
    group.pass(RECHECK, &[]);
    assert_eq!(group.answers(), [(waiter, found(record(TASK), &[claimer]))]);
}

#[test]
fn notification_before_the_reply_is_not_lost() {
    let mut group = Group::new(3);
    let (owner, _, waiter) = roles(&mut group);
    let now = group.now;
    group.at(waiter).look_up(key(TASK), vec![true], LONG, now);
    // The notification of a result overtakes the notice that another worker runs the task.
    let (key, holders) = (key(TASK), vec![MemberId(owner)]);
    let found_reply = Reply::Found { key, record: record(TASK), holders };
    let replies =
        |reply| DirectoryMessage { from: MemberId(owner), requests: Vec::new(), replies: vec![reply] };
    group.at(waiter).handle_message(replies(found_reply), node(MemberId(owner)), now);
    group.at(waiter).handle_message(replies(Reply::Computing { key }), node(MemberId(owner)), now);
    group.deliver();
    assert_eq!(group.answers(), [(waiter, found(record(TASK), &[owner]))]);
}

#[test]
fn expired_claim_goes_to_one_waiting_worker() {
    let mut group = Group::new(4);
    let (_, claimer, _) = roles(&mut group);
    group.look_up(claimer);
    let waiters: Vec<u64> = (1..=4).filter(|id| *id != claimer).collect();
    waiters.iter().for_each(|id| group.look_up(*id));
    assert_eq!(group.answers(), [(claimer, Resolution::Claimed)]);
    group.pass(Duration::from_secs(9), &[claimer]);
    assert_eq!(group.answers(), [], "the lease holds without renewal");
    group.pass(Duration::from_secs(2), &[claimer]);
    let answers = group.answers();
    assert!(matches!(answers.as_slice(), [(id, Resolution::Claimed)] if *id != claimer), "{answers:?}");
}

#[test]
fn renewed_claim_outlives_its_first_lease() {
    let mut group = Group::new(3);
    group.look_up(1);
    group.look_up(2);
    group.pass(Duration::from_secs(60), &[]);
    assert_eq!(group.answers(), [(1, Resolution::Claimed)]);
}

#[test]
fn wait_ends_with_its_limit() {
    let mut group = Group::new(3);
    group.look_up(1);
    let now = group.now;
    group.at(2).look_up(key(TASK), vec![true], Duration::from_secs(3), now);
    group.pass(Duration::from_secs(3), &[]);
    assert_eq!(group.answers(), [(1, Resolution::Claimed), (2, Resolution::Unclaimed)]);
}

#[test]
fn silent_shard_leads_to_a_run_without_a_claim() {
    let mut group = Group::new(3);
    let (_, asker, _) = roles(&mut group);
    group.loses = |_| true;
    group.look_up(asker);
    group.pass(Duration::from_secs(1), &[]);
    assert_eq!(group.answers(), [(asker, Resolution::Unclaimed)]);
    // Its other tasks do not wait for it.
    group.look_up(asker);
    assert_eq!(group.answers(), [(asker, Resolution::Unclaimed)]);
}

#[test]
fn rejected_holder_leads_to_a_new_claim() {
    let mut group = Group::new(3);
    let (_, holder, reader) = roles(&mut group);
    group.hold(holder, record(TASK));
    group.look_up(reader);
    assert_eq!(group.answers(), [(reader, found(record(TASK), &[holder]))]);
    let now = group.now;
    group.at(reader).reject(key(TASK), MemberId(holder), now);
    group.look_up(reader);
    assert_eq!(group.answers(), [(reader, Resolution::Claimed)]);
}

#[test]
fn differing_content_is_reported_and_the_first_is_kept() {
    let mut group = Group::new(3);
    let (owner, first, second) = roles(&mut group);
    group.hold(first, record(TASK));
    group.hold(second, record_of(TASK, &[Some(99)]));
    assert_eq!(group.refused, [(second, Some(RefusalReason::Differs))]);
    group.look_up(owner);
    assert_eq!(group.answers(), [(owner, found(record(TASK), &[first]))]);
    assert_eq!(group.at(owner).stats().differing, 1);
}

#[test]
fn holder_of_fewer_outputs_is_not_listed() {
    let mut group = Group::new(3);
    let (owner, first, second) = roles(&mut group);
    group.hold(first, record_of(TASK, &[Some(1), Some(2)]));
    group.hold(second, record_of(TASK, &[Some(1), None]));
    let now = group.now;
    group.at(owner).look_up(key(TASK), vec![false, true], LONG, now);
    group.deliver();
    assert_eq!(group.answers(), [(owner, found(record_of(TASK, &[Some(1), Some(2)]), &[first]))]);
}

#[test]
fn lost_shard_is_rebuilt_from_the_holders() {
    let mut group = Group::new(3);
    let (owner, holder, reader) = roles(&mut group);
    group.hold(holder, record(TASK));
    group.all.iter_mut().filter(|(id, _)| id.0 == owner).for_each(|(_, directory)| *directory = None);
    group.change(&MemberChange { left: vec![MemberId(owner)], ..MemberChange::default() });
    group.look_up(reader);
    assert_eq!(group.answers(), [(reader, found(record(TASK), &[holder]))]);
}

#[test]
fn joined_member_takes_over_results_and_claims() {
    for new in 4..40 {
        let mut group = Group::new(3);
        group.look_up(1);
        group.look_up(2);
        assert_eq!(group.answers(), [(1, Resolution::Claimed)]);
        let id = MemberId(new);
        let mut joined = Directory::new(id);
        let all = group.all.iter().map(|(id, _)| member(*id)).chain([member(id)]).collect();
        joined.handle_members(&MemberChange { is_complete: true, joined: all, left: Vec::new() }, group.now);
        group.all.push((id, Some(joined)));
        group.change(&MemberChange { joined: vec![member(id)], ..MemberChange::default() });
        // The claim moved with its key.
        group.look_up(new);
        assert_eq!(group.answers(), [], "member {new}");
        group.hold(1, record(TASK));
        let mut answers = group.answers();
        answers.sort_by_key(|(id, _)| *id);
        assert_eq!(answers, [(2, found(record(TASK), &[1])), (new, found(record(TASK), &[1]))]);
    }
}

#[test]
fn lost_claimer_frees_its_claim() {
    let mut group = Group::new(3);
    let (_, claimer, waiter) = roles(&mut group);
    group.look_up(claimer);
    group.look_up(waiter);
    group.answers();
    group.all.iter_mut().filter(|(id, _)| id.0 == claimer).for_each(|(_, directory)| *directory = None);
    group.change(&MemberChange { left: vec![MemberId(claimer)], ..MemberChange::default() });
    assert_eq!(group.answers(), [(waiter, Resolution::Claimed)]);
}

/// The manager announces a member to itself and to others by separate messages.
#[test]
fn newcomer_that_asks_before_it_is_known_is_answered_at_once_when_it_is() {
    let now = Duration::ZERO;
    let (mut old, mut new) = (Directory::new(MemberId(1)), Directory::new(MemberId(2)));
    let change = |joined: &[u64]| MemberChange {
        joined: joined.iter().map(|id| member(MemberId(*id))).collect(),
        ..MemberChange::default()
    };
    old.handle_members(&change(&[1]), now);
    new.handle_members(&change(&[1, 2]), now);
    // A task of the shard of the first member.
    let asked = (0..64).map(key).find_map(|key| {
        new.look_up(key, vec![true], LONG, now);
        match new.poll_effect()? {
            Effect::Send { message, .. } => Some((key, message)),
            _ => None,
        }
    });
    let (task, message) = asked.expect("the first member has a shard");
    old.handle_message(message, node(MemberId(2)), now);
    assert_eq!(old.poll_effect(), None, "the address of the second is unknown");
    old.handle_members(&change(&[2]), now);
    let Some(Effect::Send { message, .. }) = old.poll_effect() else { panic!("no reply") };
    new.handle_message(message, node(MemberId(1)), now);
    let claimed = Effect::Resolved { key: task, resolution: Resolution::Claimed };
    assert_eq!(new.poll_effect(), Some(claimed));
}
