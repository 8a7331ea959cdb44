//! `pleach plan`: plans a study with the requested strategies and reuse scopes, and prints the tasks to execute and
//! reuse.
//!
//! [`table`] formats the plans. [`pleach_report::drawings::scaling`] draws the predicted makespans.

mod grains;
mod parts;
mod table;

use super::{load_costs, order_tasks, workers};
use crate::cli::PlanArgs;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::{print_json, print_line, print_notice};
use pleach_api::submission::MAX_OVERHEAD_SECONDS;
use pleach_dispatch::plan::ReuseScope;
use pleach_planner::memory_size::MemorySize;
use pleach_planner::{
    DEFAULT_LINK, GranularityRecord, MakespanForecast, PlanComparison, PlanOptions, PlanRecord,
    PlanningError, PlanningInput, StrategyName, TransferCost,
};
use pleach_report::drawings::scaling::{self, Curve, Point, Scaling};
use pleach_report::raster;
use pleach_results::cache_walk;
use pleach_results::folder::publish;
use pleach_results::measured_run::MeasuredRun;
use pleach_results::record::AnnotatedTile;
use pleach_study::{PreparedStudy, annotations, slides, volumes};
use pleach_workflow::{Normalization, Registry};
use serde::Serialize;
use std::num::NonZeroU32;
use std::path::Path;

/// Output of `pleach plan --json`.
#[derive(Debug, Serialize)]
struct Plans<'a> {
    plans: Vec<PlanRecord>,
    /// Forecast of each phase. Empty for a study with a single plan.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<parts::Forecast>,
    /// Positions of the annotations of each reference file in its tile. Empty without annotation files.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    annotations: Vec<AnnotatedTile>,
    /// Tasks and stages to run as one, with `--granularity`.
    #[serde(skip_serializing_if = "Option::is_none")]
    granularity: Option<GranularityRecord>,
    /// Fitted stain normalization. Missing without fitted values.
    #[serde(skip_serializing_if = "Option::is_none")]
    normalization: Option<&'a Normalization>,
}

/// Runs the command.
pub(super) fn execute(args: &PlanArgs, registry: &Registry) -> CommandResult {
    let load = if args.any_values { PreparedStudy::load_with_any_values } else { PreparedStudy::load };
    let mut prepared = load(&args.study, args.parameter_sets.as_deref(), registry)?;
    prepared.warnings().for_each(|warning| print_notice(&warning));
    args.cache.as_deref().map(cache_walk::open_to_read).transpose()?;
    let measured_overhead = load_measured(args, &mut prepared)?;
    let workers = workers(args.workers);
    let strategies = requested(args);
    let memory_bytes = args.memory.map(MemorySize::bytes);
    let link = args
        .bandwidth
        .map(|bandwidth| TransferCost { bytes_per_second: bandwidth.bytes() as f64, ..DEFAULT_LINK });
    let overhead = args.buckets.overhead;
    let bucket_overhead_seconds =
        overhead.fixed_seconds().or(measured_overhead).unwrap_or_else(|| overhead.seconds(&prepared.costs));
    let accelerators = args.accelerators;
    let input = PlanningInput { link, bucket_overhead_seconds, accelerators, ..prepared.planning_input() };
    let mut comparison = PlanComparison::new(input, args.buckets.limits(), memory_bytes);
    let (mut plans, mut all_curves, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for (strategy, scopes) in &strategies {
        let options = options(*strategy, scopes);
        let made = comparison.plans(&options, workers).and_then(|plans| {
            let drawn = if args.plot.is_some() { curves(&mut comparison, &options)? } else { Vec::new() };
            Ok((plans, drawn))
        });
        match made {
            Ok((made, drawn)) => {
                plans.extend(made);
                all_curves.extend(drawn);
            }
            // With several strategies, the limit of one strategy must not hide the plans of the others.
            Err(error) if strategies.len() > 1 && error.is_strategy_limit() => {
                let name = strategy.as_str();
                left_out.push(format!("{name}: omitted: {error}"));
            }
            Err(error) => return Err(CommandError::input(error)),
        }
    }
    let granularity = args.granularity.then(|| grains::find(input, args.task_overhead)).transpose()?;
    if let Some(file) = &args.plot {
        plot(file, &prepared, args, all_curves)?;
    }
    if args.json {
        // The JSON document omits strategies that were left out. Only the text output lists them.
        let annotations = AnnotatedTile::of(&prepared.study);
        return print_json(&Plans {
            plans,
            parts: parts::forecast(&prepared.study),
            annotations,
            granularity,
            normalization: prepared.study.normalization.as_ref(),
        });
    }
    annotations::notes(&prepared.study).iter().for_each(|line| print_line(line));
    volumes::notes(&prepared.study).iter().for_each(|line| print_line(line));
    slides::fit_note(&prepared.study).iter().for_each(|line| print_line(line));
    table::show(&prepared.study.name, &plans).iter().chain(&left_out).for_each(|line| print_line(line));
    let too_much = args.memory.map_or(u64::MAX, MemorySize::bytes);
    table::beyond(&plans, too_much).iter().for_each(|line| print_line(line));
    parts::show(&parts::forecast(&prepared.study)).iter().for_each(|line| print_line(line));
    granularity.iter().flat_map(grains::show).for_each(|line| print_line(&line));
    Ok(())
}

/// Completes the inputs of planning with the costs of a run or of a cache. Returns the overhead of a bucket that the run measured.
fn load_measured(args: &PlanArgs, prepared: &mut PreparedStudy) -> CommandResult<Option<f64>> {
    let Some(run) = &args.run else {
        load_costs(prepared, args.buckets, args.cache.as_deref())?;
        return Ok(None);
    };
    let measured = MeasuredRun::read(run, prepared).map_err(CommandError::input)?;
    prepared.costs = measured.costs;
    order_tasks(prepared, args.buckets)?;
    Ok(measured.bucket_overhead_seconds.filter(|seconds| *seconds <= MAX_OVERHEAD_SECONDS))
}

/// Returns the strategies to plan with, each with its reuse scopes: the default of each scope if none is given.
fn requested(args: &PlanArgs) -> Vec<(StrategyName, Vec<ReuseScope>)> {
    let scopes = args.reuse.scopes();
    let Some(strategies) = args.strategy else {
        let same =
            |a: &ReuseScope, b: &ReuseScope| StrategyName::default_of(*a) == StrategyName::default_of(*b);
        let groups = scopes.chunk_by(same);
        return groups.map(|group| (StrategyName::default_of(group[0]), group.to_vec())).collect();
    };
    strategies.strategies().into_iter().map(|strategy| (strategy, scopes.clone())).collect()
}

/// Returns the options of a strategy: one for each scope, or a single one if the strategy has none.
fn options(strategy: StrategyName, scopes: &[ReuseScope]) -> Vec<PlanOptions> {
    let mut options: Vec<PlanOptions> =
        scopes.iter().map(|&scope| PlanOptions::new(strategy, scope)).collect();
    options.dedup();
    options
}

/// Predicts the makespan over numbers of workers: one curve for each of the options.
fn curves(comparison: &mut PlanComparison<'_>, options: &[PlanOptions]) -> Result<Vec<Curve>, PlanningError> {
    let rows = comparison.forecasts(options, &scaling::WORKERS)?;
    let point = |(workers, forecast): (NonZeroU32, MakespanForecast)| Point {
        workers,
        makespan_seconds: forecast.makespan_seconds,
        lower_bound_seconds: forecast.lower_bound_seconds,
    };
    let curve = |(options, row): (&PlanOptions, Vec<MakespanForecast>)| Curve {
        strategy: options.strategy_name(),
        reuse: options.reuse_name(),
        points: scaling::WORKERS.into_iter().zip(row).map(point).collect(),
    };
    Ok(options.iter().zip(rows).map(curve).collect())
}

/// Draws the curves to a file and publishes it atomically.
fn plot(file: &Path, prepared: &PreparedStudy, args: &PlanArgs, curves: Vec<Curve>) -> CommandResult {
    let scaling = Scaling {
        study: &prepared.study.name,
        evaluations: prepared.design.evaluations.len(),
        tiles: prepared.tiles.len(),
        max_buckets: args.buckets.max_buckets.map(usize::from),
        curves,
    };
    let svg = scaling.svg();
    let is_png = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("png"));
    let content = if is_png { raster::png(&svg).map_err(CommandError::defect)? } else { svg.into_bytes() };
    publish(file, &content).map_err(|error| {
        CommandError::writing(format_args!("--plot {}: failed to write", file.display()), &error)
    })
}
