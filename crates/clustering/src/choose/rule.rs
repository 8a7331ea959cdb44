//! Choice by rule: a method from chains, level metrics and the platform, with its reason in words.
//!
//! The paper (002, section 5.5) has a decision tree as a picture only. This rule follows its text: run time variation decides
//! for HRB, data for the dependency methods, and chains for vertical clustering first.

use std::num::NonZeroUsize;

/// Variation of run times above which they are balanced. Levels up to it are within 10 % of equal run times, so any
/// method balances them (paper 002, Table 5: Montage, CyberShake level 4 and most levels of LIGO).
const MIN_HRV: f64 = 0.1;

/// Metrics of a level, of the workflow as the method clusters it: after vertical clustering if that is prior.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LevelSummary {
    /// Number of tasks.
    pub tasks: usize,
    /// Horizontal runtime variance: standard deviation of run times divided by their mean.
    pub hrv: f64,
    /// Horizontal distance variance: standard deviation of the distances of task pairs.
    pub hdv: f64,
    /// Mean run time of a task in seconds.
    pub mean_seconds: f64,
    /// Mean bytes of the inputs of a task.
    pub mean_bytes: f64,
}

/// A method that clusters each level by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HorizontalMethod {
    /// Horizontal clustering without balancing.
    Hc,
    /// Horizontal runtime balancing.
    Hrb,
    /// Horizontal impact factor balancing.
    Hifb,
    /// Horizontal distance balancing.
    Hdb,
}

impl HorizontalMethod {
    /// Returns its name in lower case.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hc => "hc",
            Self::Hrb => "hrb",
            Self::Hifb => "hifb",
            Self::Hdb => "hdb",
        }
    }
}

/// Choice of the rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Advice {
    /// The method.
    pub method: HorizontalMethod,
    /// Whether chains are joined first.
    pub is_vertical_prior: bool,
    /// The reason in words, such as "level 3 is wider than the 20 workers and run times vary by 40 %: balance run times".
    /// Levels are numbered from 1.
    pub reason: String,
}

/// Chooses by rule. `chains` is the number of chains of two or more tasks, `levels` are in order.
///
/// - Chains are joined first.
/// - A level wider than the workers with a runtime variance (HRV) above 0.1: HRB.
/// - Otherwise, transfers of inputs longer than run times on levels wider than the workers: HDB if distances vary there
///   (HDV > 0), HIFB if not.
/// - Otherwise HC.
#[must_use]
pub fn advise(
    chains: usize,
    levels: &[LevelSummary],
    workers: NonZeroUsize,
    bytes_per_second: f64,
) -> Advice {
    let (method, balance) = horizontal(levels, workers, bytes_per_second);
    let reason = match chains {
        0 => balance,
        1 => format!("1 chain of tasks: join it first; {balance}"),
        _ => format!("{chains} chains of tasks: join them first; {balance}"),
    };
    Advice { method, is_vertical_prior: chains > 0, reason }
}

fn horizontal(
    levels: &[LevelSummary],
    workers: NonZeroUsize,
    bytes_per_second: f64,
) -> (HorizontalMethod, String) {
    let of_workers = if workers.get() == 1 { "1 worker".to_owned() } else { format!("{workers} workers") };
    let wide = (1..).zip(levels).filter(|(_, level)| level.tasks > workers.get());
    let wide: Vec<(usize, &LevelSummary)> = wide.collect();
    let Some((number, varied)) = wide.iter().max_by(|(_, level), (_, other)| level.hrv.total_cmp(&other.hrv))
    else {
        return (HorizontalMethod::Hc, format!("no level is wider than the {of_workers}: tasks stay single"));
    };
    if varied.hrv > MIN_HRV {
        let variation = 100.0 * varied.hrv;
        let reason = format!(
            "level {number} is wider than the {of_workers} and run times vary by {variation:.0} %: balance run times"
        );
        return (HorizontalMethod::Hrb, reason);
    }
    // Means over tasks, not levels.
    let total = |value: fn(&LevelSummary) -> f64| -> f64 {
        wide.iter().map(|(_, level)| level.tasks as f64 * value(level)).sum()
    };
    let tasks = total(|_| 1.0);
    let transfer = total(|level| level.mean_bytes) / tasks / bytes_per_second;
    let run = total(|level| level.mean_seconds) / tasks;
    let times = format!("inputs take {transfer:.1} s to transfer, tasks {run:.1} s to run");
    if transfer <= run {
        let varied = 100.0 * varied.hrv;
        let reason = format!("run times vary by {varied:.0} % at most and {times}: join tasks of a level");
        return (HorizontalMethod::Hc, reason);
    }
    match wide.iter().find(|(_, level)| level.hdv > 0.0) {
        Some((number, _)) => {
            let reason =
                format!("{times}, and distances vary on level {number}: join tasks with near successors");
            (HorizontalMethod::Hdb, reason)
        }
        None => (HorizontalMethod::Hifb, format!("{times}: join tasks of equal impact")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn advice(chains: usize, levels: &[LevelSummary], workers: usize) -> Advice {
        advise(chains, levels, NonZeroUsize::new(workers).unwrap(), 15e6)
    }

    const EVEN: LevelSummary =
        LevelSummary { tasks: 100, hrv: 0.05, hdv: 0.0, mean_seconds: 10.0, mean_bytes: 1e6 };
    const VARIED: LevelSummary = LevelSummary { hrv: 0.4, ..EVEN };

    #[test]
    fn varied_run_times_on_a_wide_level_are_balanced() {
        let chosen = advice(0, &[EVEN, EVEN, VARIED], 20);
        assert_eq!((chosen.method, chosen.is_vertical_prior), (HorizontalMethod::Hrb, false));
        assert_eq!(
            chosen.reason,
            "level 3 is wider than the 20 workers and run times vary by 40 %: balance run times"
        );
    }

    #[test]
    fn a_narrow_level_does_not_count() {
        let narrow = LevelSummary { tasks: 20, hdv: 5.0, mean_bytes: 1e12, ..VARIED };
        let chosen = advice(0, &[narrow, EVEN], 20);
        assert_eq!(chosen.method, HorizontalMethod::Hc);
        assert_eq!(
            chosen.reason,
            "run times vary by 5 % at most and inputs take 0.1 s to transfer, tasks 10.0 s to run: join tasks of a level"
        );
        assert_eq!(
            advice(0, &[narrow], 20).reason,
            "no level is wider than the 20 workers: tasks stay single"
        );
        assert_eq!(advice(0, &[narrow], 1).method, HorizontalMethod::Hrb);
    }

    #[test]
    fn transfers_longer_than_run_times_are_reduced() {
        let data = LevelSummary { mean_bytes: 300e6, ..EVEN };
        let times = "inputs take 20.0 s to transfer, tasks 10.0 s to run";
        let chosen = advice(0, &[data], 20);
        assert_eq!(chosen.method, HorizontalMethod::Hifb);
        assert_eq!(chosen.reason, format!("{times}: join tasks of equal impact"));
        let chosen = advice(0, &[data, LevelSummary { hdv: 2.0, ..data }], 20);
        assert_eq!(chosen.method, HorizontalMethod::Hdb);
        assert_eq!(
            chosen.reason,
            format!("{times}, and distances vary on level 2: join tasks with near successors")
        );
    }

    #[test]
    fn chains_are_joined_first() {
        let chosen = advice(363, &[VARIED], 20);
        assert!(chosen.is_vertical_prior);
        assert_eq!(
            chosen.reason,
            "363 chains of tasks: join them first; level 1 is wider than the 20 workers and run times vary by 40 %: \
             balance run times"
        );
        assert!(advice(1, &[], 1).reason.starts_with("1 chain of tasks: join it first; no level"));
    }
}
