//! The manager actor: accepts workers, carries messages to and from its state machine, keeps the results.
//!
//! One actor serves all studies of a manager, or the one of an embedded run. `connection` is one worker's end, `running` one
//! study, `names` a name that two processes claim, `receive` what workers say, `perform` what follows, `control` what operators ask, `view` what they are shown, `figures` what is measured.

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
pub use study_run::{Replanner, StudyRequest};
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

/// How often the manager looks whether idle workers can be helped.
const TICK: Duration = Duration::from_millis(100);

/// Changes of the workers are collected for so long before buckets are cut anew: nodes come and go several at a time.
const REPLAN_AFTER: Duration = Duration::from_millis(100);

/// Finds a file by the BLAKE3 digest of its content.
pub type FindFile = Arc<dyn Fn(&[u8; 32]) -> Option<PathBuf> + Send + Sync>;

/// Whether the file at a path may be sent as the content of this digest; `true`: verified anew, since it was found changed as it
/// was read. It may take as long as reading the file, and is not called on the actor's thread. Before it answers `false`, it
/// sends the actor what follows from that.
pub type CheckFile = Arc<dyn Fn(&[u8; 32], &Path, bool) -> bool + Send + Sync>;

/// What a manager of many studies has that one of an embedded run has not.
pub struct ServiceHooks {
    /// The number of its state: workers that come back say whose they were.
    pub number: u64,
    /// How often it has been started.
    pub epoch: u32,
    /// Where a file of this content lies, if it lies anywhere.
    pub find_file: FindFile,
    /// Verifies a file before it is sent.
    pub check_file: CheckFile,
    /// Tells how far off the ends of leases are.
    pub clock: Arc<dyn Clock>,
    /// Where files are sent.
    pub network: tokio::runtime::Handle,
    /// Of buckets of equal turn, a worker gets the one for which least has to be brought to it.
    pub by_data: bool,
}

impl fmt::Debug for ServiceHooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("number", &self.number).finish_non_exhaustive()
    }
}

/// See the module.
pub struct ManagerActor {
    core: Manager,
    /// `None`: that of an embedded run.
    service: Option<ServiceHooks>,
    /// It ends with its study.
    ends: bool,
    connections: BTreeMap<ConnectionId, Connection>,
    connection_of: HashMap<WorkerId, ConnectionId>,
    next_connection: u32,
    /// Connections whose name another process has, until it is known whether that one is alive.
    claims: BTreeMap<ConnectionId, Claim>,
    duplicates: Duplicates,
    studies: BTreeMap<PlanId, RunningStudy>,
    /// Studies that were canceled: a part of one may still be on its way to be begun.
    canceled: BTreeSet<u32>,
    /// Studies of which workers keep what tasks have computed: another part may follow.
    kept: BTreeSet<u32>,
    /// Studies that are to be planned anew soon.
    to_replan: BTreeSet<PlanId>,
    replan_is_due: bool,
    /// What has been replanned: times, and instances that changed their bucket.
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
    /// A manager that ends with its study, which is number 0 of `core` and sends its outcome to `done`.
    pub fn new(core: Manager, done: oneshot::Sender<StudyOutcome>, observer: Observer) -> Self {
        let mut actor = Self { ends: true, ..Self::of(core, None) };
        actor
            .studies
            .insert(PlanId::whole(0), RunningStudy::new(&actor.core, PlanId::whole(0), done, observer));
        actor
    }

    /// A manager of an embedded run's plans, one after another, until it is told to [`Shutdown`].
    #[must_use]
    pub fn sequential() -> Self {
        Self::of(Manager::new(0), None)
    }

    /// A manager of studies that are yet to be begun.
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

    /// Cuts buckets anew that nobody has begun, for the processors there are now.
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
            // What is refused is about a state that is over, and is planned again with the next change.
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

    // One worker's stream ends when it leaves; the manager goes on without it.
    fn finished(&mut self, _: &mut Self::Context) {}
}

/// Results that are there already and others that came now, of an instance that both say they have finished.
fn agree(before: Option<&Vec<pleach_regions::Table>>, now: &[pleach_regions::Table]) -> bool {
    let bits = |tables: &[pleach_regions::Table]| -> Vec<(String, u64)> {
        let columns = tables.iter().flat_map(|table| table.columns());
        columns.map(|(name, value)| (name.to_owned(), value.to_bits())).collect()
    };
    before.is_none_or(|before| bits(before) == bits(now))
}

/// An instance in words for the operator.
fn named(study: PlanId, instance: InstanceId) -> String {
    format!("{study}, {instance}")
}
