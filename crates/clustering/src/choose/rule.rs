//! Choice by rule: a method from chains, level metrics and the platform, with its reason in words.
//!
//! The paper (002, section 5.5) has a decision tree as a picture only. This rule follows its text: run time variation decides
//! for HRB, data for the dependency methods, and chains for vertical clustering first. The paper has no rule for DFJS: ours
//! compares two estimates of the makespan ([`Estimates`]).

use std::num::NonZeroUsize;

use crate::methods::Vertical;
use crate::simulate::Platform;

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
    /// Jobs of limited run time ([`Advice::max_seconds`]).
    Dfjs,
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
            Self::Dfjs => "dfjs",
        }
    }
}

/// Choice of the rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The method.
    pub method: HorizontalMethod,
    /// Maximum run time of a job in seconds, of [`HorizontalMethod::Dfjs`].
    pub max_seconds: Option<f64>,
    /// [`Vertical::Prior`] if chains are joined first, [`Vertical::Posterior`] with DFJS, else [`Vertical::None`].
    pub vertical: Vertical,
    /// The reason in words, such as "level 3 is wider than the 20 workers and run times vary by 40 %: balance run times".
    /// Levels are numbered from 1.
    pub reason: String,
}

/// Chooses by rule. `chains` is the number of chains of two or more tasks, `levels` are in order. `joins_levels` permits the first
/// choice.
///
/// - Tasks run longer than their inputs take to transfer, and jobs that run as long as they are delayed end earlier than jobs of all
///   workers, by estimates of both makespans: DFJS with that limit, and chains of its jobs are joined.
/// - Otherwise, chains are joined first.
/// - A level wider than the workers with a runtime variance (HRV) above 0.1: HRB.
/// - Otherwise, transfers of inputs longer than run times on levels wider than the workers: HDB if distances vary there
///   (HDV > 0), HIFB if not.
/// - Otherwise HC.
#[must_use]
pub fn advise(chains: usize, levels: &[LevelSummary], platform: &Platform, joins_levels: bool) -> Advice {
    let Estimates { delay, level_by_level, joined, runs, transfers } = Estimates::new(levels, platform);
    if joins_levels && delay > 0.0 && joined < level_by_level && transfers <= runs {
        let reason = format!(
            "jobs are delayed by {delay:.0} s each, and levels have little work: jobs of {delay:.0} s that join levels take some \
             {joined:.0} s, jobs of levels {level_by_level:.0} s"
        );
        let method = HorizontalMethod::Dfjs;
        return Advice { method, max_seconds: Some(delay), vertical: Vertical::Posterior, reason };
    }
    let (method, balance) = horizontal(levels, platform.workers(), platform.bytes_per_second());
    let reason = match chains {
        0 => balance,
        1 => format!("1 chain of tasks: join it first; {balance}"),
        _ => format!("{chains} chains of tasks: join them first; {balance}"),
    };
    let vertical = if chains > 0 { Vertical::Prior } else { Vertical::None };
    Advice { method, max_seconds: None, vertical, reason }
}

/// Estimated makespans of two clusterings in seconds, from sums over levels.
///
/// Level by level, each level has as many jobs as workers at most, of equal work, and pays the delay of a job once. Jobs that run as long
/// as they are delayed need fewer workers. A level whose whole work is no longer than the delay is one job then, and joins the level above
/// if that is one job too: both pay one delay. Only the sum of the work on a level counts, with the transfers of all inputs: unequal run
/// times and transfers that a worker spares are left out in both.
struct Estimates {
    /// Delay of a job: engine, queue and post delay.
    delay: f64,
    level_by_level: f64,
    joined: f64,
    /// Sums over all tasks.
    runs: f64,
    transfers: f64,
}

impl Estimates {
    fn new(levels: &[LevelSummary], platform: &Platform) -> Self {
        let overheads = platform.overheads();
        let delay = overheads.engine.mean() + overheads.queue.mean() + overheads.post.mean();
        let (clustering, workers) = (overheads.clustering.mean(), platform.workers().get() as f64);
        let (mut level_by_level, mut joined, mut runs, mut transfers) = (0.0, 0.0, 0.0, 0.0);
        let mut is_one_job = false;
        for level in levels {
            let tasks = level.tasks as f64;
            let (run, transfer) =
                (tasks * level.mean_seconds, tasks * level.mean_bytes / platform.bytes_per_second());
            let work = run + transfer;
            level_by_level += delay + work / tasks.min(workers);
            level_by_level += if tasks > workers { clustering } else { 0.0 };
            if work <= delay {
                joined += if is_one_job { work } else { delay + clustering + work };
                is_one_job = true;
            } else {
                // Without a delay, each task is a job.
                let jobs = (work / delay).ceil().min(tasks);
                let of_job = delay + work / jobs + if jobs < tasks { clustering } else { 0.0 };
                joined += of_job * (jobs / workers).ceil();
                is_one_job = false;
            }
            runs += run;
            transfers += transfer;
        }
        Self { delay, level_by_level, joined, runs, transfers }
    }
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
        let platform = Platform::default().with_workers(NonZeroUsize::new(workers).unwrap());
        advise(chains, levels, &platform, true)
    }

    const EVEN: LevelSummary =
        LevelSummary { tasks: 100, hrv: 0.05, hdv: 0.0, mean_seconds: 10.0, mean_bytes: 1e6 };
    const VARIED: LevelSummary = LevelSummary { hrv: 0.4, ..EVEN };

    #[test]
    fn varied_run_times_on_a_wide_level_are_balanced() {
        let chosen = advice(0, &[EVEN, EVEN, VARIED], 20);
        assert_eq!((chosen.method, chosen.vertical), (HorizontalMethod::Hrb, Vertical::None));
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
        assert_eq!(chosen.vertical, Vertical::Prior);
        assert_eq!(
            chosen.reason,
            "363 chains of tasks: join them first; level 1 is wider than the 20 workers and run times vary by 40 %: \
             balance run times"
        );
        assert!(advice(1, &[], 1).reason.starts_with("1 chain of tasks: join it first; no level"));
    }

    /// Work of 50 s: a level takes 60 + 5 s on ten workers, and 50 s behind other levels in a job.
    const SMALL: LevelSummary = LevelSummary { tasks: 10, mean_seconds: 5.0, mean_bytes: 0.0, ..VARIED };

    #[test]
    fn levels_of_little_work_are_joined() {
        let chosen = advice(0, &[SMALL; 20], 20);
        assert_eq!((chosen.method, chosen.vertical), (HorizontalMethod::Dfjs, Vertical::Posterior));
        assert_eq!(chosen.max_seconds, Some(60.0));
        assert_eq!(
            chosen.reason,
            "jobs are delayed by 60 s each, and levels have little work: jobs of 60 s that join levels take some 1061 s, jobs of \
             levels 1300 s"
        );
        // A level of 500 s needs its workers. Without a delay, nothing is won.
        let wide = LevelSummary { tasks: 100, ..SMALL };
        assert_ne!(advice(0, &[wide, SMALL], 20).method, HorizontalMethod::Dfjs);
        let platform = Platform::default();
        let overheads = crate::simulate::Overheads::NONE;
        assert_ne!(
            advise(0, &[SMALL; 20], &platform.with_overheads(overheads).unwrap(), true).method,
            HorizontalMethod::Dfjs
        );
        assert_ne!(advise(0, &[SMALL; 20], &platform, false).method, HorizontalMethod::Dfjs);
    }

    #[test]
    fn levels_are_not_joined_for_their_transfers() {
        // 0.4 s to run and 4.6 s to transfer: a job has ten inputs one after the other.
        let data = LevelSummary { mean_seconds: 0.4, mean_bytes: 4.6 * 15e6, ..SMALL };
        assert_ne!(advice(0, &[data; 20], 20).method, HorizontalMethod::Dfjs);
    }
}
