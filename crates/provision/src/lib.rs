//! Provisioner: starts and ends the workers of pools through drivers, and owns them in a journal.
//!
//! A pure state machine. [`Provisioner::step`] takes the desired workers and the connected ones, [`Provisioner::answer`]
//! the answer of a driver, and both return [`ProvisionEffect`]s for the caller to execute in their order.
//!
//! Protocol:
//! - A name is an idempotency key. It is written to the journal before the driver is called, and no name is started
//!   twice. A start whose answer is lost is never repeated: the driver's list decides whether the worker exists.
//! - Only a list ends a worker: one that was requested after the last change of the worker, and that omits it.
//! - A listed worker with this manager's owner tag that the journal lacks is an orphan and is stopped.
//! - A pool starts no worker before its first list, so that a restarted manager counts all workers of the earlier one.
//!
//! The module reads no clock, starts no process and writes no file. [`ScaledPool`] does the same for a pool whose workers a
//! controller starts, to a number that the manager sets.

mod journal;
mod lists;
mod pool;
mod remark;
mod scaled;
mod step;
mod worker;

pub use journal::{FORMAT_LINE, JournaledWorker, ProvisionJournal, ProvisionRecord, READ_FORMATS};
pub use pool::ProvisionPool;
pub use remark::ProvisionRemark;
pub use scaled::{ScaleAnswer, ScaleEffect, ScaleInput, ScaleObservation, ScaleRemark, ScaledPool};

use pool::PoolState;
use std::collections::BTreeMap;
use worker::{OwnedWorker, WorkerPhase};

/// Input of a step.
#[derive(Clone, Copy, Debug)]
pub struct ProvisionInput<'a> {
    /// Seconds on any monotonic clock.
    pub now_seconds: f64,
    /// Desired workers of each pool, in the order of the pools.
    pub desired: &'a [u32],
    /// Surplus workers in removal order.
    pub removal_order: &'a [String],
    /// Workers connected to the manager.
    pub connected: &'a [ConnectedWorker],
    /// Names of the last workers that have announced their end to the manager, also of those that were connected for less than
    /// the time between two steps.
    pub left: &'a [String],
    /// Whether a study is queued or running.
    pub has_studies: bool,
}

/// Worker that is connected to the manager.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectedWorker {
    /// Its name.
    pub name: String,
    /// Its pool. `None` if it belongs to no pool.
    pub pool: Option<usize>,
    /// Whether it drains.
    pub is_draining: bool,
}

/// Action that the caller executes. Effects are executed in the order of their list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProvisionEffect {
    /// Writes a record to the journal and waits until it is on disk. If that fails, the caller skips the
    /// [`ProvisionEffect::Start`] of that name and answers [`DriverAnswer::NotStarted`].
    Write(ProvisionRecord),
    /// Calls the driver of the pool to start a worker.
    Start {
        /// The pool.
        pool: usize,
        /// Name of the worker.
        name: String,
    },
    /// Calls the driver of the pool to stop a worker.
    Stop {
        /// The pool.
        pool: usize,
        /// Name of the worker.
        name: String,
        /// Handle that the driver returned for it.
        handle: String,
    },
    /// Has the manager drain a worker. Needs no answer.
    Drain {
        /// Name of the worker.
        name: String,
    },
    /// Calls the driver of the pool for the list of all its workers with this manager's owner tag.
    List {
        /// The pool.
        pool: usize,
    },
    /// Logs a remark.
    Remark(ProvisionRemark),
}

/// Answer of a driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DriverAnswer {
    /// A worker was started.
    Started {
        /// Name of the worker.
        name: String,
        /// Handle that stops it.
        handle: String,
    },
    /// The driver refused and started nothing.
    NotStarted {
        /// Name of the worker.
        name: String,
        /// Reason of the driver.
        reason: String,
    },
    /// The driver did not answer, or not with a handle. The worker may exist.
    StartUnknown {
        /// Name of the worker.
        name: String,
        /// The defect of the answer.
        reason: String,
    },
    /// The driver accepted to stop a worker.
    Stopped {
        /// Name of the worker.
        name: String,
        /// Its handle.
        handle: String,
    },
    /// The driver did not stop a worker.
    NotStopped {
        /// Name of the worker.
        name: String,
        /// Its handle.
        handle: String,
        /// Reason.
        reason: String,
    },
    /// All workers of a pool with this manager's owner tag, as names and handles.
    Listed {
        /// The pool.
        pool: usize,
        /// Name and handle of each worker.
        workers: Vec<(String, String)>,
    },
    /// The driver did not list its workers.
    NotListed {
        /// The pool.
        pool: usize,
        /// Reason.
        reason: String,
    },
}

/// Numbers of a pool for the scaling decision and for operators.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OwnedWorkers {
    /// Workers that were requested and have not joined.
    pub starting: u32,
    /// Mean seconds since their request.
    pub starting_seconds: f64,
    /// Workers that joined and do not leave.
    pub joined: u32,
    /// Workers that drain or are being stopped.
    pub leaving: u32,
    /// Starts that failed since the manager started.
    pub failed_starts: u64,
    /// Whether starts are suspended after repeated failures.
    pub has_no_capacity: bool,
}

/// Listed worker that the journal lacks.
#[derive(Clone, Copy, Debug)]
struct Orphan {
    pool: usize,
    /// Time of the next attempt to stop it.
    again_seconds: f64,
}

/// State machine of all pools with a driver.
#[derive(Debug)]
pub struct Provisioner {
    pools: Vec<PoolState>,
    workers: BTreeMap<String, OwnedWorker>,
    /// Ended workers, with the tick of their end: a list that was requested earlier may still have them.
    ended: BTreeMap<String, u64>,
    /// Listed workers that the journal lacks, by name and handle.
    orphans: BTreeMap<(String, String), Orphan>,
    /// First part of new names: the manager and its start.
    incarnation: String,
    /// Number of the last name.
    count: u64,
    /// Logical time of changes and list requests.
    tick: u64,
    now_seconds: f64,
    is_ending: bool,
}

impl Provisioner {
    /// Creates the provisioner with the workers of the journal. `incarnation` is unique for each start of each manager;
    /// names of workers are the prefix of their pool, the incarnation and a number.
    ///
    /// Returns remarks on journaled workers of unknown pools, which stay in the journal.
    #[must_use]
    pub fn new(
        pools: Vec<ProvisionPool>,
        journal: &ProvisionJournal,
        incarnation: &str,
        now_seconds: f64,
    ) -> (Self, Vec<ProvisionRemark>) {
        let pools: Vec<PoolState> = pools.into_iter().map(PoolState::new).collect();
        let (mut workers, mut remarks) = (BTreeMap::new(), Vec::new());
        for (name, journaled) in journal.workers() {
            let Some(pool) = pools.iter().position(|pool| pool.settings.name == journaled.pool) else {
                remarks
                    .push(ProvisionRemark::UnknownPool { name: name.clone(), pool: journaled.pool.clone() });
                continue;
            };
            let phase = match &journaled.handle {
                Some(_) => WorkerPhase::Starting,
                None => WorkerPhase::Unknown,
            };
            let mut worker = OwnedWorker::new(pool, journaled.handle.clone(), phase, now_seconds, 0);
            worker.is_inherited = true;
            workers.insert(name.clone(), worker);
        }
        let provisioner = Self {
            pools,
            workers,
            ended: BTreeMap::new(),
            orphans: BTreeMap::new(),
            incarnation: incarnation.to_owned(),
            count: 0,
            tick: 1,
            now_seconds,
            is_ending: false,
        };
        (provisioner, remarks)
    }

    /// Returns the numbers of a pool.
    #[must_use]
    pub fn counts(&self, pool: usize) -> OwnedWorkers {
        let state = &self.pools[pool];
        let mut counts = OwnedWorkers {
            failed_starts: state.failed_starts,
            has_no_capacity: state.has_no_capacity(self.now_seconds),
            ..OwnedWorkers::default()
        };
        let mut passed = 0.0;
        for worker in self.workers.values().filter(|worker| worker.pool == pool) {
            match worker.phase {
                WorkerPhase::Calling | WorkerPhase::Unknown | WorkerPhase::Starting => {
                    counts.starting += 1;
                    passed += self.now_seconds - worker.requested_seconds;
                }
                WorkerPhase::Joined => counts.joined += 1,
                WorkerPhase::Draining | WorkerPhase::Stopping { .. } => counts.leaving += 1,
            }
        }
        counts.starting_seconds = passed / f64::from(counts.starting.max(1));
        counts
    }

    /// Returns the names of all workers that the provisioner owns.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.workers.keys().map(String::as_str)
    }

    /// Returns whether no worker is owned, and no orphan is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.workers.is_empty() && self.orphans.is_empty()
    }

    /// Ends all workers because the manager ends. Without it, they stay for the next start of the manager.
    pub fn end(&mut self, now_seconds: f64) -> Vec<ProvisionEffect> {
        self.advance(now_seconds);
        self.is_ending = true;
        let names: Vec<String> = self.workers.keys().cloned().collect();
        let mut effects = Vec::new();
        names.iter().for_each(|name| self.stop(name, &mut effects));
        effects.extend(self.due_lists());
        effects
    }

    /// Takes a time and returns a new tick. A clock that is set back does not move the provisioner back.
    fn advance(&mut self, now_seconds: f64) -> u64 {
        self.now_seconds = self.now_seconds.max(now_seconds);
        self.tick += 1;
        self.tick
    }
}
