//! `pleach segment`: executes one run of the reference application, or of a workflow with a mask, on one tile, task after task
//! on the calling thread.

pub(super) mod apply;
mod cached;
mod chosen;
mod cluster;
pub(super) mod export;
mod written;

use crate::cli::SegmentArgs;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::{print_json, print_line};
use pleach_interop::export as region_files;
use pleach_interop::export::Format;
use pleach_pathology::image_io;
use pleach_pathology::kernels::Connectivity;
use pleach_pathology::kernels::components::Components;
use pleach_regions::{DataRegion, ElementType, RegionTemplate, SpatialBounds};
use pleach_results::folder::publish;
use pleach_results::template;
use pleach_study::single_run::{SingleRun, TaskOutput};
use pleach_study::{applied, slides};
use pleach_workflow::{Registry, Task, Value, Workflow};
use serde_json::{Map, json};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Runs the command.
pub(super) fn execute(args: &SegmentArgs, registry: &Registry) -> CommandResult {
    let features = args.features.as_deref();
    let features = features.map(|file| features_format(file).map(|format| (file, format))).transpose()?;
    let workflow = chosen::workflow(args, registry)?;
    let (last, mask) = chosen::mask_of(args, &workflow)?;
    let nuclei = chosen::nuclei_of(args, &workflow)?;
    let mut values: Vec<Value> = workflow.parameters.iter().map(|parameter| parameter.default).collect();
    applied::set_values(&mut values, &args.set, &workflow, registry)?;
    check_out(args)?;
    args.regions.as_deref().map_or(Ok(()), template::check)?;
    let image = read(&args.tile)?;

    let replay = SingleRun {
        workflow: &workflow,
        registry,
        values: &values,
        tile: Arc::new(image),
        stain: None,
        reference: None,
    };
    let kept = if args.regions.is_some() { written(&workflow, last) } else { Vec::new() };
    let wanted: Vec<TaskOutput> =
        std::iter::once(mask).chain(kept.iter().map(|(_, place)| *place)).chain(nuclei).collect();
    let mut timings = Map::new();
    let timed = |task: &Task, time: Duration| {
        timings.insert(task.operation.clone(), json!(time.as_secs_f64()));
    };
    let regions = replay.run(&wanted, timed).map_err(|error| chosen::failure(args, &error))?;
    if let Some(folder) = &args.regions {
        let names = std::iter::once("tile").chain(kept.iter().map(|(name, _)| name.as_str()));
        let all = std::iter::once(&replay.tile).chain(&regions[1..=kept.len()]).cloned();
        let named: Vec<_> = names.map(str::to_owned).zip(all).collect();
        template::write(folder, template_of(args, &replay.tile)?, &named)?;
    }
    let mask =
        regions.first().ok_or_else(|| CommandError::Internal("the workflow returned no mask".to_owned()))?;
    let mask = mask.raster(ElementType::Mask).map_err(CommandError::defect)?;
    let nonzero = mask.data().iter().filter(|value| **value > 0).count();
    let width = mask.width_px() as usize;
    let objects = Components::of_objects(mask.data(), width, Connectivity::Eight).count();
    image_io::write_mask(&args.out, mask).map_err(CommandError::tile)?;
    if let (Some((file, format)), Some(nuclei)) = (features, regions.get(kept.len() + 1)) {
        let fail = |error: &dyn std::fmt::Display| format!("--features {}: {error}", file.display());
        let bytes = region_files::bytes(nuclei, format).map_err(|error| CommandError::Input(fail(&error)))?;
        publish(file, &bytes)
            .map_err(|error| CommandError::writing(format_args!("--features {}", file.display()), &error))?;
    }

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

/// Returns the format of a file for features, before any task runs.
fn features_format(file: &Path) -> CommandResult<Format> {
    match Format::of(file) {
        Ok(format @ (Format::Csv | Format::GeoJson)) => Ok(format),
        Ok(_) | Err(_) => Err(CommandError::Input(format!(
            "--features {}: a name that ends in .csv or .geojson is allowed",
            file.display()
        ))),
    }
}

/// Reads the tile. Rejects slides.
pub(super) fn read(tile: &Path) -> CommandResult<DataRegion> {
    let a_slide = || {
        CommandError::Input(format!(
            "{}: a slide is not allowed; a tile is allowed (a study with slides = [\"{0}\"] segments it in tiles)",
            tile.display()
        ))
    };
    match image_io::read_bgr(tile) {
        Ok(_) if slides::has_name_of_several_files(tile) => Err(a_slide()),
        Ok(image) => Ok(image),
        Err(error) if slides::is_slide(tile, &error) => Err(a_slide()),
        Err(error) => Err(CommandError::tile(error)),
    }
}

/// Returns the names and locations of all task outputs up to the last stage, that of the mask. Comparison stages come later.
fn written(workflow: &Workflow, last: usize) -> Vec<(String, TaskOutput)> {
    let mut all = Vec::new();
    for (stage, declared) in workflow.stages.iter().enumerate().take(last + 1) {
        for (task, writer) in declared.tasks.iter().enumerate() {
            let outputs = writer.writes.iter().enumerate();
            all.extend(
                outputs.map(|(output, region)| (region.region.clone(), TaskOutput { stage, task, output })),
            );
        }
    }
    all
}

/// Returns the tile's region template, still without data regions.
fn template_of(args: &SegmentArgs, tile: &DataRegion) -> CommandResult<RegionTemplate> {
    let name = args.tile.file_name().unwrap_or_default().to_string_lossy();
    let tile = tile.raster(ElementType::Bgr8).map_err(CommandError::defect)?;
    let bounds = SpatialBounds::of_image(tile.width_px(), tile.height_px(), None);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let template = RegionTemplate::new("tile", &name, bounds);
    let fail = |error| CommandError::Input(format!("{}: {error}", args.tile.display()));
    Ok(template.map_err(fail)?.with_version(1, i64::try_from(now).unwrap_or(i64::MAX)))
}

/// Checks the path of the mask before any task runs.
fn check_out(args: &SegmentArgs) -> CommandResult {
    let out = &args.out;
    let fail = |text: String| Err(CommandError::Input(format!("--out {}: {text}", out.display())));
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    match (folder, out.canonicalize().ok(), args.tile.canonicalize().ok()) {
        (Some(folder), ..) if !folder.is_dir() => {
            fail(format!("folder {} not found; an existing folder is needed", folder.display()))
        }
        _ if out.is_dir() => fail("is a folder; the name of a PNG file is allowed".to_owned()),
        (_, Some(out), Some(tile)) if out == tile => {
            fail("is the tile itself; another file is allowed".to_owned())
        }
        _ => Ok(()),
    }
}
