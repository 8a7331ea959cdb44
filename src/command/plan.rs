//! `pleach plan`: what a study would execute and reuse, by as many strategies and levels of reuse as are asked for.
//!
//! How it is shown is decided in [`table`] and [`crate::report::scaling`].

pub(crate) mod parts;
mod table;

use super::plan_options::fit::{Fitted, Room, fit};
use super::plan_options::{BucketLimits, PlanOptions};
use super::{load_costs, workers};
use crate::cache_walk;
use crate::cli::{PlanArgs, ReuseName, StrategyName};
use crate::exit::{CommandError, CommandResult};
use crate::output::folder::publish;
use crate::output::record::{Annotated, PlanRecord, Plans};
use crate::output::{print_json, print_line};
use crate::planning::{self, Forecast, PlanBuilder, PlanningError, PlanningInput, ReuseMode, WorkerMemory};
use crate::report::raster;
use crate::report::scaling::{self, Curve, Point, Scaling};
use crate::size::MemorySize;
use crate::study::{PreparedStudy, annotations};
use pleach_reuse::{Buckets, Merging, Strategy};
use std::num::NonZeroU32;
use std::path::Path;
use std::time::Instant;

/// Runs the command.
pub(super) fn execute(args: &PlanArgs) -> CommandResult {
    let load = if args.any_values { PreparedStudy::load_with_any_values } else { PreparedStudy::load };
    let mut prepared = load(&args.study, args.parameter_sets.as_deref())?;
    prepared.warn_of_unreadable_tiles();
    args.cache.as_deref().map(cache_walk::open_to_read).transpose()?;
    load_costs(&mut prepared, args.buckets, args.cache.as_deref())?;
    let workers = workers(args.workers);
    let (strategies, levels) = (args.strategy.names(), args.reuse.names());
    let mut planner = Planner::new(args, prepared.material());
    let (mut plans, mut curves, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for strategy in strategies.iter().copied() {
        let ways = ways(strategy, &levels);
        let made = planner.plans(&ways, workers).and_then(|plans| {
            let curves = if args.plot.is_some() { planner.curves(&ways)? } else { Vec::new() };
            Ok((plans, curves))
        });
        match made {
            Ok((made, drawn)) => {
                plans.extend(made);
                curves.extend(drawn);
            }
            // Of all strategies, one that cannot is no reason not to hear of the others.
            Err(error) if strategies.len() > 1 && error.is_too_many_to_cut() => {
                let name = PlanOptions::new(strategy, ReuseName::Tree).strategy_name();
                left_out.push(format!("{name}: left out: {error}"));
            }
            Err(error) => return Err(CommandError::input(error)),
        }
    }
    if let Some(file) = &args.plot {
        plot(file, &prepared, args, curves)?;
    }
    if args.json {
        // In print only is said what is not there: a document holds plans.
        let annotations = Annotated::of(&prepared.study);
        return print_json(&Plans { plans, parts: parts::forecast(&prepared.study), annotations });
    }
    annotations::told(&prepared.study).iter().for_each(|line| print_line(line));
    table::show(&prepared.study.name, &plans).iter().chain(&left_out).for_each(|line| print_line(line));
    let too_much = args.memory.map_or(u64::MAX, MemorySize::bytes);
    table::beyond(&plans, too_much).iter().for_each(|line| print_line(line));
    parts::show(&parts::forecast(&prepared.study)).iter().for_each(|line| print_line(line));
    Ok(())
}

/// The ways to use a strategy; levels of reuse are one where it has none.
fn ways(strategy: StrategyName, levels: &[ReuseName]) -> Vec<PlanOptions> {
    let mut ways: Vec<PlanOptions> = levels.iter().map(|&reuse| PlanOptions::new(strategy, reuse)).collect();
    ways.dedup();
    ways
}

/// Makes many plans of one study: what they have in common is done once, and counted for each.
struct Planner<'a> {
    args: &'a PlanArgs,
    material: PlanningInput<'a>,
    /// With nothing merged, and with equal instances merged; each with the seconds it took to set up.
    looms: [Option<(PlanBuilder<'a>, f64)>; 2],
    /// The strategy that was used last, what came of it, and the seconds it took.
    solved: Option<(Option<Strategy>, Vec<Buckets>, f64)>,
}

/// A solution.
struct Solved<'a> {
    loom: &'a PlanBuilder<'a>,
    level: ReuseMode,
    limits: BucketLimits,
    buckets: &'a [Buckets],
    /// What it took or would have taken alone.
    seconds: f64,
}

impl<'a> Planner<'a> {
    fn new(args: &'a PlanArgs, material: PlanningInput<'a>) -> Self {
        Self { args, material, looms: [None, None], solved: None }
    }

    fn set_up<'b>(
        looms: &'b mut [Option<(PlanBuilder<'a>, f64)>; 2],
        material: PlanningInput<'a>,
        way: PlanOptions,
    ) -> Result<(&'b PlanBuilder<'a>, f64), PlanningError> {
        let place = usize::from(way.merging() == Merging::Merged);
        let known = match looms[place].take() {
            Some(known) => known,
            None => {
                let start = Instant::now();
                (PlanBuilder::set_up(material, way.merging())?, start.elapsed().as_secs_f64())
            }
        };
        let (loom, seconds) = looms[place].insert(known);
        Ok((loom, *seconds))
    }

    fn solve(&mut self, way: PlanOptions, workers: NonZeroU32) -> Result<Solved<'_>, PlanningError> {
        let (loom, set_up_seconds) = Self::set_up(&mut self.looms, self.material, way)?;
        let start = Instant::now();
        let memory_bytes = self.args.memory.map_or(u64::MAX, MemorySize::bytes);
        let limits = BucketLimits::choose(self.args.buckets, loom, workers, memory_bytes)?;
        let level = way.level(limits);
        let strategy = level.strategy();
        let known = self.solved.take().filter(|(known, ..)| *known == strategy);
        let solved = match known {
            Some(solved) => solved,
            None => (strategy, loom.solve(level)?, start.elapsed().as_secs_f64()),
        };
        let (_, buckets, seconds) = self.solved.insert(solved);
        Ok(Solved { loom, level, limits, buckets, seconds: set_up_seconds + *seconds })
    }

    fn plans(&mut self, ways: &[PlanOptions], workers: NonZeroU32) -> Result<Vec<PlanRecord>, PlanningError> {
        let memory = self.args.memory.map(MemorySize::bytes);
        let plan = |way: &PlanOptions| {
            if let Some(memory_bytes) = memory {
                return self.fitted(*way, workers, memory_bytes);
            }
            let Solved { loom, level, limits, buckets, seconds } = self.solve(*way, workers)?;
            let start = Instant::now();
            let figures = planning::figures(loom, buckets, level, workers.get())?;
            Ok(PlanRecord {
                strategy: way.strategy_name(),
                reuse: way.reuse_name(),
                figures,
                planning_seconds: Some(seconds + start.elapsed().as_secs_f64()),
                workers: workers.get(),
                max_bucket_size: way.max_bucket_size(limits),
                max_buckets: way.max_buckets(limits),
                least_bytes: None,
            })
        };
        ways.iter().map(plan).collect()
    }

    /// A plan for workers with so much memory, as `run` and managers make it, and what it needs.
    fn fitted(
        &mut self,
        way: PlanOptions,
        workers: NonZeroU32,
        memory_bytes: u64,
    ) -> Result<PlanRecord, PlanningError> {
        let (loom, seconds) = Self::set_up(&mut self.looms, self.material, way)?;
        let start = Instant::now();
        let memory = WorkerMemory { memory_bytes, below_bytes: 0 };
        let buckets = self.args.buckets;
        let room = Room { buckets, slots: workers, workers: &[memory], may_be_tree: false };
        let Fitted { way, limits, draft, .. } = fit(loom, way, room)?;
        let figures = planning::figures(loom, draft.solutions(), way.level(limits), workers.get())?;
        Ok(PlanRecord {
            strategy: way.strategy_name(),
            reuse: way.reuse_name(),
            figures,
            planning_seconds: Some(seconds + start.elapsed().as_secs_f64()),
            workers: workers.get(),
            max_bucket_size: way.max_bucket_size(limits),
            max_buckets: way.max_buckets(limits),
            least_bytes: Some(draft.needs().least_bytes),
        })
    }

    /// The makespan over numbers of workers, for each of the ways.
    fn curves(&mut self, ways: &[PlanOptions]) -> Result<Vec<Curve>, PlanningError> {
        let named = |way: &PlanOptions| Curve {
            strategy: way.strategy_name(),
            reuse: way.reuse_name(),
            points: Vec::new(),
        };
        let mut curves: Vec<Curve> = ways.iter().map(named).collect();
        for workers in scaling::WORKERS {
            for (curve, way) in curves.iter_mut().zip(ways) {
                let Solved { loom, level, buckets, .. } = self.solve(*way, workers)?;
                let Forecast { makespan_seconds, lower_bound_seconds } =
                    planning::forecast(loom, buckets, level, workers.get())?;
                curve.points.push(Point { workers, makespan_seconds, lower_bound_seconds });
            }
        }
        Ok(curves)
    }
}

/// Draws the curves to a file: the whole picture, or nothing.
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
