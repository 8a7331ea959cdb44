//! Forecast of time and cost for a number of workers: work flows through slots as a fluid, and workers that
//! have yet to arrive begin later.

use super::WorkDemand;
use super::pool::{PoolWorkers, WorkerPool, groups};

/// Forecast for a number of workers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MakespanForecast {
    /// Seconds until all is done. Infinite without workers.
    pub seconds: f64,
    /// Cost of all paid workers until then, and until the end of those beyond the minimum of their pool.
    pub cost: f64,
}

/// Workers by arrival time.
#[derive(Clone, Debug, Default)]
pub(super) struct WorkerSupply {
    /// Arrival times and slots, ascending by time.
    arrivals: Vec<(f64, f64)>,
    /// Workers of each pool.
    pub(super) workers: Vec<u32>,
}

impl WorkerSupply {
    /// Takes a number of workers of each pool: present ones first, then starting ones, then new ones.
    pub(super) fn of(pools: &[WorkerPool], workers: &[u32]) -> Self {
        let mut staff = Self { arrivals: Vec::new(), workers: vec![0; pools.len()] };
        for (number, (pool, &wanted)) in pools.iter().zip(workers).enumerate() {
            let mut left = wanted;
            for group in groups(number, pool) {
                let count = group.count.min(left);
                left -= count;
                staff.add(pools, PoolWorkers { count, ..group });
            }
        }
        staff
    }

    pub(super) fn add(&mut self, pools: &[WorkerPool], group: PoolWorkers) {
        if group.count == 0 {
            return;
        }
        self.workers[group.pool] += group.count;
        let slots = pools[group.pool].slots * f64::from(group.count);
        let place = self.arrivals.partition_point(|(at, _)| *at < group.at_seconds);
        match self.arrivals.get_mut(place) {
            // Exact: times that differ by rounding become two entries with the same sum.
            Some((at, there)) if *at == group.at_seconds => *there += slots,
            _ => self.arrivals.insert(place, (group.at_seconds, slots)),
        }
    }

    pub(super) fn slots(&self) -> f64 {
        self.arrivals.iter().map(|(_, slots)| slots).sum()
    }

    /// Returns the seconds until an amount of work is done. Infinite without slots.
    fn time_for(&self, work_seconds: f64) -> f64 {
        if work_seconds <= 0.0 {
            return 0.0;
        }
        let (mut done, mut slots, mut now) = (0.0, 0.0, 0.0);
        for (at, more) in &self.arrivals {
            let by_then = done + slots * (at - now);
            if by_then >= work_seconds {
                break;
            }
            (done, slots, now) = (by_then, slots + more, *at);
        }
        if slots > 0.0 { now + (work_seconds - done) / slots } else { f64::INFINITY }
    }

    /// Returns the seconds until a share of the work is done. All slots but one wait for the last piece (Graham
    /// 1966).
    pub(super) fn seconds(&self, need: &WorkDemand, share: f64) -> f64 {
        let slots = self.slots();
        let (work, longest) = need.cut_for(slots);
        if work * share <= 0.0 {
            return 0.0;
        }
        let waiting = (1.0 - 1.0 / slots.max(1.0)) * longest;
        self.time_for(work * share) + waiting
    }

    /// Forecasts all of the work.
    pub(super) fn forecast(&self, need: &WorkDemand, pools: &[WorkerPool]) -> MakespanForecast {
        let seconds = self.seconds(need, 1.0);
        let all = pools.iter().zip(&self.workers).filter(|(pool, _)| pool.price_per_hour > 0.0);
        let cost = all.map(|(pool, workers)| pool.cost_until_end(*workers, seconds));
        MakespanForecast { seconds, cost: cost.sum() }
    }
}

impl MakespanForecast {
    /// Forecasts the time and cost of the remaining work for a number of workers of each pool.
    #[must_use]
    pub fn of(need: &WorkDemand, pools: &[WorkerPool], workers: &[u32]) -> Self {
        WorkerSupply::of(pools, workers).forecast(need, pools)
    }

    /// Returns the seconds until a number of workers of each pool has done a share of the work. Infinite without workers.
    #[must_use]
    pub fn seconds_of_share(need: &WorkDemand, pools: &[WorkerPool], workers: &[u32], share: f64) -> f64 {
        WorkerSupply::of(pools, workers).seconds(need, share)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(price_per_hour: f64, startup_seconds: f64, running: u32) -> WorkerPool {
        WorkerPool {
            name: String::new(),
            slots: 2.0,
            price_per_hour,
            billing_seconds: 0.0,
            startup_seconds,
            min: 0,
            max: 100,
            running,
            starting: 0,
            starting_seconds: 0.0,
            ending_seconds: 0.0,
        }
    }

    #[test]
    fn workers_that_arrive_later_share_the_remaining_work() {
        let pools = [pool(0.0, 0.0, 5), pool(36.0, 60.0, 0)];
        // Ten slots alone take 100 s for 1000 s of work.
        let need = WorkDemand::of(1000.0, 0.0);
        assert_eq!(
            MakespanForecast::of(&need, &pools, &[5, 0]),
            MakespanForecast { seconds: 100.0, cost: 0.0 }
        );
        // After 60 s, 400 s of work remain, which take 20 slots 20 s. 5 workers are paid for 80 s at 0.01 per second.
        let both = MakespanForecast::of(&need, &pools, &[5, 5]);
        assert!((both.seconds - 80.0).abs() < 1e-9 && (both.cost - 4.0).abs() < 1e-9, "{both:?}");
        // Work done before they arrive does not wait for them.
        assert_eq!(MakespanForecast::of(&WorkDemand::of(500.0, 0.0), &pools, &[5, 50]).seconds, 50.0);
        assert_eq!(MakespanForecast::of(&need, &pools, &[0, 0]).seconds, f64::INFINITY);
        assert_eq!(
            MakespanForecast::of(&WorkDemand::default(), &pools, &[0, 0]),
            MakespanForecast { seconds: 0.0, cost: 0.0 }
        );
    }

    #[test]
    fn the_last_piece_is_waited_for() {
        let pools = [pool(0.0, 0.0, 5)];
        assert_eq!(
            MakespanForecast::of(&WorkDemand::of(1000.0, 20.0), &pools, &[5]).seconds,
            100.0 + 0.9 * 20.0
        );
        // One slot never waits.
        let one = [WorkerPool { slots: 1.0, ..pool(0.0, 0.0, 1) }];
        assert_eq!(MakespanForecast::of(&WorkDemand::of(1000.0, 20.0), &one, &[1]).seconds, 1000.0);
    }
}
