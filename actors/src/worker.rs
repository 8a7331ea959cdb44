//! The worker actor: joins a manager, requests buckets, starts a stage actor for each, and grants its slots.
//!
//! A worker in its own process outlives its link. It continues with its leases, and over the next link it reports them
//! and repeats unacknowledged reports (`reattach`).
//!
//! - `state`: the state of the worker, in contexts with private fields.
//! - `messages`: messages from the manager.
//! - `stage_events`: events from stage actors.
//! - `bucket`: starts buckets and ends them early.
//! - `accelerators`: starts the slots, those of accelerators included, and closes slots of faulty devices.
//! - `code`: loads operations that a client's study brings.
//! - `memory_pressure`: frees memory.
//! - `durability`: stores or replicates regions that must outlive the worker.
//! - `query`: answers spatial queries, and retains regions for them.
//! - `retention`: keeps results from one plan to the next.
//! - `drain`: leaves in an orderly way.
//! - `metrics`: measurements.

mod accelerators;
mod bucket;
mod code;
mod drain;
mod durability;
mod memory_pressure;
mod messages;
mod metrics;
mod query;
mod reattach;
mod retention;
mod setup;
mod stage_events;
mod state;

pub use code::CodeLoader;
pub use drain::{LeaveNow, SetTimeLimit, StartDrain};
pub use metrics::{GetWorkerMetrics, WorkerMetrics};
pub use reattach::LinkUp;
pub use retention::{DropRetained, HasWork};
pub use setup::{
    InputReader, ProcessBytes, ProcessMemory, RemoteSetup, Resources, WorkerEvent, WorkerSetup, unmeasured,
};

use crate::stage::{InstanceSelection, TAIL_TASKS};
use crate::transport::{Incoming, Link};
use actix::prelude::*;
use metrics::WorkerCounters;
use pleach_dispatch::directory::MemberId;
use pleach_dispatch::memory_model::{BucketDemand, MemoryBudget};
use pleach_dispatch::message::{Report, ToManager};
use pleach_dispatch::stage::NodeId;
use pleach_dispatch::storage::TransferCost;
use pleach_dispatch::worker::{Effect, Worker};
use pleach_dispatch::{LeaseId, PlanId, SlotId};
use state::{
    Departure, ManagerConnection, OpenLeases, Replication, ReportError, RetainedRegions, RunningBuckets,
    RunningStudies, TaskResources,
};
use std::fmt;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tokio_stream::wrappers::UnboundedReceiverStream;

/// Interval of storage reports to the manager, for display, and of clock ticks for a worker with a time limit.
const TICK: Duration = Duration::from_secs(1);

/// Ticks between reports of the measured links.
const TICKS_OF_LINKS: u32 = 5;

/// Ticks between repeated tiers of regions that have not moved. From 1,000 workers, a manager gets at most 34,000 regions a second.
const TICKS_OF_TIERS: u32 = 30;

/// Actor of one worker node.
pub struct WorkerActor {
    /// Decides; the actor performs its effects.
    core: Worker,
    setup: WorkerSetup,
    connection: ManagerConnection,
    leases: OpenLeases,
    running: RunningBuckets,
    studies: RunningStudies,
    replication: Replication,
    retained: RetainedRegions,
    departure: Departure,
    tasks: TaskResources,
    counters: WorkerCounters,
    /// Time origin of the state machine.
    start: Instant,
}

impl fmt::Debug for WorkerActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerActor").field("core", &self.core).finish_non_exhaustive()
    }
}

impl WorkerActor {
    /// Creates a worker that sends to its manager over `link` and receives from it through `incoming`.
    pub fn new(setup: WorkerSetup, link: impl Link, incoming: Incoming) -> Self {
        let worker = Self::unconnected(setup);
        Self { connection: worker.connection.with_link(Box::new(link), incoming), ..worker }
    }

    /// Creates a worker that waits for a [`LinkUp`].
    #[must_use]
    pub fn unconnected(setup: WorkerSetup) -> Self {
        let budget = MemoryBudget { bytes: setup.resources.memory_bytes, ..MemoryBudget::UNLIMITED };
        let window = setup.remote.as_ref().map_or(0, |remote| remote.window);
        let may_reattach = setup.remote.is_some();
        Self {
            core: Worker::new(setup.resources.worker_slots(), budget)
                .with_window(window)
                .with_tail(TAIL_TASKS as u32),
            setup,
            connection: ManagerConnection::new(may_reattach),
            leases: OpenLeases::new(may_reattach),
            running: RunningBuckets::default(),
            studies: RunningStudies::default(),
            replication: Replication::default(),
            retained: RetainedRegions::default(),
            departure: Departure::default(),
            tasks: TaskResources::default(),
            counters: WorkerCounters::new(),
            start: Instant::now(),
        }
    }

    /// Sends a message that concerns only this link.
    fn send(&mut self, message: &ToManager, ctx: &mut Context<Self>) {
        let sent = self.connection.send(message);
        self.handle_sent(sent, ctx);
    }

    /// Sends a report, which must survive the loss of this link, at once or with later ones.
    fn report(&mut self, study: PlanId, report: Report, ctx: &mut Context<Self>) {
        let sent = self.connection.report(study, report, Instant::now()).map(|wait| {
            let Some(wait) = wait else { return };
            ctx.run_later(wait, |actor, ctx| {
                let sent = actor.connection.flush(Instant::now());
                actor.handle_sent(sent, ctx);
                // A worker leaves after its last report.
                actor.apply_effects(ctx);
            });
        });
        self.handle_sent(sent, ctx);
    }

    fn handle_sent(&mut self, sent: Result<(), ReportError>, ctx: &mut Context<Self>) {
        match sent {
            Ok(()) => {}
            // No link can carry the report. The worker ends without a leave message, so the manager counts a crash of
            // the instance, and the crash limit ends the repetition on other workers.
            Err(ReportError::TooLarge) => ctx.stop(),
            Err(ReportError::Disconnected) => self.handle_disconnect(ctx),
        }
    }

    /// Updates storage state and time in the state machine, before any event that depends on them.
    fn observe_storage(&mut self) {
        self.core.handle_time(self.start.elapsed());
        self.report_spillable();
        for (lease, (here_bytes, missing_bytes)) in self.running.changed_inputs(&self.setup.ram) {
            self.core.handle_inputs(lease, here_bytes, missing_bytes);
        }
        if let Some(memory) = (self.setup.resources.process_bytes)() {
            self.core.handle_processes(memory.external_bytes);
        }
        // Last, because it may grant slots.
        self.core.handle_stored(self.setup.ram.held_bytes());
    }

    /// Applies the effects of the state machine, then leaves if nothing is left to do. Called after every event.
    fn apply_effects(&mut self, ctx: &mut Context<Self>) {
        while let Some(effect) = self.core.poll_effect() {
            match effect {
                Effect::Grant { lease, slot, node } => self.grant(lease, slot, node),
                // The hint is void if the bucket has ended meanwhile.
                Effect::Prefetch { lease, slot, node } => {
                    self.running.get(lease).into_iter().for_each(|bucket| bucket.prefetch(slot, node));
                }
                Effect::Request { buckets, after } => {
                    let sent = self.connection.request(buckets, after, self.core.has_free_slot());
                    self.handle_sent(sent, ctx);
                }
                Effect::MakeRoom { bytes, lease } => self.free_memory(bytes, lease, ctx),
                Effect::HandBack { lease } => {
                    self.return_instances(lease, InstanceSelection::NotUnderWay, ctx)
                }
                Effect::Query { longer_than } => self.send(&ToManager::Query { longer_than }, ctx),
                Effect::ShareHalf { lease } => self.return_instances(lease, InstanceSelection::Part, ctx),
                Effect::ShareSpare { lease, longer_than } => self.return_spare(lease, longer_than, ctx),
                Effect::Call { call } => {
                    self.counters.pressure.call.increment(1);
                    self.send(&ToManager::Sync { call }, ctx);
                }
                // The manager closes the link after its last messages, such as releases. It may have closed the link
                // already on the report of the last instance. Then those messages are still in the queue.
                Effect::Leave => _ = self.connection.send(&ToManager::Leave),
            }
        }
        // Counted apart: the state machine by reservations, the actor by grants sent and slots returned.
        debug_assert_eq!(self.tasks.occupied(), self.core.running(), "every granted slot has a running task");
        // Relaxed: the maximum guards no other data.
        self.setup.peak_bytes.fetch_max(self.core.peak_bytes(), Ordering::Relaxed);
        self.leave_if_done(ctx);
    }

    /// Grants a slot to a task. The slot of a bucket that has ended meanwhile is free again at once.
    fn grant(&mut self, lease: LeaseId, slot: SlotId, node: NodeId) {
        // Before the task starts, because its reservation counts from now on.
        self.evict_results();
        let Some(bucket) = self.running.get(lease) else {
            return self.core.handle_slot_free(slot, lease, BucketDemand::default());
        };
        // Occupied before the stage can return the slot.
        self.tasks.occupy(slot, lease);
        bucket.grant(slot, node);
    }

    /// Starts the periodic tick. It reports the bytes in storage and the tiers of regions whenever they have changed, the
    /// measured links every [`TICKS_OF_LINKS`], and all tiers with their measured rates every [`TICKS_OF_TIERS`].
    fn start_ticks(&self, ctx: &mut Context<Self>) {
        let (mut reported, mut ticks) = (0, 0u32);
        ctx.run_interval(TICK, move |actor, ctx| {
            actor.core.handle_tick(actor.start.elapsed());
            actor.apply_effects(ctx);
            let bytes = actor.setup.ram.held_bytes();
            if std::mem::replace(&mut reported, bytes) != bytes {
                actor.send(&ToManager::StorageUsage { bytes }, ctx);
            }
            // Repeated without a change: a manager that was started again has forgotten it.
            if ticks.is_multiple_of(TICKS_OF_LINKS) {
                actor.report_links(ctx);
            }
            let repeats = ticks.is_multiple_of(TICKS_OF_TIERS);
            let ram = &actor.setup.ram;
            if let Some(tiers) = actor.setup.spill.as_ref().and_then(|below| below.take_tiers(ram, repeats)) {
                actor.send(&ToManager::RegionTiers(tiers), ctx);
            }
            ticks = ticks.wrapping_add(1);
        });
    }

    fn report_links(&mut self, ctx: &mut Context<Self>) {
        let measured = self.setup.remote.as_ref().and_then(|remote| remote.exchange.links().mean());
        if let Some(TransferCost { bytes_per_second, latency_seconds }) = measured {
            self.send(&ToManager::MeasuredLink { bytes_per_second, latency_seconds }, ctx);
        }
    }
}

impl Actor for WorkerActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        self.start_slots(ctx);
        if let Some(remote) = &self.setup.remote {
            self.tasks.start_directory(MemberId(remote.incarnation), &remote.exchange);
            self.start_ticks(ctx);
        }
        if let Some(asks) = self.setup.remote.as_mut().and_then(|remote| remote.asks.take()) {
            ctx.add_stream(UnboundedReceiverStream::new(asks));
        }
        if let Some(incoming) = self.connection.take_incoming() {
            ctx.add_stream(UnboundedReceiverStream::new(incoming));
            self.join(ctx);
        }
        self.apply_effects(ctx);
    }
}

/// Digests of files to request from the manager.
impl StreamHandler<[u8; 32]> for WorkerActor {
    fn handle(&mut self, digest: [u8; 32], ctx: &mut Self::Context) {
        self.send(&ToManager::File { digest }, ctx);
    }

    // The default stops the actor, but the end of file requests ends no other work.
    fn finished(&mut self, _: &mut Self::Context) {}
}
