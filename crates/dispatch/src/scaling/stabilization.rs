//! Stabilization: the previous decision stays while it is good enough.
//!
//! Predictions vary, and starting and draining workers costs more than a small surplus.

use super::decision::MARGIN;
use super::makespan::{MakespanForecast, WorkerSupply};
use super::{DeadlineGoal, WorkDemand, WorkerPool};

/// A decision, as input of the next step.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PreviousDecision {
    /// Workers of each pool.
    pub desired: Vec<u32>,
    /// Time of the decision.
    pub since_seconds: f64,
}

/// Stabilization window: numbers stay at least this long unless forced to change. About the start-up time of a worker.
const STAY_SECONDS: f64 = 120.0;

/// Part of the margin that must remain. A decision is made with the full margin, so predictions may vary by the difference.
const LEFT_OF_MARGIN: f64 = 0.25;

/// Changes by at most this part of all slots are ignored.
const WORTH: f64 = 0.1;

/// Returns whether the previous decision may stay instead of the new choice.
///
/// It may not if it misses a deadline that the new choice meets, has used up most of the margin, exceeds the
/// budget, or is outside the pools' limits. Otherwise it stays for [`STAY_SECONDS`], or the longest start-up, and for
/// changes too small to act on.
pub(super) fn is_still_valid(
    held: &PreviousDecision,
    chosen: &[u32],
    need: &WorkDemand,
    pools: &[WorkerPool],
    now_seconds: f64,
) -> bool {
    let within = |(pool, wanted): (&WorkerPool, &u32)| (pool.min..=pool.max.max(pool.min)).contains(wanted);
    if !pools.iter().zip(&held.desired).all(within) {
        return false;
    }
    let (old, new) = (WorkerSupply::of(pools, &held.desired), WorkerSupply::of(pools, chosen));
    let in_time = |staff: &WorkerSupply, margin: f64| {
        let meets =
            |goal: &DeadlineGoal| staff.seconds(need, goal.share) <= goal.deadline_seconds * (1.0 - margin);
        need.goals.iter().all(meets)
    };
    let old_forecast: MakespanForecast = old.forecast(need, pools);
    let new_forecast: MakespanForecast = new.forecast(need, pools);
    if need.budget.is_some_and(|budget| old_forecast.cost > budget) && old_forecast.cost > new_forecast.cost {
        return false;
    }
    if !in_time(&old, MARGIN * LEFT_OF_MARGIN) && new_forecast.seconds < old_forecast.seconds {
        return false;
    }
    let stay = pools.iter().map(|pool| pool.startup_seconds).fold(STAY_SECONDS, f64::max);
    if now_seconds - held.since_seconds < stay {
        return true;
    }
    let (old, new) = (old.slots(), new.slots());
    let is_little = (old - new).abs() <= WORTH * old.max(new);
    // An equal number of slots from another pool is a change of price, not of size.
    is_little && old != new
}
