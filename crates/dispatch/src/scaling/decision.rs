//! The scaling step: the number of workers of each pool, and the reason.
//!
//! Workers are sorted by the cost of a second of their work before the deadline, present workers before new ones. The
//! decision is the shortest prefix whose forecast meets the deadlines. If none does, it is the fastest prefix, and if that
//! costs too much, the fastest within the budget. The step tries all prefixes, so that it
//! assumes nothing about the reuse lost with more slots.

use super::makespan::{MakespanForecast, WorkerSupply};
use super::pool::{PoolWorkers, WorkerPool, groups};
use super::stabilization::{PreviousDecision, is_still_valid};
use super::{DeadlineGoal, WorkDemand};

/// Safety margin on the remaining time: measured costs predict the rest with about this error
/// (benches/RESULTS.md, costs of operations).
pub(super) const MARGIN: f64 = 0.1;

/// Reason for a scaling decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// No work remains.
    Idle,
    /// Neither deadline nor budget: as few workers as allowed.
    Minimum,
    /// The fewest workers that meet the deadlines.
    Deadline,
    /// A deadline cannot be met: as fast as possible.
    Unreachable,
    /// Meeting the deadlines, or being faster, costs too much: as fast as the budget allows.
    Budget,
    /// Stabilized: the previous decision is still good enough, or too recent to change.
    Held,
}

impl Reason {
    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Minimum => "minimum",
            Self::Deadline => "deadline",
            Self::Unreachable => "infeasible",
            Self::Budget => "budget",
            Self::Held => "stabilized",
        }
    }
}

/// The fastest option, regardless of its cost.
#[derive(Clone, Debug, PartialEq)]
pub struct FastestOption {
    /// Its time and cost.
    pub forecast: MakespanForecast,
    /// Workers of each pool.
    pub desired: Vec<u32>,
}

/// Desired number of workers.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalingDecision {
    /// Workers of each pool, in the order of the pools, present ones included.
    pub desired: Vec<u32>,
    /// Why.
    pub reason: Reason,
    /// Their time and cost from now on.
    pub forecast: MakespanForecast,
    /// If a deadline cannot be met: the fastest option, regardless of its cost.
    pub fastest: Option<FastestOption>,
    /// If the budget rules out meeting the deadlines: the time and cost without it.
    pub without_budget: Option<MakespanForecast>,
    /// Argument for the next step.
    pub previous: PreviousDecision,
}

impl ScalingDecision {
    /// Returns the number of surplus workers of a pool.
    #[must_use]
    pub fn surplus(&self, pools: &[WorkerPool], pool: usize) -> u32 {
        pools[pool].running.saturating_sub(self.desired[pool])
    }
}

/// Decides how many workers each pool should have.
///
/// `before` is the previous decision, and `now_seconds` a monotonic time with any origin.
#[must_use]
pub fn decide(
    need: &WorkDemand,
    pools: &[WorkerPool],
    before: Option<&PreviousDecision>,
    now_seconds: f64,
) -> ScalingDecision {
    let chosen = choose(need, pools);
    // Numbers for another set of pools do not apply.
    let held = before.filter(|held| held.desired.len() == pools.len());
    let (desired, reason, since_seconds) = match held {
        Some(held) if held.desired == chosen.desired => (chosen.desired, chosen.reason, held.since_seconds),
        Some(held) if is_still_valid(held, &chosen.desired, need, pools, now_seconds) => {
            (stays(held, need, pools), Reason::Held, held.since_seconds)
        }
        _ => (chosen.desired, chosen.reason, now_seconds),
    };
    let forecast = MakespanForecast::of(need, pools, &desired);
    let previous = PreviousDecision { desired: desired.clone(), since_seconds };
    ScalingDecision {
        desired,
        reason,
        forecast,
        fastest: chosen.fastest,
        without_budget: chosen.without_budget,
        previous,
    }
}

/// Returns the part of the previous decision that stays: all of it, but no new workers once no work remains.
fn stays(held: &PreviousDecision, need: &WorkDemand, pools: &[WorkerPool]) -> Vec<u32> {
    let is_nothing = need.is_nothing();
    let stays = |(wanted, pool): (&u32, &WorkerPool)| {
        if is_nothing { (*wanted).min(pool.running.max(pool.min)) } else { *wanted }
    };
    held.desired.iter().zip(pools).map(stays).collect()
}

struct Chosen {
    desired: Vec<u32>,
    reason: Reason,
    fastest: Option<FastestOption>,
    without_budget: Option<MakespanForecast>,
}

/// A tried number of workers and its forecast.
struct Tried {
    forecast: MakespanForecast,
    desired: Vec<u32>,
}

/// Best options among all tried.
#[derive(Default)]
struct Found {
    /// The first option that meets all deadlines with the margin.
    in_time: Option<Tried>,
    fastest: Option<Tried>,
    /// The fastest option within the budget.
    affordable: Option<Tried>,
    /// Whether an option meets all deadlines without the margin.
    is_reachable: bool,
}

fn choose(need: &WorkDemand, pools: &[WorkerPool]) -> Chosen {
    let minimum: Vec<u32> = pools.iter().map(|pool| pool.min).collect();
    let as_it_is = |reason| Chosen { desired: minimum.clone(), reason, fastest: None, without_budget: None };
    if need.is_nothing() {
        return as_it_is(Reason::Idle);
    }
    if need.goals.is_empty() && need.budget.is_none() {
        return as_it_is(Reason::Minimum);
    }
    let mut found = Found::default();
    try_all(need, pools, |forecast, staff| found.look(need, forecast, staff));
    let has_goals = !need.goals.is_empty();
    let Some(fastest) = found.fastest else { return as_it_is(Reason::Minimum) };
    let known = (has_goals && !found.is_reachable)
        .then(|| FastestOption { forecast: fastest.forecast, desired: fastest.desired.clone() });
    let reason = if known.is_some() { Reason::Unreachable } else { Reason::Deadline };
    let best = found.in_time.unwrap_or(fastest);
    let fits = need.budget.is_none_or(|budget| best.forecast.cost <= budget);
    if has_goals && fits {
        return Chosen { desired: best.desired, reason, fastest: known, without_budget: None };
    }
    // The minimum applies whatever it costs.
    let wanted = found.affordable.map_or(minimum, |tried| tried.desired);
    let without_budget = has_goals.then_some(best.forecast);
    Chosen { desired: wanted, reason: Reason::Budget, fastest: known, without_budget }
}

impl Found {
    fn look(&mut self, need: &WorkDemand, forecast: MakespanForecast, staff: &WorkerSupply) {
        let tried = || Some(Tried { forecast, desired: staff.workers.clone() });
        let is_faster =
            |best: &Option<Tried>| best.as_ref().is_none_or(|best| forecast.seconds < best.forecast.seconds);
        if is_faster(&self.fastest) {
            self.fastest = tried();
        }
        if need.budget.is_some_and(|budget| forecast.cost <= budget) && is_faster(&self.affordable) {
            self.affordable = tried();
        }
        let in_time = |part: f64| {
            let meets = |goal: &DeadlineGoal| staff.seconds(need, goal.share) <= goal.deadline_seconds * part;
            need.goals.iter().all(meets)
        };
        self.is_reachable = self.is_reachable || in_time(1.0);
        if self.in_time.is_none() && in_time(1.0 - MARGIN) {
            self.in_time = tried();
        }
    }
}

/// Tries the minimum, and then one worker more at a time. Skips workers that would arrive after all is done, and all
/// further ones of their group.
fn try_all(need: &WorkDemand, pools: &[WorkerPool], mut visit: impl FnMut(MakespanForecast, &WorkerSupply)) {
    let horizon = horizon(need);
    let minimum: Vec<u32> = pools.iter().map(|pool| pool.min.min(pool.max)).collect();
    let mut staff = WorkerSupply::of(pools, &minimum);
    let mut all: Vec<PoolWorkers> = Vec::new();
    for (number, pool) in pools.iter().enumerate() {
        let mut there = minimum[number];
        for group in groups(number, pool) {
            let taken = group.count.min(there);
            there -= taken;
            all.push(PoolWorkers { count: group.count - taken, ..group });
        }
    }
    // Cost of a second of work before the deadline. Among equals, present workers come first.
    let price = |group: &PoolWorkers| {
        let (pool, work) = (&pools[group.pool], horizon - group.at_seconds);
        let paid = horizon + pool.ending_seconds;
        if work > 0.0 { pool.cost(paid) / (pool.slots * work) } else { f64::INFINITY }
    };
    all.sort_by(|a, b| {
        price(a).total_cmp(&price(b)).then(a.at_seconds.total_cmp(&b.at_seconds)).then(a.pool.cmp(&b.pool))
    });
    let mut last = staff.forecast(need, pools);
    visit(last, &staff);
    for group in all {
        for _ in 0..group.count {
            if group.at_seconds >= last.seconds {
                break;
            }
            staff.add(pools, PoolWorkers { count: 1, ..group });
            last = staff.forecast(need, pools);
            visit(last, &staff);
        }
    }
}

/// Returns the time span over which the costs of workers are compared: the first deadline, less the margin.
/// Workers that arrive later cannot help to meet it and are taken last.
fn horizon(need: &WorkDemand) -> f64 {
    /// Without a deadline, workers are compared by the cost of an hour's work.
    const ANY_SECONDS: f64 = 3600.0;
    /// One year. Keeps the billing periods of very late deadlines in a sensible range.
    const MAX_SECONDS: f64 = 365.0 * 86_400.0;
    let first = need.goals.iter().map(|goal| goal.deadline_seconds).reduce(f64::min);
    first.map_or(ANY_SECONDS, |first| first.min(MAX_SECONDS) * (1.0 - MARGIN))
}
