//! Worker that takes part in the result directory and sends other content than it announces, or announces results that it
//! has no claim of.

use actix::prelude::*;
use parking_lot::Mutex;
use pleach_actors::exchange::{DirectoryEvent, Exchange, ResultSource};
use pleach_actors::transport::codec;
use pleach_dispatch::directory::{
    ClaimId, Directory, DirectoryMessage, Effect, MemberChange, MemberId, Reply, Request, Resolution,
    ResultOutput, TaskRecord,
};
use pleach_regions::{CachedForm, DataRegion, Digest, RegionKey, TaskKey, provenance_id};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Conduct towards look-ups in its shard.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Conduct {
    /// Follows the protocol.
    Honest,
    /// Lists itself as the holder of every task, with a digest that its content does not have.
    ListsItself,
}

/// Content that the worker sends, whatever is asked for.
struct Wrong(Arc<DataRegion>, Arc<AtomicUsize>);

impl ResultSource for Wrong {
    fn form(&self, _: RegionKey) -> Option<CachedForm> {
        self.1.fetch_add(1, Ordering::SeqCst);
        Some(CachedForm::Decoded(Arc::clone(&self.0)))
    }
}

struct State {
    core: Directory,
    me: MemberId,
    exchange: Exchange,
    conduct: Conduct,
    start: Instant,
    members: MemberChange,
    /// Results to announce once their claim is granted.
    offers: HashMap<TaskKey, TaskRecord>,
    announced: usize,
    /// Tasks that other workers have looked up in its shard.
    asked: Vec<TaskKey>,
}

/// The faulty worker.
#[derive(Clone)]
pub(crate) struct Faulty {
    state: Arc<Mutex<State>>,
    sent: Arc<AtomicUsize>,
    /// Keeps the recipient of the exchange's events.
    _events: Addr<Events>,
}

struct Events(Arc<Mutex<State>>);

impl Actor for Events {
    type Context = Context<Self>;
}

impl Handler<DirectoryEvent> for Events {
    type Result = ();

    fn handle(&mut self, event: DirectoryEvent, _: &mut Self::Context) {
        let DirectoryEvent::Message(sender, bytes) = event else { return };
        let message: DirectoryMessage = codec::decode(&bytes).expect("a message of a directory");
        self.0.lock().handle(message, sender);
    }
}

/// Returns a record with these outputs, all of one digest.
pub(crate) fn record(key: TaskKey, wanted: &[bool], digest: Digest) -> TaskRecord {
    let output = |(number, wanted): (usize, &bool)| {
        wanted.then_some(ResultOutput { identity: provenance_id(&key, number), digest, bytes: 64 })
    };
    TaskRecord { origin: key, outputs: wanted.iter().enumerate().map(output).collect(), seconds: 1.0 }
}

impl State {
    fn handle(&mut self, message: DirectoryMessage, sender: pleach_dispatch::directory::NodeDigest) {
        let looked_up = message.requests.iter().filter_map(|request| match request {
            Request::LookUp { key, wanted } => Some((*key, wanted.clone())),
            _ => None,
        });
        let looked_up: Vec<(TaskKey, Vec<bool>)> = looked_up.collect();
        self.asked.extend(looked_up.iter().map(|(key, _)| *key));
        if self.conduct == Conduct::Honest {
            self.core.handle_message(message, sender, self.start.elapsed());
            return self.pump();
        }
        let found = |(key, wanted): (TaskKey, Vec<bool>)| {
            let record = record(key, &wanted, Digest([7; 32]));
            Reply::Found { key, record, holders: vec![self.me] }
        };
        let replies = looked_up.into_iter().map(found).collect();
        let reply = DirectoryMessage { from: self.me, requests: Vec::new(), replies };
        let to = self.members.joined.iter().find(|member| member.id == message.from);
        self.send(to.expect("a member").address, &reply);
    }

    fn send(&self, to: std::net::SocketAddr, message: &DirectoryMessage) {
        self.exchange.send_to_directory(to, codec::encode(message).expect("a message"));
    }

    fn pump(&mut self) {
        while let Some(effect) = self.core.poll_effect() {
            match effect {
                Effect::Send { to, message } => self.send(to, &message),
                Effect::Resolved { key, resolution: Resolution::Claimed } => {
                    if let Some(record) = self.offers.remove(&key) {
                        self.announced += 1;
                        self.core.hold(key, record, self.start.elapsed());
                    }
                }
                _ => {}
            }
        }
    }
}

impl Faulty {
    /// Connects a faulty worker to the directory. It sends `content` for each result.
    pub(crate) fn new(me: u64, exchange: &Exchange, conduct: Conduct, content: DataRegion) -> Self {
        let me = MemberId(me);
        let state = State {
            core: Directory::new(me),
            me,
            exchange: exchange.clone(),
            conduct,
            start: Instant::now(),
            members: MemberChange::default(),
            offers: HashMap::new(),
            announced: 0,
            asked: Vec::new(),
        };
        let (state, sent) = (Arc::new(Mutex::new(state)), Arc::new(AtomicUsize::new(0)));
        let events = Events(Arc::clone(&state)).start();
        let source = Wrong(Arc::new(content), Arc::clone(&sent));
        exchange.attach_directory(Box::new(source), events.downgrade().recipient());
        Self { state, sent, _events: events }
    }

    /// Sets the members, as the manager has announced them.
    pub(crate) fn set_members(&self, members: MemberChange) {
        let mut state = self.state.lock();
        let now = state.start.elapsed();
        state.core.handle_members(&members, now);
        state.members = members;
        state.pump();
    }

    /// Claims tasks, to announce these results.
    pub(crate) fn claim(&self, results: Vec<(TaskKey, TaskRecord)>) {
        let mut state = self.state.lock();
        for (key, record) in results {
            let (wanted, now) = (vec![true; record.outputs.len()], state.start.elapsed());
            state.offers.insert(key, record);
            state.core.look_up(key, wanted, Duration::MAX, now);
        }
        state.pump();
    }

    /// Announces results to all other members: without a claim, as a replica, and in the name of each other member.
    pub(crate) fn plant(&self, results: &[(TaskKey, TaskRecord)]) {
        let state = self.state.lock();
        let members: Vec<_> = state.members.joined.iter().filter(|member| member.id != state.me).collect();
        for to in &members {
            let requests = |(key, record): &(TaskKey, TaskRecord)| {
                let hold = |claim| Request::Hold { key: *key, record: record.clone(), claim: ClaimId(claim) };
                [hold(0), hold(1), Request::Replica { key: *key, record: record.clone() }]
            };
            let requests: Vec<Request> = results.iter().flat_map(requests).collect();
            for from in members.iter().map(|member| member.id).chain([state.me]).filter(|id| *id != to.id) {
                for requests in requests.chunks(96) {
                    let (requests, replies) = (requests.to_vec(), Vec::new());
                    state.send(to.address, &DirectoryMessage { from, requests, replies });
                }
            }
        }
    }

    /// Counts results that it has announced under a claim.
    pub(crate) fn announced(&self) -> usize {
        self.state.lock().announced
    }

    /// Returns the tasks that other workers have looked up in its shard.
    pub(crate) fn asked(&self) -> Vec<TaskKey> {
        self.state.lock().asked.clone()
    }

    /// Counts results that other workers have asked it for.
    pub(crate) fn sent(&self) -> usize {
        self.sent.load(Ordering::SeqCst)
    }
}
