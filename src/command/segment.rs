//! `pleach segment`: one run of the reference application on one tile, task after task on this thread.

use crate::application;
use crate::cli::SegmentArgs;
use crate::exit::{Outcome, Stop};
use crate::output::{print_json, print_line};
use pleach_pathology::kernels::Connectivity;
use pleach_pathology::kernels::components::Components;
use pleach_pathology::tile;
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::{Origin, Read, Registry, Stage, Value, Workflow};
use serde_json::{Map, json};
use std::time::Instant;

/// Runs the command.
pub(super) fn execute(args: &SegmentArgs) -> Outcome {
    let registry = application::registry();
    let workflow = match application::workflow(application::BUILT_IN[0], &registry) {
        Some(workflow) => workflow.map_err(Stop::defect)?,
        None => return Err(Stop::Defect("the reference application is not built in".to_owned())),
    };
    let off = if args.normalize { Vec::new() } else { vec!["normalize".to_owned()] };
    let workflow = workflow.without(&off);
    let values = values(args, &workflow, &registry)?;
    check_out(args)?;
    let image = tile::read_bgr(&args.tile).map_err(Stop::input)?;

    let mut timings = Map::new();
    let target = workflow.reference.as_ref().map_or(0, |reference| reference.stage);
    let mut outputs: Vec<Vec<DataRegion>> = Vec::new();
    for stage in &workflow.stages[..=target] {
        let inputs: Vec<&DataRegion> = stage
            .inputs
            .iter()
            .map(|input| match input.origin {
                Origin::Stage { stage, output } => &outputs[stage][output],
                Origin::Input(_) | Origin::Reference => &image,
            })
            .collect();
        let produced = run_stage(stage, &registry, &inputs, &values, &mut timings)?;
        outputs.push(produced);
    }
    let mask = outputs.pop().and_then(|mut outputs| (!outputs.is_empty()).then(|| outputs.remove(0)));
    let mask = mask.ok_or_else(|| Stop::Defect("the workflow gave no mask".to_owned()))?;
    let mask = mask.raster(ElementType::Mask).map_err(Stop::defect)?;
    let nonzero = mask.data().iter().filter(|value| **value > 0).count();
    let width = mask.width_px() as usize;
    let objects = Components::of_objects(mask.data(), width, Connectivity::Eight).count();
    tile::write_mask(&args.out, mask).map_err(Stop::input)?;

    let name = args.out.display().to_string();
    if args.json {
        return print_json(
            &json!({ "mask": name, "nonzero": nonzero, "objects": objects, "timings": timings }),
        );
    }
    print_line(&format!("{name}: {objects} objects, {nonzero} of {} pixels", mask.pixels()));
    if args.timings {
        for (operation, seconds) in &timings {
            print_line(&format!("  {operation:<24} {:>9.1} ms", seconds.as_f64().unwrap_or(0.0) * 1e3));
        }
    }
    Ok(())
}

/// Whether the mask has a place to go: found out before the work is done.
fn check_out(args: &SegmentArgs) -> Outcome {
    let out = &args.out;
    let fail = |text: String| Err(Stop::Input(format!("--out {}: {text}", out.display())));
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    match (folder, out.canonicalize().ok(), args.tile.canonicalize().ok()) {
        (Some(folder), ..) if !folder.is_dir() => fail(format!("there is no folder {}", folder.display())),
        _ if out.is_dir() => fail("is a folder; the name of a PNG file is wanted".to_owned()),
        (_, Some(out), Some(tile)) if out == tile => {
            fail("is the tile itself; another file is wanted".to_owned())
        }
        _ => Ok(()),
    }
}

/// Parameter values: defaults, then what `--set` says.
fn values(args: &SegmentArgs, workflow: &Workflow, registry: &Registry) -> Outcome<Vec<Value>> {
    let mut values: Vec<Value> = workflow.parameters.iter().map(|parameter| parameter.default).collect();
    for setting in &args.set {
        let fail = |text: String| Stop::Input(format!("--set {setting}: {text}"));
        let Some((name, text)) = setting.split_once('=') else {
            return Err(fail("NAME=VALUE is wanted, as in G1=60".to_owned()));
        };
        let Some(index) = workflow.parameters.iter().position(|parameter| parameter.name == name) else {
            let known: Vec<_> = workflow.parameters.iter().map(|p| p.name.as_str()).collect();
            return Err(fail(format!("parameter \"{name}\" is unknown; known are {}", known.join(", "))));
        };
        let value = Value::parse(text, workflow.parameters[index].value_type);
        values[index] = value.map_err(|error| fail(error.to_string()))?;
        for (stage, task) in workflow.stages.iter().flat_map(|s| s.tasks.iter().map(move |t| (s, t))) {
            let Some(operation) = registry.get(&task.operation, task.version) else { continue };
            for (argument, parameter) in operation.arguments().iter().zip(stage.task_parameters(task)) {
                if parameter == index && !argument.accepts.contains(values[index]) {
                    return Err(fail(format!("{} is allowed", argument.accepts)));
                }
            }
        }
    }
    Ok(values)
}

fn run_stage(
    stage: &Stage,
    registry: &Registry,
    inputs: &[&DataRegion],
    values: &[Value],
    timings: &mut Map<String, serde_json::Value>,
) -> Outcome<Vec<DataRegion>> {
    let mut written: Vec<Vec<Option<DataRegion>>> = Vec::new();
    for task in &stage.tasks {
        let Some(operation) = registry.get(&task.operation, task.version) else {
            return Err(Stop::Defect(format!("operation {} is not linked in", task.operation)));
        };
        let regions: Option<Vec<&DataRegion>> = task
            .reads
            .iter()
            .map(|read| match *read {
                Read::StageInput(input) => inputs.get(input).copied(),
                Read::Task { task, output } => written[task][output].as_ref(),
            })
            .collect();
        let arguments: Vec<Value> = stage.task_parameters(task).map(|p| values[p]).collect();
        let start = Instant::now();
        let outputs = operation.run(&regions.unwrap_or_default(), &arguments).map_err(Stop::defect)?;
        timings.insert(task.operation.clone(), json!(start.elapsed().as_secs_f64()));
        written.push(outputs.into_iter().map(Some).collect());
    }
    let outputs = stage.outputs.iter().filter_map(|out| written[out.task][out.output].take());
    Ok(outputs.collect())
}
