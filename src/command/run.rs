//! `pleach run`: a study from its file to its report.

use super::{Way, workers};
use crate::analysis::Collected;
use crate::cli::RunArgs;
use crate::execution::{self, Executed};
use crate::exit::{Outcome, Stop};
use crate::gallery::{self, previews::Previews};
use crate::interrupt::Interrupt;
use crate::journal;
use crate::machine::{self, default_memory_bytes};
use crate::output::folder::Folder;
use crate::output::record::{self, Host, Plan, PlanFile, Run};
use crate::output::{print_json, print_line, tables};
use crate::progress::Shown;
use crate::report;
use crate::session::{self, Found, Session};
use crate::size::{MemorySize, human};
use crate::study::Prepared;
use crate::summary;
use crate::weave::{self, Least};
use pleach_actors::embedded::Finished;
use pleach_actors::manager::TaskTotal;
use pleach_actors::worker::Resources;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// Runs the command.
pub(super) fn execute(args: &RunArgs) -> Outcome {
    let start = Instant::now();
    let mut interrupt = Interrupt::listen()?;
    let prepared = Prepared::load(&args.study, args.table.as_deref())?;
    prepared.check_runnable()?;
    let previews = Previews::asked(&args.preview, &prepared.study.workflow)?;
    let planning = Instant::now();
    let workers = workers(args.workers);
    let way = Way::new(args.strategy, args.reuse, args.buckets, workers);
    let mut woven = weave::weave(prepared.material(), way.level(), workers.get()).map_err(Stop::input)?;
    let plan = Plan {
        strategy: way.strategy_name(),
        reuse: way.reuse_name(),
        figures: woven.figures.clone(),
        planning_seconds: Some(planning.elapsed().as_secs_f64()),
        workers: workers.get(),
        max_bucket_size: way.max_bucket_size(),
        max_buckets: way.max_buckets(),
    };
    let least = weave::rehearse(&mut woven, &prepared.registry).map_err(Stop::defect)?;
    let memory_bytes = memory_bytes(args, &prepared, least)?;
    pleach_pages::set_limit_bytes(memory_bytes);

    let out = args.out.clone().unwrap_or_else(|| PathBuf::from(&prepared.study.name));
    let session = match session::begin(&out, &prepared, args.resume)? {
        Found::Complete(folder) => return already_complete(args, &folder),
        Found::Open(session) => session,
    };
    let folder = &session.folder;
    say_what_is_known(args, &session);
    let untimed = Plan { planning_seconds: None, ..plan.clone() };
    let study_digest = &prepared.digest;
    folder
        .write_json("plan.json", &PlanFile { study: &prepared.study.name, study_digest, plan: &untimed })?;
    let names = &prepared.design.names;
    folder.write("samples.csv", &tables::samples(names, &prepared.design.evaluations)?)?;

    let resources = Resources { slots: workers, memory_bytes, active_paths: args.active_paths, meter };
    let shown = if args.quiet || args.json { Shown::Nothing } else { Shown::Fitting };
    let Executed { finished, tasks_shared_in_buckets } =
        execution::execute(&prepared, &mut woven, &session, resources, shown, &mut interrupt)?;
    let collected = Collected::new(&prepared, &woven, &finished.outcome);
    if finished.outcome.stopped {
        let known = collected.runs.len() - collected.failed();
        return Err(Stop::Interrupted(format!(
            "{known} of {} responses are in {}; --resume continues the study",
            collected.runs.len(),
            out.join(journal::NAME).display(),
        )));
    }

    let tiles: Vec<&str> = prepared.study.tiles.iter().map(|tile| tile.name.as_str()).collect();
    let metrics: Vec<&str> =
        prepared.study.workflow.response.metrics.iter().map(|(name, _)| name.as_str()).collect();
    let runs = &collected.runs;
    folder.write("responses.csv", &tables::responses(&metrics, prepared.study.metric, &tiles, runs)?)?;
    folder.write("failed.csv", &tables::failed(names, &prepared.design.evaluations, &tiles, runs)?)?;
    let analysis = collected.analyse(&prepared)?;
    folder.write("indices.csv", &analysis.csv()?)?;
    folder.write_json("indices.json", &analysis.json())?;
    let run = run_record(
        args,
        &prepared,
        &plan,
        &finished,
        tasks_shared_in_buckets,
        &collected,
        start,
        workers.get(),
    );
    folder.write_json("run.json", &run)?;
    let gallery = gallery::make(&prepared, &collected, &previews, folder)?;
    let html = report::html(&report::Report {
        study: &prepared.study,
        plan: &plan,
        run: &run,
        analysis: &analysis,
        runs,
        gallery: &gallery,
    });
    folder.write("report.html", html.as_bytes())?;
    session.end(collected.failed() == 0)?;

    if args.json {
        print_json(&run)?;
    } else if !args.quiet {
        summary::print(&run, &analysis, folder.path(), Some(memory_bytes));
        gallery.told(&previews, folder).iter().for_each(|told| print_line(told));
    }
    // A defect of the bookkeeping, not of the results: said once they are safe.
    if finished.left_bytes > 0 {
        return Err(Stop::Defect(format!("{} bytes of regions were never let go of", finished.left_bytes)));
    }
    status(&collected, folder)
}

/// Measures a task by what its thread allocates.
fn meter(work: &mut dyn FnMut()) -> Option<u64> {
    Some(pleach_pages::metered(work).1)
}

/// The memory to keep within, if the study can be executed within it at all.
fn memory_bytes(args: &RunArgs, prepared: &Prepared, least: Least) -> Outcome<u64> {
    let budget = args.memory.map_or_else(default_memory_bytes, MemorySize::bytes);
    let Least { bytes, stage, tile } = least;
    if bytes <= budget {
        return Ok(budget);
    }
    // Rounded up, so that what is named is enough.
    let megabytes = bytes.div_ceil(1_000_000);
    let given = match args.memory {
        Some(_) => format!("--memory {}", human(budget)),
        None => format!("--memory {} (60 % of {})", human(budget), machine::limit()),
    };
    Err(Stop::Input(format!(
        "{given}: the {} of {} needs {megabytes} MB at once; {megabytes}MB or more is allowed",
        prepared.study.workflow.stages[stage].name,
        prepared.study.tiles[tile].path.display(),
    )))
}

/// All results are there: says so, as a run of the study would.
fn already_complete(args: &RunArgs, folder: &Folder) -> Outcome {
    if args.json {
        let fail = |error| {
            Stop::Input(format!("--out {}: failed to read run.json: {error}", folder.path().display()))
        };
        let text = std::fs::read_to_string(folder.path().join("run.json")).map_err(fail)?;
        print_json(&serde_json::from_str::<serde_json::Value>(&text).map_err(Stop::defect)?)?;
    } else if !args.quiet {
        print_line(&format!(
            "nothing to resume: {} holds all results of this study",
            folder.path().display()
        ));
    }
    Ok(())
}

fn say_what_is_known(args: &RunArgs, session: &Session) {
    if args.quiet || args.json || (session.known.is_empty() && session.cut_bytes == 0) {
        return;
    }
    print_line(&format!("resumed: {} responses are known", session.known.len()));
    if session.cut_bytes > 0 {
        print_line(&format!(
            "the last {} bytes of the journal were cut short or damaged; what they said is computed again",
            session.cut_bytes
        ));
    }
}

fn run_record(
    args: &RunArgs,
    prepared: &Prepared,
    plan: &Plan,
    finished: &Finished,
    tasks_shared_in_buckets: u64,
    collected: &Collected,
    start: Instant,
    workers: u32,
) -> Run {
    let stages = &prepared.study.workflow.stages;
    let mut operations: BTreeMap<&str, TaskTotal> = BTreeMap::new();
    for (&(stage, task), total) in &finished.outcome.tasks {
        let name = &stages[stage].tasks[task].operation;
        let sum = operations.entry(name).or_default();
        sum.runs += total.runs;
        sum.seconds += total.seconds;
        sum.predicted_seconds += total.predicted_seconds;
        sum.error_seconds += total.error_seconds;
    }
    let totals = || finished.outcome.tasks.values();
    let digest_seconds: f64 = totals().map(|total| total.digest_seconds).sum();
    let operation = |(name, total): (&str, TaskTotal)| record::Operation {
        name: name.to_owned(),
        runs: total.runs,
        seconds: total.seconds,
        predicted_seconds: Some(total.predicted_seconds),
        prediction_error: (total.seconds > 0.0).then(|| total.error_seconds / total.seconds),
    };
    let mut operations: Vec<record::Operation> = operations.into_iter().map(operation).collect();
    if digest_seconds > 0.0 {
        let runs = totals().map(|total| total.digests).sum();
        operations.push(record::Operation {
            name: "digest".to_owned(),
            runs,
            seconds: digest_seconds,
            predicted_seconds: None,
            prediction_error: None,
        });
    }
    let (mut by_stage, mut by_tree) = (0, 0);
    if args.strategy != crate::cli::StrategyName::None {
        for (figures, stage) in plan.figures.per_stage.iter().zip(stages) {
            let replicated = figures.instances_without_reuse * stage.tasks.len();
            by_stage += (replicated - figures.tasks_after_stage_merging) as u64;
            by_tree += (figures.tasks_after_stage_merging - figures.tasks_as_trees) as u64;
        }
    }
    Run {
        study: prepared.study.name.clone(),
        version: env!("CARGO_PKG_VERSION"),
        strategy: plan.strategy,
        reuse: plan.reuse,
        seed: prepared.study.seed,
        host: Host::this(),
        planning_seconds: plan.planning_seconds,
        wall_seconds: start.elapsed().as_secs_f64(),
        evaluations: plan.figures.evaluations,
        runs: plan.figures.runs,
        failed: collected.failed(),
        tasks_executed: finished.outcome.tasks.values().map(|total| total.runs).sum(),
        tasks_reused: BTreeMap::from([
            ("stage", by_stage),
            ("tree", by_tree),
            (
                "dataflow",
                tasks_shared_in_buckets + totals().map(|total| total.reused_by_dataflow).sum::<u64>(),
            ),
            ("value", totals().map(|total| total.reused_by_value).sum()),
            ("cache", 0),
        ]),
        operations,
        peak_bytes_admitted: finished.peak_bytes,
        peak_rss_bytes: record::peak_rss_bytes(),
        workers,
        tiles: prepared.study.tiles.iter().map(|tile| tile.name.clone()).collect(),
        tiles_left_out: collected.tiles_left_out(prepared),
    }
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
