//! Remaining work by number of slots, from replans on paper.
//!
//! A replan on paper takes as long as a replan. Therefore few numbers of slots are planned, and their ratios to the
//! work in the present buckets hold until a fifth of the work is done. The manager and `pleach-simulation` share this code.

use super::{WorkByPartition, WorkDemand};

/// Part of the work after which the reuse lost with more slots is planned again: planning takes time, and earlier results
/// scale with the remaining work.
const PLAN_AGAIN: f64 = 0.2;

/// Numbers of slots to plan for, from those of the permanent workers to the maximum, at equal ratios.
const CUTS: usize = 5;

/// Work for several numbers of slots, relative to that of the present buckets.
#[derive(Clone, Debug, PartialEq)]
pub struct PartitionForecast {
    /// By ascending number of slots: the work relative to `planned_seconds`.
    ratios: Vec<(u32, f64)>,
    /// Remaining seconds of work when this forecast was made.
    planned_seconds: f64,
}

impl PartitionForecast {
    /// Returns the ascending numbers of slots to plan for: from `least` to `least` and `more`.
    #[must_use]
    pub fn slots(least: u32, more: u32) -> Vec<u32> {
        let least = least.max(1);
        let ratio = (f64::from(least.saturating_add(more)) / f64::from(least)).powf(1.0 / (CUTS - 1) as f64);
        let slots = |step| (f64::from(least) * ratio.powi(step)).round() as u32;
        let mut slots: Vec<u32> = (0..CUTS as i32).map(slots).collect();
        slots.dedup();
        slots
    }

    /// Creates a forecast from the seconds of work for ascending numbers of slots, where the present buckets take
    /// `present_seconds`. `left` is the remaining work as the study measures it.
    #[must_use]
    pub fn new(planned: impl IntoIterator<Item = (u32, f64)>, present_seconds: f64, left: f64) -> Self {
        let ratios = planned.into_iter().map(|(slots, seconds)| (slots, seconds / present_seconds));
        Self { ratios: ratios.filter(|(_, ratio)| ratio.is_finite()).collect(), planned_seconds: left }
    }

    /// Returns whether so little work remains that it should be planned again.
    #[must_use]
    pub fn is_outdated(&self, left: f64) -> bool {
        left <= self.planned_seconds * (1.0 - PLAN_AGAIN) || self.ratios.is_empty()
    }

    /// Returns the remaining work for each number of slots.
    #[must_use]
    pub fn cuts(&self, left: f64, longest_seconds: f64) -> Vec<WorkByPartition> {
        let cut = |(slots, ratio): &(u32, f64)| WorkByPartition {
            slots: *slots,
            work_seconds: left * ratio,
            longest_seconds,
        };
        self.ratios.iter().map(cut).collect()
    }
}

/// Returns the remaining work of several studies that share all slots. The longest piece is that of any of them.
#[must_use]
pub fn sum_cuts(studies: &[Vec<WorkByPartition>]) -> Vec<WorkByPartition> {
    let mut slots: Vec<u32> = studies.iter().flatten().map(|cut| cut.slots).collect();
    slots.sort_unstable();
    slots.dedup();
    let of = |slots: u32| {
        let (mut work_seconds, mut longest_seconds) = (0.0, 0.0_f64);
        for cuts in studies {
            let (work, longest) = WorkDemand::cut_in(cuts, f64::from(slots));
            work_seconds += work;
            longest_seconds = longest_seconds.max(longest);
        }
        WorkByPartition { slots, work_seconds, longest_seconds }
    };
    slots.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(slots: u32, work_seconds: f64, longest_seconds: f64) -> WorkByPartition {
        WorkByPartition { slots, work_seconds, longest_seconds }
    }

    #[test]
    fn few_slot_counts_cover_the_range_at_equal_ratios() {
        assert_eq!(PartitionForecast::slots(4, 60), [4, 8, 16, 32, 64]);
        assert_eq!(PartitionForecast::slots(4, 0), [4]);
        assert_eq!(PartitionForecast::slots(0, 0), [1]);
        let most = PartitionForecast::slots(1, u32::MAX);
        assert_eq!((most.len(), most.last()), (5, Some(&u32::MAX)));
    }

    #[test]
    fn ratios_hold_until_a_fifth_is_done() {
        let forecast = PartitionForecast::new([(4, 100.0), (16, 150.0)], 100.0, 200.0);
        assert_eq!(forecast.cuts(180.0, 7.0), [cut(4, 180.0, 7.0), cut(16, 270.0, 7.0)]);
        assert!(!forecast.is_outdated(161.0) && forecast.is_outdated(160.0));
        // Without present work no ratio is known.
        assert!(PartitionForecast::new([(4, 0.0)], 0.0, 0.0).is_outdated(1.0));
    }

    #[test]
    fn studies_with_and_without_reuse_to_lose_add_up() {
        let both = [vec![cut(10, 100.0, 8.0), cut(30, 140.0, 4.0)], vec![cut(u32::MAX, 50.0, 5.0)]];
        let sum = sum_cuts(&both);
        assert_eq!(sum, [cut(10, 150.0, 8.0), cut(30, 190.0, 5.0), cut(u32::MAX, 190.0, 5.0)]);
        assert_eq!(sum_cuts(&both[1..]), both[1]);
        assert_eq!(sum_cuts(&[]), []);
    }
}
