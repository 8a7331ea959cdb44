//! Search for the limits of the least makespan.
//!
//! Limits range from 1 s to the sum of all run times. The range is divided into ten equal chunks, the midpoint of each chunk is
//! simulated, and the chunk of the least makespan is the next range, until its width is below 1 s. The paper is silent on AFJS:
//! the second limit, in bytes, is treated likewise, from 1 byte to the sum of all inputs and outputs, on a grid of 10 × 10
//! points, until its width is below 1 MB.

/// Number of chunks of a range (paper 002, section 5.2).
const CHUNKS: usize = 10;
/// Least limit of run times in seconds (paper 002, section 5.2), and the width of a converged range of seconds.
const MIN_SECONDS: f64 = 1.0;
/// Least limit of bytes: a limit of 0 and of 1 join the same tasks.
const MIN_BYTES: f64 = 1.0;
/// Width of a converged range of bytes: 1 MB takes less than 0.1 s at the 15 MB/s of the paper, below the resolution of 1 s for
/// run times.
const BYTES_WIDTH: f64 = 1e6;

/// A simulation with certain limits.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trial {
    /// Limit of the run times of a job in seconds.
    pub max_seconds: f64,
    /// Limit of the inputs and outputs of a job in bytes. `None` for DFJS.
    pub max_bytes: Option<u64>,
    /// Makespan in seconds.
    pub makespan: f64,
}

/// Result of tuning.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuned {
    /// The trial with the least makespan: of equals the one with the loosest limit of bytes, and of these the first one.
    pub best: Trial,
    /// All trials in their order. Each one is a simulation.
    pub trials: Vec<Trial>,
    /// Number of simulations that were executed: [`tune`](super::tune) simulates equal clusterings of several trials once.
    pub clusterings: usize,
}

impl Tuned {
    fn new(trials: Vec<Trial>) -> Self {
        let best = trials[best(&trials)];
        Self { best, clusterings: trials.len(), trials }
    }

    /// Returns the number of simulations.
    #[must_use]
    pub fn simulations(&self) -> usize {
        self.trials.len()
    }
}

/// Tunes the limit of DFJS (DFJS*). `total_seconds` is the sum of all run times. `makespan` clusters and simulates with a limit
/// in seconds.
pub fn tune_seconds(total_seconds: f64, mut makespan: impl FnMut(f64) -> f64) -> Tuned {
    let mut range = Range { lower: MIN_SECONDS, upper: total_seconds, width: MIN_SECONDS };
    let mut trials = Vec::new();
    loop {
        let round = trials.len();
        for max_seconds in range.midpoints() {
            trials.push(Trial { max_seconds, max_bytes: None, makespan: makespan(max_seconds) });
        }
        range = range.chunk(best(&trials[round..]));
        if range.has_converged() {
            return Tuned::new(trials);
        }
    }
}

/// Tunes both limits of AFJS (AFJS*). `total_bytes` is the sum of inputs and outputs over all tasks. `makespan` clusters and
/// simulates with a limit in seconds and a limit in bytes.
///
/// A range that has converged before the other one contributes its midpoint only.
pub fn tune_seconds_and_bytes(
    total_seconds: f64,
    total_bytes: u64,
    mut makespan: impl FnMut(f64, u64) -> f64,
) -> Tuned {
    let mut seconds = Range { lower: MIN_SECONDS, upper: total_seconds, width: MIN_SECONDS };
    let mut bytes = Range { lower: MIN_BYTES, upper: total_bytes as f64, width: BYTES_WIDTH };
    let mut trials = Vec::new();
    loop {
        let round = trials.len();
        let columns = bytes.midpoints();
        for max_seconds in seconds.midpoints() {
            for limit in &columns {
                let max_bytes = limit.round() as u64;
                let makespan = makespan(max_seconds, max_bytes);
                trials.push(Trial { max_seconds, max_bytes: Some(max_bytes), makespan });
            }
        }
        let point = best(&trials[round..]);
        seconds = seconds.chunk(point / columns.len());
        bytes = bytes.chunk(point % columns.len());
        if seconds.has_converged() && bytes.has_converged() {
            return Tuned::new(trials);
        }
    }
}

/// Returns the trial with the least makespan: of equals the one with the loosest limit of bytes, and of these the first one. A
/// tight limit that does not matter yet would bind once seconds have converged.
fn best(trials: &[Trial]) -> usize {
    let order = |index: &usize, other: &usize| {
        let (trial, other) = (&trials[*index], &trials[*other]);
        trial.makespan.total_cmp(&other.makespan).then(other.max_bytes.cmp(&trial.max_bytes))
    };
    (0..trials.len()).min_by(order).unwrap_or(0)
}

/// A range of limits.
#[derive(Clone, Copy)]
struct Range {
    lower: f64,
    upper: f64,
    /// A range that is narrower has converged.
    width: f64,
}

impl Range {
    fn has_converged(self) -> bool {
        // `max` turns a difference that is not a number into 0.
        (self.upper - self.lower).max(0.0) < self.width
    }

    /// Returns the midpoint of each chunk, and that of the range if it has converged.
    fn midpoints(self) -> Vec<f64> {
        if self.has_converged() {
            return vec![self.lower + (self.upper - self.lower).max(0.0) / 2.0];
        }
        let chunk = (self.upper - self.lower) / CHUNKS as f64;
        (0..CHUNKS).map(|index| self.lower + chunk * (index as f64 + 0.5)).collect()
    }

    /// Returns a chunk, and the same range if it has converged.
    fn chunk(self, index: usize) -> Self {
        if self.has_converged() {
            return self;
        }
        let chunk = (self.upper - self.lower) / CHUNKS as f64;
        let lower = self.lower + chunk * index as f64;
        Self { lower, upper: lower + chunk, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unimodal_makespan_is_tuned_to_its_minimum() {
        let tuned = tune_seconds(3378.0, |seconds| (seconds - 180.0).abs());
        assert!((tuned.best.max_seconds - 180.0).abs() < 1.0, "{:?}", tuned.best);
        // 3377 → 337.7 → 33.77 → 3.377 → 0.3377.
        assert_eq!(tuned.simulations(), 40);
        assert_eq!(tuned.trials[0].max_seconds, 1.0 + 3377.0 / 20.0);
    }

    #[test]
    fn both_limits_are_tuned_together() {
        let makespan = |seconds: f64, bytes: u64| (seconds - 42.0).abs() + (bytes as f64 / 1e6 - 700.0).abs();
        let tuned = tune_seconds_and_bytes(1000.0, 5_000_000_000, makespan);
        let bytes = tuned.best.max_bytes.unwrap_or(0) as f64;
        assert!((tuned.best.max_seconds - 42.0).abs() < 1.0, "{:?}", tuned.best);
        assert!((bytes / 1e6 - 700.0).abs() < 1.0, "{:?}", tuned.best);
        // Seconds converge after 3 rounds of 100 (999 → 0.999), bytes after a fourth of 10 (5000 MB → 0.5 MB).
        assert_eq!(tuned.simulations(), 310);
    }

    #[test]
    fn a_workflow_below_the_least_limit_takes_one_simulation() {
        for total in [0.0, 0.5, 1.0, 1.5, f64::NAN] {
            let tuned = tune_seconds(total, |_| 7.0);
            assert_eq!((tuned.simulations(), tuned.best.makespan), (1, 7.0), "{total}");
            assert!(tuned.best.max_seconds >= 1.0);
        }
        assert_eq!(tune_seconds_and_bytes(0.0, 0, |_, _| 7.0).simulations(), 1);
    }

    #[test]
    fn the_best_trial_of_all_rounds_is_returned() {
        // The midpoint of the first chunk is a hole that no later midpoint hits.
        let hole = 1.0 + 99.0 / 20.0;
        let tuned = tune_seconds(100.0, |seconds| if seconds == hole { 1.0 } else { 2.0 });
        assert_eq!((tuned.best.max_seconds, tuned.best.makespan), (hole, 1.0));
        assert_eq!(tuned.simulations(), 20);
    }
}
