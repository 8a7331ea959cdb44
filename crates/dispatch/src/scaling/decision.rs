//! The step itself: which numbers of workers, and why.
//!
//! Workers are put in the order of what a second of their work by the deadline costs, those that are there before those that
//! would have to come. The first so many of them for which the forecast meets the deadlines are the answer; where none does,
//! the fastest; and where that costs too much, the fastest that does not. Each is found by trying them all, so that nothing
//! is assumed of how more slots change what is shared.

use super::makespan::{MakespanForecast, WorkerSupply};
use super::pool::{PoolWorkers, WorkerPool, groups};
use super::stabilization::{PreviousDecision, is_still_valid};
use super::{DeadlineGoal, WorkDemand};

/// Of the time that is left, so much is kept in hand: costs that were measured foretell the rest about as well
/// (benches/RESULTS.md, costs of operations).
pub(super) const MARGIN: f64 = 0.1;

/// Why there should be so many workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Nothing is left to do.
    Idle,
    /// Nobody waits and nobody says what may be spent: as few as allowed.
    Minimum,
    /// As few as meet the deadlines.
    Deadline,
    /// A deadline cannot be met: as fast as possible.
    Unreachable,
    /// What would meet the deadlines, or be faster, costs too much: as fast as the budget allows.
    Budget,
    /// What was wanted before is still good enough, or was wanted too short a time ago.
    Held,
}

impl Reason {
    /// A word for it.
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

/// The fastest that there is, whatever it costs.
#[derive(Clone, Debug, PartialEq)]
pub struct FastestOption {
    /// What it takes and costs.
    pub forecast: MakespanForecast,
    /// Workers of each pool.
    pub wanted: Vec<u32>,
}

/// How many workers there should be.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalingDecision {
    /// Workers of each pool, in the order of the pools, those that are there among them.
    pub wanted: Vec<u32>,
    /// Why.
    pub reason: Reason,
    /// What they take and cost from now on.
    pub forecast: MakespanForecast,
    /// Where a deadline cannot be met, the fastest that there is, whatever it costs.
    pub fastest: Option<FastestOption>,
    /// Where the budget does not allow what would meet the deadlines: what that takes and costs.
    pub without_budget: Option<MakespanForecast>,
    /// To be given to the next step.
    pub held: PreviousDecision,
}

impl ScalingDecision {
    /// Workers of a pool that are too many.
    #[must_use]
    pub fn surplus(&self, pools: &[WorkerPool], pool: usize) -> u32 {
        pools[pool].running.saturating_sub(self.wanted[pool])
    }
}

/// Decides how many workers each pool should have.
///
/// `before` is what the last step gave, and `now_seconds` a time that does not go back, from any beginning.
#[must_use]
pub fn decide(
    need: &WorkDemand,
    pools: &[WorkerPool],
    before: Option<&PreviousDecision>,
    now_seconds: f64,
) -> ScalingDecision {
    let chosen = choose(need, pools);
    let held = before.filter(|held| held.wanted.len() == pools.len());
    let (wanted, reason, since_seconds) = match held {
        Some(held) if held.wanted == chosen.wanted => (chosen.wanted, chosen.reason, held.since_seconds),
        Some(held) if is_still_valid(held, &chosen.wanted, need, pools, now_seconds) => {
            (stays(held, need, pools), Reason::Held, held.since_seconds)
        }
        _ => (chosen.wanted, chosen.reason, now_seconds),
    };
    let forecast = MakespanForecast::of(need, pools, &wanted);
    let held = PreviousDecision { wanted: wanted.clone(), since_seconds };
    ScalingDecision {
        wanted,
        reason,
        forecast,
        fastest: chosen.fastest,
        without_budget: chosen.without_budget,
        held,
    }
}

/// What stays of what was wanted before: all of it, but nobody comes any more for whom there is nothing to do.
fn stays(held: &PreviousDecision, need: &WorkDemand, pools: &[WorkerPool]) -> Vec<u32> {
    let is_nothing = need.is_nothing();
    let stays = |(wanted, pool): (&u32, &WorkerPool)| {
        if is_nothing { (*wanted).min(pool.running.max(pool.min)) } else { *wanted }
    };
    held.wanted.iter().zip(pools).map(stays).collect()
}

struct Chosen {
    wanted: Vec<u32>,
    reason: Reason,
    fastest: Option<FastestOption>,
    without_budget: Option<MakespanForecast>,
}

/// Some numbers of workers, and what they come to.
struct Tried {
    forecast: MakespanForecast,
    wanted: Vec<u32>,
}

/// What is found of all that is tried.
#[derive(Default)]
struct Found {
    /// The first that meets all deadlines, with the margin.
    in_time: Option<Tried>,
    fastest: Option<Tried>,
    /// The fastest that the budget allows.
    affordable: Option<Tried>,
    /// Something meets all deadlines just so.
    is_reachable: bool,
}

fn choose(need: &WorkDemand, pools: &[WorkerPool]) -> Chosen {
    let minimum: Vec<u32> = pools.iter().map(|pool| pool.min).collect();
    let as_it_is = |reason| Chosen { wanted: minimum.clone(), reason, fastest: None, without_budget: None };
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
        .then(|| FastestOption { forecast: fastest.forecast, wanted: fastest.wanted.clone() });
    let reason = if known.is_some() { Reason::Unreachable } else { Reason::Deadline };
    let best = found.in_time.unwrap_or(fastest);
    let fits = need.budget.is_none_or(|budget| best.forecast.cost <= budget);
    if has_goals && fits {
        return Chosen { wanted: best.wanted, reason, fastest: known, without_budget: None };
    }
    // Below the minimum nobody goes, whatever that costs.
    let wanted = found.affordable.map_or(minimum, |tried| tried.wanted);
    let without_budget = has_goals.then_some(best.forecast);
    Chosen { wanted, reason: Reason::Budget, fastest: known, without_budget }
}

impl Found {
    fn look(&mut self, need: &WorkDemand, forecast: MakespanForecast, staff: &WorkerSupply) {
        let tried = || Some(Tried { forecast, wanted: staff.workers.clone() });
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

/// Tries the minimum, and one worker more at a time. One that comes when all is done is of no use, and neither are those
/// behind it of the same kind.
fn try_all(need: &WorkDemand, pools: &[WorkerPool], mut tell: impl FnMut(MakespanForecast, &WorkerSupply)) {
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
    // What a second of work by the deadline costs; of equals, what is there first.
    let price = |group: &PoolWorkers| {
        let (pool, work) = (&pools[group.pool], horizon - group.at_seconds);
        if work > 0.0 { pool.cost(horizon) / (pool.slots * work) } else { f64::INFINITY }
    };
    all.sort_by(|a, b| {
        price(a).total_cmp(&price(b)).then(a.at_seconds.total_cmp(&b.at_seconds)).then(a.pool.cmp(&b.pool))
    });
    let mut last = staff.forecast(need, pools);
    tell(last, &staff);
    for group in all {
        for _ in 0..group.count {
            if group.at_seconds >= last.seconds {
                break;
            }
            staff.add(pools, PoolWorkers { count: 1, ..group });
            last = staff.forecast(need, pools);
            tell(last, &staff);
        }
    }
}

/// The time for which workers are compared: the first deadline, less the margin. Whoever comes later than that is of no use
/// to it, and is taken last.
fn horizon(need: &WorkDemand) -> f64 {
    /// Where nobody waits, what an hour's work costs.
    const ANY_SECONDS: f64 = 3600.0;
    /// Years are no plan, and their periods no numbers.
    const MAX_SECONDS: f64 = 365.0 * 86_400.0;
    let first = need.goals.iter().map(|goal| goal.deadline_seconds).reduce(f64::min);
    first.map_or(ANY_SECONDS, |first| first.min(MAX_SECONDS) * (1.0 - MARGIN))
}
