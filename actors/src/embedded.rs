//! A whole study in one process: manager and one worker, joined by the in-memory transport.

use crate::manager::{Connect, ManagerActor, Observer, Outcome};
use crate::storage::{Held, Source, StorageActor};
use crate::task::THREAD_NAME;
use crate::transport::memory;
use crate::worker::{WorkerActor, WorkerSetup};
use actix::prelude::*;
use pleach_dispatch::manager::Manager;
use pleach_dispatch::plan::{ExecutionPlan, PlanError};
use pleach_regions::{Ledger, RegionKey};
use pleach_workflow::Registry;
use std::collections::HashMap;
use std::fmt;
use std::num::NonZeroU32;
use std::sync::Arc;
use thiserror::Error;
use tokio::sync::oneshot;

/// What an embedded run needs.
pub struct Embedded {
    /// What to execute.
    pub plan: ExecutionPlan,
    /// The operations it may name.
    pub registry: Registry,
    /// The study's inputs, by key.
    pub sources: HashMap<RegionKey, Arc<dyn Source>>,
    /// Tasks that run at once.
    pub slots: NonZeroU32,
    /// Is told how far the study is.
    pub observer: Observer,
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded").field("slots", &self.slots).finish_non_exhaustive()
    }
}

/// What came of an embedded run.
#[derive(Debug)]
pub struct Finished {
    /// Results and failures.
    pub outcome: Outcome,
    /// The most bytes of regions ever held: inputs, task outputs and stage outputs.
    pub peak_bytes: u64,
    /// Bytes of regions still held at the end: 0, or regions were lost track of.
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

/// Runs a plan to its end.
///
/// # Errors
/// [`EmbeddedError`]; failed tasks are no error, they are part of the outcome.
pub fn run(study: Embedded) -> Result<Finished, EmbeddedError> {
    let core = Manager::new(study.plan)?;
    let threads = study.slots.get() as usize;
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|number| format!("{THREAD_NAME}{number}"))
        .build()?;
    let pool = Arc::new(pool);
    let ledger = Arc::new(Ledger::default());
    let (done, outcome) = oneshot::channel();
    let outcome = System::new().block_on(async {
        let storage = StorageActor::new(study.sources, Arc::clone(&pool), Arc::clone(&ledger)).start();
        let setup = WorkerSetup {
            slots: study.slots.get(),
            registry: study.registry,
            storage: storage.clone(),
            pool,
            ledger: Arc::clone(&ledger),
        };
        let (near, far) = memory::pair();
        let manager = ManagerActor::new(core, done, study.observer).start();
        manager.do_send(Connect { link: Box::new(near.link), incoming: near.incoming });
        let worker = WorkerActor::new(setup, far.link, far.incoming).start();
        let outcome = outcome.await;
        // The last releases are on their way through link and mailboxes; the worker stops after them.
        while worker.connected() {
            tokio::task::yield_now().await;
        }
        let _ = storage.send(Held).await;
        outcome
    });
    let outcome = outcome.map_err(|_| EmbeddedError::ManagerGone)?;
    Ok(Finished { outcome, peak_bytes: ledger.peak_bytes(), left_bytes: ledger.held_bytes() })
}
