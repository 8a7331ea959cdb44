//! The worker actor: joins a manager, asks for buckets, starts a stage actor for each, and hands out its slots.

use crate::results::Results;
use crate::stage::{FromStage, Granted, Past, Runnable, StageActor, Surroundings, missing_bytes};
use crate::storage::{Held, Release, StorageActor};
use crate::task::{Meter, TaskActor};
use crate::transport::{Frame, Incoming, Link, codec};
use actix::prelude::*;
use pleach_dispatch::LeaseId;
use pleach_dispatch::costs::Costs;
use pleach_dispatch::estimates::Estimates;
use pleach_dispatch::memory::{Budget, Demand};
use pleach_dispatch::message::{BucketWork, TaskFailure, ToManager, ToWorker};
use pleach_dispatch::worker::{Effect, Worker};
use pleach_regions::{Ledger, RamTier, RegionKey};
use pleach_workflow::{Origin, Read, Registry, Stage, StageInput, Task};
use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio_stream::wrappers::UnboundedReceiverStream;

/// What a worker may use.
#[derive(Clone, Copy, Debug)]
pub struct Resources {
    /// Tasks it can run at once.
    pub slots: NonZeroU32,
    /// Bytes of regions and of running tasks that it may hold.
    pub memory_bytes: u64,
    /// Tasks of one bucket that may run at once; `None`: as many as there are slots.
    pub active_paths: Option<NonZeroU32>,
    /// Measures what tasks take.
    pub meter: Meter,
}

/// What a worker brings along.
pub struct WorkerSetup {
    /// What it may use.
    pub resources: Resources,
    /// The operations linked in.
    pub registry: Registry,
    /// Its storage.
    pub storage: Addr<StorageActor>,
    /// As many threads as slots.
    pub pool: Arc<rayon::ThreadPool>,
    /// What its storage holds in memory.
    pub ram: Arc<RamTier>,
    /// Bytes held on this node.
    pub ledger: Arc<Ledger>,
    /// What operations are believed to cost; it learns from every task.
    pub costs: Arc<Mutex<Costs>>,
    /// What is known from before the study.
    pub past: Past,
    /// Is told of the most bytes ever held and reserved at once.
    pub peak_bytes: Arc<AtomicU64>,
}

impl fmt::Debug for WorkerSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerSetup").field("resources", &self.resources).finish_non_exhaustive()
    }
}

/// A bucket at this worker.
struct Bucket {
    stage: Addr<StageActor>,
    /// What it reads, each once, and its bytes.
    inputs: Vec<(RegionKey, u64)>,
}

/// See the module.
pub struct WorkerActor {
    core: Worker,
    setup: WorkerSetup,
    slots: Vec<Addr<TaskActor>>,
    link: Box<dyn Link>,
    incoming: Option<Incoming>,
    stages: Vec<Runnable>,
    running: HashMap<LeaseId, Bucket>,
    /// What the tasks of this worker have computed.
    results: Arc<Mutex<Results>>,
    estimates: Arc<Mutex<Estimates>>,
}

impl fmt::Debug for WorkerActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerActor").field("core", &self.core).finish_non_exhaustive()
    }
}

impl WorkerActor {
    /// A worker that reaches its manager over `link` and hears from it through `incoming`.
    pub fn new(setup: WorkerSetup, link: impl Link, incoming: Incoming) -> Self {
        Self {
            core: Worker::new(
                setup.resources.slots.get(),
                Budget { bytes: setup.resources.memory_bytes, ..Budget::UNLIMITED },
            ),
            slots: Vec::new(),
            setup,
            link: Box::new(link),
            incoming: Some(incoming),
            stages: Vec::new(),
            running: HashMap::new(),
            results: Arc::default(),
            estimates: Arc::default(),
        }
    }

    fn send(&self, message: &ToManager, ctx: &mut Context<Self>) {
        if !self.sent(message) {
            ctx.stop();
        }
    }

    fn sent(&self, message: &ToManager) -> bool {
        codec::encode(message).is_ok_and(|frame| self.link.send(frame).is_ok())
    }

    /// Says what is in storage, before anything that may follow from it.
    fn look(&mut self) {
        self.core.handle_stored(self.setup.ram.held_bytes());
        for (lease, bucket) in &self.running {
            self.core.handle_missing(*lease, missing_bytes(&self.setup.ram, &bucket.inputs));
        }
    }

    fn assigned(&mut self, lease: LeaseId, work: BucketWork, later: bool, ctx: &mut Context<Self>) {
        self.core.handle_assigned(lease, work.stage, work.bucket, later);
        let ids: Vec<_> = work.instances.iter().map(|instance| instance.id).collect();
        let around = Surroundings {
            worker: ctx.address().recipient(),
            storage: self.setup.storage.clone(),
            slots: self.slots.clone(),
            ram: Arc::clone(&self.setup.ram),
            ledger: Arc::clone(&self.setup.ledger),
            results: Arc::clone(&self.results),
            estimates: Arc::clone(&self.estimates),
            costs: Arc::clone(&self.setup.costs),
            past: self.setup.past.clone(),
            active_paths: self.setup.resources.active_paths,
        };
        let stage = self.stages.get(work.stage as usize).cloned();
        // Those of its operations that are not linked in are missing.
        let is_complete = |stage: &Runnable| stage.operations.len() == stage.stage.tasks.len();
        let actor =
            stage.filter(is_complete).and_then(|stage| StageActor::new(lease, stage, work, around).ok());
        match actor {
            Some(actor) => {
                let inputs = actor.inputs().to_vec();
                self.running.insert(lease, Bucket { stage: actor.start(), inputs });
            }
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
                Effect::Grant { lease, slot, node } => {
                    self.make_room();
                    match self.running.get(&lease) {
                        Some(bucket) => bucket.stage.do_send(Granted { slot, node }),
                        None => self.core.handle_slot_free(slot, lease, Demand::default()),
                    }
                }
                Effect::Request { buckets, after } => self.send(&ToManager::Request { buckets, after }, ctx),
                Effect::Call { call } => self.send(&ToManager::Call { call }, ctx),
                // The manager closes the link when it has said what there is to say, such as what may be let go of. It
                // may have done so already, having heard of the last instance: then that is still to be heard.
                Effect::Leave => _ = self.sent(&ToManager::Leave),
            }
        }
        self.setup.peak_bytes.fetch_max(self.core.peak_bytes(), Ordering::Relaxed);
    }

    /// What nobody holds stays as long as nothing else needs its room.
    fn make_room(&self) {
        let needed = self.setup.ledger.held_bytes().saturating_add(self.core.reserved_bytes());
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        results.shelf.shrink_to(self.setup.resources.memory_bytes.saturating_sub(needed));
        let all = needed.saturating_add(results.shelf.idle_bytes());
        self.setup.peak_bytes.fetch_max(all, Ordering::Relaxed);
    }

    /// Lets go of regions, and goes on when they are gone; `call` is answered then.
    fn release(&self, keys: Vec<RegionKey>, call: Option<u64>, ctx: &mut Context<Self>) {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        keys.iter().for_each(|key| results.released(key));
        drop(results);
        self.setup.storage.do_send(Release(keys));
        // Storage works in the order in which it was told: what comes after the release finds the regions gone.
        let gone = self.setup.storage.send(Held).into_actor(self);
        ctx.spawn(gone.map(move |_, actor, ctx| {
            actor.look();
            if let Some(call) = call {
                actor.core.handle_echo(call);
            }
            actor.perform(ctx);
        }));
    }
}

impl Actor for WorkerActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let pool = &self.setup.pool;
        let Resources { slots, meter, .. } = self.setup.resources;
        self.slots = (0..slots.get()).map(|_| TaskActor::new(Arc::clone(pool), meter).start()).collect();
        if let Some(incoming) = self.incoming.take() {
            ctx.add_stream(UnboundedReceiverStream::new(incoming));
        }
        self.send(&ToManager::Join { slots: slots.get() }, ctx);
        self.perform(ctx);
    }
}

impl StreamHandler<Frame> for WorkerActor {
    fn handle(&mut self, frame: Frame, ctx: &mut Self::Context) {
        // A frame that cannot be read means that the two ends do not speak the same language: leave.
        let message = match codec::decode(&frame) {
            Ok(message) => message,
            Err(error) => {
                self.link.refuse(&error);
                return ctx.stop();
            }
        };
        self.look();
        match message {
            ToWorker::Study { stages, least_bytes } => {
                self.core.handle_study(stages.len() as u32, least_bytes);
                self.stages = runnable(&stages, &self.setup.registry);
            }
            ToWorker::Assign { lease, work, later } => self.assigned(lease, work, later, ctx),
            ToWorker::Release { keys } => self.release(keys, None, ctx),
            ToWorker::Echo { call } => self.release(Vec::new(), Some(call), ctx),
            ToWorker::Stop => self.core.handle_stop(),
            ToWorker::Finished => ctx.stop(),
        }
        self.perform(ctx);
    }
}

impl Handler<FromStage> for WorkerActor {
    type Result = ();

    fn handle(&mut self, message: FromStage, ctx: &mut Self::Context) {
        self.look();
        match message {
            FromStage::Demand { lease, demand } => self.core.handle_demand(lease, demand),
            FromStage::SlotFree { slot, lease, demand } => self.core.handle_slot_free(slot, lease, demand),
            FromStage::Report(message) => self.send(&message, ctx),
            FromStage::Over(lease) => {
                self.running.remove(&lease);
                self.core.handle_stage_over(lease);
            }
        }
        self.perform(ctx);
    }
}

/// The stages of a study, with the operations that are linked in.
fn runnable(stages: &[Stage], registry: &Registry) -> Vec<Runnable> {
    let find = |task: &Task| registry.get(&task.operation, task.version).cloned();
    let readers = |stage: usize, output: usize| {
        let reads = |(input, origin): (usize, &StageInput)| {
            (origin.origin == Origin::Stage { stage, output }).then_some(Read::StageInput(input))
        };
        let readers = stages.iter().flat_map(|other| {
            let inputs: Vec<Read> = other.inputs.iter().enumerate().filter_map(reads).collect();
            let reads = move |task: &&Task| task.reads.iter().any(|read| inputs.contains(read));
            other.tasks.iter().filter(reads)
        });
        readers.filter_map(find).collect()
    };
    let runnable = |(number, stage): (usize, &Stage)| Runnable {
        stage: Arc::new(stage.clone()),
        operations: stage.tasks.iter().filter_map(find).collect(),
        readers: (0..stage.outputs.len()).map(|output| readers(number, output)).collect(),
    };
    stages.iter().enumerate().map(runnable).collect()
}
