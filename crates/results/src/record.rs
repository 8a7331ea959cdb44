//! JSON documents: `plan --json`, `plan.json` and `run.json`.

use crate::analysis::BothEmptyRuns;
use crate::analysis::extremes::Extremes;
use pleach_planner::PlanRecord;
use pleach_workflow::{Annotations, ReferenceSource, StoppingRule, Study};
use serde::Serialize;
use std::collections::BTreeMap;

/// `plan.json`: the executed plan and the study that owns the folder.
#[derive(Debug, Serialize)]
pub struct PlanFile<'a> {
    pub study: &'a str,
    pub study_digest: &'a str,
    #[serde(flatten)]
    pub plan: &'a PlanRecord,
}

/// `run.json`.
#[derive(Clone, Debug, Serialize)]
pub struct RunRecord {
    pub study: String,
    pub version: &'static str,
    pub strategy: &'static str,
    pub reuse: Option<&'static str>,
    pub seed: u64,
    pub host: HostRecord,
    pub planning_seconds: Option<f64>,
    pub wall_seconds: f64,
    /// Seconds of `wall_seconds` spent on executing tasks.
    pub execution_seconds: f64,
    pub evaluations: usize,
    pub runs: usize,
    /// Number of runs without a response.
    pub failed: usize,
    pub tasks_executed: u64,
    pub tasks_reused: BTreeMap<&'static str, u64>,
    pub operations: Vec<OperationRecord>,
    /// Use of the task cache. `None` without `--cache`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheRecord>,
    /// Use of the spill tiers. `None` without spill tiers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageRecord>,
    pub peak_bytes_admitted: u64,
    pub peak_rss_bytes: u64,
    pub workers: u32,
    pub tiles: Vec<String>,
    /// Tiles without a response of any evaluation. The indices exclude them.
    pub excluded_tiles: Vec<String>,
    /// Positions of the annotations of each reference file in its tile. Empty without annotation files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub annotations: Vec<Annotated>,
    /// Runs whose mask and reference are both empty, by response. Empty without such runs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub both_empty: Vec<BothEmptyRuns>,
    /// Default, best and worst evaluation, by response.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub extremes: Vec<Extremes>,
    /// Growth of the sample. `None` for a sample of fixed size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub convergence: Option<Convergence>,
    /// Phases. Empty for a study of a single phase.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phases: Vec<PhaseRun>,
}

/// Reference file of annotations, and their positions in its tile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Annotated {
    /// Name of the tile.
    pub tile: String,
    pub reference: String,
    pub annotations: usize,
    /// Number of annotations without a pixel in the tile. They do not count.
    pub outside: usize,
    /// Number of annotations that are cut off at the tile's border.
    pub partly_outside: usize,
    /// Number of annotations within the tile that have no pixel of their own.
    pub unusable: usize,
}

impl Annotated {
    /// Returns the entries of all reference files of the study.
    pub fn of(study: &Study) -> Vec<Self> {
        let ReferenceSource::Masks(masks) = &study.reference else { return Vec::new() };
        let of = |found: &Annotations| {
            Some(Self {
                tile: study.tiles.get(found.tile)?.name.clone(),
                reference: masks.get(found.tile)?.file_name()?.to_string_lossy().into_owned(),
                annotations: found.objects,
                outside: found.outside,
                partly_outside: found.partly_outside,
                unusable: found.unusable,
            })
        };
        study.annotations.iter().filter_map(of).collect()
    }
}

/// Growth of a sample until it converged or reached its maximum size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Convergence {
    /// Response whose intervals the stopping rule limits.
    pub response: String,
    /// Maximum width of an interval at convergence.
    pub ci_width: f64,
    pub max_evaluations: usize,
    /// Whether the sample converged. If not, the next sample would have exceeded `max_evaluations`.
    pub converged: bool,
    pub rounds: Vec<RoundRecord>,
}

/// One round of a growing sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RoundRecord {
    pub evaluations: usize,
    /// Width of the widest 95 % confidence interval. `None` if an interval is not known.
    pub max_ci_width: Option<f64>,
}

impl Convergence {
    pub fn of(study: &Study, until: StoppingRule, rounds: Vec<RoundRecord>) -> Self {
        let last = rounds.last().and_then(|round| round.max_ci_width);
        Self {
            response: study.workflow.response.metrics[until.metric].0.clone(),
            ci_width: until.ci_width,
            max_evaluations: until.max_evaluations,
            converged: last.is_some_and(|widest| widest <= until.ci_width),
            rounds,
        }
    }
}

/// One phase of a study: varied parameters, work and time.
#[derive(Clone, Debug, Serialize)]
pub struct PhaseRun {
    pub phase: usize,
    pub folder: String,
    pub method: &'static str,
    /// Parameters that varied.
    pub parameters: Vec<String>,
    /// Parameters that the next phase varies. `None` for the last phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survivors: Option<Vec<String>>,
    pub evaluations: usize,
    pub runs: usize,
    pub failed: usize,
    pub tasks_executed: u64,
    pub tasks_reused: BTreeMap<&'static str, u64>,
    pub wall_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub convergence: Option<Convergence>,
}

/// Task cache after the study: counts of this process's operations, and its content.
#[derive(Clone, Debug, Serialize)]
pub struct CacheRecord {
    pub hits: u64,
    pub misses: u64,
    pub stored: u64,
    /// Entries not stored for lack of space or because the folder is not writable.
    pub(crate) not_stored: u64,
    /// Corrupt entries, whose tasks were executed again.
    pub(crate) corrupt: u64,
    pub(crate) traces: u64,
    pub(crate) regions: u64,
    pub(crate) bytes: u64,
    /// Warnings of the cache, as text.
    pub warnings: Vec<String>,
}

impl CacheRecord {
    pub fn of(cache: &pleach_cache::Cache) -> Self {
        let now = cache.statistics();
        Self {
            hits: now.hits,
            misses: now.misses,
            stored: now.stored,
            not_stored: now.not_stored,
            corrupt: now.damaged,
            traces: now.traces,
            regions: now.blobs,
            bytes: now.bytes,
            warnings: cache.take_reports().iter().map(ToString::to_string).collect(),
        }
    }
}

/// Spill tiers after the study: regions moved out of memory under memory pressure, in ascending order of
/// cost, and regions promoted to it. Bytes are those in memory.
#[derive(Clone, Debug, Serialize)]
pub struct StorageRecord {
    /// Regions dropped because they can be read again from their source.
    pub(crate) dropped: Moved,
    /// Regions demoted to a spill tier.
    pub(crate) demoted: Moved,
    /// Regions promoted to memory.
    pub(crate) promoted: Moved,
    /// Regions missing or corrupt in the spill tiers. Their tasks were executed again.
    pub(crate) lost: u64,
    /// Regions that could not be written to a spill tier.
    pub(crate) refused: u64,
    pub(crate) tiers: Vec<StorageTier>,
}

/// Number and bytes of moved regions.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Moved {
    pub(crate) regions: u64,
    pub(crate) bytes: u64,
}

/// One spill tier.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StorageTier {
    pub(crate) name: String,
    pub(crate) capacity_bytes: u64,
    pub(crate) held_bytes: u64,
    pub(crate) inserted: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    /// Regions evicted from this tier that a tier below holds.
    pub(crate) spilled: u64,
    /// Regions prefetched to this tier.
    pub(crate) prefetched: u64,
    /// Regions evicted from this tier that no tier below holds.
    pub(crate) evicted: u64,
    pub(crate) lost: u64,
    pub(crate) errors: u64,
}

impl StorageRecord {
    pub fn of(below: &pleach_actors::spill::SpillStore) -> Self {
        let passed = below.passed();
        let moved = |regions, bytes| Moved { regions, bytes };
        let tier = |counts: pleach_storage::LevelStats| StorageTier {
            name: counts.name,
            capacity_bytes: counts.capacity_bytes,
            held_bytes: counts.held_bytes,
            inserted: counts.inserted,
            hits: counts.hits,
            misses: counts.misses,
            spilled: counts.spilled,
            prefetched: counts.prefetched,
            evicted: counts.evicted,
            lost: counts.lost,
            errors: counts.errors,
        };
        Self {
            dropped: moved(passed.dropped, passed.dropped_bytes),
            demoted: moved(passed.demoted, passed.demoted_bytes),
            promoted: moved(passed.promoted, passed.promoted_bytes),
            lost: passed.lost,
            refused: passed.refused,
            tiers: below.counts().into_iter().map(tier).collect(),
        }
    }
}

/// Host of the run.
#[derive(Clone, Debug, Serialize)]
pub struct HostRecord {
    pub name: String,
    pub processors: usize,
    pub system: &'static str,
    pub architecture: &'static str,
}

/// Runs of an operation, and their time in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperationRecord {
    pub name: String,
    pub runs: u64,
    pub seconds: f64,
    /// Seconds that the cost model predicted just before each run, summed over runs. `None` for operations
    /// without a prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_seconds: Option<f64>,
    /// Absolute prediction error, summed over runs, as a share of `seconds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prediction_error: Option<f64>,
}

impl HostRecord {
    pub fn this() -> Self {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
        Self {
            name,
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            system: std::env::consts::OS,
            architecture: std::env::consts::ARCH,
        }
    }
}

/// Returns the peak resident memory of this process in bytes. 0 if the system does not report it.
pub fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
