//! Whole studies in one process: manager and one worker, joined by the in-memory transport.
//!
//! An [`EmbeddedEngine`] executes plans one after another. The worker, the regions in storage and the task results persist
//! between plans. The caller chooses the plans and their number.

use crate::manager::{
    Connect, ManagerActor, Observer, PendingWorker, Shutdown, StartPlan, StopAll, StudyRequest,
};
use crate::panic_guard::THREAD_NAME;
use crate::spill::SpillStore;
use crate::storage::{CountRegions, Source, StorageActor};
use crate::transport::in_memory;
use crate::worker::{DropRetained, HasWork, Resources, WorkerActor, WorkerSetup};
use actix::prelude::*;
use parking_lot::Mutex;
use pleach_cache::PriorResults;
use pleach_dispatch::cost_model::CostModel;
use pleach_dispatch::plan::{ExecutionPlan, PlanError};
use pleach_dispatch::study::{Study, StudyOutcome};
use pleach_dispatch::{InstanceId, PlanId};
use pleach_regions::{MemoryCounter, RamTier, RegionKey};
use pleach_workflow::Registry;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use thiserror::Error;
use tokio::sync::oneshot;

/// Inputs and resources of an embedded run.
pub struct EmbeddedStudy {
    /// Plan to execute.
    pub plan: ExecutionPlan,
    /// Instances with results from before. Neither they nor instances that only they read run again.
    pub finished: BTreeSet<InstanceId>,
    /// Operations that the plan may name.
    pub registry: Registry,
    /// The study's inputs, by key.
    pub sources: HashMap<RegionKey, Arc<dyn Source>>,
    /// Resources of the worker.
    pub resources: Resources,
    /// Cost model of operations, updated after every task.
    pub costs: Arc<Mutex<CostModel>>,
    /// Results and identities from before the study.
    pub prior: PriorResults,
    /// Counts the regions held.
    pub ledger: Arc<MemoryCounter>,
    /// Spill tiers, if any.
    pub spill: Option<Arc<SpillStore>>,
    /// Follows the study.
    pub observer: Observer,
    /// Stops the study early when a message arrives.
    pub stop: oneshot::Receiver<()>,
}

impl fmt::Debug for EmbeddedStudy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedStudy").field("resources", &self.resources).finish_non_exhaustive()
    }
}

/// Configuration shared by all plans of an engine.
pub struct EngineConfig {
    /// Operations that the plans may name.
    pub registry: Registry,
    /// Input sources of the plans, by key.
    pub sources: HashMap<RegionKey, Arc<dyn Source>>,
    /// Resources of the worker.
    pub resources: Resources,
    /// Results and identities from before the study.
    pub prior: PriorResults,
    /// Spill tiers, if any.
    pub spill: Option<Arc<SpillStore>>,
    /// Stops the running plan and all later plans when a message arrives.
    pub stop: oneshot::Receiver<()>,
}

impl fmt::Debug for EngineConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineConfig").field("resources", &self.resources).finish_non_exhaustive()
    }
}

/// One plan of an engine's sequence.
pub struct PlanRun {
    /// Plan to execute.
    pub plan: ExecutionPlan,
    /// Instances with results from before. Neither they nor instances that only they read run again.
    pub finished: BTreeSet<InstanceId>,
    /// Cost model of operations, updated after every task.
    pub costs: Arc<Mutex<CostModel>>,
    /// Follows the plan.
    pub observer: Observer,
    /// Retains task results for the next plan, within the memory limit.
    pub retains_results: bool,
}

impl fmt::Debug for PlanRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlanRun").field("retains_results", &self.retains_results).finish_non_exhaustive()
    }
}

/// Outcome of an embedded run.
#[derive(Debug)]
pub struct PlanOutcome {
    /// Results and failures.
    pub outcome: StudyOutcome,
    /// Peak of held and reserved bytes: inputs, task outputs, stage outputs and the predicted memory of running tasks. With
    /// several plans, the peak over all plans so far.
    pub peak_bytes: u64,
    /// Bytes of regions held at the end. It is 0 after a complete study. Otherwise regions leaked.
    pub retained_bytes: u64,
}

/// Error that prevents a study from running. Users cannot cause it.
#[derive(Debug, Error)]
pub enum EmbeddedError {
    /// The plan violates an invariant.
    #[error("the plan cannot be executed: {0}")]
    Plan(#[from] PlanError),
    /// The operating system did not create the threads.
    #[error("failed to start worker threads: {0}")]
    Threads(#[from] rayon::ThreadPoolBuildError),
    /// The manager actor ended without an outcome.
    #[error("the manager ended before the study")]
    ManagerGone,
}

/// Runs a plan until it ends or is stopped.
///
/// # Errors
/// Returns [`EmbeddedError`]. Failed tasks are part of the outcome, not errors.
pub fn run(study: EmbeddedStudy) -> Result<PlanOutcome, EmbeddedError> {
    let EmbeddedStudy {
        plan,
        finished,
        registry,
        sources,
        resources,
        costs,
        prior,
        ledger,
        spill,
        observer,
        stop,
    } = study;
    let mut engine = EmbeddedEngine::with_ledger(
        EngineConfig { registry, sources, resources, prior, spill, stop },
        ledger,
    )?;
    let finished = engine.run(PlanRun { plan, finished, costs, observer, retains_results: false })?;
    engine.end();
    Ok(finished)
}

/// Manager, worker and storage of an embedded run, which execute plans one after another.
pub struct EmbeddedEngine {
    manager: Addr<ManagerActor>,
    worker: Addr<WorkerActor>,
    storage: Addr<StorageActor>,
    below: Option<Arc<SpillStore>>,
    ledger: Arc<MemoryCounter>,
    /// Cost model of the worker, copied from and to the model of each plan.
    costs: Arc<Mutex<CostModel>>,
    peak_bytes: Arc<AtomicU64>,
    stopped: Arc<AtomicBool>,
    plans: u32,
    // Last field, dropped after the actors that live in it.
    system: SystemRunner,
}

impl fmt::Debug for EmbeddedEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedEngine").field("plans", &self.plans).finish_non_exhaustive()
    }
}

impl EmbeddedEngine {
    /// Starts a manager and its worker, which wait for a plan.
    ///
    /// # Errors
    /// Returns [`EmbeddedError::Threads`] if the threads cannot be started.
    pub fn start(setup: EngineConfig) -> Result<Self, EmbeddedError> {
        Self::with_ledger(setup, Arc::default())
    }

    fn with_ledger(setup: EngineConfig, ledger: Arc<MemoryCounter>) -> Result<Self, EmbeddedError> {
        let EngineConfig { registry, sources, resources, prior, spill, stop } = setup;
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
            let storage = storage.with_spill(spill.clone()).start();
            let setup = WorkerSetup {
                resources,
                registry,
                storage: storage.clone(),
                pool,
                ram,
                spill: spill.clone(),
                ledger: Arc::clone(&ledger),
                costs: Arc::clone(&costs),
                prior,
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
                    // Relaxed: this task and `run` share one thread. Stored first: the manager ignores a stop without a
                    // study, and `run` repeats it then.
                    is_stopped.store(true, Ordering::Relaxed);
                    told.do_send(StopAll);
                }
            });
            (manager, worker, storage)
        });
        Ok(Self {
            manager,
            worker,
            storage,
            below: spill,
            ledger,
            costs,
            peak_bytes,
            stopped,
            plans: 0,
            system,
        })
    }

    /// Counts the regions held.
    #[must_use]
    pub fn ledger(&self) -> Arc<MemoryCounter> {
        Arc::clone(&self.ledger)
    }

    /// Runs a plan until it ends or is stopped. After a stop, no further plan runs.
    ///
    /// # Errors
    /// Returns [`EmbeddedError`]. Failed tasks are part of the outcome, not errors.
    pub fn run(&mut self, part: PlanRun) -> Result<PlanOutcome, EmbeddedError> {
        let PlanRun { plan, finished, costs, observer, retains_results } = part;
        let id = part_of(self.plans);
        self.plans += 1;
        copy(&costs, &self.costs);
        let (done, outcome) = oneshot::channel();
        let (inputs, replanner) = (HashMap::new(), None);
        let study = Study::resume(plan, &finished)?;
        // Its worker has the label from the configuration.
        let label = None;
        let code = Vec::new();
        let study = StudyRequest { study, inputs, code, observer, replanner, retains_results, label, done };
        let is_stopped = || self.stopped.load(Ordering::Relaxed);
        let stopped = || StudyOutcome { stopped: true, ..StudyOutcome::default() };
        let outcome = self.system.block_on(async {
            // Handles a stop request that arrived since the last plan first.
            tokio::task::yield_now().await;
            let is_there = !is_stopped() && self.worker.send(HasWork).await.is_ok();
            if !is_there {
                return if is_stopped() { Ok(stopped()) } else { Err(EmbeddedError::ManagerGone) };
            }
            if self.manager.send(StartPlan { id, study }).await.is_err() {
                return Err(EmbeddedError::ManagerGone);
            }
            // A stop that arrived before the plan found no study to stop.
            if is_stopped() {
                self.manager.do_send(StopAll);
            }
            let outcome = outcome.await.map_err(|_| EmbeddedError::ManagerGone);
            // The last releases are still in link and mailboxes. The end of the study follows them.
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
        Ok(PlanOutcome { outcome, peak_bytes, retained_bytes: self.ledger.held_bytes() })
    }

    /// Ends manager and worker, and drops all retained results.
    pub fn end(self) {
        self.system.block_on(async {
            // Stopped actors are already gone.
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

/// Study number of all plans.
const STUDY: u32 = 0;

/// Gives each plan its own phase and round.
fn part_of(number: u32) -> PlanId {
    let [a, b, c, d] = number.to_be_bytes();
    PlanId { study: STUDY, phase: u16::from_be_bytes([a, b]), round: u16::from_be_bytes([c, d]) }
}

fn copy(from: &Mutex<CostModel>, to: &Mutex<CostModel>) {
    // Two statements, so that only one lock is held at a time: callers copy in both directions.
    let known = from.lock().clone();
    *to.lock() = known;
}
