//! Directories on a simulated network: delays, losses, members that join, leave, die and hang, holders that evict, claimers
//! that never finish.
//!
//! A link between two members delivers in order, as a connection does. Different links do not. The same seed gives the same
//! log, event by event.

use crate::random::Random;
use crate::records::{address, content, key, member, record};
use pleach_dispatch::directory::{
    Directory, DirectoryMessage, Effect, Member, MemberChange, MemberId, PATIENCE, RECHECK, RefusalReason,
    Resolution, TaskRecord,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::time::Duration;

/// Interval of the checks of time limits, as on a worker.
pub(crate) const TICK: Duration = Duration::from_millis(250);

/// Longest wait for another worker.
const LONGEST: Duration = Duration::from_secs(12);

/// Time until the manager misses a dead member.
const LIVENESS: Duration = Duration::from_secs(2);

/// Time without incidents at the end, enough to finish all work.
const CALM: Duration = Duration::from_secs(120);

/// Incidents of a simulation, in percent or in numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Storm {
    pub(crate) members: u64,
    pub(crate) tasks: u64,
    /// Percentage of lost messages.
    pub(crate) lost: u64,
    /// Changes of the members: half joins, half departures or deaths.
    pub(crate) changes: u64,
    /// Members that do not answer for some time.
    pub(crate) hangs: u64,
    /// Percentage of claimers that neither finish nor abandon their task before the calm.
    pub(crate) stuck: u64,
    /// Percentage of results that their holder evicts.
    pub(crate) evicted: u64,
    /// Messages with results of other content, without a claim or in the name of another member.
    pub(crate) planted: u64,
}

#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A message arrives, from the node of a member.
    Arrives(MemberId, MemberId, DirectoryMessage),
    /// The manager's list of members arrives. With `true`, the receiver is new.
    Members(MemberId, MemberChange),
    Tick(MemberId),
    /// A member needs the result of a task.
    Wants(MemberId, u64),
    /// A run ends.
    Ran(MemberId, u64),
    Evicts(MemberId, u64),
    Join,
    /// A member leaves. With `true`, the manager knows it only after a timeout.
    Gone(bool),
    /// The manager removes a member from its list.
    Departed(MemberId),
    Hang,
    Resume(MemberId),
    /// A member sends forged messages.
    Plants,
}

/// A member's progress with a task.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Progress {
    /// Looked up since then. The wait may exceed its bound by so much.
    LookedUp(Duration, Duration),
    /// Runs since then, with a claim or without.
    Runs(bool, Duration),
    /// Is a run that ends only in the calm.
    Stuck(bool, Duration),
    Has,
}

pub(crate) struct Node {
    pub(crate) directory: Directory,
    tasks: BTreeMap<u64, Progress>,
    held: BTreeSet<u64>,
    /// Events that wait for the end of a hang.
    hung: Option<Vec<Event>>,
}

/// The simulation.
pub(crate) struct Network {
    pub(crate) storm: Storm,
    pub(crate) random: Random,
    pub(crate) now: Duration,
    queue: BinaryHeap<Reverse<(Duration, u64)>>,
    events: BTreeMap<u64, Event>,
    numbers: u64,
    pub(crate) nodes: BTreeMap<MemberId, Node>,
    /// Members by the manager's list.
    listed: BTreeSet<MemberId>,
    /// Arrival of the last message on each link, and of the manager's last list.
    links: BTreeMap<(MemberId, MemberId), Duration>,
    /// Results that each member has announced.
    announced: BTreeSet<(MemberId, u64)>,
    next_member: u64,
    /// Time of the last incident that may lead to two claims of a task.
    disturbed: Duration,
    pub(crate) log: Vec<String>,
    pub(crate) runs: u64,
    pub(crate) found: u64,
}

impl Network {
    pub(crate) fn run(seed: u64, storm: Storm) -> Self {
        let mut network = Self {
            storm,
            random: Random(seed),
            now: Duration::ZERO,
            queue: BinaryHeap::new(),
            events: BTreeMap::new(),
            numbers: 0,
            nodes: BTreeMap::new(),
            listed: BTreeSet::new(),
            links: BTreeMap::new(),
            announced: BTreeSet::new(),
            next_member: 0,
            disturbed: Duration::ZERO,
            log: Vec::new(),
            runs: 0,
            found: 0,
        };
        (0..storm.members).for_each(|_| network.join());
        for _ in 0..storm.changes {
            let at = network.random.millis(40_000);
            let event = match network.random.below(4) {
                0 | 1 => Event::Join,
                2 => Event::Gone(false),
                _ => Event::Gone(true),
            };
            network.at(at, event);
        }
        for _ in 0..storm.hangs {
            let at = network.random.millis(30_000);
            network.at(at, Event::Hang);
        }
        network.schedule_plants();
        let end = Duration::from_secs(60) + CALM;
        while let Some(Reverse((at, number))) = network.queue.pop().filter(|Reverse((at, _))| *at < end) {
            network.now = at;
            if let Some(event) = network.events.remove(&number) {
                network.happen(event);
                network.check();
            }
        }
        network.check_end();
        network
    }

    pub(crate) fn at(&mut self, at: Duration, event: Event) {
        self.numbers += 1;
        self.queue.push(Reverse((at, self.numbers)));
        self.events.insert(self.numbers, event);
    }

    pub(crate) fn after(&mut self, wait: Duration, event: Event) {
        self.at(self.now + wait, event);
    }

    fn is_calm(&self) -> bool {
        self.now > Duration::from_secs(60)
    }

    fn join(&mut self) {
        self.next_member += 1;
        // Spread over the whole range, as incarnations are random.
        let id = MemberId(self.next_member.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let directory = Directory::new(id);
        let node = Node { directory, tasks: BTreeMap::new(), held: BTreeSet::new(), hung: None };
        self.nodes.insert(id, node);
        let change = MemberChange { joined: vec![member(id)], ..MemberChange::default() };
        self.publish(&change);
        self.listed.insert(id);
        let joined = self.listed.iter().map(|id| member(*id)).collect();
        self.send_members(id, MemberChange { is_complete: true, joined, left: Vec::new() });
        let wait = self.random.millis(250);
        self.after(wait, Event::Tick(id));
        for task in 0..self.storm.tasks {
            let wait = self.random.millis(20_000);
            self.after(wait, Event::Wants(id, task));
        }
    }

    /// Sends a change of the members to all listed members.
    fn publish(&mut self, change: &MemberChange) {
        self.disturb(Duration::ZERO);
        let listed: Vec<MemberId> = self.listed.iter().copied().collect();
        listed.into_iter().for_each(|to| self.send_members(to, change.clone()));
    }

    /// Extends the time until which views of the members may differ. An earlier incident may take longer than this one.
    fn disturb(&mut self, wait: Duration) {
        self.disturbed = self.disturbed.max(self.now + wait);
    }

    fn send_members(&mut self, to: MemberId, change: MemberChange) {
        let at = self.arrival(MemberId(0), to);
        self.at(at, Event::Members(to, change));
    }

    fn arrival(&mut self, from: MemberId, to: MemberId) -> Duration {
        let wait = Duration::from_micros(100 + self.random.below(40_000));
        let last = self.links.entry((from, to)).or_default();
        *last = (*last).max(self.now + wait);
        *last
    }

    fn happen(&mut self, event: Event) {
        let to = match &event {
            Event::Arrives(to, ..) | Event::Members(to, _) | Event::Tick(to) => Some(*to),
            Event::Wants(to, _) | Event::Ran(to, _) | Event::Evicts(to, _) => Some(*to),
            Event::Join | Event::Gone(_) | Event::Departed(_) | Event::Hang => None,
            Event::Resume(_) | Event::Plants => None,
        };
        self.log.push(format!("{:?} {event:?}", self.now));
        let Some(id) = to else { return self.incident(event) };
        let Some(node) = self.nodes.get_mut(&id) else { return };
        if let Some(waiting) = &mut node.hung {
            return waiting.push(event);
        }
        self.handle(id, event);
        self.follow(id);
    }

    fn incident(&mut self, event: Event) {
        match event {
            Event::Join => self.join(),
            Event::Plants => self.plant(),
            Event::Gone(_) | Event::Hang if self.nodes.len() < 2 => {}
            Event::Gone(dies) => {
                let id = self.any();
                self.nodes.remove(&id);
                self.listed.remove(&id);
                self.disturb(LIVENESS);
                // The manager removes a dead worker after the timeout of its connection.
                let wait = if dies { LIVENESS } else { Duration::ZERO };
                self.after(wait, Event::Departed(id));
            }
            Event::Hang => {
                let id = self.any();
                let wait = Duration::from_secs(1) + self.random.millis(24_000);
                self.disturb(wait);
                if let Some(node) = self.nodes.get_mut(&id).filter(|node| node.hung.is_none()) {
                    node.hung = Some(Vec::new());
                    for progress in node.tasks.values_mut() {
                        if let Progress::LookedUp(_, more) = progress {
                            *more += wait;
                        }
                    }
                    self.after(wait, Event::Resume(id));
                }
            }
            Event::Departed(id) => {
                self.publish(&MemberChange { left: vec![id], ..MemberChange::default() });
            }
            Event::Resume(id) => {
                let waiting = self.nodes.get_mut(&id).and_then(|node| node.hung.take()).unwrap_or_default();
                waiting.into_iter().for_each(|event| self.happen(event));
            }
            _ => unreachable!("{event:?} has a receiver"),
        }
    }

    pub(crate) fn any(&mut self) -> MemberId {
        let number = self.random.below(self.nodes.len() as u64) as usize;
        *self.nodes.keys().nth(number).expect("the number is below the length")
    }

    fn handle(&mut self, id: MemberId, event: Event) {
        let now = self.now;
        let node = self.nodes.get_mut(&id).expect("the receiver lives");
        match event {
            Event::Arrives(_, sender, message) => {
                node.directory.handle_message(message, crate::records::node(sender), now);
            }
            Event::Members(_, change) => {
                node.directory.handle_members(&change, now);
                // A changed list repeats look-ups, each with a patience of its own.
                for progress in node.tasks.values_mut() {
                    if let Progress::LookedUp(_, more) = progress {
                        *more += PATIENCE + TICK;
                    }
                }
            }
            Event::Tick(_) => {
                node.directory.handle_time(now);
                self.after(TICK, Event::Tick(id));
                if self.is_calm() {
                    self.unstick(id);
                }
            }
            Event::Wants(_, task) => self.look_up(id, task),
            Event::Ran(_, task) => self.finish(id, task),
            Event::Evicts(_, task) => {
                if node.held.remove(&task) {
                    node.directory.drop_held(key(task), now);
                }
            }
            _ => unreachable!("{event:?} has no receiver"),
        }
    }

    fn look_up(&mut self, id: MemberId, task: u64) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(&id) else { return };
        let before = node.tasks.insert(task, Progress::LookedUp(now, Duration::ZERO));
        assert!(!matches!(before, Some(Progress::LookedUp(..))), "{task} is looked up twice");
        node.directory.look_up(key(task), vec![true], LONGEST, now);
    }

    fn finish(&mut self, id: MemberId, task: u64) {
        let (now, is_over) = (self.now, self.random.is_one_of(5));
        let Some(node) = self.nodes.get_mut(&id) else { return };
        // A few tasks fail: their claim ends, and they are looked up again.
        if is_over && now < Duration::from_secs(60) {
            node.directory.abandon(key(task), now);
            node.tasks.remove(&task);
            let wait = self.random.millis(1000);
            return self.after(wait, Event::Wants(id, task));
        }
        self.runs += 1;
        self.hold(id, task);
    }

    fn hold(&mut self, id: MemberId, task: u64) {
        let now = self.now;
        let Some(node) = self.nodes.get_mut(&id) else { return };
        node.tasks.insert(task, Progress::Has);
        node.held.insert(task);
        self.announced.insert((id, task));
        node.directory.hold(key(task), record(task), now);
        if self.random.is_one_of(self.storm.evicted) {
            let wait = self.random.millis(8000);
            self.after(wait, Event::Evicts(id, task));
        }
    }

    /// Finishes the stuck runs of a member.
    fn unstick(&mut self, id: MemberId) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        let mut ended = Vec::new();
        for (task, progress) in &mut node.tasks {
            if let Progress::Stuck(claimed, since) = *progress {
                *progress = Progress::Runs(claimed, since);
                ended.push(*task);
            }
        }
        ended.into_iter().for_each(|task| self.after(Duration::from_millis(10), Event::Ran(id, task)));
    }

    fn follow(&mut self, id: MemberId) {
        loop {
            let Some(effect) = self.nodes.get_mut(&id).and_then(|node| node.directory.poll_effect()) else {
                return;
            };
            self.log.push(format!("{id} {effect:?}"));
            match effect {
                Effect::Send { to, message } => self.send(id, to, message),
                Effect::Resolved { key, resolution } => self.resolved(id, content(key), resolution),
                Effect::Refused { reason: RefusalReason::Differs, key, member }
                    if self.storm.planted == 0 =>
                {
                    panic!("{member} differs in {key:?}");
                }
                Effect::Refused { .. } | Effect::Impersonated { .. } => {}
            }
        }
    }

    fn send(&mut self, from: MemberId, to: std::net::SocketAddr, message: DirectoryMessage) {
        assert!(message.requests.len() + message.replies.len() <= 128, "a message has a limited size");
        let Some(to) = self.nodes.keys().copied().find(|id| address(*id) == to) else {
            // The connection of a dead member fails.
            if let Some(node) = self.nodes.get_mut(&from) {
                node.directory.handle_unreachable(to, self.now);
            }
            return;
        };
        let at = self.arrival(from, to);
        if !self.is_calm() && self.random.is_one_of(self.storm.lost) {
            self.disturb(RECHECK);
            return;
        }
        self.at(at, Event::Arrives(to, from, message));
    }

    fn resolved(&mut self, id: MemberId, task: u64, resolution: Resolution) {
        let is_stuck = !self.is_calm() && self.random.is_one_of(self.storm.stuck);
        let length = Duration::from_millis(20 + self.random.below(6000));
        let (now, calm) = (self.now, self.is_calm());
        let node = self.nodes.get_mut(&id).expect("the asker lives");
        let before = node.tasks.get(&task).copied();
        assert!(matches!(before, Some(Progress::LookedUp(..))), "{task} is resolved, and was {before:?}");
        let claimed = resolution == Resolution::Claimed;
        match resolution {
            Resolution::Claimed | Resolution::Unclaimed => {
                let progress =
                    if is_stuck { Progress::Stuck(claimed, now) } else { Progress::Runs(claimed, now) };
                node.tasks.insert(task, progress);
                if !is_stuck {
                    self.after(if calm { length / 8 } else { length }, Event::Ran(id, task));
                }
            }
            Resolution::Found { record: found, holders } => self.fetch(id, task, &found, &holders),
        }
    }

    fn fetch(&mut self, id: MemberId, task: u64, found: &TaskRecord, holders: &[Member]) {
        assert_eq!(*found, record(task), "the result is the announced one");
        assert!(!holders.is_empty() && holders.iter().all(|holder| holder.id != id), "{holders:?}");
        for holder in holders {
            let is_announced = self.announced.contains(&(holder.id, task));
            assert!(is_announced, "{} is listed for {task}, and has not announced it", holder.id);
        }
        let sends = |holder: &&Member| {
            let node = self.nodes.get(&holder.id);
            node.is_some_and(|node| node.hung.is_none() && node.held.contains(&task))
        };
        if holders.iter().any(|holder| sends(&holder)) {
            self.found += 1;
            return self.hold(id, task);
        }
        let now = self.now;
        let node = self.nodes.get_mut(&id).expect("the asker lives");
        holders.iter().for_each(|holder| node.directory.reject(key(task), holder.id, now));
        node.tasks.remove(&task);
        self.after(Duration::from_millis(1), Event::Wants(id, task));
    }

    fn check(&self) {
        for (id, node) in self.nodes.iter().filter(|(_, node)| node.hung.is_none()) {
            node.directory.check(self.now).unwrap_or_else(|why| panic!("{id} at {:?}: {why}", self.now));
            for (task, progress) in &node.tasks {
                if let Progress::LookedUp(since, more) = *progress {
                    // The wait for a claimer, then one more request and its check.
                    let bound = since + LONGEST + 2 * (PATIENCE + TICK) + more;
                    assert!(self.now <= bound, "{id} waits for {task} since {since:?}, at {:?}", self.now);
                }
            }
        }
        // Claims of different views of the members may coincide, and those that a lost message has ended.
        let mut claims: BTreeMap<u64, MemberId> = BTreeMap::new();
        for (id, node) in &self.nodes {
            for (task, progress) in &node.tasks {
                let claimed = match progress {
                    Progress::Runs(true, since) | Progress::Stuck(true, since) => Some(*since),
                    _ => None,
                };
                if claimed.is_none_or(|since| since <= self.disturbed + 2 * TICK) {
                    continue;
                }
                let before = claims.insert(*task, *id);
                assert!(before.is_none(), "{id} and {before:?} have claims of {task} at {:?}", self.now);
            }
        }
    }

    /// All tasks are done at the end.
    fn check_end(&self) {
        for (id, node) in &self.nodes {
            assert!(node.hung.is_none(), "{id} hangs at the end");
            for task in 0..self.storm.tasks {
                let progress = node.tasks.get(&task);
                assert_eq!(progress, Some(&Progress::Has), "{task} at {id} at the end");
            }
        }
    }
}
