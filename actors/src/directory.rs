//! The directory actor: the shell of this worker's part of the result directory.
//!
//! Stage actors look tasks up here. The exchange carries messages to the directories of other workers, and passes theirs
//! on. The worker actor sends the members that the manager announces.

use crate::exchange::{DirectoryEvent, Exchange, ResultSource};
use crate::task_results::TaskResults;
use crate::transport::codec;
use actix::dev::Request;
use actix::prelude::*;
use parking_lot::Mutex;
use pleach_dispatch::directory::{
    Directory, DirectoryMessage, DirectoryStats, Effect, MemberChange, MemberId, RefusalReason, Resolution,
    TaskRecord,
};
use pleach_dispatch::stage::NodeId;
use pleach_regions::{CachedForm, RegionKey, TaskKey};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};
use tracing::warn;

/// Interval of checks of time limits. The shortest limit is 1 s.
const TICK: Duration = Duration::from_millis(250);

/// Looks up a task before it runs. The stage gets a [`Resolved`].
#[derive(Message)]
#[rtype(result = "()")]
pub(crate) struct LookUpTask {
    pub(crate) key: TaskKey,
    /// Outputs that the stage wants.
    pub(crate) wanted: Vec<bool>,
    /// Longest wait for another worker that runs the task.
    pub(crate) longest: Duration,
    pub(crate) stage: Recipient<Resolved>,
    pub(crate) node: NodeId,
}

/// Answer to a [`LookUpTask`].
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct Resolved {
    pub(crate) node: NodeId,
    pub(crate) answer: LookUpAnswer,
}

/// Content of an answer.
#[derive(Debug)]
pub(crate) enum LookUpAnswer {
    /// Another worker runs the task. The final answer follows.
    Waits,
    /// The final answer.
    Final(Resolution),
}

/// Changes of this worker's results and claims.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) enum ResultChange {
    /// The worker has run a task.
    Held(TaskKey, TaskRecord),
    /// The worker has run a task of its own tile.
    HeldAlone(TaskKey, TaskRecord),
    /// A tile of this worker has another user.
    TileShared,
    /// The worker has fetched and verified all outputs of a task.
    Fetched(TaskKey, TaskRecord),
    /// The worker will not run a claimed task.
    Abandoned(TaskKey),
    /// The worker has evicted outputs of these tasks, or needs them no more.
    Evicted(Vec<TaskKey>),
    /// These workers did not send an output of a task as announced.
    Rejected(TaskKey, Vec<MemberId>),
}

/// Joined and lost workers.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub(crate) struct MembersChanged(pub(crate) MemberChange);

/// Requests the counters.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "DirectoryMetrics")]
pub struct GetDirectoryMetrics;

/// Counters of the directory of one worker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, MessageResponse)]
pub struct DirectoryMetrics {
    /// Counters since the start.
    pub stats: DirectoryStats,
    /// Keys in this worker's shard.
    pub entries: usize,
    /// Members.
    pub members: usize,
}

/// Directory of a worker, as its other actors use it.
#[derive(Clone)]
pub(crate) struct DirectoryHandle {
    actor: Addr<DirectoryActor>,
    is_shared: Arc<AtomicBool>,
    own_tiles: Arc<Mutex<OwnTiles>>,
    pub(crate) exchange: Exchange,
}

/// Whether a tile is this worker's own: no other worker has got a bucket of it. All its buckets here have the same one.
#[derive(Clone, Debug, Default)]
pub(crate) struct OwnTile(Arc<AtomicBool>);

impl OwnTile {
    /// Returns whether look-ups of the tile's tasks would find nothing.
    pub(crate) fn is_own(&self) -> bool {
        // Relaxed: a stale value costs a look-up, or a run of one task.
        self.0.load(Ordering::Relaxed)
    }
}

/// The worker's own tiles with buckets here.
#[derive(Debug, Default)]
struct OwnTiles(HashMap<RegionKey, Weak<AtomicBool>>);

impl OwnTiles {
    /// Tiles with and without buckets, at most, before those without are removed.
    const MAX_TILES: usize = 1024;

    fn get(&mut self, tile: RegionKey) -> OwnTile {
        if let Some(known) = self.0.get(&tile).and_then(Weak::upgrade) {
            known.store(true, Ordering::Relaxed);
            return OwnTile(known);
        }
        if self.0.len() >= Self::MAX_TILES {
            self.0.retain(|_, tile| tile.strong_count() > 0);
        }
        let own = Arc::new(AtomicBool::new(true));
        self.0.insert(tile, Arc::downgrade(&own));
        OwnTile(own)
    }

    fn end(tile: &Weak<AtomicBool>) {
        if let Some(tile) = tile.upgrade() {
            tile.store(false, Ordering::Relaxed);
        }
    }
}

impl DirectoryHandle {
    /// Starts the directory of a worker.
    pub(crate) fn start(me: MemberId, exchange: &Exchange, results: &Arc<Mutex<TaskResults>>) -> Self {
        let is_shared = Arc::new(AtomicBool::new(false));
        let actor = DirectoryActor {
            core: Directory::new(me),
            exchange: exchange.clone(),
            waiting: HashMap::new(),
            is_shared: Arc::clone(&is_shared),
            start: Instant::now(),
        };
        let actor = actor.start();
        let source = Offered(Arc::clone(results));
        exchange.attach_directory(Box::new(source), actor.downgrade().recipient());
        Self { actor, is_shared, own_tiles: Arc::default(), exchange: exchange.clone() }
    }

    /// Returns whether other workers take part. Without them a look-up finds nothing.
    pub(crate) fn is_shared(&self) -> bool {
        // Relaxed: a stale value costs a look-up, or a run of one task.
        self.is_shared.load(Ordering::Relaxed)
    }

    /// Returns the state of a bucket's tile, which is `own` if it is this worker's own.
    pub(crate) fn tile(&self, own: Option<RegionKey>) -> OwnTile {
        own.map(|tile| self.own_tiles.lock().get(tile)).unwrap_or_default()
    }

    /// Has the tasks of a tile looked up from now on, and announces those that have run.
    pub(crate) fn share_tile(&self, tile: RegionKey) {
        if let Some(tile) = self.own_tiles.lock().0.remove(&tile) {
            OwnTiles::end(&tile);
        }
        self.change(ResultChange::TileShared);
    }

    /// As [`share_tile`](Self::share_tile) for all tiles: the manager may have forgotten which worker has which.
    pub(crate) fn share_tiles(&self) {
        self.own_tiles.lock().0.drain().for_each(|(_, tile)| OwnTiles::end(&tile));
        self.change(ResultChange::TileShared);
    }

    pub(crate) fn look_up(&self, task: LookUpTask) {
        self.actor.do_send(task);
    }

    pub(crate) fn change(&self, change: ResultChange) {
        self.actor.do_send(change);
    }

    pub(crate) fn set_members(&self, change: MemberChange) {
        self.actor.do_send(MembersChanged(change));
    }

    /// Requests the counters.
    pub(crate) fn metrics(&self) -> Request<DirectoryActor, GetDirectoryMetrics> {
        self.actor.send(GetDirectoryMetrics)
    }
}

/// Results in memory that other workers may fetch.
struct Offered(Arc<Mutex<TaskResults>>);

impl ResultSource for Offered {
    fn form(&self, key: RegionKey) -> Option<CachedForm> {
        self.0.lock().offered(key)
    }
}

/// Actor of the result directory.
pub struct DirectoryActor {
    core: Directory,
    exchange: Exchange,
    /// The task of each look-up.
    waiting: HashMap<TaskKey, (Recipient<Resolved>, NodeId)>,
    is_shared: Arc<AtomicBool>,
    /// Time origin of the state machine.
    start: Instant,
}

impl fmt::Debug for DirectoryActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectoryActor").field("members", &self.core.members()).finish_non_exhaustive()
    }
}

impl DirectoryActor {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn apply_effects(&mut self) {
        while let Some(effect) = self.core.poll_effect() {
            match effect {
                // A message of this worker always fits: its items are limited.
                Effect::Send { to, message } => {
                    if let Ok(bytes) = codec::encode(&message) {
                        self.exchange.send_to_directory(to, bytes);
                    }
                }
                Effect::Resolved { key, resolution } => {
                    if let Some((stage, node)) = self.waiting.remove(&key) {
                        stage.do_send(Resolved { node, answer: LookUpAnswer::Final(resolution) });
                    }
                }
                Effect::Refused { key, member, reason } => warn_refused(key, member, reason),
                Effect::Impersonated { member } => warn!(
                    "another node sent messages of the result directory in the name of worker {member}; they are \
                     dropped: its certificate has another name than that worker's"
                ),
            }
        }
        while let Some(key) = self.core.poll_waiting() {
            // Without an entry, the final answer has been sent above.
            if let Some((stage, node)) = self.waiting.get(&key) {
                stage.do_send(Resolved { node: *node, answer: LookUpAnswer::Waits });
            }
        }
    }
}

fn warn_refused(key: TaskKey, member: MemberId, reason: RefusalReason) {
    let task: String = key.0[..8].iter().map(|byte| format!("{byte:02x}")).collect();
    match reason {
        RefusalReason::Differs => warn!(
            "worker {member} announced other content for task {task} than another worker had; its result is not \
             used: an operation is not deterministic, or its memory is faulty"
        ),
        RefusalReason::Misnamed => warn!(
            "worker {member} announced an output of task {task} under the identity of another task's output; its \
             result is not used: the worker is faulty; further ones are counted only"
        ),
        RefusalReason::Unclaimed => warn!(
            "worker {member} announced a result of task {task} without a claim of it; its result is not used: the \
             worker hung until its claim ended, or is faulty; further ones are counted only"
        ),
    }
}

impl Actor for DirectoryActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        ctx.run_interval(TICK, |actor, _| {
            let now = actor.now();
            actor.core.handle_time(now);
            actor.apply_effects();
        });
    }
}

impl Handler<LookUpTask> for DirectoryActor {
    type Result = ();

    fn handle(&mut self, task: LookUpTask, _: &mut Self::Context) {
        let LookUpTask { key, wanted, longest, stage, node } = task;
        let before = self.waiting.insert(key, (stage, node));
        // The running tasks of the worker's results let one stage look a key up at a time.
        assert!(before.is_none(), "two tasks of one worker look up the same key");
        self.core.look_up(key, wanted, longest, self.now());
        self.apply_effects();
    }
}

impl Handler<ResultChange> for DirectoryActor {
    type Result = ();

    fn handle(&mut self, change: ResultChange, _: &mut Self::Context) {
        let now = self.now();
        match change {
            ResultChange::Held(key, record) => self.core.hold(key, record, now),
            ResultChange::HeldAlone(key, record) => self.core.hold_later(key, record, now),
            ResultChange::TileShared => self.core.announce_deferred(now),
            ResultChange::Fetched(key, record) => self.core.hold_replica(key, record, now),
            ResultChange::Abandoned(key) => self.core.abandon(key, now),
            ResultChange::Evicted(keys) => keys.into_iter().for_each(|key| self.core.drop_held(key, now)),
            ResultChange::Rejected(key, holders) => {
                holders.into_iter().for_each(|holder| self.core.reject(key, holder, now));
            }
        }
        self.apply_effects();
    }
}

impl Handler<MembersChanged> for DirectoryActor {
    type Result = ();

    fn handle(&mut self, MembersChanged(change): MembersChanged, _: &mut Self::Context) {
        self.core.handle_members(&change, self.now());
        self.is_shared.store(self.core.is_shared(), Ordering::Relaxed);
        self.apply_effects();
    }
}

impl Handler<DirectoryEvent> for DirectoryActor {
    type Result = ();

    fn handle(&mut self, event: DirectoryEvent, _: &mut Self::Context) {
        let now = self.now();
        match event {
            // An unreadable message is dropped: its look-ups end with their time.
            DirectoryEvent::Message(sender, bytes) => {
                if let Ok(message) = codec::decode::<DirectoryMessage>(&bytes) {
                    self.core.handle_message(message, sender, now);
                }
            }
            DirectoryEvent::Unreachable(address) => self.core.handle_unreachable(address, now),
        }
        self.apply_effects();
    }
}

impl Handler<GetDirectoryMetrics> for DirectoryActor {
    type Result = DirectoryMetrics;

    fn handle(&mut self, GetDirectoryMetrics: GetDirectoryMetrics, _: &mut Self::Context) -> Self::Result {
        DirectoryMetrics {
            stats: self.core.stats(),
            entries: self.core.entries(),
            members: self.core.members(),
        }
    }
}
