//! Whole studies in one process: manager and one worker, joined by the in-memory transport.
//!
//! An [`Engine`] executes plans one after another: the worker, what storage holds and what tasks have computed stay between
//! them. What the plans are, and whether there is another one, is decided elsewhere.

use crate::below::Below;
use crate::manager::{
    Begin, BeginError, Connect, Finish, ManagerActor, Newcomer, Observer, Outcome, Stop, StudyRun,
};
use crate::stage::Past;
use crate::storage::{Held, Source, StorageActor};
use crate::task::THREAD_NAME;
use crate::transport::memory;
use crate::worker::{Forget, IsBusy, Resources, WorkerActor, WorkerSetup};
use actix::prelude::*;
use pleach_dispatch::costs::Costs;
use pleach_dispatch::plan::{ExecutionPlan, PlanError};
use pleach_dispatch::{InstanceId, StudyId};
use pleach_regions::{Ledger, RamTier, RegionKey};
use pleach_workflow::Registry;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use thiserror::Error;
use tokio::sync::oneshot;

/// What an embedded run needs.
pub struct Embedded {
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
    pub costs: Arc<Mutex<Costs>>,
    /// What is known from before the study.
    pub past: Past,
    /// Counts the regions held.
    pub ledger: Arc<Ledger>,
    /// Tiers below memory, if there are any.
    pub below: Option<Arc<Below>>,
    /// Follows the study.
    pub observer: Observer,
    /// Ends the study early when something is sent.
    pub stop: oneshot::Receiver<()>,
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded").field("resources", &self.resources).finish_non_exhaustive()
    }
}

/// What all plans of an engine have in common.
pub struct Setup {
    /// The operations they may name.
    pub registry: Registry,
    /// Their inputs, by key.
    pub sources: HashMap<RegionKey, Arc<dyn Source>>,
    /// What the worker may use.
    pub resources: Resources,
    /// What is known from before the study.
    pub past: Past,
    /// Tiers below memory, if there are any.
    pub below: Option<Arc<Below>>,
    /// Ends the plan under way early when something is sent, and all that follow.
    pub stop: oneshot::Receiver<()>,
}

impl fmt::Debug for Setup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setup").field("resources", &self.resources).finish_non_exhaustive()
    }
}

/// One plan of several.
pub struct Part {
    /// What to execute.
    pub plan: ExecutionPlan,
    /// Instances that have reported their results before: neither they nor what only they read from run again.
    pub finished: BTreeSet<InstanceId>,
    /// What operations are believed to cost; it learns from every task.
    pub costs: Arc<Mutex<Costs>>,
    /// Follows it.
    pub observer: Observer,
    /// What its tasks compute stays, as far as there is room: another plan may follow.
    pub keeps: bool,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("keeps", &self.keeps).finish_non_exhaustive()
    }
}

/// What came of an embedded run.
#[derive(Debug)]
pub struct Finished {
    /// Results and failures.
    pub outcome: Outcome,
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
pub fn run(study: Embedded) -> Result<Finished, EmbeddedError> {
    let Embedded { plan, finished, registry, sources, resources, costs, past, ledger, below, observer, stop } =
        study;
    let mut engine = Engine::with_ledger(Setup { registry, sources, resources, past, below, stop }, ledger)?;
    let finished = engine.run(Part { plan, finished, costs, observer, keeps: false })?;
    engine.end();
    Ok(finished)
}

/// See the module.
pub struct Engine {
    manager: Addr<ManagerActor>,
    worker: Addr<WorkerActor>,
    storage: Addr<StorageActor>,
    below: Option<Arc<Below>>,
    ledger: Arc<Ledger>,
    /// What its worker learns; a plan's own are copied in and out.
    costs: Arc<Mutex<Costs>>,
    peak_bytes: Arc<AtomicU64>,
    stopped: Arc<AtomicBool>,
    plans: u32,
    // Last: the actors above live in it.
    system: SystemRunner,
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Engine").field("plans", &self.plans).finish_non_exhaustive()
    }
}

impl Engine {
    /// Starts a manager and its worker, who wait for a plan.
    ///
    /// # Errors
    /// [`EmbeddedError::Threads`].
    pub fn start(setup: Setup) -> Result<Self, EmbeddedError> {
        Self::with_ledger(setup, Arc::default())
    }

    fn with_ledger(setup: Setup, ledger: Arc<Ledger>) -> Result<Self, EmbeddedError> {
        let Setup { registry, sources, resources, past, below, stop } = setup;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(resources.slots.get() as usize)
            .thread_name(|number| format!("{THREAD_NAME}{number}"))
            .build()?;
        let pool = Arc::new(pool);
        let ram = Arc::new(RamTier::new(Arc::clone(&ledger)));
        let (peak_bytes, costs) = (Arc::new(AtomicU64::new(0)), Arc::new(Mutex::new(Costs::default())));
        let stopped = Arc::new(AtomicBool::new(false));
        let system = System::new();
        let (manager, worker, storage) = system.block_on(async {
            let storage = StorageActor::new(sources, Arc::clone(&pool), Arc::clone(&ram));
            let storage = storage.with_below(below.clone()).start();
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
            let (near, far) = memory::pair();
            let manager = ManagerActor::in_turn().start();
            manager.do_send(Connect {
                link: Box::new(near.link),
                incoming: near.incoming,
                newcomer: Newcomer::local(),
            });
            let worker = WorkerActor::new(setup, far.link, far.incoming).start();
            let (told, is_stopped) = (manager.clone(), Arc::clone(&stopped));
            actix::spawn(async move {
                if stop.await.is_ok() {
                    is_stopped.store(true, Ordering::Relaxed);
                    told.do_send(Stop);
                }
            });
            (manager, worker, storage)
        });
        Ok(Self { manager, worker, storage, below, ledger, costs, peak_bytes, stopped, plans: 0, system })
    }

    /// Counts the regions held.
    #[must_use]
    pub fn ledger(&self) -> Arc<Ledger> {
        Arc::clone(&self.ledger)
    }

    /// Runs a plan to its end, or until it is stopped; after that nothing is run any more.
    ///
    /// # Errors
    /// [`EmbeddedError`]; failed tasks are no error, they are part of the outcome.
    pub fn run(&mut self, part: Part) -> Result<Finished, EmbeddedError> {
        let Part { plan, finished, costs, observer, keeps } = part;
        let id = part_of(self.plans);
        self.plans += 1;
        copy(&costs, &self.costs);
        let (done, outcome) = oneshot::channel();
        let (inputs, replanner) = (HashMap::new(), None);
        let study = StudyRun { plan, finished, inputs, observer, replanner, keeps, done };
        let is_stopped = || self.stopped.load(Ordering::Relaxed);
        let stopped = || Outcome { stopped: true, ..Outcome::default() };
        let outcome = self.system.block_on(async {
            // Whoever asked to stop meanwhile is heard first.
            tokio::task::yield_now().await;
            let is_there = !is_stopped() && self.worker.send(IsBusy).await.is_ok();
            if !is_there {
                return if is_stopped() { Ok(stopped()) } else { Err(EmbeddedError::ManagerGone) };
            }
            match self.manager.send(Begin { id, study }).await {
                Ok(Ok(())) => {}
                Ok(Err(BeginError::Plan(error))) => return Err(error.into()),
                Err(_) => return Err(EmbeddedError::ManagerGone),
            }
            if is_stopped() {
                self.manager.do_send(Stop);
            }
            let outcome = outcome.await.map_err(|_| EmbeddedError::ManagerGone);
            // The last releases are on their way through link and mailboxes; the end of the study comes after them.
            while self.worker.send(IsBusy).await.unwrap_or(false) {
                tokio::task::yield_now().await;
            }
            let _ = self.storage.send(Held).await;
            outcome
        });
        let outcome = outcome?;
        if let Some(below) = &self.below {
            below.settle();
        }
        copy(&self.costs, &costs);
        let peak_bytes = self.peak_bytes.load(Ordering::Relaxed).max(self.ledger.peak_bytes());
        Ok(Finished { outcome, peak_bytes, left_bytes: self.ledger.held_bytes() })
    }

    /// Lets manager and worker go, and all that is kept.
    pub fn end(self) {
        self.system.block_on(async {
            // Where they have been stopped they are gone already.
            let _ = self.worker.send(Forget(STUDY)).await;
            self.manager.do_send(Finish);
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
fn part_of(number: u32) -> StudyId {
    let [a, b, c, d] = number.to_be_bytes();
    StudyId { study: STUDY, phase: u16::from_be_bytes([a, b]), round: u16::from_be_bytes([c, d]) }
}

fn copy(from: &Mutex<Costs>, to: &Mutex<Costs>) {
    let known = from.lock().unwrap_or_else(PoisonError::into_inner).clone();
    *to.lock().unwrap_or_else(PoisonError::into_inner) = known;
}
