//! What was wanted before is wanted still, as long as it is good enough: predictions waver, and workers that come and go cost
//! more than a few too many.

use super::decision::MARGIN;
use super::makespan::{MakespanForecast, WorkerSupply};
use super::{DeadlineGoal, WorkDemand, WorkerPool};

/// What a step gave, for the next one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PreviousDecision {
    /// Workers of each pool.
    pub wanted: Vec<u32>,
    /// Since when.
    pub since_seconds: f64,
}

/// Numbers stay for so long at least where nothing forces them to change: about what a worker takes to come.
const STAY_SECONDS: f64 = 120.0;

/// Of the margin, this part has to be left: what is wanted fits with all of it, so that predictions may waver by what is between.
const LEFT_OF_MARGIN: f64 = 0.25;

/// A change by less than this part of all slots is not worth it.
const WORTH: f64 = 0.1;

/// Whether what was wanted may stay instead of what would be chosen now.
///
/// It may not where it misses a deadline that the new choice meets, has eaten up most of the margin, costs more than there
/// is, or is beyond what the pools allow. Otherwise it stays for [`STAY_SECONDS`], or the longest start-up, and for changes
/// that are not worth it.
pub(super) fn is_still_valid(
    held: &PreviousDecision,
    chosen: &[u32],
    need: &WorkDemand,
    pools: &[WorkerPool],
    now_seconds: f64,
) -> bool {
    let within = |(pool, wanted): (&WorkerPool, &u32)| (pool.min..=pool.max.max(pool.min)).contains(wanted);
    if !pools.iter().zip(&held.wanted).all(within) {
        return false;
    }
    let (old, new) = (WorkerSupply::of(pools, &held.wanted), WorkerSupply::of(pools, chosen));
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
    // The same slots from elsewhere are a change of another kind.
    is_little && old != new
}
