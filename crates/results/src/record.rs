//! JSON documents: `plan --json`, `plan.json` and `run.json`.

use crate::analysis::BothEmptyRuns;
use crate::analysis::extremes::Extremes;
use pleach_planner::PlanRecord;
use pleach_storage::{LevelStats, SpillStats};
use pleach_workflow::{Annotations, ReferenceSource, StoppingRule, Study};
use serde::Serialize;
use std::collections::BTreeMap;

/// `plan.json`: the executed plan and the study that owns the folder.
#[derive(Debug, Serialize)]
pub struct PlanFile<'a> {
    /// Name of the study.
    pub study: &'a str,
    /// Digest of the study's definition. It identifies the owner of the folder.
    pub study_digest: &'a str,
    /// Executed plan. Its fields are at the top level of the document.
    #[serde(flatten)]
    pub plan: &'a PlanRecord,
}

/// Format version of `run.json` and of the tables beside it. It increases when a field or column gets another meaning or is
/// removed. Files without a number are of format 1.
pub const RESULTS_FORMAT: u32 = 1;

/// `run.json`.
#[derive(Clone, Debug, Serialize)]
pub struct RunRecord {
    /// Name of the study.
    pub study: String,
    /// Version of pleach that wrote the record.
    pub version: &'static str,
    /// Format version of the results: [`RESULTS_FORMAT`].
    pub format: u32,
    /// Strategy of the plan in lower case, such as `rtma`. With phases, that of the last phase.
    pub strategy: &'static str,
    /// Reuse scope of the plan in lower case, such as `value`. `None` for strategies without buckets.
    pub reuse: Option<&'static str>,
    /// Seed of all random numbers of the study.
    pub seed: u64,
    /// Host of the process that wrote the record: on a cluster, that of the manager.
    pub host: HostRecord,
    /// Seconds of planning: of the last plan for a growing sample, summed over phases. `None` if unknown.
    pub planning_seconds: Option<f64>,
    /// Wall seconds of the study or phase until this record was created.
    pub wall_seconds: f64,
    /// Seconds of `wall_seconds` spent on executing tasks.
    pub execution_seconds: f64,
    /// Number of evaluations, without the defaults (evaluation 0). With phases, the sum.
    pub evaluations: usize,
    /// Number of runs: evaluations times tiles. With phases, the sum.
    pub runs: usize,
    /// Number of runs without a response.
    pub failed: usize,
    /// Number of tasks executed for the study, including those of an interrupted process that it resumed.
    pub tasks_executed: u64,
    /// Number of tasks not executed, by level of reuse: `stage`, `tree`, `dataflow`, `value` and `cache`. Phases and
    /// growing samples also have `earlier`, for tasks that an earlier phase or round executed.
    pub tasks_reused: BTreeMap<&'static str, u64>,
    /// Number of tasks of loops and choices that did not run, because of the values that they depend on.
    #[serde(skip_serializing_if = "is_zero")]
    pub tasks_skipped: u64,
    /// Measured overhead of a bucket in seconds: on its slot before the first task, without transfers of inputs. `None` if no
    /// cluster has measured it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket_overhead_seconds: Option<f64>,
    /// Runs and times of the operations, and of computing digests (`digest`) and using the task cache (`cache`).
    pub operations: Vec<OperationRecord>,
    /// Use of the task cache. `None` without `--cache`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheRecord>,
    /// Use of the spill tiers. `None` without spill tiers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<StorageRecord>,
    /// Peak of held regions and predicted memory of running tasks, in bytes. 0 on a cluster.
    pub peak_bytes_admitted: u64,
    /// Peak resident memory of the process that wrote the record, in bytes. 0 if the system does not report it.
    pub peak_rss_bytes: u64,
    /// Number of task slots that the plan is for.
    pub workers: u32,
    /// Cost of the workers until this record was created. `None` if the manager has no pools, and for local runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<CostRecord>,
    /// Names of all tiles, in the order of the study.
    pub tiles: Vec<String>,
    /// Tiles without a response of any evaluation. The indices exclude them.
    pub excluded_tiles: Vec<String>,
    /// Positions of the annotations of each reference file in its tile. Empty without annotation files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub annotations: Vec<AnnotatedTile>,
    /// Number of tiles that are left out because they have no region of interest.
    #[serde(skip_serializing_if = "is_none_left_out")]
    pub tiles_without_regions: usize,
    /// Weights of tiles in means over tiles. `None` if all tiles have the same weight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weights: Option<WeightRecord>,
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

/// Cost of a study on a cluster, in the currency of the prices. With phases, that of all phases so far.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CostRecord {
    /// Seconds from its start to its end, as the first scaling decision predicted them.
    pub predicted_seconds: Option<f64>,
    /// Its cost, as the same decision predicted it.
    pub predicted_cost: Option<f64>,
    /// Seconds from its start to this record.
    pub seconds: f64,
    /// Paid cost of workers and egress.
    pub cost: f64,
    /// Part of the cost for egress.
    pub egress_cost: f64,
    /// Paid seconds of workers, from their request, in whole billing periods.
    pub paid_seconds: f64,
    /// Seconds of workers from their request until they joined.
    pub starting_seconds: f64,
    /// Number of workers that were started while it ran.
    pub workers_started: u32,
    /// Number of workers that ended before they were drained or stopped.
    pub workers_lost: u32,
    /// Number of workers that were started for lost ones.
    pub workers_replaced: u32,
}

/// Reference file of annotations, and their positions in its tile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AnnotatedTile {
    /// Name of the tile.
    pub tile: String,
    /// Name of the reference file, without its folder.
    pub reference: String,
    /// Number of all annotations of the file.
    pub annotations: usize,
    /// Number of annotations without a pixel in the tile. They do not count.
    pub outside: usize,
    /// Number of annotations that are cut off at the tile's border.
    pub partly_outside: usize,
    /// Number of annotations within the tile that have no pixel of their own.
    pub unusable: usize,
    /// Further counts. Those of 0 are left out.
    #[serde(flatten)]
    pub others: BTreeMap<&'static str, usize>,
}

/// Weights of tiles in means over tiles.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WeightRecord {
    /// Rule of the study file: `tissue` or `annotated`.
    pub by: &'static str,
    /// Weight of each tile in pixels, in the order of `tiles`.
    pub pixels: Vec<f64>,
}

impl WeightRecord {
    /// Returns the weights of a study. `None` if all tiles have the same weight.
    pub fn of(study: &Study) -> Option<Self> {
        let by = study.weights.name();
        (!study.weights.are_equal()).then(|| Self { by, pixels: study.tile_weights.clone() })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none_left_out(number: &usize) -> bool {
    *number == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl AnnotatedTile {
    /// Returns the entries of all reference files of the study.
    pub fn of(study: &Study) -> Vec<Self> {
        let ReferenceSource::Masks(masks) = &study.reference else { return Vec::new() };
        let of = |found: &Annotations| {
            Some(Self {
                tile: image_name(study, found.tile)?,
                reference: masks.get(found.tile)?.file_name()?.to_string_lossy().into_owned(),
                annotations: found.objects,
                outside: found.outside,
                partly_outside: found.partly_outside,
                unusable: found.unusable,
                others: others(found),
            })
        };
        study.annotations.iter().filter_map(of).collect()
    }
}

/// Returns the name of a tile, or of the slide that it is part of.
fn image_name(study: &Study, tile: usize) -> Option<String> {
    let tile = study.tiles.get(tile)?;
    let name = match &tile.slide {
        Some(_) => tile.name.rsplit_once('/').map_or(&*tile.name, |(slide, _)| slide),
        None => &tile.name,
    };
    Some(name.to_owned())
}

/// Returns the counts that most files have not.
fn others(found: &Annotations) -> BTreeMap<&'static str, usize> {
    let counts = [
        ("other_classes", found.other_classes),
        ("without_area", found.without_area),
        ("regions", found.regions),
        ("self_crossing", found.self_crossing),
        ("stray_holes", found.stray_holes),
        ("beyond_tiles", found.beyond_tiles),
    ];
    counts.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// Growth of a sample until it converged or reached its maximum size.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Convergence {
    /// Response whose intervals the stopping rule limits.
    pub response: String,
    /// Maximum width of an interval at convergence.
    pub ci_width: f64,
    /// Maximum number of evaluations of the sample, from the stopping rule.
    pub max_evaluations: usize,
    /// Whether the sample converged. If not, the next sample would have exceeded `max_evaluations`.
    pub converged: bool,
    /// Rounds in order. Each has a larger sample than the one before.
    pub rounds: Vec<RoundRecord>,
}

/// One round of a growing sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RoundRecord {
    /// Number of evaluations of the sample, without the defaults (evaluation 0).
    pub evaluations: usize,
    /// Width of the widest 95 % confidence interval. `None` if an interval is not known.
    pub max_ci_width: Option<f64>,
}

impl Convergence {
    /// Creates the record of a sample grown under the rule `until`. The last round determines whether it converged.
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
    /// Number of the phase, from 1.
    pub phase: usize,
    /// Name of the phase's folder within the result folder, such as `phase-1-moat`.
    pub folder: String,
    /// Kind of the method, such as `moat`. `correlation` for every given-data method.
    pub method: &'static str,
    /// Parameters that varied.
    pub parameters: Vec<String>,
    /// Parameters that the next phase varies. `None` for the last phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub survivors: Option<Vec<String>>,
    /// Number of evaluations of the phase, without the defaults (evaluation 0).
    pub evaluations: usize,
    /// Number of runs: evaluations times tiles.
    pub runs: usize,
    /// Number of runs without a response.
    pub failed: usize,
    /// Number of tasks executed, as [`RunRecord::tasks_executed`].
    pub tasks_executed: u64,
    /// Number of tasks not executed, by level of reuse, as [`RunRecord::tasks_reused`].
    pub tasks_reused: BTreeMap<&'static str, u64>,
    /// Wall seconds of the phase until its `run.json` was created.
    pub wall_seconds: f64,
    /// Growth of the phase's sample. `None` for a sample of fixed size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub convergence: Option<Convergence>,
}

/// Task cache after the study: counts of this process's operations, and its content.
#[derive(Clone, Debug, Serialize)]
pub struct CacheRecord {
    /// Number of lookups that found an entry.
    pub hits: u64,
    /// Number of lookups that found no entry.
    pub misses: u64,
    /// Number of entries stored: traces and regions.
    pub stored: u64,
    /// Entries not stored for lack of space or because the folder is not writable.
    pub(crate) not_stored: u64,
    /// Corrupt entries, whose tasks were executed again.
    pub(crate) corrupt: u64,
    pub(crate) traces: u64,
    pub(crate) regions: u64,
    pub(crate) bytes: u64,
    /// Bytes evicted for the quota of a user.
    pub(crate) quota_evicted_bytes: u64,
    /// Warnings of the cache, as text.
    pub warnings: Vec<String>,
}

impl CacheRecord {
    /// Returns the counts and the content of a cache, and takes its warnings, so that a later call has only new ones.
    pub fn of(cache: &pleach_cache::Cache) -> Self {
        let now = cache.statistics();
        Self {
            hits: now.hits,
            misses: now.misses,
            stored: now.stored,
            not_stored: now.not_stored,
            corrupt: now.corrupt,
            traces: now.traces,
            regions: now.blobs,
            bytes: now.bytes,
            quota_evicted_bytes: now.quota_evicted_bytes,
            warnings: cache.take_reports().iter().map(ToString::to_string).collect(),
        }
    }
}

/// Spill tiers after the study: regions moved out of memory under memory pressure, in ascending order of
/// cost, and regions promoted to it. Bytes are those in memory.
#[derive(Clone, Debug, Serialize)]
pub struct StorageRecord {
    /// Regions dropped because they can be read again from their source.
    pub(crate) dropped: MovedRegions,
    /// Regions demoted to a spill tier.
    pub(crate) demoted: MovedRegions,
    /// Regions promoted to memory.
    pub(crate) promoted: MovedRegions,
    /// Regions missing or corrupt in the spill tiers. Their tasks were executed again.
    pub(crate) lost: u64,
    /// Regions that could not be written to a spill tier.
    pub(crate) refused: u64,
    pub(crate) tiers: Vec<StorageTier>,
}

/// Number and bytes of moved regions.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct MovedRegions {
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
    /// Returns the counts of spill tiers since they were opened: of moved regions, and by tier.
    pub fn new(passed: &SpillStats, tiers: Vec<LevelStats>) -> Self {
        let moved = |regions, bytes| MovedRegions { regions, bytes };
        let tier = |counts: LevelStats| StorageTier {
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
            tiers: tiers.into_iter().map(tier).collect(),
        }
    }
}

/// Host of the run.
#[derive(Clone, Debug, Serialize)]
pub struct HostRecord {
    /// Host name. Empty if the system does not provide it in `/proc`.
    pub name: String,
    /// Number of processors available to the process. 1 if unknown.
    pub processors: usize,
    /// Operating system that the binary was built for, such as `linux`.
    pub system: &'static str,
    /// Processor architecture that the binary was built for, such as `x86_64`.
    pub architecture: &'static str,
}

/// Runs of an operation, and their time in seconds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperationRecord {
    /// Name of the operation, or `digest` or `cache`.
    pub name: String,
    /// Number of runs: of `digest` the digests computed, of `cache` the lookups and the entries stored.
    pub runs: u64,
    /// Wall seconds, summed over runs.
    pub seconds: f64,
    /// Runs on accelerators, which the numbers above include. `None` without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accelerator: Option<AcceleratorRecord>,
    /// Seconds that the cost model predicted just before each run, summed over runs. `None` for operations
    /// without a prediction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub predicted_seconds: Option<f64>,
    /// Absolute prediction error, summed over runs, as a share of `seconds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prediction_error: Option<f64>,
}

/// Runs of an operation on accelerators.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AcceleratorRecord {
    /// Number of runs.
    pub runs: u64,
    /// Wall seconds, transfers included, summed over runs.
    pub seconds: f64,
}

impl AcceleratorRecord {
    /// Creates the record. `None` without runs.
    pub fn new(runs: u64, seconds: f64) -> Option<Self> {
        (runs > 0).then_some(Self { runs, seconds })
    }

    /// Adds the runs of two records.
    pub fn sum(a: Option<Self>, b: Option<Self>) -> Option<Self> {
        let all = || a.iter().chain(&b);
        Self::new(all().map(|one| one.runs).sum(), all().map(|one| one.seconds).sum())
    }
}

impl HostRecord {
    /// Returns the host of this process.
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
