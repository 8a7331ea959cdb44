//! The worker actor: joins a manager, asks for buckets, starts a stage actor for each, and hands out its slots.

use crate::stage::{FromStage, Granted, StageActor, Surroundings};
use crate::storage::{Release, StorageActor};
use crate::task::TaskActor;
use crate::transport::{Link, codec};
use actix::prelude::*;
use pleach_dispatch::LeaseId;
use pleach_dispatch::message::{BucketWork, TaskFailure, ToManager, ToWorker};
use pleach_dispatch::worker::{Effect, Worker};
use pleach_regions::Ledger;
use pleach_workflow::{Operation, Registry, Stage};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;

struct Frame(Vec<u8>);

/// What a worker brings along.
pub struct WorkerSetup {
    /// Tasks it can run at once, at least 1.
    pub slots: u32,
    /// The operations linked in.
    pub registry: Registry,
    /// Its storage.
    pub storage: Addr<StorageActor>,
    /// As many threads as slots.
    pub pool: Arc<rayon::ThreadPool>,
    /// Bytes held on this node.
    pub ledger: Arc<Ledger>,
}

impl fmt::Debug for WorkerSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerSetup").field("slots", &self.slots).finish_non_exhaustive()
    }
}

/// A stage of the study, and those of its tasks' operations that are linked in.
#[derive(Clone)]
struct Runnable {
    stage: Arc<Stage>,
    operations: Vec<Arc<dyn Operation>>,
}

/// See the module.
pub struct WorkerActor {
    core: Worker,
    setup: WorkerSetup,
    slots: Vec<Addr<TaskActor>>,
    link: Box<dyn Link>,
    incoming: Option<UnboundedReceiver<Vec<u8>>>,
    stages: Vec<Runnable>,
    running: HashMap<LeaseId, Addr<StageActor>>,
}

impl fmt::Debug for WorkerActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerActor").field("core", &self.core).finish_non_exhaustive()
    }
}

impl WorkerActor {
    /// A worker that reaches its manager over `link` and hears from it through `incoming`.
    pub fn new(setup: WorkerSetup, link: impl Link, incoming: UnboundedReceiver<Vec<u8>>) -> Self {
        Self {
            core: Worker::new(setup.slots),
            slots: Vec::new(),
            setup,
            link: Box::new(link),
            incoming: Some(incoming),
            stages: Vec::new(),
            running: HashMap::new(),
        }
    }

    fn send(&self, message: &ToManager, ctx: &mut Context<Self>) {
        let sent = codec::encode(message).is_ok_and(|frame| self.link.send(frame).is_ok());
        if !sent {
            ctx.stop();
        }
    }

    fn assigned(&mut self, lease: LeaseId, work: BucketWork, ctx: &mut Context<Self>) {
        self.core.handle_assigned(lease, work.stage);
        let ids: Vec<_> = work.instances.iter().map(|instance| instance.id).collect();
        let around = Surroundings {
            worker: ctx.address().recipient(),
            storage: self.setup.storage.clone(),
            slots: self.slots.clone(),
            ledger: Arc::clone(&self.setup.ledger),
        };
        let stage = self.stages.get(work.stage as usize).cloned();
        let actor = stage.and_then(|Runnable { stage, operations }| {
            (operations.len() == stage.tasks.len())
                .then(|| StageActor::new(lease, stage, operations, work, around).ok())?
        });
        match actor {
            Some(actor) => drop(self.running.insert(lease, actor.start())),
            None => {
                // Nothing was run: refuse the whole bucket, with a reason.
                let at = "worker".to_owned();
                let cause = TaskFailure { at, cause: "it cannot run this stage's operations".to_owned() };
                for instance in ids {
                    let (cause, tasks) = (cause.clone(), Vec::new());
                    self.send(&ToManager::Failed { lease, instance, cause, tasks }, ctx);
                }
                self.core.handle_stage_over(lease);
            }
        }
    }

    fn perform(&mut self, ctx: &mut Context<Self>) {
        while let Some(effect) = self.core.poll_effect() {
            match effect {
                Effect::Grant { lease, slot } => match self.running.get(&lease) {
                    Some(stage) => stage.do_send(Granted(slot)),
                    None => self.core.handle_slot_free(slot, lease, 0),
                },
                Effect::Request { buckets } => self.send(&ToManager::Request { buckets }, ctx),
            }
        }
    }
}

impl Actor for WorkerActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let pool = &self.setup.pool;
        self.slots = (0..self.setup.slots).map(|_| TaskActor::new(Arc::clone(pool)).start()).collect();
        if let Some(incoming) = self.incoming.take() {
            ctx.add_stream(UnboundedReceiverStream::new(incoming).map(Frame));
        }
        self.send(&ToManager::Join { slots: self.setup.slots }, ctx);
        self.perform(ctx);
    }
}

impl StreamHandler<Frame> for WorkerActor {
    fn handle(&mut self, Frame(frame): Frame, ctx: &mut Self::Context) {
        // A frame that cannot be read means that the two ends do not speak the same language: leave.
        let Ok(message) = codec::decode(&frame) else { return ctx.stop() };
        match message {
            ToWorker::Study { stages } => {
                let registry = &self.setup.registry;
                self.stages = stages
                    .into_iter()
                    .map(|stage| {
                        let find = |t: &pleach_workflow::Task| registry.get(&t.operation, t.version).cloned();
                        let operations = stage.tasks.iter().filter_map(find).collect();
                        Runnable { stage: Arc::new(stage), operations }
                    })
                    .collect();
            }
            ToWorker::Assign { lease, work } => self.assigned(lease, work, ctx),
            ToWorker::Release { keys } => self.setup.storage.do_send(Release(keys)),
            ToWorker::Finished => ctx.stop(),
        }
        self.perform(ctx);
    }
}

impl Handler<FromStage> for WorkerActor {
    type Result = ();

    fn handle(&mut self, message: FromStage, ctx: &mut Self::Context) {
        match message {
            FromStage::Ready { lease, ready } => self.core.handle_ready(lease, ready),
            FromStage::SlotFree { slot, lease, ready } => self.core.handle_slot_free(slot, lease, ready),
            FromStage::Report(message) => self.send(&message, ctx),
            FromStage::Over(lease) => {
                self.running.remove(&lease);
                self.core.handle_stage_over(lease);
            }
        }
        self.perform(ctx);
    }
}
