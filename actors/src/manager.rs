//! The manager actor: accepts workers, carries messages to and from its state machine, keeps the results.
//!
//! One actor serves all studies of a manager, or the single study of an embedded run.
//!
//! - `connection`: the manager's end of one worker's link.
//! - `study_run`: one running study.
//! - `names`: a name claimed by two processes.
//! - `observer`: progress events of a study.
//! - `messages`: messages from workers.
//! - `effects`: effects of the state machine.
//! - `replanning`: rebuilds buckets when workers join or leave.
//! - `input_files`: input files that workers request.
//! - `query`: spatial queries over regions on workers.
//! - `control`: operator requests.
//! - `view`: the state shown to operators.
//! - `metrics`: measurements.

mod code;
mod connection;
mod control;
mod effects;
mod input_files;
mod members;
mod messages;
mod metrics;
mod names;
mod observer;
mod query;
mod replanning;
mod study_run;
mod view;

pub use connection::{Connect, PendingWorker};
pub use control::{
    Cancel, DrainError, DrainWorker, DropStudyResults, GetSnapshot, GetView, PauseGrants, RecordDurable,
    ReplacePlan, RetainResults, Shutdown, StartPlan, StopAll, SuspendStudy,
};
pub use metrics::{GetManagerMetrics, ManagerMetrics, StudyMetrics};
pub use observer::{Observer, Progress, StudyEvent};
use query::PendingCalls;
pub use query::{DropRegions, QueriedRegions, QueryRegions};
pub use study_run::StudyRequest;
pub use view::{CodeView, Duplicate, ManagerView, StudyView, WorkerState, WorkerView};

use crate::transport::clock::Clock;
use actix::prelude::*;
use connection::{Connection, ConnectionTable, Event};
use metrics::ManagerCounters;
use names::NameClaims;
use pleach_dispatch::directory::MemberId;
use pleach_dispatch::manager::Manager;
use pleach_dispatch::message::ToWorker;
use pleach_dispatch::study::StudyOutcome;
use pleach_dispatch::{InstanceId, PlanId, WorkerId};
use replanning::{Replanning, drop_elsewhere};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use study_run::RunningStudy;
use tokio::sync::oneshot;

/// Interval between checks for idle workers that can take work from others.
const TICK: Duration = Duration::from_millis(100);

/// Instances that are granted before the actor handles its next message. A grant takes about 1 µs for each.
const MAX_GRANTED: usize = 2048;

/// Workers that have left whose names are kept: more than leave within the seconds between two looks of those who start them.
const MAX_LEFT: usize = 1024;

/// Continues grants after other messages.
struct ContinueGrants;

impl Message for ContinueGrants {
    type Result = ();
}

/// Finds a file by the BLAKE3 digest of its content.
pub type FindFile = Arc<dyn Fn(&[u8; 32]) -> Option<PathBuf> + Send + Sync>;

/// Returns whether the file at a path may be sent as the content of this digest. `true` verifies the file again,
/// because it was found changed during the read. The call may take as long as reading the file and runs off the actor's
/// thread. Before it returns `false`, it sends the actor the consequences.
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
        f.debug_struct("ServiceHooks").field("number", &self.number).finish_non_exhaustive()
    }
}

/// Actor that serves the workers and studies of one manager.
pub struct ManagerActor {
    core: Manager,
    /// `None` in an embedded run.
    service: Option<ServiceHooks>,
    /// The actor ends with its study.
    ends_with_study: bool,
    connections: ConnectionTable,
    names: NameClaims,
    studies: BTreeMap<PlanId, RunningStudy>,
    /// Canceled studies. A request to start one of their plans may still be queued.
    canceled: BTreeSet<u32>,
    /// Studies whose task results workers retain for a possible next round.
    retained: BTreeSet<u32>,
    replanning: Replanning,
    /// A [`ContinueGrants`] is queued.
    is_continuing: bool,
    /// Syncs that are acknowledged once all grants of earlier messages have been sent.
    syncs: Vec<(WorkerId, u64)>,
    counters: ManagerCounters,
    /// Names of the last workers that have announced their end, at most [`MAX_LEFT`].
    left: VecDeque<String>,
    /// Spatial queries without all answers.
    calls: PendingCalls,
    /// Names of the present members of the result directory.
    member_names: HashMap<MemberId, String>,
    /// Time origin of the state machine.
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
        let mut actor = Self { ends_with_study: true, ..Self::of(core, None) };
        actor.studies.insert(
            PlanId::first_round(0),
            RunningStudy::new(&actor.core, PlanId::first_round(0), done, observer),
        );
        actor
    }

    /// Creates a manager that runs an embedded run's plans one after another until [`Shutdown`].
    #[must_use]
    pub fn sequential() -> Self {
        Self::of(Manager::new(0), None)
    }

    /// Creates a manager without studies.
    #[must_use]
    pub fn for_service(service: ServiceHooks) -> Self {
        let core = Manager::new(service.epoch);
        let core = if service.by_data { core } else { core.without_locality() }.with_max_granted(MAX_GRANTED);
        Self::of(core, Some(service))
    }

    fn of(core: Manager, service: Option<ServiceHooks>) -> Self {
        Self {
            core: core.disposing(drop_elsewhere),
            service,
            ends_with_study: false,
            connections: ConnectionTable::default(),
            names: NameClaims::default(),
            studies: BTreeMap::new(),
            canceled: BTreeSet::new(),
            retained: BTreeSet::new(),
            replanning: Replanning::default(),
            is_continuing: false,
            syncs: Vec::new(),
            counters: ManagerCounters::new(),
            left: VecDeque::new(),
            calls: PendingCalls::default(),
            member_names: HashMap::new(),
            start: Instant::now(),
        }
    }

    fn broadcast(&mut self, message: &ToWorker) {
        // A connection that has not joined has no study and no region.
        for connection in self.connections.values_mut().filter(|connection| connection.worker().is_some()) {
            connection.send(message);
        }
    }

    fn send(&mut self, worker: WorkerId, message: &ToWorker) {
        if let Some(connection) = self.connections.of_worker_mut(worker) {
            connection.send(message);
        }
    }

    fn name_of(&self, worker: WorkerId) -> String {
        let name = |connection: &Connection| connection.newcomer.name.clone();
        self.connections.of_worker(worker).map_or_else(|| worker.to_string(), name)
    }
}

impl Actor for ManagerActor {
    type Context = Context<Self>;

    fn started(&mut self, ctx: &mut Self::Context) {
        // An embedded run has one worker: no work to steal, and no name to claim.
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

impl Handler<ContinueGrants> for ManagerActor {
    type Result = ();

    fn handle(&mut self, ContinueGrants: ContinueGrants, ctx: &mut Self::Context) {
        self.is_continuing = false;
        self.core.handle_grants();
        self.apply_effects(ctx);
    }
}

impl StreamHandler<Event> for ManagerActor {
    fn handle(&mut self, event: Event, ctx: &mut Self::Context) {
        match event {
            Event::Frame(id, frame) => {
                // An embedded run measures no leases, and its time never passes.
                if self.service.is_some() {
                    self.core.handle_time(self.start.elapsed());
                }
                self.receive(id, frame, ctx);
            }
            Event::Closed(id) => self.close(id, true, ctx),
        }
    }

    // A stream ends when its worker leaves. The manager continues without that worker.
    fn finished(&mut self, _: &mut Self::Context) {}
}

/// Compares the recorded results of an instance with those of a second report that it finished.
fn agree(before: Option<Vec<pleach_regions::Table>>, now: &[pleach_regions::Table]) -> bool {
    // Compares bits, because results must be equal byte for byte, and NaN differs from itself.
    let bits = |tables: &[pleach_regions::Table]| -> Vec<(String, u64)> {
        let columns = tables.iter().flat_map(|table| table.columns());
        columns.map(|(name, value)| (name.to_owned(), value.to_bits())).collect()
    };
    before.is_none_or(|before| bits(&before) == bits(now))
}

/// Names an instance for the operator.
fn named(study: PlanId, instance: InstanceId) -> String {
    format!("{study}, {instance}")
}
