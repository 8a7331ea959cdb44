//! `pleach query`: finds objects by position, in regions that workers of a manager retain or in a task cache.

use super::connect;
use crate::cli::QueryArgs;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::{print_json, print_line};
use pleach_cache::PriorResults;
use pleach_client::{InterruptibleWait, plain};
use pleach_planner::memory_size::human;
use pleach_regions::SpatialIndex;
use pleach_results::cache_walk::{self, CachedRegions};
use pleach_results::chosen::{self, EvaluationChoice};
use pleach_study::PreparedStudy;
use pleach_study::spatial::{
    self, Calibration, LocatedObject, LocatedObjects, ObjectQuery, ObjectSearch, TilePlace,
};
use pleach_workflow::{Registry, Study, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Regions without an answer that a message names.
const NAMED: usize = 5;

/// Runs the command.
pub(in crate::command) fn execute(args: &QueryArgs, registry: &Registry) -> CommandResult {
    let selection = spatial::selection(args.within.as_deref(), args.nearest.as_deref())
        .map_err(|error| CommandError::Input(format!("--{error}")))?;
    let query = ObjectQuery {
        stage: args.stage.clone(),
        output: args.output.clone(),
        evaluation: args.evaluation,
        image: args.tile.clone(),
        selection,
        count: args.count,
        in_microns: args.um,
    };
    let found = match (&args.cache, args.manager.given()) {
        (Some(cache), _) => in_cache(args, cache, &query, registry)?,
        (None, Some(manager)) => {
            let client = connect(&manager, InterruptibleWait::until_killed()?)?;
            client.objects(&args.study.to_string_lossy(), &query)?
        }
        (None, None) => {
            return Err(CommandError::Input(format!(
                "{}: --manager and --certs are required for a study of a manager, or --cache for a study file",
                args.study.display()
            )));
        }
    };
    if args.json {
        print_json(&found)?;
    } else {
        show(&found);
    }
    complete(&found, args.cache.is_some())
}

/// Answers from the regions of a task cache.
fn in_cache(
    args: &QueryArgs,
    cache: &Path,
    query: &ObjectQuery,
    registry: &Registry,
) -> CommandResult<LocatedObjects> {
    let prepared = PreparedStudy::load(&args.study, None, registry)?;
    let study = &prepared.study;
    let (stage, output) = output_of(study, query)?;
    if study.workflow.crosses_units() {
        return Err(CommandError::Input(format!(
            "--cache: regions of workflow {}, whose stages read those of other tiles, cannot be found in a task cache; a \
             study of a manager can be queried",
            study.workflow.name
        )));
    }
    let values = values_of(args, study)?;
    let prior = PriorResults {
        cache: Some(Arc::new(cache_walk::open_to_read(cache)?)),
        identities: Arc::new(cache_walk::identities(&prepared)),
        ..PriorResults::default()
    };
    let places = TilePlace::of_study(study, &calibrations(study)?);
    let of_tile = |text: String| CommandError::Input(format!("--{text}"));
    let (mut search, queries) =
        ObjectSearch::begin(&places, query, false).map_err(|error| of_tile(error.to_string()))?;
    for (tile, query) in queries {
        match CachedRegions::on(&prepared, &prior, tile).output(&values, stage, output) {
            None => search.add_missing(tile),
            Some(region) => {
                let found = SpatialIndex::new(&region).and_then(|index| index.find(&query));
                search.add(tile, found.map_err(CommandError::input)?, region.bytes());
            }
        }
    }
    Ok(search.finish())
}

/// Returns the stage and the output of a query.
fn output_of(study: &Study, query: &ObjectQuery) -> CommandResult<(usize, usize)> {
    let stages = &study.workflow.stages;
    let Some(stage) = stages.iter().position(|stage| stage.name == query.stage) else {
        let known: Vec<&str> = stages.iter().map(|stage| &*stage.name).collect();
        return Err(CommandError::Input(format!(
            "--stage {:?}: not a stage of the study; allowed: {}",
            query.stage,
            known.join(", ")
        )));
    };
    let outputs = &stages[stage].outputs;
    let output = outputs.iter().position(|output| output.region.region == query.output);
    output.map(|output| (stage, output)).ok_or_else(|| {
        let known: Vec<&str> = outputs.iter().map(|output| &*output.region.region).collect();
        CommandError::Input(format!(
            "--output {:?}: not an output of stage {}; allowed: {}",
            query.output,
            query.stage,
            known.join(", ")
        ))
    })
}

/// Returns the parameter values of the evaluation.
fn values_of(args: &QueryArgs, study: &Study) -> CommandResult<Vec<Value>> {
    let results = args.results.clone().unwrap_or_else(|| PathBuf::from(&study.name));
    let choice = match args.evaluation {
        0 => EvaluationChoice::Default,
        number => EvaluationChoice::Number(number),
    };
    Ok(chosen::choose(choice, &results, None, &study.name, &study.workflow.parameters)?.values)
}

fn calibrations(study: &Study) -> CommandResult<BTreeMap<PathBuf, Calibration>> {
    let Some(slides) = &study.slides else { return Ok(BTreeMap::new()) };
    let of_slide = |path: &PathBuf| -> CommandResult<(PathBuf, Calibration)> {
        let calibration = Calibration::of_slide(path, slides.magnification).map_err(CommandError::input)?;
        Ok((path.clone(), calibration))
    };
    slides.files.iter().map(|slide| of_slide(&slide.path)).collect()
}

fn show(found: &LocatedObjects) {
    let numbers =
        |numbers: &[f64]| numbers.iter().map(|number| format!("{number:.2}")).collect::<Vec<_>>().join(", ");
    for LocatedObject { tile, id, low, high, centroid, distance, centroid_um, distance_um } in &found.objects
    {
        let mut line = format!("{} {id}: centroid {}", plain(tile), numbers(centroid));
        if let Some(um) = centroid_um {
            line += &format!(" ({} µm)", numbers(um));
        }
        line += &format!(", box {} to {}", numbers(low), numbers(high));
        if let Some(distance) = distance {
            line += &format!(", distance {distance:.2}");
        }
        if let Some(um) = distance_um {
            line += &format!(" ({um:.2} µm)");
        }
        print_line(&line);
    }
    let (of, bytes) = (human(found.region_bytes), human(found.moved_bytes));
    let moved = if found.moved_bytes > 0 { format!("; {bytes} moved") } else { String::new() };
    print_line(&format!(
        "{} of {} objects, from {} regions of {of}{moved}",
        found.objects.len(),
        found.total,
        found.regions
    ));
}

/// Returns an error that names the regions without an answer.
fn complete(found: &LocatedObjects, is_cache: bool) -> CommandResult {
    let missing = found.missing.len();
    if missing == 0 {
        return Ok(());
    }
    let mut named: Vec<String> = found.missing.iter().take(NAMED).map(|name| plain(name)).collect();
    if missing > NAMED {
        named.push(format!("{} more", missing - NAMED));
    }
    let all = found.regions + missing as u64;
    let cause = match is_cache {
        true => {
            "not in the task cache: run the study with --cache, which keeps what is read faster than it is computed"
        }
        false => {
            "on no worker: not computed yet, lost with a worker or dropped for other work; submit the study again to compute \
             them"
        }
    };
    Err(CommandError::SomeFailed(format!(
        "the answer is incomplete: regions of {missing} of {all} tiles are {cause}: {}",
        named.join(", ")
    )))
}
