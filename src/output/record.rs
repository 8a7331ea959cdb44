//! The JSON documents: `plan --json`, `plan.json`, `run.json`.

use crate::analysis::BothEmptyRuns;
use crate::analysis::extremes::Extremes;
use crate::command::plan::parts::Forecast;
use crate::planning::PlanSummary;
use pleach_workflow::{Annotations, ReferenceSource, StoppingRule, Study};
use serde::Serialize;
use std::collections::BTreeMap;

/// What `pleach plan --json` prints.
#[derive(Debug, Serialize)]
pub(crate) struct Plans {
    pub(crate) plans: Vec<PlanRecord>,
    /// What can be said of all parts of a study of several; none of any other.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) parts: Vec<Forecast>,
    /// How the annotations of each reference file lie in its tile; none where no reference file holds any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) annotations: Vec<Annotated>,
}

/// One plan.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PlanRecord {
    pub(crate) strategy: &'static str,
    pub(crate) reuse: Option<&'static str>,
    #[serde(flatten)]
    pub(crate) figures: PlanSummary,
    /// Left out where documents of equal plans are to be equal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) planning_seconds: Option<f64>,
    pub(crate) workers: u32,
    pub(crate) max_bucket_size: Option<usize>,
    pub(crate) max_buckets: Option<usize>,
    /// What a worker needs at least, where the plan was made for a given memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) least_bytes: Option<u64>,
}

/// `plan.json`: the plan that was executed, and whose folder this is.
#[derive(Debug, Serialize)]
pub(crate) struct PlanFile<'a> {
    pub(crate) study: &'a str,
    pub(crate) study_digest: &'a str,
    #[serde(flatten)]
    pub(crate) plan: &'a PlanRecord,
}

/// `run.json`.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct RunRecord {
    pub(crate) study: String,
    pub(crate) version: &'static str,
    pub(crate) strategy: &'static str,
    pub(crate) reuse: Option<&'static str>,
    pub(crate) seed: u64,
    pub(crate) host: HostRecord,
    pub(crate) planning_seconds: Option<f64>,
    pub(crate) wall_seconds: f64,
    /// Of these, those in which tasks were executed.
    pub(crate) execution_seconds: f64,
    pub(crate) evaluations: usize,
    pub(crate) runs: usize,
    /// Runs without a response.
    pub(crate) failed: usize,
    pub(crate) tasks_executed: u64,
    pub(crate) tasks_reused: BTreeMap<&'static str, u64>,
    pub(crate) operations: Vec<OperationRecord>,
    /// What `--cache` came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cache: Option<CacheRecord>,
    /// What the tiers below memory came to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) storage: Option<StorageRecord>,
    pub(crate) peak_bytes_admitted: u64,
    pub(crate) peak_rss_bytes: u64,
    pub(crate) workers: u32,
    pub(crate) tiles: Vec<String>,
    /// Tiles on which no evaluation has a response: left out of the indices.
    pub(crate) excluded_tiles: Vec<String>,
    /// How the annotations of each reference file lie in its tile; none where no reference file holds any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) annotations: Vec<Annotated>,
    /// Runs whose mask and reference are both empty, by response; none where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) both_empty: Vec<BothEmptyRuns>,
    /// The default, the best and the worst evaluation, by response.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) extremes: Vec<Extremes>,
    /// How a sample grew; none where it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) convergence: Option<Convergence>,
    /// Its phases; none in a study of one part.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) phases: Vec<PhaseRun>,
}

/// A reference file of annotations, and how they lie in its tile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Annotated {
    /// The tile's name.
    pub(crate) tile: String,
    pub(crate) reference: String,
    pub(crate) annotations: usize,
    /// Those without a pixel in the tile: they do not count.
    pub(crate) outside: usize,
    /// Those that are cut off at the tile's border.
    pub(crate) partly_outside: usize,
    /// Those within the tile that take no pixel of their own.
    pub(crate) unusable: usize,
}

impl Annotated {
    /// Of each file of the study.
    pub(crate) fn of(study: &Study) -> Vec<Self> {
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

/// How a sample grew until its intervals were narrow enough.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Convergence {
    /// The response that it was about.
    pub(crate) response: String,
    /// The width that is narrow enough.
    pub(crate) ci_width: f64,
    pub(crate) max_evaluations: usize,
    /// Whether the widest interval is narrow enough; else a larger sample would have been too large.
    pub(crate) converged: bool,
    pub(crate) rounds: Vec<RoundRecord>,
}

/// A sample on the way.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct RoundRecord {
    pub(crate) evaluations: usize,
    /// Width of the widest 95 % interval; none where one of them is not known.
    pub(crate) max_ci_width: Option<f64>,
}

impl Convergence {
    pub(crate) fn of(study: &Study, until: StoppingRule, rounds: Vec<RoundRecord>) -> Self {
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

/// One phase of a study: what it varied, and what it took.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct PhaseRun {
    pub(crate) phase: usize,
    pub(crate) folder: String,
    pub(crate) method: &'static str,
    /// Those that varied.
    pub(crate) parameters: Vec<String>,
    /// Those that go on to be varied; none after the last phase.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) survivors: Option<Vec<String>>,
    pub(crate) evaluations: usize,
    pub(crate) runs: usize,
    pub(crate) failed: usize,
    pub(crate) tasks_executed: u64,
    pub(crate) tasks_reused: BTreeMap<&'static str, u64>,
    pub(crate) wall_seconds: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) convergence: Option<Convergence>,
}

/// A cache after the study: counts of what this process asked of it, and what is in it now.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct CacheRecord {
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    pub(crate) stored: u64,
    /// For want of room, or because nothing can be written.
    pub(crate) not_stored: u64,
    /// Entries that were not what had been written, and were computed again.
    pub(crate) corrupt: u64,
    pub(crate) traces: u64,
    pub(crate) regions: u64,
    pub(crate) bytes: u64,
    /// What went wrong with it, in words.
    pub(crate) warnings: Vec<String>,
}

impl CacheRecord {
    pub(crate) fn of(cache: &pleach_cache::Cache) -> Self {
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

/// The tiers below memory after the study: what left memory when it was short, in order of what that costs, and what came
/// back. Bytes are those in memory.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StorageRecord {
    /// Regions that were let go of, since they can be read again from where they came from.
    pub(crate) dropped: Moved,
    /// Regions that were moved below.
    pub(crate) demoted: Moved,
    /// Regions that came back.
    pub(crate) promoted: Moved,
    /// Regions that were damaged below, and were computed again.
    pub(crate) lost: u64,
    /// Regions that could not be moved below.
    pub(crate) refused: u64,
    pub(crate) tiers: Vec<StorageTier>,
}

/// Regions that were moved.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Moved {
    pub(crate) regions: u64,
    pub(crate) bytes: u64,
}

/// One tier below memory.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct StorageTier {
    pub(crate) name: String,
    pub(crate) capacity_bytes: u64,
    pub(crate) held_bytes: u64,
    pub(crate) inserted: u64,
    pub(crate) hits: u64,
    pub(crate) misses: u64,
    /// Regions that made room and are below now.
    pub(crate) spilled: u64,
    /// Regions that were brought up before they were asked for.
    pub(crate) prefetched: u64,
    /// Regions that made room and are gone.
    pub(crate) evicted: u64,
    pub(crate) lost: u64,
    pub(crate) errors: u64,
}

impl StorageRecord {
    pub(crate) fn of(below: &pleach_actors::spill::SpillStore) -> Self {
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

/// Where it ran.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct HostRecord {
    pub(crate) name: String,
    pub(crate) processors: usize,
    pub(crate) system: &'static str,
    pub(crate) architecture: &'static str,
}

/// An operation's runs and time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct OperationRecord {
    pub(crate) name: String,
    pub(crate) runs: u64,
    pub(crate) seconds: f64,
    /// What the cost model foretold, each run just before it; of what it does not foretell nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) predicted_seconds: Option<f64>,
    /// By how much it was wrong, summed over runs, of the seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) prediction_error: Option<f64>,
}

impl HostRecord {
    pub(crate) fn this() -> Self {
        let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
        Self {
            name,
            processors: std::thread::available_parallelism().map_or(1, usize::from),
            system: std::env::consts::OS,
            architecture: std::env::consts::ARCH,
        }
    }
}

/// The most memory this process ever had resident, in bytes; 0 where the system does not tell.
pub(crate) fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
