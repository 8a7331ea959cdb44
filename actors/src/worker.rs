//! The worker actor: joins a manager, requests buckets, starts a stage actor for each, and grants its slots.
//!
//! A worker in its own process outlives its link. It continues with its leases, and over the next link it reports them and
//! repeats unacknowledged reports (`reattach`).
//!
//! - `bucket`: starts buckets and ends them early.
//! - `memory_pressure`: frees memory.
//! - `durability`: stores or replicates regions that must outlive the worker.
//! - `retention`: keeps results from one plan to the next.
//! - `drain`: leaves in an orderly way.
//! - `metrics`: measurements.

mod bucket;
mod drain;
mod durability;
mod memory_pressure;
mod metrics;
mod reattach;
mod retention;
mod setup;

pub use drain::{LeaveNow, SetTimeLimit, StartDrain};
pub use metrics::{GetWorkerMetrics, WorkerMetrics};
pub use reattach::LinkUp;
pub use retention::{DropRetained, HasWork};
pub use setup::{InputReader, RemoteSetup, Resources, WorkerEvent, WorkerSetup};

use crate::stage::{
    InstanceSelection, ResolvedStage, SlotGranted, StageActor, StageEvent, TakeInstances, input_bytes,
};
use crate::storage::{CountRegions, ReleaseRegions, ShareInputs};
use crate::task::TaskActor;
use crate::task_results::TaskResults;
use crate::transport::{Frame, Incoming, Link, codec};
use actix::prelude::*;
use durability::Finished;
use metrics::WorkerCounters;
use pleach_dispatch::memory_estimates::MemoryEstimates;
use pleach_dispatch::memory_model::{BucketDemand, MemoryBudget};
use pleach_dispatch::message::{ToManager, ToWorker};
use pleach_dispatch::worker::{Effect, Worker};
use pleach_dispatch::{LeaseId, PlanId};
use pleach_regions::RegionKey;
use pleach_workflow::Durability;
use reattach::UnackedReports;
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tracing::{Span, info_span};

/// Interval of storage reports to the manager, for display, and of clock ticks for a worker with a time limit.
const SAY_AGAIN: Duration = Duration::from_secs(1);

/// A bucket at this worker.
struct Bucket {
    study: PlanId,
    stage: Addr<StageActor>,
    /// Regions that the bucket reads, each once, with their bytes.
    inputs: Vec<(RegionKey, u64)>,
}

/// Actor of one worker node.
pub struct WorkerActor {
    core: Worker,
    setup: WorkerSetup,
    slots: Vec<Addr<TaskActor>>,
    /// `None` while the worker is disconnected.
    link: Option<Box<dyn Link>>,
    incoming: Option<Incoming>,
    studies: HashMap<PlanId, Vec<ResolvedStage>>,
    durable: HashMap<PlanId, Durability>,
    running: HashMap<LeaseId, Bucket>,
    /// Finished instances whose reports wait until their outputs are shared.
    sharing: usize,
    /// Reports that wait until another worker has fetched the outputs.
    replicating: HashMap<Finished, ToManager>,
    /// Replicas of other workers' regions, kept in memory while nothing else needs the space.
    replicas: HashMap<RegionKey, PlanId>,
    /// Change count of the storage at the last check for missing inputs of buckets.
    looked_at: u64,
    /// Studies of the regions that are, or may come to be, in storage.
    study_of: HashMap<RegionKey, PlanId>,
    /// Reports to repeat over another link.
    unsafe_reports: UnackedReports,
    /// Number of the manager that this worker belongs to.
    manager: Option<u64>,
    /// The manager has accepted this worker over the present link.
    is_welcome: bool,
    draining: bool,
    dismissed: bool,
    /// Task results of this worker.
    results: Arc<Mutex<TaskResults>>,
    estimates: Arc<Mutex<MemoryEstimates>>,
    /// Time origin of the state machine.
    start: Instant,
    /// The worker has a time limit.
    ends: Arc<AtomicBool>,
    meters: WorkerCounters,
    /// Parent spans of the studies' log events.
    spans: HashMap<PlanId, Span>,
}

impl fmt::Debug for WorkerActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerActor").field("core", &self.core).finish_non_exhaustive()
    }
}

impl WorkerActor {
    /// Creates a worker that sends to its manager over `link` and receives from it through `incoming`.
    pub fn new(setup: WorkerSetup, link: impl Link, incoming: Incoming) -> Self {
        Self { link: Some(Box::new(link)), incoming: Some(incoming), ..Self::unconnected(setup) }
    }

    /// Creates a worker that waits for a [`LinkUp`].
    #[must_use]
    pub fn unconnected(setup: WorkerSetup) -> Self {
        let budget = MemoryBudget { bytes: setup.resources.memory_bytes, ..MemoryBudget::UNLIMITED };
        let window = setup.remote.as_ref().map_or(0, |remote| remote.window);
        Self {
            core: Worker::new(setup.resources.slots.get(), budget).with_window(window),
            slots: Vec::new(),
            unsafe_reports: UnackedReports::new(setup.remote.is_some()),
            setup,
            link: None,
            incoming: None,
            studies: HashMap::new(),
            durable: HashMap::new(),
            running: HashMap::new(),
            sharing: 0,
            replicating: HashMap::new(),
            replicas: HashMap::new(),
            looked_at: 0,
            study_of: HashMap::new(),
            manager: None,
            is_welcome: false,
            draining: false,
            dismissed: false,
            results: Arc::default(),
            estimates: Arc::default(),
            start: Instant::now(),
            ends: Arc::default(),
            meters: WorkerCounters::new(),
            spans: HashMap::new(),
        }
    }

    /// Sends a message that concerns only this link.
    fn send(&mut self, message: &ToManager, ctx: &mut Context<Self>) {
        if !self.sent(message) {
            self.disconnected(ctx);
        }
    }

    fn sent(&self, message: &ToManager) -> bool {
        let send = |link: &dyn Link| codec::encode(message).is_ok_and(|frame| link.send(frame).is_ok());
        // Without a link the message is dropped: the next link starts with a complete join message.
        self.link.as_deref().is_none_or(send)
    }

    /// Sends a message that must survive the loss of this link.
    fn report(&mut self, message: &ToManager, ctx: &mut Context<Self>) {
        // The manager would reject a frame that exceeds the limit.
        let Ok(frame) = codec::encode(message) else { return ctx.stop() };
        self.unsafe_reports.keep(message, &frame);
        if self.link.as_deref().is_some_and(|link| link.send(frame).is_err()) {
            self.disconnected(ctx);
        }
    }

    /// Updates storage state and time in the state machine, before any event that depends on them.
    fn look(&mut self) {
        self.core.handle_time(self.start.elapsed());
        self.report_spillable();
        let changes = self.setup.ram.changes();
        if std::mem::replace(&mut self.looked_at, changes) != changes {
            for (lease, bucket) in &self.running {
                let (here_bytes, missing_bytes) = input_bytes(&self.setup.ram, &bucket.inputs);
                self.core.handle_inputs(*lease, here_bytes, missing_bytes);
            }
        }
        // Last, because it may grant slots.
        self.core.handle_stored(self.setup.ram.held_bytes());
    }

    fn perform(&mut self, ctx: &mut Context<Self>) {
        while let Some(effect) = self.core.poll_effect() {
            match effect {
                Effect::Grant { lease, slot, node } => {
                    self.make_room();
                    match self.running.get(&lease) {
                        Some(bucket) => bucket.stage.do_send(SlotGranted { slot, node }),
                        None => self.core.handle_slot_free(slot, lease, BucketDemand::default()),
                    }
                }
                Effect::Request { buckets, after } => self.send(&ToManager::Request { buckets, after }, ctx),
                Effect::MakeRoom { bytes, lease } => self.free_memory(bytes, lease, ctx),
                Effect::HandBack { lease } => self.hand_back(lease, InstanceSelection::NotUnderWay, ctx),
                Effect::Call { call } => {
                    self.meters.steps.call.increment(1);
                    self.send(&ToManager::Sync { call }, ctx);
                }
                // The manager closes the link after its last messages, such as releases. It may have closed the link already
                // on the report of the last instance. Then those messages are still in the queue.
                Effect::Leave => _ = self.sent(&ToManager::Leave),
            }
        }
        self.setup.peak_bytes.fetch_max(self.core.peak_bytes(), Ordering::Relaxed);
        self.leave_if_done(ctx);
    }

    /// Releases regions and continues once they are removed. Then it answers the sync `call`.
    fn release(&mut self, keys: Vec<RegionKey>, call: Option<u64>, ctx: &mut Context<Self>) {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let fallen: Vec<RegionKey> = keys.iter().flat_map(|key| results.released(key)).collect();
        drop(results);
        if let Some(below) = self.setup.below.as_ref().filter(|_| !fallen.is_empty()) {
            let from = Arc::clone(below);
            below.spawn(move || fallen.into_iter().for_each(|key| from.remove(key)));
        }
        for key in &keys {
            self.study_of.remove(key);
            self.replicas.remove(key);
        }
        self.setup.storage.do_send(ReleaseRegions(keys));
        // The storage actor handles messages in order, so the count follows the removal.
        let gone = self.setup.storage.send(CountRegions).into_actor(self);
        ctx.spawn(gone.map(move |_, actor, ctx| {
            actor.look();
            if let Some(call) = call {
                actor.core.handle_sync_ack(call);
            }
            actor.perform(ctx);
        }));
    }

    fn hear(&mut self, message: ToWorker, ctx: &mut Context<Self>) {
        match message {
            ToWorker::Welcome { manager } => self.welcomed(manager, ctx),
            ToWorker::StartStudy { study, stages, least_bytes, durable, keeps } => {
                self.next(study.study, keeps);
                self.core.handle_study(study, stages.len() as u32, least_bytes);
                self.durable.insert(study, durable);
                if durable == Durability::All {
                    self.setup.storage.do_send(ShareInputs);
                }
                self.spans.insert(study, info_span!("study", study = study.study));
                self.meters.begin(study, &stages, &self.setup.registry);
                self.studies.insert(study, bucket::runnable(&stages, &self.setup.registry));
            }
            ToWorker::Assign { study, lease, work, later, inputs, peers } => {
                self.expect(&work, &inputs, &peers);
                self.assigned(study, lease, work, later, ctx);
            }
            ToWorker::ResumeLease { lease, instances, .. } => self.keep(lease, instances, ctx),
            ToWorker::Revoke { lease } => self.revoke(lease, ctx),
            ToWorker::StealRequest { lease } => self.hand_back(lease, InstanceSelection::Part, ctx),
            ToWorker::FetchRegion { study, key, from, replica } => {
                self.fetch_copy(study, key, from, replica, ctx)
            }
            ToWorker::Replicated { study, lease, instance } => {
                self.replicated((study, lease, instance), ctx);
            }
            ToWorker::Release { keys } => self.release(keys, None, ctx),
            ToWorker::StudyFinished { study } => self.over(study, ctx),
            ToWorker::DropRetained { study } => self.forget(study),
            ToWorker::AckReports { reports } => self.unsafe_reports.ack(reports),
            ToWorker::FileMissing { digest } => {
                if let Some(remote) = &self.setup.remote {
                    remote.files.refused(&digest);
                }
            }
            ToWorker::SyncAck { call } => self.release(Vec::new(), Some(call), ctx),
            ToWorker::Drain => self.drain(ctx),
            ToWorker::DrainComplete => self.dismissed = true,
            ToWorker::Stop => self.core.handle_stop(),
            ToWorker::Shutdown => ctx.stop(),
        }
    }
}

impl Actor for WorkerActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        let pool = &self.setup.pool;
        let Resources { slots, meter, .. } = self.setup.resources;
        self.slots = (0..slots.get()).map(|_| TaskActor::new(Arc::clone(pool), meter).start()).collect();
        if self.setup.remote.is_some() {
            let mut said = 0;
            ctx.run_interval(SAY_AGAIN, move |actor, ctx| {
                actor.core.handle_tick(actor.start.elapsed());
                actor.perform(ctx);
                let bytes = actor.setup.ram.held_bytes();
                if std::mem::replace(&mut said, bytes) != bytes {
                    actor.send(&ToManager::StorageUsage { bytes }, ctx);
                }
            });
        }
        if let Some(asks) = self.setup.remote.as_mut().and_then(|remote| remote.asks.take()) {
            ctx.add_stream(UnboundedReceiverStream::new(asks));
        }
        if let Some(incoming) = self.incoming.take() {
            ctx.add_stream(UnboundedReceiverStream::new(incoming));
            self.join(ctx);
        }
        self.perform(ctx);
    }
}

impl StreamHandler<Frame> for WorkerActor {
    fn handle(&mut self, frame: Frame, ctx: &mut Self::Context) {
        // An unreadable frame means that the two ends use different protocols, so the worker leaves.
        let message = match codec::decode(&frame) {
            Ok(message) => message,
            Err(error) => {
                if let Some(link) = &self.link {
                    link.refuse(&error);
                }
                return ctx.stop();
            }
        };
        self.look();
        self.hear(message, ctx);
        self.perform(ctx);
    }

    fn finished(&mut self, ctx: &mut Self::Context) {
        self.disconnected(ctx);
    }
}

/// Digests of files to request from the manager.
impl StreamHandler<[u8; 32]> for WorkerActor {
    fn handle(&mut self, digest: [u8; 32], ctx: &mut Self::Context) {
        self.send(&ToManager::File { digest }, ctx);
    }

    fn finished(&mut self, _: &mut Self::Context) {}
}

impl Handler<StageEvent> for WorkerActor {
    type Result = ();

    fn handle(&mut self, message: StageEvent, ctx: &mut Self::Context) {
        self.look();
        if let StageEvent::Report(message) | StageEvent::Stored(message, _) = &message {
            self.meters.count(message);
        }
        match message {
            StageEvent::Demand { lease, demand } => {
                self.core.handle_demand(lease, self.as_it_is(lease, demand))
            }
            StageEvent::SlotFree { slot, lease, demand } => {
                self.core.handle_slot_free(slot, lease, self.as_it_is(lease, demand))
            }
            StageEvent::Stored(message, keys) => self.make_durable(message, keys, ctx),
            StageEvent::Report(message) => match message {
                ToManager::Done { .. } | ToManager::Failed { .. } => self.report(&message, ctx),
                message => {
                    if let ToManager::MissingInput { lease, instance, .. } = message {
                        self.unsafe_reports.not_ours(lease, &[instance]);
                    }
                    self.send(&message, ctx);
                }
            },
            StageEvent::Over(lease) => {
                self.running.remove(&lease);
                self.core.handle_bucket_finished(lease);
            }
        }
        self.perform(ctx);
    }
}

impl WorkerActor {
    /// Takes instances from a stage and returns them to the manager.
    fn hand_back(&mut self, lease: LeaseId, which: InstanceSelection, ctx: &mut Context<Self>) {
        let Some(bucket) = self.running.get(&lease) else { return };
        let study = bucket.study;
        let asked = bucket.stage.send(TakeInstances(which)).into_actor(self);
        ctx.spawn(asked.map(move |back, actor, ctx| {
            let instances = back.unwrap_or_default();
            actor.unsafe_reports.not_ours(lease, &instances);
            actor.send(&ToManager::ReturnInstances { study, lease, instances }, ctx);
            actor.perform(ctx);
        }));
    }
}
