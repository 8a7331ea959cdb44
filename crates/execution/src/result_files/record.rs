//! Creates `run.json` of an executed study.

use super::CompletedStudy;
use pleach_dispatch::study::TaskTotal;
use pleach_planner::PlanRecord;
use pleach_results::analysis::CollectedResponses;
use pleach_results::analysis::extremes::Extremes;
use pleach_results::record::{self, AcceleratorRecord, AnnotatedTile, HostRecord, RESULTS_FORMAT, RunRecord};
use pleach_workflow::{Stage, plain_name};
use std::collections::BTreeMap;

/// Returns the numbers of tasks saved by equal stage instances and by tree reuse.
pub fn merged(plan: &PlanRecord, stages: &[Stage]) -> (u64, u64) {
    if plan.strategy == "none" {
        return (0, 0);
    }
    let per_stage = || plan.summary.per_stage.iter().zip(stages);
    let replicated = per_stage().map(|(figures, stage)| figures.instances_without_reuse * stage.tasks.len());
    let merged: usize = per_stage().map(|(figures, _)| figures.tasks_after_stage_merging).sum();
    // Tasks that the reference shares with evaluations are not counted here: that reuse goes beyond trees.
    let as_trees: usize = per_stage().map(|(figures, _)| figures.tasks_with_tree_reuse).sum();
    ((replicated.sum::<usize>() - merged) as u64, (merged - as_trees) as u64)
}

/// Creates the record.
pub(super) fn of(
    done: &CompletedStudy<'_>,
    collected: &CollectedResponses,
    extremes: Vec<Extremes>,
) -> RunRecord {
    let CompletedStudy { prepared, plan, executed, start, .. } = *done;
    let finished = &executed.finished;
    let cache = cache(done);
    let operations = operations(done, cache.as_ref());
    let tasks_reused = tasks_reused(done);
    RunRecord {
        study: prepared.study.name.clone(),
        version: env!("CARGO_PKG_VERSION"),
        format: RESULTS_FORMAT,
        strategy: plan.strategy,
        reuse: plan.reuse,
        seed: prepared.study.seed,
        host: HostRecord::this(),
        planning_seconds: plan.planning_seconds,
        wall_seconds: start.elapsed().as_secs_f64(),
        execution_seconds: executed.execution_seconds,
        evaluations: plan.summary.evaluations,
        runs: plan.summary.runs,
        failed: collected.failed(),
        tasks_executed: finished.outcome.tasks.values().map(|total| total.runs).sum(),
        tasks_reused,
        tasks_skipped: finished.outcome.tasks.values().map(|total| total.skipped).sum(),
        bucket_overhead_seconds: executed.costs.measured_bucket_overhead(),
        operations,
        cache,
        storage: done.spill.map(|spill| record::StorageRecord::new(&spill.passed(), spill.counts())),
        peak_bytes_admitted: finished.peak_bytes,
        peak_rss_bytes: record::peak_rss_bytes(),
        workers: plan.workers,
        cost: done.cost.clone(),
        tiles: prepared.study.tiles.iter().map(|tile| tile.name.clone()).collect(),
        excluded_tiles: collected.excluded_tiles(prepared),
        annotations: AnnotatedTile::of(&prepared.study),
        tiles_without_regions: prepared.study.tiles_without_regions,
        weights: record::WeightRecord::of(&prepared.study),
        both_empty: collected.both_empty(prepared),
        extremes,
        convergence: done.convergence.cloned(),
        phases: Vec::new(),
    }
}

/// Returns the use of the task cache, with a warning if the learned costs were not saved. `None` without a cache.
fn cache(done: &CompletedStudy<'_>) -> Option<record::CacheRecord> {
    let mut cache = record::CacheRecord::of(done.prior.cache.as_ref()?);
    cache.warnings.extend(done.costs_lost.clone());
    Some(cache)
}

/// Returns the runs and times of the operations by name, then those of digests and of the task cache.
fn operations(
    done: &CompletedStudy<'_>,
    cache: Option<&record::CacheRecord>,
) -> Vec<record::OperationRecord> {
    let executed = done.executed;
    let totals = || executed.finished.outcome.tasks.values();
    let operation = |(name, total): (&str, TaskTotal)| record::OperationRecord {
        name: name.to_owned(),
        runs: total.runs,
        seconds: total.seconds,
        accelerator: AcceleratorRecord::new(total.accelerator_runs, total.accelerator_seconds),
        predicted_seconds: Some(total.predicted_seconds),
        prediction_error: (total.seconds > 0.0).then(|| total.error_seconds / total.seconds),
    };
    let mut operations: Vec<_> = totals_by_operation(done).into_iter().map(operation).collect();
    let digest_seconds: f64 = totals().map(|total| total.digest_seconds).sum();
    if digest_seconds > 0.0 {
        let digests = totals().map(|total| total.digests).sum();
        operations.push(unpredicted("digest", digests, digest_seconds));
    }
    if let Some(cache) = cache {
        let seconds = executed.recall_seconds + totals().map(|total| total.cache_seconds).sum::<f64>();
        operations.push(unpredicted("cache", cache.hits + cache.misses + cache.stored, seconds));
    }
    operations
}

/// Adds the runs and times of the tasks of each operation.
fn totals_by_operation<'a>(done: &CompletedStudy<'a>) -> BTreeMap<&'a str, TaskTotal> {
    let stages = &done.prepared.study.workflow.stages;
    let mut operations: BTreeMap<&str, TaskTotal> = BTreeMap::new();
    for (&(stage, task), total) in &done.executed.finished.outcome.tasks {
        let name = plain_name(&stages[stage].tasks[task].operation);
        let sum = operations.entry(name).or_default();
        sum.runs += total.runs;
        sum.seconds += total.seconds;
        sum.accelerator_runs += total.accelerator_runs;
        sum.accelerator_seconds += total.accelerator_seconds;
        sum.predicted_seconds += total.predicted_seconds;
        sum.error_seconds += total.error_seconds;
    }
    operations
}

/// Creates the record of work without a prediction.
fn unpredicted(name: &str, runs: u64, seconds: f64) -> record::OperationRecord {
    record::OperationRecord {
        name: name.to_owned(),
        runs,
        seconds,
        accelerator: None,
        predicted_seconds: None,
        prediction_error: None,
    }
}

/// Returns the number of tasks not executed, by level of reuse.
fn tasks_reused(done: &CompletedStudy<'_>) -> BTreeMap<&'static str, u64> {
    let CompletedStudy { prepared, plan, executed, .. } = *done;
    let totals = || executed.finished.outcome.tasks.values();
    let (by_stage, by_tree) = merged(plan, &prepared.study.workflow.stages);
    let mut tasks_reused = BTreeMap::from([
        ("stage", by_stage),
        ("tree", by_tree),
        (
            "dataflow",
            executed.tasks_shared_in_buckets + totals().map(|total| total.reused_by_dataflow).sum::<u64>(),
        ),
        ("value", totals().map(|total| total.reused_by_value).sum()),
        ("cache", executed.tasks_recalled + totals().map(|total| total.reused_by_cache).sum::<u64>()),
    ]);
    if prepared.study.phase.is_some() || prepared.study.until.is_some() {
        tasks_reused.insert("earlier", totals().map(|total| total.reused_from_before).sum());
    }
    let from_peers: u64 = totals().map(|total| total.reused_from_peers).sum();
    // Only a cluster has other workers.
    if from_peers > 0 {
        tasks_reused.insert("peer", from_peers);
    }
    tasks_reused
}
