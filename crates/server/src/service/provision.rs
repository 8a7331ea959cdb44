//! Provisioning: starts and ends the workers of pools that have a driver.
//!
//! `pleach_provision` decides from the same scaling status that clients get. This module executes its effects: it writes
//! the journal, calls drivers on blocking threads, and drains workers. A call that hangs delays no other call.

mod journal_file;
mod report;

use super::studies::StudyContext;
use crate::drivers::{Driver, DriverContext, DriverError, ListedWorker, StartError};
use crate::pools::{DriverKind, ManagedPool, Pools};
use journal_file::JournalFile;
pub use journal_file::{FILE, JournalFileError, read as read_journal};
use pleach_actors::manager::{DrainWorker, GetView, ManagerView, WorkerState};
use pleach_provision::{
    ConnectedWorker, DriverAnswer, ProvisionEffect, ProvisionInput, ProvisionPool, ProvisionRecord,
    Provisioner,
};
use report::Reporter;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};
use thiserror::Error;
use time::OffsetDateTime;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;
use tracing::{info, warn};

/// 2 s between two steps: lost and joined workers are noticed soon, and a step takes milliseconds.
const STEP_EVERY: Duration = Duration::from_secs(2);

/// 30 s by which lists of clouds may lag behind. The list of processes is exact.
const LIST_LAG_SECONDS: f64 = 30.0;

/// 45 s for workers to end with the manager: they drain for 30 s at most. Later ones stay in the journal.
const END_TIME: Duration = Duration::from_secs(45);

/// Reason why workers cannot be provisioned.
#[derive(Debug, Error)]
pub enum ProvisionError {
    /// A driver cannot be used.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] JournalFileError),
    /// The names of workers would belong to another pool.
    #[error(
        "pool {pool}: the name {name} of its workers begins with the prefix of pool {other}; prefixes that do not begin with \
         another pool's are allowed"
    )]
    Prefix {
        /// The pool.
        pool: String,
        /// Name of a worker.
        name: String,
        /// Pool of this name.
        other: String,
    },
}

/// Provisioning of one manager.
pub struct Provisioning {
    shared: Arc<StudyContext>,
    drivers: Vec<Arc<Driver>>,
    /// Numbers of the drivers' pools in the pool file.
    numbers: Vec<usize>,
    pools: Pools,
    provisioner: Provisioner,
    journal: Arc<JournalFile>,
    /// Names whose intent is not on disk.
    unwritten: BTreeSet<String>,
    reporter: Reporter,
    begun: Instant,
    sender: UnboundedSender<DriverAnswer>,
    answers: UnboundedReceiver<DriverAnswer>,
}

impl Provisioning {
    /// Opens the journal of the state directory. Returns `None` without a pool that has a driver.
    ///
    /// # Errors
    /// [`ProvisionError`] if a driver or the journal cannot be used.
    pub fn open(
        shared: Arc<StudyContext>,
        pools: &Pools,
        context: &DriverContext,
    ) -> Result<Option<Self>, ProvisionError> {
        let (numbers, drivers): (Vec<_>, Vec<_>) = Driver::of_pools(pools, context)?.into_iter().unzip();
        if drivers.is_empty() {
            return Ok(None);
        }
        // The number of starts grows at each start, so no start makes a name of an earlier one.
        let incarnation = format!("{}-{}", context.owner_part(), shared.state.starts());
        for number in &numbers {
            let ManagedPool { spec, prefix, .. } = &pools.0[*number];
            let name = format!("{prefix}{incarnation}-1");
            if let Some(other) = pools.of(&name).filter(|other| other != number) {
                let other = pools.0[other].spec.name.clone();
                return Err(ProvisionError::Prefix { pool: spec.name.clone(), name, other });
            }
        }
        let settings = numbers.iter().filter_map(|number| pool(pools, *number)).collect();
        let (journal, content) = JournalFile::open(&context.state)?;
        let (provisioner, remarks) = Provisioner::new(settings, &content, &incarnation, 0.0);
        shared.scaler.adopt(&content, unix_ms() as f64 / 1e3);
        let mut reporter = Reporter::new(pools.clone());
        remarks.iter().for_each(|remark| reporter.log(remark));
        if !content.workers().is_empty() {
            info!("the journal has {} workers of an earlier start", content.workers().len());
        }
        let (sender, answers) = unbounded_channel();
        Ok(Some(Self {
            shared,
            drivers: drivers.into_iter().map(Arc::new).collect(),
            numbers,
            pools: pools.clone(),
            provisioner,
            journal: Arc::new(journal),
            unwritten: BTreeSet::new(),
            reporter,
            begun: Instant::now(),
            sender,
            answers,
        }))
    }

    /// Provisions workers until the manager is asked to end. If no study is unfinished, all workers end first.
    /// Otherwise they keep working, and the next start of the manager adopts them.
    pub async fn run(mut self, mut stop: oneshot::Receiver<()>) {
        let mut ticks = tokio::time::interval(STEP_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut ends: Option<Instant> = None;
        loop {
            let effects = tokio::select! {
                _ = &mut stop, if ends.is_none() => {
                    if self.shared.has_unfinished() {
                        return;
                    }
                    ends = Some(Instant::now());
                    self.provisioner.end(self.now())
                }
                Some(answer) = self.answers.recv() => {
                    self.reporter.count(&answer);
                    self.provisioner.answer(self.now(), answer)
                }
                _ = ticks.tick() => match self.step().await {
                    Some(effects) => effects,
                    None => return,
                },
            };
            self.execute(effects).await;
            self.shared.scaler.supplies.update(self.reporter.supplies(&self.provisioner, &self.numbers));
            let Some(since) = ends else { continue };
            if self.provisioner.is_empty() {
                info!("all provisioned workers have ended");
                return;
            }
            if since.elapsed() > END_TIME {
                let names: Vec<&str> = self.provisioner.names().collect();
                warn!("provisioned workers are still ending: {}; pleach pools lists them", names.join(", "));
                return;
            }
        }
    }

    /// Seconds since the start.
    fn now(&self) -> f64 {
        self.begun.elapsed().as_secs_f64()
    }

    /// Takes a step. Returns `None` once the manager actor has ended.
    async fn step(&mut self) -> Option<Vec<ProvisionEffect>> {
        let view = self.shared.manager.send(GetView).await.ok()?;
        let status = self.shared.scale(&view);
        // The work of a study is unknown until it is planned, also after a restart. Until then, all workers stay.
        let is_known = self.shared.has_known_work();
        let desired = |(pool, number): (usize, &usize)| {
            let owned = self.provisioner.counts(pool);
            let present = if is_known { 0 } else { owned.joined + owned.starting };
            status.pools.get(*number).map_or(0, |pool| pool.desired).max(present)
        };
        let desired: Vec<u32> = self.numbers.iter().enumerate().map(desired).collect();
        let connected = self.connected(&view);
        let input = ProvisionInput {
            now_seconds: self.now(),
            desired: &desired,
            removal_order: &status.drain_order,
            connected: &connected,
            left: &view.left,
            has_studies: self.shared.has_unfinished(),
        };
        Some(self.provisioner.step(&input))
    }

    fn connected(&self, view: &ManagerView) -> Vec<ConnectedWorker> {
        let connected = view.workers.iter().map(|worker| {
            let number = self.pools.of(&worker.name);
            ConnectedWorker {
                name: worker.name.clone(),
                pool: number.and_then(|number| self.numbers.iter().position(|other| *other == number)),
                is_draining: worker.state == WorkerState::Draining,
            }
        });
        connected.collect()
    }

    async fn execute(&mut self, effects: Vec<ProvisionEffect>) {
        for effect in effects {
            match effect {
                ProvisionEffect::Write(record) => self.write(record).await,
                ProvisionEffect::Start { name, .. } if self.unwritten.remove(&name) => {}
                ProvisionEffect::Start { pool, name } => self.call(pool, move |driver| start(driver, name)),
                ProvisionEffect::Stop { pool, name, handle } => {
                    self.shared.scaler.leave(&name);
                    self.call(pool, move |driver| match driver.stop(&name, &handle) {
                        Ok(()) => DriverAnswer::Stopped { name, handle },
                        Err(reason) => DriverAnswer::NotStopped { name, handle, reason },
                    })
                }
                ProvisionEffect::List { pool } => self.call(pool, move |driver| match driver.list() {
                    Ok(workers) => {
                        let pair = |worker: ListedWorker| (worker.name, worker.handle);
                        DriverAnswer::Listed { pool, workers: workers.into_iter().map(pair).collect() }
                    }
                    Err(reason) => DriverAnswer::NotListed { pool, reason },
                }),
                // A worker that has left meanwhile needs no drain.
                ProvisionEffect::Drain { name } => {
                    self.shared.scaler.leave(&name);
                    let _ = self.shared.manager.send(DrainWorker { name }).await;
                }
                ProvisionEffect::Remark(remark) => self.reporter.log(&remark),
            }
        }
    }

    /// Writes a record, and waits until it is on disk. The worker is paid by the time of its records.
    async fn write(&mut self, record: ProvisionRecord) {
        let (journal, shared) = (Arc::clone(&self.journal), Arc::clone(&self.shared));
        let intended = match &record {
            ProvisionRecord::Intended { name, .. } => Some(name.clone()),
            _ => None,
        };
        let write = move || {
            let at_ms = unix_ms();
            journal.append(record.clone(), at_ms)?;
            shared.scaler.record(&record, at_ms as f64 / 1e3);
            Ok::<_, JournalFileError>(())
        };
        let written = tokio::task::spawn_blocking(write).await;
        let reason = match written {
            Ok(Ok(())) => return,
            Ok(Err(error)) => error.to_string(),
            Err(error) => error.to_string(),
        };
        warn!("{reason}");
        // A lost handle or end follows from the driver's next list. A lost intent would be an orphan.
        if let Some(name) = intended {
            self.unwritten.insert(name.clone());
            let _ = self.sender.send(DriverAnswer::NotStarted { name, reason });
        }
    }

    /// Calls a driver on a blocking thread, which sends the answer.
    fn call(&self, pool: usize, call: impl FnOnce(&Driver) -> DriverAnswer + Send + 'static) {
        let (driver, sender) = (Arc::clone(&self.drivers[pool]), self.sender.clone());
        tokio::task::spawn_blocking(move || {
            // The receiver ends with the manager, which needs no answer then.
            let _ = sender.send(call(&driver));
        });
    }
}

/// Milliseconds since 1970.
fn unix_ms() -> u64 {
    u64::try_from(OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000).unwrap_or(0)
}

fn start(driver: &Driver, name: String) -> DriverAnswer {
    match driver.start(&name) {
        Ok(handle) => DriverAnswer::Started { name, handle },
        Err(StartError::Refused(reason)) => DriverAnswer::NotStarted { name, reason },
        Err(StartError::Unknown(reason)) => DriverAnswer::StartUnknown { name, reason },
    }
}

/// Returns the settings of a pool. `None` if it has no driver.
pub(super) fn pool(pools: &Pools, number: usize) -> Option<ProvisionPool> {
    let ManagedPool { spec, prefix, driver } = pools.0.get(number)?;
    let settings = driver.as_ref()?;
    Some(ProvisionPool {
        name: spec.name.clone(),
        prefix: prefix.clone(),
        min: spec.min,
        max: spec.max,
        startup_seconds: spec.startup_seconds,
        idle_seconds: settings.idle_seconds,
        list_lag_seconds: match settings.kind {
            DriverKind::Process { .. } => 0.0,
            DriverKind::Command { .. } | DriverKind::Kubernetes { .. } => LIST_LAG_SECONDS,
        },
    })
}
