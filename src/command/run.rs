//! `pleach run`: a study from its file to its report.

use super::workers;
use crate::analysis::{Analysis, Collected};
use crate::cli::RunArgs;
use crate::exit::{Outcome, Stop};
use crate::output::folder::Folder;
use crate::output::record::{self, Host, Plan, PlanFile, Run};
use crate::output::{print_json, print_line, tables};
use crate::progress;
use crate::report;
use crate::study::Prepared;
use crate::weave;
use pleach_actors::embedded::{Embedded, Finished, run as run_embedded};
use pleach_actors::storage::Source;
use pleach_dispatch::message::TaskFailure;
use pleach_pathology::tile;
use pleach_regions::{DataRegion, RegionKey};
use pleach_workflow::Reference;
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Runs the command.
pub(super) fn execute(args: &RunArgs) -> Outcome {
    let start = Instant::now();
    let prepared = Prepared::load(&args.study, args.table.as_deref())?;
    prepared.check_runnable()?;
    let planning = Instant::now();
    let workers = workers(args.workers);
    let level = args.strategy.level(args.reuse);
    let mut woven = weave::weave(prepared.material(), level, workers.get()).map_err(Stop::input)?;
    let plan = Plan {
        strategy: args.strategy.name(),
        reuse: args.strategy.reuse_name(),
        figures: woven.figures.clone(),
        planning_seconds: planning.elapsed().as_secs_f64(),
        workers: workers.get(),
        max_bucket_size: args.strategy.reuse_name().map(|_| args.reuse.max_bucket_size.get()),
    };

    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(&prepared.study.name));
    let folder = Folder::take(&out, &prepared.digest)?;
    folder.clear()?;
    let study_digest = &prepared.digest;
    folder.write_json("plan.json", &PlanFile { study: &prepared.study.name, study_digest, plan: &plan })?;
    let names = &prepared.design.names;
    folder.write("samples.csv", &tables::samples(names, &prepared.design.evaluations)?)?;

    let finished = run_embedded(Embedded {
        plan: std::mem::take(&mut woven.plan),
        registry: prepared.registry.clone(),
        sources: sources(&prepared),
        slots: workers,
        observer: progress::observer(args.quiet),
    });
    let finished = finished.map_err(Stop::defect)?;

    let collected = Collected::new(&prepared, &woven, &finished.outcome);
    let tiles: Vec<&str> = prepared.study.tiles.iter().map(|tile| tile.name.as_str()).collect();
    let metrics: Vec<&str> =
        prepared.study.workflow.response.metrics.iter().map(|(name, _)| name.as_str()).collect();
    let runs = &collected.runs;
    folder.write("responses.csv", &tables::responses(&metrics, prepared.study.metric, &tiles, runs)?)?;
    folder.write("failed.csv", &tables::failed(names, &prepared.design.evaluations, &tiles, runs)?)?;
    let analysis = collected.analyse(&prepared)?;
    folder.write("indices.csv", &analysis.csv()?)?;
    folder.write_json("indices.json", &analysis.json())?;
    let run = run_record(args, &prepared, &plan, &finished, &collected, start, workers.get());
    folder.write_json("run.json", &run)?;
    let html = report::html(&report::Report {
        study: &prepared.study,
        plan: &plan,
        run: &run,
        analysis: &analysis,
        runs,
    });
    folder.write("report.html", html.as_bytes())?;

    if args.json {
        print_json(&run)?;
    } else if !args.quiet {
        summary(&run, &analysis, &folder);
    }
    // A defect of the bookkeeping, not of the results: said once they are safe.
    if finished.left_bytes > 0 {
        return Err(Stop::Defect(format!("{} bytes of regions were never let go of", finished.left_bytes)));
    }
    status(&collected, &folder)
}

/// Files that storage can load, by key.
fn sources(prepared: &Prepared) -> HashMap<RegionKey, Arc<dyn Source>> {
    struct File {
        path: PathBuf,
        read: fn(&std::path::Path) -> Result<DataRegion, tile::TileError>,
    }
    impl Source for File {
        fn load(&self) -> Result<DataRegion, TaskFailure> {
            let fail =
                |error: tile::TileError| TaskFailure { at: "input".to_owned(), cause: error.to_string() };
            (self.read)(&self.path).map_err(fail)
        }
    }
    let mut sources: HashMap<RegionKey, Arc<dyn Source>> = HashMap::new();
    for (number, (tile, facts)) in prepared.study.tiles.iter().zip(&prepared.tiles).enumerate() {
        let images = prepared.study.workflow.inputs.len();
        for &key in &facts.inputs[..images] {
            sources.insert(key, Arc::new(File { path: tile.path.clone(), read: tile::read_bgr }));
        }
        if let (Reference::Masks(masks), Some(&key)) = (&prepared.study.reference, facts.inputs.get(images)) {
            sources.insert(key, Arc::new(File { path: masks[number].clone(), read: tile::read_mask }));
        }
    }
    sources
}

fn run_record(
    args: &RunArgs,
    prepared: &Prepared,
    plan: &Plan,
    finished: &Finished,
    collected: &Collected,
    start: Instant,
    workers: u32,
) -> Run {
    let stages = &prepared.study.workflow.stages;
    let mut operations: BTreeMap<&str, record::Operation> = BTreeMap::new();
    for (&(stage, task), total) in &finished.outcome.tasks {
        let name = &stages[stage].tasks[task].operation;
        let new = || record::Operation { name: name.clone(), runs: 0, seconds: 0.0 };
        let operation = operations.entry(name).or_insert_with(new);
        operation.runs += total.runs;
        operation.seconds += total.seconds;
    }
    let (mut by_stage, mut by_tree) = (0, 0);
    if args.strategy != crate::cli::StrategyName::None {
        for (figures, stage) in plan.figures.per_stage.iter().zip(stages) {
            let replicated = figures.instances_without_reuse * stage.tasks.len();
            by_stage += (replicated - figures.tasks_after_stage_merging) as u64;
            by_tree += (figures.tasks_after_stage_merging - figures.tasks) as u64;
        }
    }
    Run {
        study: prepared.study.name.clone(),
        version: env!("CARGO_PKG_VERSION"),
        strategy: plan.strategy,
        reuse: plan.reuse,
        seed: prepared.study.seed,
        host: Host::this(),
        wall_seconds: start.elapsed().as_secs_f64(),
        evaluations: plan.figures.evaluations,
        runs: plan.figures.runs,
        failed: collected.failed(),
        tasks_executed: finished.outcome.tasks.values().map(|total| total.runs).sum(),
        tasks_reused: BTreeMap::from([
            ("stage", by_stage),
            ("tree", by_tree),
            ("dataflow", 0),
            ("value", 0),
            ("cache", 0),
        ]),
        operations: operations.into_values().collect(),
        peak_bytes_admitted: finished.peak_bytes,
        peak_rss_bytes: record::peak_rss_bytes(),
        workers,
        tiles: prepared.study.tiles.iter().map(|tile| tile.name.clone()).collect(),
        tiles_left_out: collected.tiles_left_out(prepared),
    }
}

/// What a user wants to know first: which parameters matter, what it took, where the rest is.
fn summary(run: &Run, analysis: &Analysis, folder: &Folder) {
    if let Some(indices) = analysis.moat() {
        print_line(&format!(
            "{:<14} {:>10} {:>10} {:>10}  (response: {})",
            "parameter", "mu*", "+-", "effect", indices.response
        ));
        for p in report::ranked(indices) {
            let spread = p.mu_star_conf.map_or_else(|| "-".to_owned(), |conf| format!("{conf:.4}"));
            print_line(&format!("{:<14} {:>10.4} {:>10} {:>10.4}", p.name, p.mu_star, spread, p.effect));
        }
    }
    let reused: u64 = run.tasks_reused.values().sum();
    print_line(&format!(
        "{} evaluations on {} tiles in {:.1} s: {} tasks executed, {} reused, at most {:.1} MB of regions held",
        run.evaluations,
        run.tiles.len(),
        run.wall_seconds,
        run.tasks_executed,
        reused,
        run.peak_bytes_admitted as f64 / 1e6,
    ));
    print_line(&format!(
        "results in {}; open {}",
        folder.path().display(),
        folder.path().join("report.html").display()
    ));
}

/// The end of the command: 3 when runs failed.
fn status(collected: &Collected, folder: &Folder) -> Outcome {
    let Some(first) = collected.runs.iter().find_map(|run| run.result.as_ref().err()) else { return Ok(()) };
    let file = folder.path().join("failed.csv");
    Err(Stop::SomeFailed(format!(
        "{} of {} runs failed, listed in {}; the first: {}, {}: {}",
        collected.failed(),
        collected.runs.len(),
        file.display(),
        first.stage,
        first.at,
        first.cause,
    )))
}
