//! A whole study in one process: manager and one worker, joined by the in-memory transport.

use crate::below::Below;
use crate::manager::{Connect, ManagerActor, Newcomer, Observer, Outcome, Stop};
use crate::stage::Past;
use crate::storage::{Held, Source, StorageActor};
use crate::task::THREAD_NAME;
use crate::transport::memory;
use crate::worker::{Resources, WorkerActor, WorkerSetup};
use actix::prelude::*;
use pleach_dispatch::costs::Costs;
use pleach_dispatch::manager::Manager;
use pleach_dispatch::plan::{ExecutionPlan, PlanError};
use pleach_dispatch::{InstanceId, StudyId};
use pleach_regions::{Ledger, RamTier, RegionKey};
use pleach_workflow::Registry;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
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

/// What came of an embedded run.
#[derive(Debug)]
pub struct Finished {
    /// Results and failures.
    pub outcome: Outcome,
    /// The most bytes ever held and reserved: inputs, task outputs, stage outputs, and what running tasks were
    /// believed to take.
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
    let mut core = Manager::new(0);
    core.handle_submit(StudyId(0), study.plan, &study.finished)?;
    let threads = study.resources.slots.get() as usize;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|number| format!("{THREAD_NAME}{number}"))
        .build()?;
    let pool = Arc::new(pool);
    let ledger = study.ledger;
    let ram = Arc::new(RamTier::new(Arc::clone(&ledger)));
    let peak_bytes = Arc::new(AtomicU64::new(0));
    let (done, outcome) = oneshot::channel();
    let outcome = System::new().block_on(async {
        let storage = StorageActor::new(study.sources, Arc::clone(&pool), Arc::clone(&ram));
        let storage = storage.with_below(study.below.clone()).start();
        let setup = WorkerSetup {
            resources: study.resources,
            registry: study.registry,
            storage: storage.clone(),
            pool,
            ram,
            below: study.below.clone(),
            ledger: Arc::clone(&ledger),
            costs: study.costs,
            past: study.past,
            peak_bytes: Arc::clone(&peak_bytes),
            remote: None,
        };
        let (near, far) = memory::pair();
        let manager = ManagerActor::new(core, done, study.observer).start();
        manager.do_send(Connect {
            link: Box::new(near.link),
            incoming: near.incoming,
            newcomer: Newcomer::local(),
        });
        let worker = WorkerActor::new(setup, far.link, far.incoming).start();
        let stop = study.stop;
        actix::spawn(async move {
            if stop.await.is_ok() {
                manager.do_send(Stop);
            }
        });
        let outcome = outcome.await;
        // The last releases are on their way through link and mailboxes; the worker stops after them.
        while worker.connected() {
            tokio::task::yield_now().await;
        }
        let _ = storage.send(Held).await;
        outcome
    });
    let outcome = outcome.map_err(|_| EmbeddedError::ManagerGone)?;
    if let Some(below) = &study.below {
        below.settle();
    }
    let peak_bytes = peak_bytes.load(Ordering::Relaxed).max(ledger.peak_bytes());
    Ok(Finished { outcome, peak_bytes, left_bytes: ledger.held_bytes() })
}
