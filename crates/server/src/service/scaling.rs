//! Desired number of workers: passes the remaining work of all studies, their deadlines and budgets, and the
//! connected workers to [`pleach_dispatch::scaling`].
//!
//! The costs so far follow from the prices of the connected workers and are stored in the state directory. This
//! module starts and drains no worker: autoscalers and `super::provision` read its result.

mod supply;

use super::state::record;
use crate::pools::{ManagedPool, Pools};
use parking_lot::Mutex;
use pleach_actors::manager::{ManagerView, WorkerState, WorkerView};
use pleach_api::schema::{CostEstimate, PoolStatus, ScalingStatus};
use pleach_dispatch::scaling::{
    DeadlineGoal, MakespanForecast, PreviousDecision, ScalingDecision, WorkByPartition, WorkDemand,
    WorkerLoad, WorkerPool, decide, removal_order, shares,
};
use pleach_results::checksum;
use pleach_results::folder::publish;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
pub(crate) use supply::{PoolSupply, Supplies};
use tracing::warn;

/// 60 s between two writes of the costs so far: a killed manager loses no more.
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
    /// Time of the last step, in seconds since 1970.
    last: Option<f64>,
    written: f64,
    /// Cost so far of each study, until it ends.
    spent: BTreeMap<u32, f64>,
}

/// Scaling decisions of one manager, with the state between two decisions.
#[derive(Debug)]
pub(crate) struct Scaler {
    pools: Option<Pools>,
    /// File with the costs so far.
    file: PathBuf,
    /// A step that panics loses at most the previous decision and a part of the costs since the last step.
    state: Mutex<ScalerState>,
    /// Workers that the provisioner has requested.
    pub(crate) supplies: Supplies,
}

impl Scaler {
    /// Creates the scaler with the costs stored in `file`. A missing or corrupt file counts as no costs.
    pub(crate) fn new(pools: Option<Pools>, file: PathBuf) -> Self {
        let lost = |why: &dyn Display| {
            warn!("{}: {why}; the cost of unfinished studies restarts at 0", file.display());
        };
        let mut spent: BTreeMap<u32, f64> = record::read(&file).or_default(lost);
        spent.retain(|_, spent| spent.is_finite() && *spent >= 0.0);
        let state = Mutex::new(ScalerState { spent, ..ScalerState::default() });
        Self { pools, file, state, supplies: Supplies::default() }
    }

    /// Decides how many workers are desired. `now` is in seconds since 1970.
    pub(super) fn step(&self, view: &ManagerView, studies: &[StudyNeed], now: f64) -> ScalingStatus {
        // Before the lock of this step: the closure takes the same lock, once for each study.
        let need = need(studies, now, |id| self.state.lock().spent.get(&id).copied().unwrap_or(0.0));
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
            if let Some(supply) = self.supplies.get(number) {
                *pool = supply.correct(pool.clone());
            }
        }
        self.pay(&mut state, &pools, studies, now);
        let before = state.previous.take();
        let answer = decide(&need, &pools, before.as_ref(), now);
        state.previous = Some(answer.previous.clone());
        let spent = state.spent.values().fold(0.0, |sum, spent| sum + spent);
        drop(state);
        let mut status = shown(of_file, &pools, &answer, view, &active, spent);
        for (number, pool) in status.pools.iter_mut().enumerate() {
            pool.provisioned = self.supplies.get(number).map(|supply| supply.status());
        }
        status
    }

    /// Returns for each study with a deadline the seconds from its predicted end to that deadline, by the study's
    /// number. A negative margin means that the study will be late. Only active workers count, because desired
    /// workers may never join.
    pub(super) fn margins(view: &ManagerView, studies: &[StudyNeed], now: f64) -> BTreeMap<u32, f64> {
        let active = view.workers.iter().filter(|worker| worker.state == WorkerState::Active);
        let pool = everybody(&active.collect::<Vec<_>>());
        let (need, workers) = (need(studies, now, |_| 0.0), [pool.running]);
        let work: Vec<f64> = studies.iter().map(|study| study.work_seconds).collect();
        let pools = [pool];
        let margin = |(study, share): (&StudyNeed, f64)| {
            let left = study.deadline? - now;
            Some((study.id, left - MakespanForecast::seconds_of_share(&need, &pools, &workers, share)))
        };
        studies.iter().zip(shares(&work)).filter_map(margin).collect()
    }

    /// Charges the cost of the connected workers since the last step, in equal parts to all studies.
    fn pay(&self, state: &mut ScalerState, pools: &[WorkerPool], studies: &[StudyNeed], now: f64) {
        // The first step after a start charges nothing: the time since the last step of the earlier process is unknown.
        let passed = now - state.last.replace(now).unwrap_or(now);
        let a_second: f64 =
            pools.iter().map(|pool| pool.price_per_hour / 3600.0 * f64::from(pool.running)).sum();
        let before = state.spent.len();
        state.spent.retain(|id, _| studies.iter().any(|study| study.id == *id));
        let is_less = state.spent.len() < before;
        for study in studies {
            // A clock that is set back must not reduce costs.
            *state.spent.entry(study.id).or_default() += passed.max(0.0) * a_second / studies.len() as f64;
        }
        if is_less || (a_second > 0.0 && now - state.written >= WRITE_EVERY_SECONDS) {
            state.written = now;
            // Costs that cannot be written still count until the manager is started again.
            let _ = checksum::encode(&state.spent).map(|text| publish(&self.file, &text));
        }
    }
}

/// Returns the demand of all studies together, which get equal turns.
fn need(studies: &[StudyNeed], now: f64, spent: impl Fn(u32) -> f64) -> WorkDemand {
    let work: Vec<f64> = studies.iter().map(|study| study.work_seconds).collect();
    let longest_seconds = studies.iter().map(|study| study.run_seconds).fold(0.0, f64::max);
    let all = WorkByPartition { slots: u32::MAX, work_seconds: work.iter().sum(), longest_seconds };
    let goal = |(study, share): (&StudyNeed, f64)| {
        study.deadline.map(|deadline| DeadlineGoal { share, deadline_seconds: deadline - now })
    };
    let goals = studies.iter().zip(shares(&work)).filter_map(goal).collect();
    let is_free = studies.iter().any(|study| study.deadline.is_some() && study.budget.is_none());
    let left = |study: &StudyNeed| study.budget.map(|budget| (budget - spent(study.id)).max(0.0));
    let budgets: Vec<f64> = studies.iter().filter_map(left).collect();
    // A study with a deadline and without a budget may cost as much as its deadline takes.
    let budget = (!budgets.is_empty() && !is_free).then(|| budgets.iter().sum());
    WorkDemand { cuts: vec![all], goals, budget }
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
    }
}

fn finite(number: f64) -> Option<f64> {
    number.is_finite().then_some(number)
}

#[cfg(test)]
mod tests;
