//! Worker pools: prices, start-up times, and current sizes.

/// A pool of identical workers. Draining workers are not counted, since they take no work.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerPool {
    /// Its name.
    pub name: String,
    /// Slots of a worker, weighted by speed: a slot of mean speed is 1.
    pub slots: f64,
    /// Price of a worker for an hour, in any currency. Not negative.
    pub price_per_hour: f64,
    /// Billing period: a started period is paid in full. Not negative.
    pub billing_seconds: f64,
    /// Seconds from the request for a worker to its first task.
    pub startup_seconds: f64,
    /// Minimum of workers.
    pub min: u32,
    /// Maximum of workers.
    pub max: u32,
    /// Workers that take work.
    pub running: u32,
    /// Requested workers that have not arrived.
    pub starting: u32,
    /// Remaining seconds of their start-up.
    pub starting_seconds: f64,
    /// Seconds from the end of the work to the end of a worker beyond the minimum: idle time, drain, and the driver.
    pub ending_seconds: f64,
}

impl WorkerPool {
    /// Returns the cost of a worker for a time.
    #[must_use]
    pub fn cost(&self, seconds: f64) -> f64 {
        self.price_per_hour / 3600.0 * billed_seconds(seconds, self.billing_seconds)
    }

    /// Returns the cost of a number of workers until the work ends. Those beyond the minimum are paid until their own end.
    pub(super) fn cost_until_end(&self, workers: u32, work_seconds: f64) -> f64 {
        let stay = workers.min(self.min);
        let cost = |count: u32, seconds: f64| match count {
            0 => 0.0,
            // Without workers the time may be infinite.
            count => f64::from(count) * self.cost(seconds),
        };
        cost(stay, work_seconds) + cost(workers - stay, work_seconds + self.ending_seconds)
    }
}

/// Returns the billed seconds: periods are paid in full.
#[must_use]
pub fn billed_seconds(seconds: f64, period: f64) -> f64 {
    let seconds = seconds.max(0.0);
    // The tolerance absorbs rounding errors of summed times, which would otherwise bill one more period.
    if period > 0.0 { (seconds / period - 1e-9).ceil().max(0.0) * period } else { seconds }
}

/// Workers of one pool that arrive at the same time.
#[derive(Clone, Copy, Debug)]
pub(super) struct PoolWorkers {
    /// Index of the pool.
    pub(super) pool: usize,
    /// Seconds from now until they can work.
    pub(super) at_seconds: f64,
    pub(super) count: u32,
}

/// Returns the workers that a pool may have, by arrival: running, starting, and new ones.
pub(super) fn groups(number: usize, pool: &WorkerPool) -> Vec<PoolWorkers> {
    let starting = pool.starting.min(pool.max.saturating_sub(pool.running));
    let running = pool.running.min(pool.max);
    let new = pool.max.saturating_sub(running + starting);
    let group = |at_seconds: f64, count| PoolWorkers { pool: number, at_seconds: at_seconds.max(0.0), count };
    let groups = [
        group(0.0, running),
        group(pool.starting_seconds.min(pool.startup_seconds), starting),
        group(pool.startup_seconds, new),
    ];
    groups.into_iter().filter(|group| group.count > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_are_paid_as_a_whole() {
        let pool = WorkerPool {
            name: "cloud".to_owned(),
            slots: 4.0,
            price_per_hour: 3.6,
            billing_seconds: 60.0,
            startup_seconds: 90.0,
            min: 0,
            max: 10,
            running: 0,
            starting: 0,
            starting_seconds: 0.0,
            ending_seconds: 0.0,
        };
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-12, "{a} {b}");
        close(pool.cost(0.0), 0.0);
        close(pool.cost(1.0), 0.06);
        close(pool.cost(60.0), 0.06);
        close(pool.cost(61.0), 0.12);
        close(WorkerPool { billing_seconds: 3600.0, ..pool.clone() }.cost(61.0), 3.6);
        close(WorkerPool { billing_seconds: 0.0, ..pool }.cost(61.0), 0.061);
    }

    #[test]
    fn workers_beyond_the_minimum_are_paid_until_they_have_ended() {
        let pool = WorkerPool {
            name: "cloud".to_owned(),
            slots: 4.0,
            price_per_hour: 3600.0,
            billing_seconds: 60.0,
            startup_seconds: 90.0,
            min: 2,
            max: 10,
            running: 0,
            starting: 0,
            starting_seconds: 0.0,
            ending_seconds: 45.0,
        };
        // The work ends within the second period, three of the five workers within the third.
        assert_eq!(pool.cost_until_end(5, 100.0), 2.0 * 120.0 + 3.0 * 180.0);
        assert_eq!(pool.cost_until_end(1, 100.0), 120.0);
        assert_eq!(pool.cost_until_end(0, f64::INFINITY), 0.0);
    }
}
