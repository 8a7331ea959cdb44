//! The worker actor: joins a manager, asks for buckets, starts a stage actor for each, and hands out its slots.
//!
//! A worker of its own process outlives its link: it goes on with what it has, and over the next link says what that is
//! (`attach`) and repeats what it has not been told is safe. `bucket` begins buckets and ends them early, `room` sees to it
//! that there is memory, `share` that what has to outlive the worker does, `between` what stays from one plan to the next,
//! `leave` lets it go in order, `figures` measures.

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

/// How often the manager is told what is in storage, for people to see, and time passes for a worker that has to end.
const SAY_AGAIN: Duration = Duration::from_secs(1);

/// A bucket at this worker.
struct Bucket {
    study: PlanId,
    stage: Addr<StageActor>,
    /// What it reads, each once, and its bytes.
    inputs: Vec<(RegionKey, u64)>,
}

/// See the module.
pub struct WorkerActor {
    core: Worker,
    setup: WorkerSetup,
    slots: Vec<Addr<TaskActor>>,
    /// `None`: there is none now.
    link: Option<Box<dyn Link>>,
    incoming: Option<Incoming>,
    studies: HashMap<PlanId, Vec<ResolvedStage>>,
    durable: HashMap<PlanId, Durability>,
    running: HashMap<LeaseId, Bucket>,
    /// Instances that are finished, and reported when what others read of them is shared.
    sharing: usize,
    /// Their reports, where another worker is to fetch that.
    replicating: HashMap<Finished, ToManager>,
    /// Second copies of what other workers have stored, in memory as long as nothing else needs the room.
    replicas: HashMap<RegionKey, PlanId>,
    /// The storage's count of changes, when buckets' missing inputs were looked for last.
    looked_at: u64,
    /// The studies of regions that are, or may come to be, in storage.
    study_of: HashMap<RegionKey, PlanId>,
    /// What is told again over another link.
    unsafe_reports: UnackedReports,
    /// Whose worker this is.
    manager: Option<u64>,
    /// The manager has accepted this worker over the present link.
    is_welcome: bool,
    draining: bool,
    dismissed: bool,
    /// What the tasks of this worker have computed.
    results: Arc<Mutex<TaskResults>>,
    estimates: Arc<Mutex<MemoryEstimates>>,
    /// What its state machine counts time from.
    start: Instant,
    /// It has to end at some time.
    ends: Arc<AtomicBool>,
    meters: WorkerCounters,
    /// What is said of studies.
    spans: HashMap<PlanId, Span>,
}

impl fmt::Debug for WorkerActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerActor").field("core", &self.core).finish_non_exhaustive()
    }
}

impl WorkerActor {
    /// A worker that reaches its manager over `link` and hears from it through `incoming`.
    pub fn new(setup: WorkerSetup, link: impl Link, incoming: Incoming) -> Self {
        Self { link: Some(Box::new(link)), incoming: Some(incoming), ..Self::unconnected(setup) }
    }

    /// A worker that is yet to be [`LinkUp`].
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

    /// Says something that is of this link only.
    fn send(&mut self, message: &ToManager, ctx: &mut Context<Self>) {
        if !self.sent(message) {
            self.disconnected(ctx);
        }
    }

    fn sent(&self, message: &ToManager) -> bool {
        let send = |link: &dyn Link| codec::encode(message).is_ok_and(|frame| link.send(frame).is_ok());
        // Without one, the next one begins with all there is to say.
        self.link.as_deref().is_none_or(send)
    }

    /// Says something that must not be lost with this link.
    fn report(&mut self, message: &ToManager, ctx: &mut Context<Self>) {
        // What no frame can hold is refused here as the manager would.
        let Ok(frame) = codec::encode(message) else { return ctx.stop() };
        self.unsafe_reports.keep(message, &frame);
        if self.link.as_deref().is_some_and(|link| link.send(frame).is_err()) {
            self.disconnected(ctx);
        }
    }

    /// Says what is in storage and what time it is, before anything that may follow from it.
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
        // Last, since it may have something granted.
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
                // The manager closes the link when it has said what there is to say, such as what may be let go of. It
                // may have done so already, having heard of the last instance: then that is still to be heard.
                Effect::Leave => _ = self.sent(&ToManager::Leave),
            }
        }
        self.setup.peak_bytes.fetch_max(self.core.peak_bytes(), Ordering::Relaxed);
        self.leave_if_done(ctx);
    }

    /// Lets go of regions, and goes on when they are gone; `call` is answered then.
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
        // Storage works in the order in which it was told: what comes after the release finds the regions gone.
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
        // A frame that cannot be read means that the two ends do not speak the same language: leave.
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

/// Files that are to be had from the manager, by digest.
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
    /// Has a stage give back instances, and hands those to the manager.
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
