//! Members that announce results they have no claim of: refused, whatever they send. The simulation asserts that each found
//! result has the content of its task.

use crate::exchanges::{Group, LONG, TASK, found, roles};
use crate::network::{Event, Network, Storm};
use crate::records::{key, node, record, record_of};
use pleach_dispatch::directory::{
    ClaimId, DirectoryMessage, MemberChange, MemberId, RefusalReason, Reply, Request, Resolution,
};
use std::time::Duration;

impl Network {
    pub(crate) fn schedule_plants(&mut self) {
        for _ in 0..self.storm.planted {
            let at = self.random.millis(50_000);
            self.at(at, Event::Plants);
        }
    }

    /// Sends a forged result to a random member, which may have the shard of the task or wait for it.
    pub(crate) fn plant(&mut self) {
        let (sender, other, to) = (self.any(), self.any(), self.any());
        let task = self.random.below(self.storm.tasks);
        let (key, forged) = (key(task), record_of(task, &[Some(task + 1_000_000)]));
        // Far above the numbers of real claims: the sender may have a real one.
        let claim = ClaimId(u64::MAX - self.random.below(4));
        let (from, requests, replies) = match self.random.below(4) {
            0 => (sender, vec![Request::Hold { key, record: forged, claim }], Vec::new()),
            1 => (sender, vec![Request::Replica { key, record: forged }], Vec::new()),
            // In the name of a member whose claim may have this number, or which has the shard.
            2 => {
                let claim = ClaimId(self.random.below(8));
                (other, vec![Request::Hold { key, record: forged, claim }], Vec::new())
            }
            _ => (other, Vec::new(), vec![Reply::Found { key, record: forged, holders: vec![sender] }]),
        };
        if from == other && other == sender {
            return;
        }
        let message = DirectoryMessage { from, requests, replies };
        self.after(Duration::from_millis(1), Event::Arrives(to, sender, message));
    }

    /// Counts refusals of all members.
    fn refused(&self) -> [u64; 3] {
        let stats = self.nodes.values().map(|node| node.directory.stats());
        stats.fold([0; 3], |[unclaimed, differing, impersonated], stats| {
            [unclaimed + stats.unclaimed, differing + stats.differing, impersonated + stats.impersonated]
        })
    }
}

#[test]
fn planted_results_are_refused_and_counted() {
    let storm =
        Storm { members: 6, tasks: 25, lost: 0, changes: 0, hangs: 0, stuck: 0, evicted: 10, planted: 2_000 };
    for seed in 0..4 {
        let network = Network::run(seed, storm);
        let [unclaimed, differing, impersonated] = network.refused();
        assert!(
            unclaimed > 100 && differing > 20 && impersonated > 100,
            "{unclaimed}, {differing}, {impersonated}"
        );
        assert!(network.runs < storm.tasks * 2, "{} runs of {} tasks", network.runs, storm.tasks);
    }
}

/// Sends a request to a shard in the name of `from`.
fn send(group: &mut Group, (from, sender): (u64, u64), to: u64, request: Request) {
    let now = group.now;
    let message = DirectoryMessage { from: MemberId(from), requests: vec![request], replies: Vec::new() };
    group.at(to).handle_message(message, node(MemberId(sender)), now);
    group.deliver();
}

fn forged(claim: u64) -> Request {
    Request::Hold { key: key(TASK), record: record_of(TASK, &[Some(99)]), claim: ClaimId(claim) }
}

const UNCLAIMED: Option<RefusalReason> = Some(RefusalReason::Unclaimed);

#[test]
fn result_without_a_claim_is_refused_and_reported_once() {
    let mut group = Group::new(3);
    let (owner, planter, reader) = roles(&mut group);
    send(&mut group, (planter, planter), owner, forged(0));
    send(&mut group, (planter, planter), owner, forged(1));
    assert_eq!(group.refused, [(planter, UNCLAIMED)]);
    assert_eq!(group.at(owner).stats().unclaimed, 2);
    group.look_up(reader);
    assert_eq!(group.answers(), [(reader, Resolution::Claimed)]);
    // The claim of the other worker has this number, or one close to it.
    (0..8).for_each(|claim| send(&mut group, (planter, planter), owner, forged(claim)));
    group.hold(reader, record(TASK));
    group.look_up(owner);
    assert_eq!(group.answers(), [(owner, found(record(TASK), &[reader]))]);
}

#[test]
fn result_of_an_ended_claim_is_refused_and_the_next_claimer_announces_its_own() {
    let mut group = Group::new(3);
    let (owner, hung, waiter) = roles(&mut group);
    group.look_up(hung);
    group.look_up(waiter);
    group.pass(Duration::from_secs(11), &[hung]);
    assert_eq!(group.answers(), [(hung, Resolution::Claimed), (waiter, Resolution::Claimed)]);
    group.hold(hung, record_of(TASK, &[Some(99)]));
    assert_eq!((group.refused.clone(), group.at(owner).stats().unclaimed), (vec![(hung, UNCLAIMED)], 1));
    group.hold(waiter, record(TASK));
    group.look_up(owner);
    assert_eq!(group.answers(), [(owner, found(record(TASK), &[waiter]))]);
}

#[test]
fn result_in_the_name_of_the_claimer_is_dropped() {
    let mut group = Group::new(3);
    let (owner, claimer, planter) = roles(&mut group);
    group.look_up(claimer);
    (0..8).for_each(|claim| send(&mut group, (claimer, planter), owner, forged(claim)));
    assert_eq!((group.refused.clone(), group.at(owner).stats().impersonated), (vec![(claimer, None)], 8));
    group.hold(claimer, record(TASK));
    group.look_up(owner);
    assert_eq!(group.answers()[1..], [(owner, found(record(TASK), &[claimer]))]);
}

#[test]
fn answer_of_a_worker_without_the_shard_is_ignored() {
    let mut group = Group::new(3);
    let (_, claimer, planter) = roles(&mut group);
    let reader = 6 - claimer - planter;
    group.look_up(claimer);
    group.look_up(reader);
    assert_eq!(group.answers(), [(claimer, Resolution::Claimed)]);
    let holders = vec![MemberId(planter)];
    let replies = vec![Reply::Found { key: key(TASK), record: record_of(TASK, &[Some(99)]), holders }];
    let (message, now) =
        (DirectoryMessage { from: MemberId(planter), requests: Vec::new(), replies }, group.now);
    group.at(reader).handle_message(message, node(MemberId(planter)), now);
    group.deliver();
    assert_eq!(group.answers(), []);
}

#[test]
fn replica_is_listed_for_known_digests_only() {
    let mut group = Group::new(3);
    let (owner, first, second) = roles(&mut group);
    let replica = |content| Request::Replica { key: key(TASK), record: record_of(TASK, &[Some(content)]) };
    send(&mut group, (second, second), owner, replica(TASK));
    assert_eq!(group.at(owner).entries(), 0, "a replica makes no entry");
    group.hold(first, record(TASK));
    send(&mut group, (second, second), owner, replica(99));
    assert_eq!(group.refused, [(second, Some(RefusalReason::Differs))]);
    send(&mut group, (second, second), owner, replica(TASK));
    group.look_up(owner);
    assert_eq!(group.answers(), [(owner, found(record(TASK), &[first, second]))]);
}

/// A look-up was not answered, or the task was cheaper than one.
#[test]
fn result_of_an_unclaimed_run_is_listed_unless_another_worker_has_the_claim() {
    let mut group = Group::new(3);
    let (owner, claimer, other) = roles(&mut group);
    group.hold(other, record(TASK));
    group.look_up(owner);
    assert_eq!(group.answers(), [(owner, found(record(TASK), &[other]))]);

    let mut group = Group::new(3);
    group.look_up(claimer);
    group.hold(other, record(TASK));
    group.look_up(owner);
    assert_eq!(group.answers(), [(claimer, Resolution::Claimed)], "the claimer's result is awaited");
    group.hold(claimer, record(TASK));
    group.answers();
    let now = group.now;
    group.at(owner).look_up(key(TASK), vec![true], LONG, now);
    group.deliver();
    assert_eq!(group.answers(), [(owner, found(record(TASK), &[claimer, other]))]);
    assert_eq!(group.refused, []);
}

/// The claimer finishes before the new shard has answered it.
#[test]
fn result_under_a_moved_claim_is_listed() {
    for new in 4..40 {
        let mut group = Group::new(3);
        group.look_up(1);
        let id = MemberId(new);
        let mut joined = pleach_dispatch::directory::Directory::new(id);
        let all: Vec<MemberId> = group.all.iter().map(|(id, _)| *id).chain([id]).collect();
        let all = all.into_iter().map(crate::records::member).collect();
        joined.handle_members(&MemberChange { is_complete: true, joined: all, left: Vec::new() }, group.now);
        group.all.push((id, Some(joined)));
        let (change, now) =
            (MemberChange { joined: vec![crate::records::member(id)], ..MemberChange::default() }, group.now);
        (1..=3).for_each(|id| group.at(id).handle_members(&change, now));
        // Before any message is delivered.
        group.at(1).hold(key(TASK), record(TASK), now);
        group.deliver();
        group.answers();
        group.look_up(2);
        assert_eq!(group.answers(), [(2, found(record(TASK), &[1]))], "member {new}");
        assert_eq!(group.refused, []);
    }
}

/// A shard that lists a faulty holder again and again delays a task once.
#[test]
fn rejected_holder_is_not_asked_again_for_the_result() {
    let mut group = Group::new(3);
    let (owner, holder, reader) = roles(&mut group);
    let now = group.now;
    group.at(reader).look_up(key(TASK), vec![true], LONG, now);
    let lists = |group: &mut Group| {
        let (record, holders) = (record(TASK), vec![MemberId(holder)]);
        let replies = vec![Reply::Found { key: key(TASK), record, holders }];
        let message = DirectoryMessage { from: MemberId(owner), requests: Vec::new(), replies };
        group.at(reader).handle_message(message, node(MemberId(owner)), now);
        group.at(reader).reject(key(TASK), MemberId(holder), now);
    };
    lists(&mut group);
    group.loses = |_| true;
    group.deliver();
    assert_eq!(group.answers(), [(reader, found(record(TASK), &[holder]))]);
    group.at(reader).look_up(key(TASK), vec![true], LONG, now);
    lists(&mut group);
    group.deliver();
    assert_eq!(group.answers(), [(reader, Resolution::Unclaimed)]);
}

/// Results are cached by identity: one under the identity of another task's output would stand for that output.
#[test]
fn result_under_the_identity_of_another_task_is_refused() {
    let mut group = Group::new(3);
    let (owner, claimer, reader) = roles(&mut group);
    let mut misnamed = record(TASK);
    misnamed.outputs.iter_mut().flatten().for_each(|output| output.identity.0[9] ^= 1);
    group.look_up(claimer);
    group.hold(claimer, misnamed.clone());
    assert_eq!(group.refused, [(claimer, Some(RefusalReason::Misnamed))]);
    assert_eq!(group.at(owner).stats().misnamed, 1);
    group.answers();

    // A shard that lists it.
    let now = group.now;
    group.at(reader).look_up(key(TASK), vec![true], LONG, now);
    let replies = vec![Reply::Found { key: key(TASK), record: misnamed, holders: vec![MemberId(claimer)] }];
    let message = DirectoryMessage { from: MemberId(owner), requests: Vec::new(), replies };
    group.at(reader).handle_message(message, node(MemberId(owner)), now);
    group.loses = |_| true;
    group.deliver();
    assert_eq!(group.answers(), [(reader, Resolution::Unclaimed)]);
}
