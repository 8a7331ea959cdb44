//! The manager actor: accepts workers, carries messages to and from its state machine, keeps the results.

use crate::transport::{Frame, Incoming, Link, codec};
use actix::prelude::*;
use pleach_dispatch::manager::{Effect, Facts, Manager};
use pleach_dispatch::message::{BucketWork, Reused, TaskDone, TaskFailure, TaskReport, ToManager, ToWorker};
use pleach_dispatch::study;
use pleach_dispatch::{InstanceId, LeaseId, StudyId, WorkerId};
use pleach_regions::Table;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use tokio::sync::oneshot;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;

/// The one study there is.
const STUDY: StudyId = StudyId(0);

/// A failed instance: the one whose task failed, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The instance whose task failed: this one or an ancestor.
    pub origin: InstanceId,
    /// Why.
    pub cause: TaskFailure,
}

/// What a study came to.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Reported tables of finished instances.
    pub results: HashMap<InstanceId, Vec<Table>>,
    /// Instances that failed.
    pub failures: BTreeMap<InstanceId, Failure>,
    /// Tasks run and the seconds they took, by (stage, task).
    pub tasks: BTreeMap<(usize, usize), TaskTotal>,
    /// Stage instances finished.
    pub finished: usize,
    /// The study was stopped before it was complete.
    pub stopped: bool,
}

/// How often a task ran, for how long, and how often it did not have to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TaskTotal {
    /// Runs.
    pub runs: u64,
    /// Wall seconds, summed over runs.
    pub seconds: f64,
    /// Wall seconds that they were believed to take, each just before it ran.
    pub predicted_seconds: f64,
    /// By how much those were wrong, summed over runs.
    pub error_seconds: f64,
    /// Regions that it wrote of which the digest was taken.
    pub digests: u64,
    /// Wall seconds that took.
    pub digest_seconds: f64,
    /// How often it did not have to run, since another bucket had run the same.
    pub reused_by_dataflow: u64,
    /// How often it did not have to run, since its inputs had turned out equal to others'.
    pub reused_by_value: u64,
    /// How often it did not have to run, since an earlier study had run it.
    pub reused_by_cache: u64,
    /// Wall seconds of finding and keeping among what earlier studies have computed.
    pub cache_seconds: f64,
}

/// How far a study is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Stage instances finished or failed.
    pub instances: usize,
    /// Stage instances in all.
    pub all_instances: usize,
    /// Tasks run.
    pub tasks: u64,
    /// Stage instances failed.
    pub failed: usize,
}

/// What an observer is told.
#[derive(Clone, Copy, Debug)]
pub enum Notice<'a> {
    /// An instance that reports results is finished. It is told before anything that follows from it.
    Reported {
        /// The instance.
        instance: InstanceId,
        /// Its results.
        results: &'a [Table],
    },
    /// An instance failed.
    Failed(InstanceId),
    /// Tasks were done, for whichever instances.
    Done(&'a [TaskReport]),
    /// How far the study is, after each report of a worker.
    Progress(Progress),
}

/// Follows a study.
pub type Observer = Box<dyn FnMut(Notice<'_>) + Send>;

/// Ends the study early: what runs is finished, nothing more is started.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct Stop;

/// A worker has connected.
pub struct Connect {
    /// For messages to it.
    pub link: Box<dyn Link>,
    /// Frames from it.
    pub incoming: Incoming,
}

impl Message for Connect {
    type Result = ();
}

impl fmt::Debug for Connect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connect").finish_non_exhaustive()
    }
}

/// A connection, from connect to disconnect; it becomes a worker by joining.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ConnectionId(u32);

enum Event {
    Frame(ConnectionId, Frame),
    Closed(ConnectionId),
}

struct Connection {
    link: Box<dyn Link>,
    worker: Option<WorkerId>,
}

/// See the module.
pub struct ManagerActor {
    core: Manager,
    connections: BTreeMap<ConnectionId, Connection>,
    next_connection: u32,
    outcome: Outcome,
    done: Option<oneshot::Sender<Outcome>>,
    observer: Observer,
    all_instances: usize,
    tasks: u64,
}

impl fmt::Debug for ManagerActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagerActor").field("core", &self.core).finish_non_exhaustive()
    }
}

impl ManagerActor {
    /// A manager of one study, numbered 0, which sends the outcome to `done`.
    pub fn new(core: Manager, done: oneshot::Sender<Outcome>, observer: Observer) -> Self {
        Self {
            all_instances: core.study(STUDY).map_or(0, study::Study::unfinished),
            core,
            connections: BTreeMap::new(),
            next_connection: 0,
            outcome: Outcome::default(),
            done: Some(done),
            observer,
            tasks: 0,
        }
    }

    fn handle(&mut self, id: ConnectionId, frame: &[u8], ctx: &mut Context<Self>) {
        let message = match codec::decode::<ToManager>(frame) {
            Ok(message) => message,
            Err(error) => return self.refuse(id, &error, ctx),
        };
        let worker = self.connections.get(&id).and_then(|connection| connection.worker);
        match (message, worker) {
            (ToManager::Join { .. }, None) => {
                let worker = self.core.handle_join(Facts::ANY);
                if let Some(connection) = self.connections.get_mut(&id) {
                    connection.worker = Some(worker);
                }
                if let Some(plan) = self.core.study(STUDY).map(|study| study.plan()) {
                    let (stages, least_bytes) = (plan.stages.clone(), plan.needs.least_bytes);
                    self.send(id, &ToWorker::Study { stages, least_bytes });
                }
            }
            (ToManager::Request { buckets, after }, Some(worker)) => {
                self.core.handle_request(worker, buckets, after);
            }
            // What earlier messages brought about has been sent with them.
            (ToManager::Call { call }, Some(_)) => self.send(id, &ToWorker::Echo { call }),
            (ToManager::Done { lease, instance, results, tasks }, Some(worker)) => {
                if self.core.handle_done(worker, STUDY, lease, instance) {
                    self.outcome.finished += 1;
                    if !results.is_empty() {
                        (self.observer)(Notice::Reported { instance, results: &results });
                        self.outcome.results.insert(instance, results);
                    }
                }
                self.count(&tasks);
            }
            (ToManager::Failed { lease, instance, cause, tasks }, Some(worker)) => {
                self.core.handle_failed(worker, STUDY, lease, instance, &cause);
                self.count(&tasks);
            }
            (ToManager::Leave, Some(_)) => self.close(id, ctx),
            // Joining twice, or speaking before joining: not a worker of ours.
            (ToManager::Join { .. }, Some(_)) => self.refuse(id, &"a worker joins once", ctx),
            (_, None) => self.refuse(id, &"a worker joins before it says anything else", ctx),
        }
        self.perform(ctx);
    }

    /// Ends a connection that breaks the language.
    fn refuse(&mut self, id: ConnectionId, why: &dyn fmt::Display, ctx: &mut Context<Self>) {
        if let Some(connection) = self.connections.get(&id) {
            connection.link.refuse(why);
        }
        self.close(id, ctx);
    }

    /// Tasks are counted whether or not the report was in time: they were run.
    fn count(&mut self, tasks: &[TaskReport]) {
        for task in tasks {
            let total = self.outcome.tasks.entry((task.stage as usize, task.task as usize)).or_default();
            match task.done {
                TaskDone::Ran { seconds, predicted_seconds, digests, digest_seconds } => {
                    total.runs += 1;
                    total.seconds += seconds;
                    total.predicted_seconds += predicted_seconds;
                    total.error_seconds += (predicted_seconds - seconds).abs();
                    total.digests += u64::from(digests);
                    total.digest_seconds += digest_seconds;
                }
                TaskDone::Reused(Reused::Dataflow) => total.reused_by_dataflow += 1,
                TaskDone::Reused(Reused::Value) => total.reused_by_value += 1,
                TaskDone::Reused(Reused::Cache) => total.reused_by_cache += 1,
            }
            total.cache_seconds += task.cache_seconds;
        }
        (self.observer)(Notice::Done(tasks));
        self.tasks += tasks.len() as u64;
    }

    fn perform(&mut self, ctx: &mut Context<Self>) {
        while let Some(effect) = self.core.poll_effect() {
            match effect {
                Effect::Assign { worker, lease, work, later, .. } => self.assign(worker, lease, work, later),
                Effect::Study(_, study::Effect::Release(keys)) => self.broadcast(&ToWorker::Release { keys }),
                Effect::Study(_, study::Effect::Finished(_)) => {}
                // What it reported stays: the same again is the same.
                Effect::Study(_, study::Effect::Reopened(_)) => self.outcome.finished -= 1,
                Effect::Study(_, study::Effect::Failed { instance, origin, cause }) => {
                    (self.observer)(Notice::Failed(instance));
                    self.outcome.failures.insert(instance, Failure { origin, cause });
                }
                Effect::Stop => self.broadcast(&ToWorker::Stop),
                Effect::Study(_, study::Effect::Complete) => {
                    self.broadcast(&ToWorker::Finished);
                    self.end(ctx);
                }
                Effect::Stopped => {
                    self.outcome.stopped = true;
                    self.end(ctx);
                }
                // There is one study, and nothing is shared, drained or tried twice.
                _ => {}
            }
        }
        let failed = self.outcome.failures.len();
        let instances = self.all_instances - self.core.study(STUDY).map_or(0, study::Study::unfinished);
        let (all_instances, tasks) = (self.all_instances, self.tasks);
        (self.observer)(Notice::Progress(Progress { instances, all_instances, tasks, failed }));
    }

    fn end(&mut self, ctx: &mut Context<Self>) {
        if let Some(done) = self.done.take() {
            // Whoever wanted to know may have given up.
            let _ = done.send(std::mem::take(&mut self.outcome));
        }
        ctx.stop();
    }

    /// A bucket that no frame can hold fails: it would be waited for for ever.
    fn assign(&mut self, worker: WorkerId, lease: LeaseId, work: BucketWork, later: bool) {
        let ids: Vec<InstanceId> = work.instances.iter().map(|instance| instance.id).collect();
        let link = self.connections.values().find(|connection| connection.worker == Some(worker));
        match (codec::encode(&ToWorker::Assign { lease, work, later }), link) {
            // A link that is closed will say so.
            (Ok(frame), Some(connection)) => drop(connection.link.send(frame)),
            (Ok(_), None) => {}
            (Err(error), _) => {
                let cause = TaskFailure { at: "dispatch".to_owned(), cause: error.to_string() };
                for instance in ids {
                    self.core.handle_failed(worker, STUDY, lease, instance, &cause);
                }
            }
        }
    }

    fn broadcast(&mut self, message: &ToWorker) {
        let joined = self.connections.iter().filter(|(_, connection)| connection.worker.is_some());
        let ids: Vec<_> = joined.map(|(id, _)| *id).collect();
        ids.into_iter().for_each(|id| self.send(id, message));
    }

    /// A frame that cannot be sent is not an event of its own: the closed link will be.
    fn send(&mut self, id: ConnectionId, message: &ToWorker) {
        if let Some(connection) = self.connections.get(&id)
            && let Ok(frame) = codec::encode(message)
        {
            let _ = connection.link.send(frame);
        }
    }

    fn close(&mut self, id: ConnectionId, ctx: &mut Context<Self>) {
        if let Some(Connection { worker: Some(worker), .. }) = self.connections.remove(&id) {
            self.core.handle_leave(worker, false);
            self.perform(ctx);
        }
    }
}

impl Actor for ManagerActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.perform(ctx);
    }
}

impl Handler<Connect> for ManagerActor {
    type Result = ();

    fn handle(&mut self, Connect { link, incoming }: Connect, ctx: &mut Self::Context) {
        let id = ConnectionId(self.next_connection);
        self.next_connection += 1;
        self.connections.insert(id, Connection { link, worker: None });
        let frames = UnboundedReceiverStream::new(incoming).map(move |frame| Event::Frame(id, frame));
        ctx.add_stream(frames.chain(tokio_stream::once(Event::Closed(id))));
    }
}

impl Handler<Stop> for ManagerActor {
    type Result = ();

    fn handle(&mut self, Stop: Stop, ctx: &mut Self::Context) {
        self.core.handle_stop();
        self.perform(ctx);
    }
}

impl StreamHandler<Event> for ManagerActor {
    fn handle(&mut self, event: Event, ctx: &mut Self::Context) {
        match event {
            Event::Frame(id, frame) => Self::handle(self, id, &frame, ctx),
            Event::Closed(id) => self.close(id, ctx),
        }
    }

    // One worker's stream ends when it leaves; the manager goes on without it.
    fn finished(&mut self, _: &mut Self::Context) {}
}
