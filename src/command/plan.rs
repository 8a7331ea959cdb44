//! `pleach plan`: what a study would execute and reuse.

use super::{Way, workers};
use crate::cli::PlanArgs;
use crate::exit::{Outcome, Stop};
use crate::output::record::{Plan, Plans};
use crate::output::{print_json, print_line};
use crate::study::Prepared;
use crate::weave;
use std::time::Instant;

/// Runs the command.
pub(super) fn execute(args: &PlanArgs) -> Outcome {
    let prepared = Prepared::load(&args.study, args.table.as_deref())?;
    let workers = workers(args.workers);
    let (strategies, levels) = (args.strategy.names(), args.reuse.names());
    let way = |strategy, reuse| Way::new(strategy, reuse, args.buckets, workers);
    let ways = strategies.iter().flat_map(|&strategy| levels.iter().map(move |&reuse| way(strategy, reuse)));
    let mut ways: Vec<Way> = ways.collect();
    // Levels of reuse are one where a strategy has none.
    ways.dedup();
    let mut plans = Vec::new();
    for way in ways {
        let start = Instant::now();
        let woven = match weave::weave(prepared.material(), way.level(), workers.get()) {
            Ok(woven) => woven,
            // Of all strategies, one that cannot is no reason not to hear of the others.
            Err(error) if strategies.len() > 1 && error.is_too_many_to_cut() => {
                say_left_out(args, &format!("{}: left out: {error}", way.strategy_name()));
                continue;
            }
            Err(error) => return Err(Stop::input(error)),
        };
        plans.push(Plan {
            strategy: way.strategy_name(),
            reuse: way.reuse_name(),
            figures: woven.figures,
            planning_seconds: Some(start.elapsed().as_secs_f64()),
            workers: workers.get(),
            max_bucket_size: way.max_bucket_size(),
            max_buckets: way.max_buckets(),
        });
    }
    if args.json {
        return print_json(&Plans { plans });
    }
    plans.iter().for_each(show);
    Ok(())
}

/// In print only: a document holds plans, and what is not there was not made.
fn say_left_out(args: &PlanArgs, text: &str) {
    if !args.json {
        print_line(text);
    }
}

fn show(plan: &Plan) {
    let figures = &plan.figures;
    print_line(&format!(
        "{}{}: {} evaluations, {} runs; about {:.1} s on {} workers (not below {:.1} s), {:.0} MB; planned in {:.0} ms",
        plan.strategy,
        plan.reuse.map(|reuse| format!(", {reuse}")).unwrap_or_default(),
        figures.evaluations,
        figures.runs,
        figures.predicted_makespan_seconds,
        plan.workers,
        figures.bound_seconds,
        figures.predicted_peak_bytes as f64 / 1e6,
        plan.planning_seconds.unwrap_or_default() * 1e3,
    ));
    print_line(&format!(
        "  {:<16} {:>10} {:>10} {:>12} {:>8} {:>8} {:>8} {:>8}",
        "stage", "replicas", "instances", "their tasks", "tasks", "reuse", "by cost", "buckets"
    ));
    for stage in &figures.per_stage {
        print_line(&format!(
            "  {:<16} {:>10} {:>10} {:>12} {:>8} {:>8} {:>8} {:>8}",
            stage.stage,
            stage.instances_without_reuse,
            stage.instances,
            stage.tasks_after_stage_merging,
            stage.tasks,
            percent(stage.reuse_fraction),
            percent(stage.cost_reuse_fraction),
            stage.buckets,
        ));
    }
    if figures.reference_tasks > 0 {
        print_line(&format!(
            "  and {} tasks for the reference at default parameters",
            figures.reference_tasks
        ));
    }
}

/// Without merging, stages run more often than merging would leave: that is no reuse, whatever the fraction says.
fn percent(fraction: f64) -> String {
    if fraction < 0.0 { "-".to_owned() } else { format!("{:.2}%", fraction * 100.0) }
}
