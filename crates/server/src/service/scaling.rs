//! Desired number of workers: passes the remaining work of all studies, their deadlines and budgets, and the
//! connected workers to [`pleach_dispatch::scaling`].
//!
//! `ledger` has the costs of studies, which are stored in the state directory. This module starts and drains no worker:
//! autoscalers and `super::provision` read its result.

mod ledger;
mod partitions;
mod supply;

use super::state::record;
use crate::pools::{ManagedPool, PoolSpec, Pools};
pub use ledger::StoredLedger;
use ledger::{CostLedger, PoolPrices, PoolWorker};
use parking_lot::Mutex;
use partitions::Partitions;
use pleach_actors::manager::{ManagerView, WorkerState, WorkerView};
use pleach_api::schema::{CostEstimate, PoolStatus, ScalingStatus, StudyCost, WorkBySlots};
use pleach_dispatch::scaling::{
    DeadlineGoal, MakespanForecast, PreviousDecision, ScalingDecision, WorkByPartition, WorkDemand,
    WorkerLoad, WorkerPool, decide, removal_order, shares,
};
use pleach_provision::{ProvisionJournal, ProvisionRecord};
use pleach_results::checksum;
use pleach_results::folder::publish;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::path::PathBuf;
pub(crate) use supply::{PoolSupply, Supplies};
use tracing::warn;

/// 60 s between two writes of the ledger without events: a killed manager loses the egress of this time, and the cost of
/// workers that it has not started itself.
const WRITE_EVERY_SECONDS: f64 = 60.0;

/// Remaining work of a running study, with its deadline and budget.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct StudyNeed {
    pub(super) id: u32,
    pub(super) work_seconds: f64,
    /// Duration of its longest run, which cannot be divided among workers.
    pub(super) run_seconds: f64,
    /// Seconds since 1970.
    pub(super) deadline: Option<f64>,
    pub(super) budget: Option<f64>,
}

#[derive(Debug, Default)]
struct ScalerState {
    previous: Option<PreviousDecision>,
    /// Time of the last write of the ledger, in seconds since 1970.
    written: f64,
    ledger: CostLedger,
}

/// Scaling decisions of one manager, with the state between two decisions.
#[derive(Debug)]
pub(crate) struct Scaler {
    pools: Option<Pools>,
    /// File with the ledger.
    file: PathBuf,
    /// A step that panics loses at most the previous decision and a part of the costs since the last step.
    state: Mutex<ScalerState>,
    /// Taken before `state`, by the writer of the file.
    writer: Mutex<()>,
    /// Workers that the provisioner has requested.
    pub(crate) supplies: Supplies,
    /// Work of the studies by number of slots.
    pub(crate) partitions: Partitions,
}

impl Scaler {
    /// Creates the scaler with the costs stored in `file`. A missing or corrupt file counts as no costs.
    pub(crate) fn new(pools: Option<Pools>, file: PathBuf) -> Self {
        let lost = |why: &dyn Display| {
            warn!("{}: {why}; the cost of unfinished studies restarts at 0", file.display());
        };
        let StoredLedger(stored) = record::read(&file).or_default(lost);
        let prices = |pool: &ManagedPool| {
            let PoolSpec { price_per_hour: per_hour, billing_seconds, egress_price_per_gb, .. } = pool.spec;
            let prices = PoolPrices {
                per_hour,
                billing_seconds,
                egress_per_gb: egress_price_per_gb,
                min: pool.spec.min,
                ending_seconds: pool.driver.as_ref().map_or(0.0, |driver| driver.idle_seconds),
            };
            (pool.spec.name.clone(), prices)
        };
        let prices = pools.iter().flat_map(|pools| pools.0.iter().map(prices)).collect();
        let state = Mutex::new(ScalerState { ledger: stored.resume(prices), ..ScalerState::default() });
        let (supplies, partitions) = (Supplies::default(), Partitions::default());
        Self { pools, file, state, writer: Mutex::default(), supplies, partitions }
    }

    /// Decides how many workers are desired. `running` are the studies that run, also those whose work is unknown. `now` is
    /// in seconds since 1970.
    pub(super) fn step(
        &self,
        view: &ManagerView,
        studies: &[StudyNeed],
        running: &BTreeSet<u32>,
        now: f64,
    ) -> ScalingStatus {
        self.charge(view, running, now);
        // The work of a study that is being planned is not known.
        let is_done = studies.len() == running.len() && studies.iter().all(|study| study.work_seconds <= 0.0);
        self.state.lock().ledger.note_work(now, !is_done);
        // Before the lock of this step: the closure takes the same lock, once for each study.
        let need =
            self.need(studies, now, |id| self.state.lock().ledger.cost(id).map_or(0.0, |cost| cost.cost));
        let active = view.workers.iter().filter(|worker| worker.state == WorkerState::Active);
        let active: Vec<&WorkerView> = active.collect();
        let mut state = self.state.lock();
        let Some(of_file) = &self.pools else {
            let forecast = MakespanForecast::of(&need, &[everybody(&active)], &[active.len() as u32]);
            return ScalingStatus {
                workers_active: active.len() as u32,
                predicted_remaining_seconds: finite(forecast.seconds).filter(|_| !studies.is_empty()),
                ..ScalingStatus::default()
            };
        };
        let mut pools = pools(of_file, &active, state.previous.as_ref(), now);
        for (number, pool) in pools.iter_mut().enumerate() {
            pool.ending_seconds = state.ledger.ending_seconds(&pool.name);
            if let Some(supply) = self.supplies.get(number) {
                *pool = supply.correct(pool.clone());
            }
        }
        let more = of_file.0.iter().map(|pool| pool.spec.max.saturating_mul(pool.spec.cores));
        let least = pools.last().map_or(0.0, |others| others.slots * f64::from(others.running));
        self.partitions.cover(studies, least as u32, more.fold(0, u32::saturating_add));
        let before = state.previous.take();
        let answer = decide(&need, &pools, before.as_ref(), now);
        state.previous = Some(answer.previous.clone());
        for (study, share) in studies.iter().zip(shares(&works(studies))) {
            // A prediction without its forecast by slots would be of the present slots only.
            if self.partitions.is_known(study.id) {
                let seconds = MakespanForecast::seconds_of_share(&need, &pools, &answer.desired, share);
                state.ledger.predict(study.id, seconds, answer.forecast.cost / studies.len() as f64);
            }
        }
        let spent = state.ledger.open_cost();
        drop(state);
        let mut status = shown(of_file, &pools, &answer, view, &active, spent);
        if need.cuts.len() > 1 {
            status.work_by_slots = need.cuts.iter().map(work_by_slots).collect();
        }
        for (number, pool) in status.pools.iter_mut().enumerate() {
            pool.provisioned = self.supplies.get(number).map(|supply| supply.status());
        }
        status
    }

    /// Returns for each study with a deadline the seconds from its predicted end to that deadline, by the study's
    /// number. A negative margin means that the study will be late. Only active workers count, because desired
    /// workers may never join.
    pub(super) fn margins(&self, view: &ManagerView, studies: &[StudyNeed], now: f64) -> BTreeMap<u32, f64> {
        let active = view.workers.iter().filter(|worker| worker.state == WorkerState::Active);
        let pool = everybody(&active.collect::<Vec<_>>());
        let (need, workers) = (self.need(studies, now, |_| 0.0), [pool.running]);
        let work = works(studies);
        let pools = [pool];
        let margin = |(study, share): (&StudyNeed, f64)| {
            let left = study.deadline? - now;
            Some((study.id, left - MakespanForecast::seconds_of_share(&need, &pools, &workers, share)))
        };
        studies.iter().zip(shares(&work)).filter_map(margin).collect()
    }

    /// Charges the cost of all workers of pools until now to the running studies.
    pub(super) fn charge(&self, view: &ManagerView, running: &BTreeSet<u32>, now: f64) {
        let Some(pools) = &self.pools else { return };
        let connected = view.workers.iter().filter_map(|worker| {
            let pool = &pools.0[pools.of(&worker.name)?];
            let is_draining = worker.state == WorkerState::Draining;
            Some(PoolWorker { name: worker.name.clone(), pool: pool.spec.name.clone(), is_draining })
        });
        self.state.lock().ledger.advance(now, running, &connected.collect::<Vec<_>>());
    }

    /// Counts the bytes that the manager's connections have received from workers.
    pub(super) fn count_egress<'a>(&self, received: impl Iterator<Item = (&'a str, u64)>) {
        self.state.lock().ledger.count_egress(received);
    }

    /// Adds the workers of the provisioner's journal.
    pub(crate) fn adopt(&self, journal: &ProvisionJournal, now: f64) {
        self.state.lock().ledger.adopt(journal, now);
    }

    /// Takes a record of the provisioner with its time in seconds since 1970, and stores the ledger.
    pub(crate) fn record(&self, record: &ProvisionRecord, at: f64) {
        self.state.lock().ledger.record(record, at);
        self.store(at);
    }

    /// Marks a worker that is drained or stopped.
    pub(crate) fn leave(&self, name: &str) {
        self.state.lock().ledger.leave(name);
    }

    /// Returns the cost of a study that runs, or that ended while workers may still add to its cost.
    pub(super) fn cost(&self, study: u32) -> Option<StudyCost> {
        self.state.lock().ledger.cost(study).cloned()
    }

    /// Returns the costs of ended studies.
    pub(super) fn ended(&self) -> Vec<(u32, StudyCost)> {
        self.state.lock().ledger.ended()
    }

    /// Closes the account of a study whose final cost is stored.
    pub(super) fn close(&self, study: u32) {
        self.state.lock().ledger.close(study);
    }

    /// Returns the paid cost by pool since the start of the manager: of workers, and of egress.
    pub(super) fn totals(&self) -> BTreeMap<String, [f64; 2]> {
        self.state.lock().ledger.totals().clone()
    }

    /// Stores the ledger if the last write is long ago. Blocks for the disk.
    pub(super) fn store_sometimes(&self, now: f64) {
        if now - self.state.lock().written >= WRITE_EVERY_SECONDS {
            self.store(now);
        }
    }

    /// Stores the ledger. Blocks for the disk.
    pub(super) fn store(&self, now: f64) {
        if self.pools.is_none() {
            return;
        }
        // One writer at a time, so that an older ledger never replaces a newer one.
        let _writer = self.writer.lock();
        let mut state = self.state.lock();
        state.written = now;
        let ledger = state.ledger.clone();
        drop(state);
        // Costs that cannot be written still count until the manager is started again.
        let _ = checksum::encode(&ledger).map(|text| publish(&self.file, &text));
    }

    /// Returns the demand of all studies together, which get equal turns.
    fn need(&self, studies: &[StudyNeed], now: f64, spent: impl Fn(u32) -> f64) -> WorkDemand {
        let work = works(studies);
        let goal = |(study, share): (&StudyNeed, f64)| {
            study.deadline.map(|deadline| DeadlineGoal { share, deadline_seconds: deadline - now })
        };
        let goals = studies.iter().zip(shares(&work)).filter_map(goal).collect();
        let is_free = studies.iter().any(|study| study.deadline.is_some() && study.budget.is_none());
        let left = |study: &StudyNeed| study.budget.map(|budget| (budget - spent(study.id)).max(0.0));
        let budgets: Vec<f64> = studies.iter().filter_map(left).collect();
        // A study with a deadline and without a budget may cost as much as its deadline takes.
        let budget = (!budgets.is_empty() && !is_free).then(|| budgets.iter().sum());
        WorkDemand { cuts: self.partitions.cuts(studies), goals, budget }
    }
}

fn works(studies: &[StudyNeed]) -> Vec<f64> {
    studies.iter().map(|study| study.work_seconds).collect()
}

/// Returns all active workers as one pool.
fn everybody(active: &[&WorkerView]) -> WorkerPool {
    let count = active.len() as u32;
    let slots: u32 = active.iter().map(|worker| worker.slots).sum();
    WorkerPool {
        name: String::new(),
        // Without workers the quotient is 0 and not NaN.
        slots: f64::from(slots) / f64::from(count.max(1)),
        price_per_hour: 0.0,
        billing_seconds: 0.0,
        startup_seconds: 0.0,
        min: count,
        max: count,
        running: count,
        starting: 0,
        starting_seconds: 0.0,
        ending_seconds: 0.0,
    }
}

/// Returns the present state of the pools: those of the file, followed by one for the workers of no pool, whose
/// number is fixed.
fn pools(
    of_file: &Pools,
    active: &[&WorkerView],
    held: Option<&PreviousDecision>,
    now: f64,
) -> Vec<WorkerPool> {
    let mut pools: Vec<WorkerPool> = Vec::with_capacity(of_file.0.len() + 1);
    for (number, ManagedPool { spec, .. }) in of_file.0.iter().enumerate() {
        let own: Vec<&WorkerView> =
            active.iter().copied().filter(|worker| of_file.of(&worker.name) == Some(number)).collect();
        let running = own.len() as u32;
        let slots = if own.is_empty() { f64::from(spec.cores) } else { everybody(&own).slots };
        let asked = held.and_then(|held| Some((held.desired.get(number)?, held.since_seconds)));
        // A worker that was requested longer than its start-up time ago will not join. It would have to be requested
        // again.
        let coming = asked.filter(|(wanted, since)| **wanted > running && now - since < spec.startup_seconds);
        let (starting, starting_seconds) = coming.map_or((0, 0.0), |(wanted, since)| {
            (wanted - running, spec.startup_seconds - (now - since).max(0.0))
        });
        pools.push(WorkerPool { slots, running, starting, starting_seconds, ..spec.empty() });
    }
    let others: Vec<&WorkerView> =
        active.iter().copied().filter(|worker| of_file.of(&worker.name).is_none()).collect();
    pools.push(everybody(&others));
    pools
}

fn shown(
    of_file: &Pools,
    pools: &[WorkerPool],
    answer: &ScalingDecision,
    view: &ManagerView,
    active: &[&WorkerView],
    spent: f64,
) -> ScalingStatus {
    let is_of = |worker: &WorkerView, pool: usize| of_file.of(&worker.name) == Some(pool);
    let mut leave = Vec::new();
    for pool in 0..of_file.0.len() {
        let own = active.iter().filter(|worker| is_of(worker, pool));
        let load = |worker: &&WorkerView| WorkerLoad {
            name: worker.name.clone(),
            leases: worker.leases,
            bytes: worker.bytes,
            came: 0,
        };
        let order = removal_order(own.map(load).collect());
        leave.extend(order.into_iter().take(answer.surplus(pools, pool) as usize).map(|load| load.name));
    }
    let draining = |pool: usize| {
        let drains = |worker: &&WorkerView| worker.state == WorkerState::Draining && is_of(worker, pool);
        view.workers.iter().filter(drains).count() as u32
    };
    let wanted = of_file.0.iter().enumerate().map(|(number, ManagedPool { spec, .. })| PoolStatus {
        name: spec.name.clone(),
        desired: answer.desired[number],
        running: pools[number].running,
        starting: pools[number].starting,
        draining: draining(number),
        provisioned: None,
    });
    let price = |forecast: MakespanForecast| CostEstimate {
        seconds: finite(forecast.seconds),
        cost: finite(forecast.cost),
    };
    let seconds = finite(answer.forecast.seconds).filter(|seconds| *seconds > 0.0);
    ScalingStatus {
        workers_desired: Some(answer.desired.iter().sum()),
        workers_active: active.len() as u32,
        reason: Some(answer.reason.name().to_owned()),
        predicted_remaining_seconds: seconds,
        predicted_cost: finite(answer.forecast.cost).filter(|_| seconds.is_some()),
        cost_so_far: Some(spent),
        fastest: answer.fastest.as_ref().map(|fastest| price(fastest.forecast)),
        without_budget: answer.without_budget.map(price),
        pools: wanted.collect(),
        drain_order: leave,
        work_by_slots: Vec::new(),
    }
}

fn work_by_slots(cut: &WorkByPartition) -> WorkBySlots {
    WorkBySlots { slots: cut.slots, seconds: cut.work_seconds }
}

fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests;
