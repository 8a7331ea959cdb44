//! The manager actor: accepts workers, carries messages to and from its state machine, keeps the results.
//!
//! One actor serves all studies of a manager, or the single study of an embedded run.
//!
//! - `connection`: the manager's end of one worker's link.
//! - `study_run`: one running study.
//! - `names`: a name claimed by two processes.
//! - `messages`: messages from workers.
//! - `effects`: effects of the state machine.
//! - `control`: operator requests.
//! - `view`: the state shown to operators.
//! - `metrics`: measurements.

mod connection;
mod control;
mod effects;
mod messages;
mod metrics;
mod names;
mod outcome;
mod study_run;
mod view;

pub use connection::{Connect, PendingWorker};
pub use control::{
    BeginError, Cancel, DrainError, DrainWorker, DropStudyResults, GetView, PauseGrants, RecordDurable,
    Recut, RetainResults, Shutdown, StartPlan, StopAll, SuspendStudy,
};
pub use metrics::{GetManagerMetrics, ManagerMetrics, StudyMetrics};
pub use outcome::{InstanceFailure, Observer, Progress, StudyEvent, StudyOutcome, TaskTotal};
pub use study_run::StudyRequest;
pub use view::{Duplicate, ManagerView, StudyView, WorkerState, WorkerView};

use crate::transport::clock::Clock;
use actix::prelude::*;
use connection::{Connection, ConnectionId, Event};
use metrics::ManagerCounters;
use names::{Claim, Duplicates};
use pleach_dispatch::manager::Manager;
use pleach_dispatch::message::ToWorker;
use pleach_dispatch::{InstanceId, PlanId, WorkerId};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use study_run::RunningStudy;
use tokio::sync::oneshot;
use tracing::info;

/// Interval between checks for idle workers that can take work from others.
const TICK: Duration = Duration::from_millis(100);

/// Delay before a replan, which collects worker changes: nodes join and leave several at a time.
const REPLAN_AFTER: Duration = Duration::from_millis(100);

/// Finds a file by the BLAKE3 digest of its content.
pub type FindFile = Arc<dyn Fn(&[u8; 32]) -> Option<PathBuf> + Send + Sync>;

/// Returns whether the file at a path may be sent as the content of this digest. `true` verifies the file again, because it
/// was found changed during the read. The call may take as long as reading the file and runs off the actor's thread. Before
/// it returns `false`, it sends the actor the consequences.
pub type CheckFile = Arc<dyn Fn(&[u8; 32], &Path, bool) -> bool + Send + Sync>;

/// Parts of a manager of many studies that an embedded run does not have.
pub struct ServiceHooks {
    /// Number of the manager's state. Reattaching workers send the number of their manager.
    pub number: u64,
    /// Number of manager starts.
    pub epoch: u32,
    /// Finds the file with a given content, if any.
    pub find_file: FindFile,
    /// Verifies a file before it is sent.
    pub check_file: CheckFile,
    /// Clock that gives the time remaining until workers' time limits.
    pub clock: Arc<dyn Clock>,
    /// Runtime that sends files.
    pub network: tokio::runtime::Handle,
    /// Among buckets of equal priority, a worker gets the one with the fewest bytes to fetch.
    pub by_data: bool,
}

impl fmt::Debug for ServiceHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("number", &self.number).finish_non_exhaustive()
    }
}

/// Actor that serves the workers and studies of one manager.
pub struct ManagerActor {
    core: Manager,
    /// `None` in an embedded run.
    service: Option<ServiceHooks>,
    /// The actor ends with its study.
    ends: bool,
    connections: BTreeMap<ConnectionId, Connection>,
    connection_of: HashMap<WorkerId, ConnectionId>,
    next_connection: u32,
    /// Connections whose name belongs to another process, until the liveness of that process is known.
    claims: BTreeMap<ConnectionId, Claim>,
    duplicates: Duplicates,
    studies: BTreeMap<PlanId, RunningStudy>,
    /// Canceled studies. A request to start one of their plans may still be queued.
    canceled: BTreeSet<u32>,
    /// Studies whose task results workers retain for a possible next round.
    kept: BTreeSet<u32>,
    /// Studies with a scheduled replan.
    to_replan: BTreeSet<PlanId>,
    replan_is_due: bool,
    /// Replans so far, and instances that changed their bucket.
    replanned: (u64, u64),
    meters: ManagerCounters,
    start: Instant,
}

impl fmt::Debug for ManagerActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ManagerActor").field("core", &self.core).finish_non_exhaustive()
    }
}

impl ManagerActor {
    /// Creates a manager that ends with its study, which is number 0 of `core` and sends its outcome to `done`.
    pub fn new(core: Manager, done: oneshot::Sender<StudyOutcome>, observer: Observer) -> Self {
        let mut actor = Self { ends: true, ..Self::of(core, None) };
        actor
            .studies
            .insert(PlanId::whole(0), RunningStudy::new(&actor.core, PlanId::whole(0), done, observer));
        actor
    }

    /// Creates a manager that runs an embedded run's plans one after another until [`Shutdown`].
    #[must_use]
    pub fn sequential() -> Self {
        Self::of(Manager::new(0), None)
    }

    /// Creates a manager without studies.
    #[must_use]
    pub fn service(service: ServiceHooks) -> Self {
        let core = Manager::new(service.epoch);
        let core = if service.by_data { core } else { core.without_locality() };
        Self::of(core, Some(service))
    }

    fn of(core: Manager, service: Option<ServiceHooks>) -> Self {
        Self {
            core,
            service,
            ends: false,
            connections: BTreeMap::new(),
            connection_of: HashMap::new(),
            next_connection: 0,
            claims: BTreeMap::new(),
            duplicates: Duplicates::default(),
            studies: BTreeMap::new(),
            canceled: BTreeSet::new(),
            kept: BTreeSet::new(),
            to_replan: BTreeSet::new(),
            replan_is_due: false,
            replanned: (0, 0),
            meters: ManagerCounters::new(),
            start: Instant::now(),
        }
    }

    fn broadcast(&mut self, message: &ToWorker) {
        for connection in self.connections.values_mut().filter(|connection| connection.worker.is_some()) {
            connection.send(message);
        }
    }

    fn send(&mut self, worker: WorkerId, message: &ToWorker) {
        if let Some(connection) = self.connection_of(worker) {
            connection.send(message);
        }
    }

    fn connection_of(&mut self, worker: WorkerId) -> Option<&mut Connection> {
        self.connections.get_mut(self.connection_of.get(&worker)?)
    }

    fn name_of(&self, worker: WorkerId) -> String {
        let id = self.connection_of.get(&worker);
        let connection = id.and_then(|id| self.connections.get(id));
        connection.map_or_else(|| worker.to_string(), |connection| connection.newcomer.name.clone())
    }

    /// Rebuilds buckets from unstarted instances for the present number of slots.
    fn replan(&mut self) {
        self.replan_is_due = false;
        let slots = self.core.slots_by_speed();
        for id in std::mem::take(&mut self.to_replan) {
            let Some(replanner) = self.studies.get_mut(&id).and_then(|study| study.replanner.as_mut()) else {
                continue;
            };
            let Some(study) = self.core.study(id).filter(|_| slots > 0) else { continue };
            let Some(buckets) = replanner.replan(study, slots) else { continue };
            let moved: usize = buckets.iter().map(|bucket| bucket.instances.len()).sum();
            // A rejected plan refers to an outdated state. The next change triggers another replan.
            if self.core.handle_replanned(id, buckets).is_ok() {
                self.replanned.0 += 1;
                self.replanned.1 += moved as u64;
                self.meters.replans.increment(1);
                self.meters.replanned.increment(moved as u64);
                info!(
                    study = id.study,
                    instances = moved,
                    slots,
                    "{id}: {moved} instances are in other buckets, for {slots} slots"
                );
            }
        }
    }
}

impl Actor for ManagerActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        if self.service.is_some() {
            ctx.run_interval(TICK, |actor, ctx| {
                actor.core.handle_tick(actor.start.elapsed());
                actor.settle_claims(ctx);
                actor.apply_effects(ctx);
            });
        }
        self.apply_effects(ctx);
    }
}

impl StreamHandler<Event> for ManagerActor {
    fn handle(&mut self, event: Event, ctx: &mut Self::Context) {
        match event {
            Event::Frame(id, frame) => self.receive(id, frame, ctx),
            Event::Closed(id) => self.close(id, true, ctx),
        }
    }

    // A stream ends when its worker leaves. The manager continues without that worker.
    fn finished(&mut self, _: &mut Self::Context) {}
}

/// Compares the recorded results of an instance with those of a second report that it finished.
fn agree(before: Option<&Vec<pleach_regions::Table>>, now: &[pleach_regions::Table]) -> bool {
    let bits = |tables: &[pleach_regions::Table]| -> Vec<(String, u64)> {
        let columns = tables.iter().flat_map(|table| table.columns());
        columns.map(|(name, value)| (name.to_owned(), value.to_bits())).collect()
    };
    before.is_none_or(|before| bits(before) == bits(now))
}

/// Names an instance for the operator.
fn named(study: PlanId, instance: InstanceId) -> String {
    format!("{study}, {instance}")
}
