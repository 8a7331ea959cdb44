//! Whole studies in one process: manager and one worker, joined by the in-memory transport.
//!
//! An [`EmbeddedEngine`] executes plans one after another: the worker, what storage holds and what tasks have computed stay between
//! them. What the plans are, and whether there is another one, is decided elsewhere.

use crate::manager::{
    BeginError, Connect, ManagerActor, Observer, PendingWorker, Shutdown, StartPlan, StopAll, StudyOutcome,
    StudyRequest,
};
use crate::spill::SpillStore;
use crate::stage::PriorResults;
use crate::storage::{CountRegions, Source, StorageActor};
use crate::task::THREAD_NAME;
use crate::transport::in_memory;
use crate::worker::{DropRetained, HasWork, Resources, WorkerActor, WorkerSetup};
use actix::prelude::*;
use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::plan::{ExecutionPlan, PlanError};
use pleach_dispatch::{InstanceId, PlanId};
use pleach_regions::{MemoryCounter, RamTier, RegionKey};
use pleach_workflow::Registry;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;
use tokio::sync::oneshot;

/// What an embedded run needs.
pub struct EmbeddedStudy {
    /// What to execute.
    pub plan: ExecutionPlan,
    /// Instances that have reported their results before: neither they nor what only they read from run again.
    pub finished: BTreeSet<InstanceId>,
    /// The operations it may name.
    pub registry: Registry,
    /// The study's inputs, by key.
    pub sources: HashMap<RegionKey, Arc<dyn Source>>,
    /// What the worker may use.
    pub resources: Resources,
    /// What operations are believed to cost; it learns from every task.
    pub costs: Arc<Mutex<CostModel>>,
    /// What is known from before the study.
    pub past: PriorResults,
    /// Counts the regions held.
    pub ledger: Arc<MemoryCounter>,
    /// Tiers below memory, if there are any.
    pub below: Option<Arc<SpillStore>>,
    /// Follows the study.
    pub observer: Observer,
    /// Ends the study early when something is sent.
    pub stop: oneshot::Receiver<()>,
}

impl fmt::Debug for EmbeddedStudy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded").field("resources", &self.resources).finish_non_exhaustive()
    }
}

/// What all plans of an engine have in common.
pub struct EngineConfig {
    /// The operations they may name.
    pub registry: Registry,
    /// Their inputs, by key.
    pub sources: HashMap<RegionKey, Arc<dyn Source>>,
    /// What the worker may use.
    pub resources: Resources,
    /// What is known from before the study.
    pub past: PriorResults,
    /// Tiers below memory, if there are any.
    pub below: Option<Arc<SpillStore>>,
    /// Ends the plan under way early when something is sent, and all that follow.
    pub stop: oneshot::Receiver<()>,
}

impl fmt::Debug for EngineConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").field("resources", &self.resources).finish_non_exhaustive()
    }
}

/// One plan of several.
pub struct PlanRun {
    /// What to execute.
    pub plan: ExecutionPlan,
    /// Instances that have reported their results before: neither they nor what only they read from run again.
    pub finished: BTreeSet<InstanceId>,
    /// What operations are believed to cost; it learns from every task.
    pub costs: Arc<Mutex<CostModel>>,
    /// Follows it.
    pub observer: Observer,
    /// What its tasks compute stays, as far as there is room: another plan may follow.
    pub keeps: bool,
}

impl fmt::Debug for PlanRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("keeps", &self.keeps).finish_non_exhaustive()
    }
}

/// What came of an embedded run.
#[derive(Debug)]
pub struct PlanOutcome {
    /// Results and failures.
    pub outcome: StudyOutcome,
    /// The most bytes ever held and reserved: inputs, task outputs, stage outputs, and what running tasks were
    /// believed to take. Of several plans, in all so far.
    pub peak_bytes: u64,
    /// Bytes of regions still held at the end: 0 when the study is complete, or regions were lost track of.
    pub left_bytes: u64,
}

/// Why a study could not be run at all; none of these is the user's.
#[derive(Debug, Error)]
pub enum EmbeddedError {
    /// The plan breaks its own rules.
    #[error("the plan cannot be executed: {0}")]
    Plan(#[from] PlanError),
    /// The operating system gave no threads.
    #[error("failed to start worker threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// The manager actor ended without an outcome.
    #[error("the manager ended before the study did")]
    ManagerGone,
}

/// Runs a plan to its end, or until it is stopped.
///
/// # Errors
/// [`EmbeddedError`]; failed tasks are no error, they are part of the outcome.
pub fn run(study: EmbeddedStudy) -> Result<PlanOutcome, EmbeddedError> {
    let EmbeddedStudy {
        plan,
        finished,
        registry,
        sources,
        resources,
        costs,
        past,
        ledger,
        below,
        observer,
        stop,
    } = study;
    let mut engine = EmbeddedEngine::with_ledger(
        EngineConfig { registry, sources, resources, past, below, stop },
        ledger,
    )?;
    let finished = engine.run(PlanRun { plan, finished, costs, observer, keeps: false })?;
    engine.end();
    Ok(finished)
}

/// See the module.
pub struct EmbeddedEngine {
    manager: Addr<ManagerActor>,
    worker: Addr<WorkerActor>,
    storage: Addr<StorageActor>,
    below: Option<Arc<SpillStore>>,
    ledger: Arc<MemoryCounter>,
    /// What its worker learns; a plan's own are copied in and out.
    costs: Arc<Mutex<CostModel>>,
    peak_bytes: Arc<AtomicU64>,
    stopped: Arc<AtomicBool>,
    plans: u32,
    // Last: the actors above live in it.
    system: SystemRunner,
}

impl fmt::Debug for EmbeddedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("plans", &self.plans).finish_non_exhaustive()
    }
}

impl EmbeddedEngine {
    /// Starts a manager and its worker, who wait for a plan.
    ///
    /// # Errors
    /// [`EmbeddedError::Threads`].
    pub fn start(setup: EngineConfig) -> Result<Self, EmbeddedError> {
        Self::with_ledger(setup, Arc::default())
    }

    fn with_ledger(setup: EngineConfig, ledger: Arc<MemoryCounter>) -> Result<Self, EmbeddedError> {
        let EngineConfig { registry, sources, resources, past, below, stop } = setup;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(resources.slots.get() as usize)
            .thread_name(|number| format!("{THREAD_NAME}{number}"))
            .build()?;
        let pool = Arc::new(pool);
        let ram = Arc::new(RamTier::new(Arc::clone(&ledger)));
        let (peak_bytes, costs) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(CostModel::default())));
        let stopped = Arc::new(AtomicBool::new(false));
        let system = System::new();
        let (manager, worker, storage) = system.block_on(async {
            let storage = StorageActor::new(sources, Arc::clone(&pool), Arc::clone(&ram));
            let storage = storage.with_spill(below.clone()).start();
            let setup = WorkerSetup {
                resources,
                registry,
                storage: storage.clone(),
                pool,
                ram,
                below: below.clone(),
                ledger: Arc::clone(&ledger),
                costs: Arc::clone(&costs),
                past,
                peak_bytes: Arc::clone(&peak_bytes),
                remote: None,
            };
            let (near, far) = in_memory::pair();
            let manager = ManagerActor::sequential().start();
            manager.do_send(Connect {
                link: Box::new(near.link),
                incoming: near.incoming,
                newcomer: PendingWorker::local(),
            });
            let worker = WorkerActor::new(setup, far.link, far.incoming).start();
            let (told, is_stopped) = (manager.clone(), Arc::clone(&stopped));
            actix::spawn(async move {
                if stop.await.is_ok() {
                    is_stopped.store(true, Ordering::Relaxed);
                    told.do_send(StopAll);
                }
            });
            (manager, worker, storage)
        });
        Ok(Self { manager, worker, storage, below, ledger, costs, peak_bytes, stopped, plans: 0, system })
    }

    /// Counts the regions held.
    #[must_use]
    pub fn ledger(&self) -> Arc<MemoryCounter> {
        Arc::clone(&self.ledger)
    }

    /// Runs a plan to its end, or until it is stopped; after that nothing is run any more.
    ///
    /// # Errors
    /// [`EmbeddedError`]; failed tasks are no error, they are part of the outcome.
    pub fn run(&mut self, part: PlanRun) -> Result<PlanOutcome, EmbeddedError> {
        let PlanRun { plan, finished, costs, observer, keeps } = part;
        let id = part_of(self.plans);
        self.plans += 1;
        copy(&costs, &self.costs);
        let (done, outcome) = oneshot::channel();
        let (inputs, replanner) = (HashMap::new(), None);
        let study = StudyRequest { plan, finished, inputs, observer, replanner, keeps, done };
        let is_stopped = || self.stopped.load(Ordering::Relaxed);
        let stopped = || StudyOutcome { stopped: true, ..StudyOutcome::default() };
        let outcome = self.system.block_on(async {
            // Whoever asked to stop meanwhile is heard first.
            tokio::task::yield_now().await;
            let is_there = !is_stopped() && self.worker.send(HasWork).await.is_ok();
            if !is_there {
                return if is_stopped() { Ok(stopped()) } else { Err(EmbeddedError::ManagerGone) };
            }
            match self.manager.send(StartPlan { id, study }).await {
                Ok(Ok(())) => {}
                Ok(Err(BeginError::Plan(error))) => return Err(error.into()),
                Err(_) => return Err(EmbeddedError::ManagerGone),
            }
            if is_stopped() {
                self.manager.do_send(StopAll);
            }
            let outcome = outcome.await.map_err(|_| EmbeddedError::ManagerGone);
            // The last releases are on their way through link and mailboxes; the end of the study comes after them.
            while self.worker.send(HasWork).await.unwrap_or(false) {
                tokio::task::yield_now().await;
            }
            let _ = self.storage.send(CountRegions).await;
            outcome
        });
        let outcome = outcome?;
        if let Some(below) = &self.below {
            below.settle();
        }
        copy(&self.costs, &costs);
        let peak_bytes = self.peak_bytes.load(Ordering::Relaxed).max(self.ledger.peak_bytes());
        Ok(PlanOutcome { outcome, peak_bytes, left_bytes: self.ledger.held_bytes() })
    }

    /// Lets manager and worker go, and all that is kept.
    pub fn end(self) {
        self.system.block_on(async {
            // Where they have been stopped they are gone already.
            let _ = self.worker.send(DropRetained(STUDY)).await;
            self.manager.do_send(Shutdown);
            while self.worker.connected() {
                tokio::task::yield_now().await;
            }
        });
        if let Some(below) = &self.below {
            below.settle();
        }
    }
}

/// The study that all plans are parts of.
const STUDY: u32 = 0;

/// Each plan is a part of its own.
fn part_of(number: u32) -> PlanId {
    let [a, b, c, d] = number.to_be_bytes();
    PlanId { study: STUDY, phase: u16::from_be_bytes([a, b]), round: u16::from_be_bytes([c, d]) }
}

fn copy(from: &Mutex<CostModel>, to: &Mutex<CostModel>) {
    let known = from.lock().unwrap_or_else(PoisonError::into_inner).clone();
    *to.lock().unwrap_or_else(PoisonError::into_inner) = known;
}
