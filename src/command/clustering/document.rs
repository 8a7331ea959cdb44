//! Document of `pleach cluster --json`.

mod more;

use super::candidates::{Limits, Settings, Simulated, vertical_name};
use super::evaluation::{Evaluation, regret_of_rule};
use super::executed::ExecutionRecord;
use crate::cli::ReadingArg;
use more::{PortfolioRecord, RowRecord};
use pleach_clustering::simulate::Delay;
use pleach_clustering::{Candidates, Imbalance, LevelMetrics, Size};
use serde::Serialize;

/// All workflows of a call.
#[derive(Debug, Serialize)]
pub(super) struct Clusterings<'a> {
    reading: &'static str,
    candidates: &'static str,
    seed: u64,
    /// Maximum number of jobs of a level. `None` with `--size`.
    max_jobs: Option<usize>,
    /// Maximum number of tasks of a job. `None` without `--size`.
    max_tasks: Option<usize>,
    platform: PlatformRecord,
    workflows: Vec<WorkflowRecord<'a>>,
    /// Regret of the choices by rule, with `--method best`.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_regret: Option<RegretRecord>,
}

#[derive(Debug, Serialize)]
struct RegretRecord {
    mean: f64,
    max: f64,
}

#[derive(Debug, Serialize)]
struct PlatformRecord {
    workers: usize,
    bytes_per_second: f64,
    engine: DelayRecord,
    queue: DelayRecord,
    clustering: DelayRecord,
    post: DelayRecord,
}

#[derive(Debug, Serialize)]
struct DelayRecord {
    mean_seconds: f64,
    /// Shape of the Weibull distribution. `None` for a fixed delay.
    weibull_shape: Option<f64>,
}

#[derive(Debug, Serialize)]
struct WorkflowRecord<'a> {
    file: String,
    workflow: &'a str,
    tasks: usize,
    dependencies: usize,
    seconds: f64,
    makespan_unclustered_seconds: f64,
    clusterings: Vec<ClusteringRecord<'a>>,
    /// Position in `clusterings` of the clustering of `levels_after`.
    shown: usize,
    /// Levels of the tasks.
    levels_before: Vec<LevelRecord>,
    /// Levels of the jobs.
    levels_after: Vec<LevelRecord>,
    /// The choice by rule, with `--method best`.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<RuleRecord<'a>>,
    /// With `--sensitivity`.
    #[serde(skip_serializing_if = "Option::is_none")]
    sensitivity: Option<Vec<RowRecord<'a>>>,
    /// With `--portfolio`.
    #[serde(skip_serializing_if = "Option::is_none")]
    portfolio: Option<PortfolioRecord<'a>>,
}

#[derive(Debug, Serialize)]
struct ClusteringRecord<'a> {
    method: &'static str,
    vertical: &'static str,
    jobs: usize,
    makespan_seconds: f64,
    /// 1 − makespan / makespan without clustering.
    gain: f64,
    /// Makespan without clustering / makespan.
    ratio: f64,
    moved_bytes: u64,
    utilization: f64,
    /// Sums over all jobs.
    phases: PhasesRecord,
    /// Limits of DFJS and AFJS.
    #[serde(skip_serializing_if = "Option::is_none")]
    limits: Option<LimitsRecord>,
    /// Mean over several seeds of HC.
    #[serde(skip_serializing_if = "Option::is_none")]
    seeds: Option<SeedsRecord>,
    /// Execution by emulated tasks, with `--execute`.
    #[serde(skip_serializing_if = "Option::is_none")]
    executed: Option<ExecutedRecord<'a>>,
}

#[derive(Debug, Serialize)]
struct ExecutedRecord<'a> {
    /// Mean over the replicates.
    makespan_seconds: f64,
    /// 1 − makespan / makespan without clustering, both executed.
    gain: f64,
    /// This gain minus the simulated one.
    gain_difference: f64,
    replicates: &'a [ExecutionRecord],
}

#[derive(Debug, Serialize)]
struct SeedsRecord {
    count: usize,
    mean_makespan_seconds: f64,
    /// Half the width of the 95 % interval of the mean.
    half_width_seconds: f64,
}

#[derive(Debug, Serialize)]
struct PhasesRecord {
    engine_seconds: f64,
    wait_seconds: f64,
    queue_seconds: f64,
    transfer_seconds: f64,
    clustering_seconds: f64,
    run_seconds: f64,
}

#[derive(Debug, Serialize)]
struct LimitsRecord {
    max_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_bytes: Option<u64>,
    /// Simulations that tuned the limits. 0 for given limits.
    simulations: usize,
    /// Different clusterings among them.
    clusterings: usize,
}

#[derive(Debug, Serialize)]
struct LevelRecord {
    level: usize,
    tasks: usize,
    hrv: f64,
    hifv: f64,
    hdv: f64,
    prv: f64,
    /// The metrics on a scale of 0–1.
    normalized: ImbalanceRecord,
}

#[derive(Debug, Serialize)]
struct ImbalanceRecord {
    hrv: f64,
    hifv: f64,
    hdv: f64,
    prv: f64,
}

#[derive(Debug, Serialize)]
struct RuleRecord<'a> {
    /// Position in `clusterings`.
    clustering: usize,
    reason: &'a str,
    /// Gain of the least makespan minus that of this choice.
    regret: f64,
}

impl<'a> Clusterings<'a> {
    /// Creates the document.
    pub(super) fn new(evaluations: &'a [Evaluation], reading: ReadingArg, settings: &Settings) -> Self {
        let (max_jobs, max_tasks) = match settings.options.size {
            Size::Jobs(jobs) => (Some(jobs), None),
            Size::Tasks(tasks) => (None, Some(tasks)),
        };
        let overheads = settings.platform.overheads();
        Self {
            reading: match reading {
                ReadingArg::Definition => "definition",
                ReadingArg::Table => "table",
                ReadingArg::Wfs => "wfs",
            },
            candidates: match settings.options.candidates {
                Candidates::Spread => "spread",
                Candidates::Examples => "examples",
            },
            seed: settings.options.seed,
            max_jobs,
            max_tasks,
            platform: PlatformRecord {
                workers: settings.platform.workers().get(),
                bytes_per_second: settings.platform.bytes_per_second(),
                engine: delay(overheads.engine),
                queue: delay(overheads.queue),
                clustering: delay(overheads.clustering),
                post: delay(overheads.post),
            },
            workflows: evaluations.iter().map(workflow).collect(),
            rule_regret: regret_of_rule(evaluations).map(|(mean, max)| RegretRecord { mean, max }),
        }
    }
}

fn delay(delay: Delay) -> DelayRecord {
    let weibull_shape = match delay {
        Delay::Fixed(_) => None,
        Delay::Weibull { shape, .. } => Some(shape),
    };
    DelayRecord { mean_seconds: delay.mean(), weibull_shape }
}

fn workflow(evaluation: &Evaluation) -> WorkflowRecord<'_> {
    let workflow = &evaluation.workflow;
    let record = |(position, simulated)| clustering(evaluation, position, simulated);
    let rule = evaluation.rule.as_ref().map(|rule| RuleRecord {
        clustering: rule.position,
        reason: &rule.reason,
        regret: evaluation.regret(rule),
    });
    WorkflowRecord {
        file: evaluation.file.display().to_string(),
        workflow: workflow.name(),
        tasks: workflow.tasks().len(),
        dependencies: workflow.edges().count(),
        seconds: workflow.total_seconds(),
        makespan_unclustered_seconds: evaluation.baseline().execution.makespan,
        clusterings: evaluation.simulated.iter().enumerate().map(record).collect(),
        shown: evaluation.shown,
        levels_before: evaluation.imbalance.before.iter().map(level).collect(),
        levels_after: evaluation.imbalance.after.iter().map(level).collect(),
        rule,
        sensitivity: evaluation.sensitivity.as_ref().map(more::rows),
        portfolio: evaluation.portfolio.as_ref().map(more::portfolio),
    }
}

fn clustering<'a>(
    evaluation: &'a Evaluation,
    position: usize,
    simulated: &'a Simulated,
) -> ClusteringRecord<'a> {
    let (execution, gain) = (&simulated.execution, simulated.gain(evaluation.baseline()));
    let executed = evaluation.executed.get(position).map(|executed| {
        let executed_gain = executed.gain(&evaluation.executed[0]);
        ExecutedRecord {
            makespan_seconds: executed.mean(),
            gain: executed_gain,
            gain_difference: executed_gain - gain.gain(),
            replicates: &executed.records,
        }
    });
    let phases = execution.phases;
    ClusteringRecord {
        method: simulated.candidate.method.name(),
        vertical: vertical_name(simulated.candidate.vertical),
        jobs: simulated.clustering.jobs().len(),
        makespan_seconds: execution.makespan,
        gain: gain.gain(),
        ratio: gain.ratio(),
        moved_bytes: execution.moved_bytes,
        utilization: execution.utilization(),
        phases: PhasesRecord {
            engine_seconds: phases.engine,
            wait_seconds: phases.wait,
            queue_seconds: phases.queue,
            transfer_seconds: phases.transfer,
            clustering_seconds: phases.clustering,
            run_seconds: phases.run,
        },
        limits: simulated.limits.map(limits),
        seeds: simulated.seeds.map(|mean| SeedsRecord {
            count: mean.count,
            mean_makespan_seconds: mean.makespan,
            half_width_seconds: mean.half_width,
        }),
        executed,
    }
}

fn limits(limits: Limits) -> LimitsRecord {
    let Limits { max_seconds, max_bytes, simulations, clusterings } = limits;
    LimitsRecord { max_seconds, max_bytes, simulations, clusterings }
}

fn level(metrics: &LevelMetrics) -> LevelRecord {
    let Imbalance { hrv, hifv, hdv, prv } = metrics.variance;
    let normalized = metrics.normalized;
    LevelRecord {
        level: metrics.level,
        tasks: metrics.tasks,
        hrv,
        hifv,
        hdv,
        prv,
        normalized: ImbalanceRecord {
            hrv: normalized.hrv,
            hifv: normalized.hifv,
            hdv: normalized.hdv,
            prv: normalized.prv,
        },
    }
}
