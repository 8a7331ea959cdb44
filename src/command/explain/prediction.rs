//! Predicts from a study file, its plan and a task cache, which tasks of an evaluation would be executed.

use super::super::{load_costs, workers};
use crate::cli::ExplainArgs;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::{print_json, print_line};
use pleach_execution::explain::{self, ResponseKey, TaskOrigin};
use pleach_planner::memory_limit::default_memory_bytes;
use pleach_planner::{Plan, PlanRequest, PlanningInput, WorkerMemory};
use pleach_results::cache_walk;
use pleach_study::PreparedStudy;
use pleach_workflow::Registry;
use serde::Serialize;
use std::collections::HashMap;

/// Explained run.
#[derive(Debug, Serialize)]
struct Run {
    evaluation: usize,
    tile: String,
    tasks: Vec<TaskOrigin>,
    /// Minimal key of the run's response.
    key: ResponseKey,
}

/// Explains an evaluation of a study file.
pub(super) fn execute(args: &ExplainArgs, registry: &Registry) -> CommandResult {
    let mut prepared = PreparedStudy::load(&args.target, args.parameter_sets.as_deref(), registry)?;
    load_costs(&mut prepared, args.plan.buckets, args.cache.as_deref())?;
    let evaluations = prepared.design.evaluations.len();
    let first = usize::from(!prepared.defaults_run());
    let Some(evaluation) = args.evaluation else {
        return Err(CommandError::Input(format!(
            "--evaluation: required for a study file; {first} to {evaluations} is allowed in this study"
        )));
    };
    if args.phase.is_some() {
        return Err(CommandError::input(
            "--phase: allowed for a folder of results or a manager's study only",
        ));
    }
    if evaluation < first || evaluation > evaluations {
        return Err(CommandError::Input(format!(
            "--evaluation {evaluation}: {first} to {evaluations} is allowed in this study"
        )));
    }
    let names: Vec<&str> = prepared.study.tiles.iter().map(|tile| tile.name.as_str()).collect();
    let tiles: Vec<usize> = match &args.tile {
        None => (0..names.len()).collect(),
        Some(name) => {
            let found = names.iter().position(|other| other == name);
            vec![found.ok_or_else(|| {
                CommandError::Input(format!("--tile {name}: one of {} is allowed", names.join(", ")))
            })?]
        }
    };
    let cache = args.cache.as_deref().map(cache_walk::open_to_read).transpose()?;
    let identities = if cache.is_some() { cache_walk::identities(&prepared) } else { HashMap::new() };
    let workers = workers(args.workers);
    let request = PlanRequest {
        options: args.plan.options(),
        buckets: args.plan.buckets.limits(),
        slots: workers,
        workers: &[WorkerMemory { memory_bytes: default_memory_bytes(), spill_bytes: 0 }],
        // As in `run --cache`: only the value scope finds results in a cache.
        tree_fallback: args.cache.is_none(),
    };
    let bucket_overhead_seconds = args.plan.buckets.overhead.seconds(&prepared.costs);
    let input = PlanningInput { bucket_overhead_seconds, ..prepared.planning_input() };
    let planned = pleach_planner::plan(input, &request);
    let Plan { study: planned, record, .. } = planned.map_err(CommandError::input)?;
    let mut runs = Vec::new();
    for tile in tiles {
        let known = cache.as_ref().map(|cache| (cache, &identities));
        let tasks = explain::explain(&prepared, &planned, known, evaluation, tile)?;
        let key = ResponseKey::of(&prepared, tile)?;
        runs.push(Run { evaluation, tile: names[tile].to_owned(), tasks, key });
    }
    if args.json {
        return print_json(&serde_json::json!({
            "runs": runs,
            "buckets": record.summary.buckets,
            "bucket_overhead_seconds": bucket_overhead_seconds,
        }));
    }
    if bucket_overhead_seconds > 0.0 {
        let buckets = record.summary.buckets;
        print_line(&format!(
            "{buckets} buckets, sized for an overhead of {bucket_overhead_seconds:.1} s each"
        ));
    }
    runs.iter().for_each(show);
    Ok(())
}

fn show(run: &Run) {
    print_line(&format!("evaluation {} on {}", run.evaluation, run.tile));
    for task in &run.tasks {
        let from = match (task.source, task.evaluation) {
            (level, Some(0)) => format!("{level}: from the reference"),
            (level, Some(evaluation)) => format!("{level}: from evaluation {evaluation}"),
            (level, None) => level.to_owned(),
        };
        let cache = match (task.in_cache, &task.differing_components) {
            (Some(true), _) => "; in the cache",
            (Some(false), Some(differences)) if differences.is_empty() => "; operation not in the cache",
            (Some(false), _) => "; not in the cache",
            (None, _) => "",
        };
        print_line(&format!("  {:<14} {:<10} {:<22} {from}{cache}", task.stage, task.task, task.operation));
        for difference in task.differing_components.iter().flatten() {
            print_line(&format!("  {:<14} {:<10} nearest: {difference}", "", ""));
        }
    }
    let ResponseKey { attributes, bytes, instead_of_bytes } = &run.key;
    print_line(&format!(
        "  response key: {bytes} bytes instead of {instead_of_bytes}: {}",
        attributes.join(", ")
    ));
}
