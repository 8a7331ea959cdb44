//! `pleach explain`: where the tasks of an evaluation come from.

use super::way::{BucketLimits, Way};
use super::{weigh, workers};
use crate::cli::ExplainArgs;
use crate::exit::{Outcome, Stop};
use crate::explain::{self, Explained, ResponseKey};
use crate::machine::default_memory_bytes;
use crate::output::{print_json, print_line};
use crate::past;
use crate::study::Prepared;
use crate::weave::{self, Loom};
use serde::Serialize;
use std::collections::HashMap;

/// One run.
#[derive(Debug, Serialize)]
struct Run {
    evaluation: usize,
    tile: String,
    tasks: Vec<Explained>,
    /// What its response is found by again.
    key: ResponseKey,
}

/// Runs the command.
pub(super) fn execute(args: &ExplainArgs) -> Outcome {
    let mut prepared = Prepared::load(&args.study, args.table.as_deref())?;
    weigh(&mut prepared, args.way.buckets, args.cache.as_deref())?;
    let evaluations = prepared.design.evaluations.len();
    let first = usize::from(!prepared.defaults_run());
    if args.evaluation < first || args.evaluation > evaluations {
        return Err(Stop::Input(format!(
            "--evaluation {}: {first} to {evaluations} is allowed in this study",
            args.evaluation
        )));
    }
    let names: Vec<&str> = prepared.study.tiles.iter().map(|tile| tile.name.as_str()).collect();
    let tiles: Vec<usize> = match &args.tile {
        None => (0..names.len()).collect(),
        Some(name) => {
            let found = names.iter().position(|other| other == name);
            vec![found.ok_or_else(|| {
                Stop::Input(format!("--tile {name}: one of {} is allowed", names.join(", ")))
            })?]
        }
    };
    let cache = args.cache.as_deref().map(past::open_to_read).transpose()?;
    let identities = if cache.is_some() { past::identities(&prepared) } else { HashMap::new() };
    let workers = workers(args.workers);
    let way = Way::new(args.way.strategy, args.way.reuse);
    let loom = Loom::set_up(prepared.material(), way.merging()).map_err(Stop::input)?;
    let memory_bytes = default_memory_bytes();
    let limits = BucketLimits::choose(args.way.buckets, &loom, workers, memory_bytes).map_err(Stop::input)?;
    let woven = weave::weave(loom, way.level(limits), workers.get()).map_err(Stop::input)?;
    let mut runs = Vec::new();
    for tile in tiles {
        let known = cache.as_ref().map(|cache| (cache, &identities));
        let tasks = explain::explain(&prepared, &woven, known, args.evaluation, tile)?;
        let key = ResponseKey::of(&prepared, tile)?;
        runs.push(Run { evaluation: args.evaluation, tile: names[tile].to_owned(), tasks, key });
    }
    if args.json {
        return print_json(&serde_json::json!({ "runs": runs }));
    }
    runs.iter().for_each(show);
    Ok(())
}

fn show(run: &Run) {
    print_line(&format!("evaluation {} on {}", run.evaluation, run.tile));
    for task in &run.tasks {
        let from = match (task.from, task.evaluation) {
            (level, Some(0)) => format!("{level}: that of the reference"),
            (level, Some(evaluation)) => format!("{level}: that of evaluation {evaluation}"),
            (level, None) => level.to_owned(),
        };
        let cache = match (task.in_cache, &task.differs_in) {
            (Some(true), _) => "; in the cache",
            (Some(false), Some(differences)) if differences.is_empty() => "; no such operation in the cache",
            (Some(false), _) => "; not in the cache",
            (None, _) => "",
        };
        print_line(&format!("  {:<14} {:<10} {:<22} {from}{cache}", task.stage, task.task, task.operation));
        for difference in task.differs_in.iter().flatten() {
            print_line(&format!("  {:<14} {:<10} nearest: {difference}", "", ""));
        }
    }
    let ResponseKey { attributes, bytes, instead_of_bytes } = &run.key;
    print_line(&format!(
        "  its response is found again by {bytes} bytes, instead of {instead_of_bytes}: {}",
        attributes.join(", ")
    ));
}
