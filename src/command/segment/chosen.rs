//! The workflow of `pleach segment`: the built-in one, or one of the user's with a mask.

use crate::cli::SegmentArgs;
use crate::exit::{CommandError, CommandResult};
use pleach_regions::ElementType;
use pleach_study::builtin;
use pleach_study::single_run::{self, ReplayError, TaskOutput};
use pleach_workflow::{Registry, Workflow};
use std::path::Path;

/// The built-in workflow that measures nuclei.
const FEATURES: &str = "nuclei-features";

/// Stage switch of the stain normalization in built-in workflows.
const NORMALIZE: &str = "normalize";

/// Returns the workflow, without the normalization unless it is asked for.
pub(super) fn workflow(args: &SegmentArgs, registry: &Registry) -> CommandResult<Workflow> {
    let workflow = match &args.workflow {
        Some(file) => of_user(file, registry)?,
        None => {
            let name = if args.features.is_some() { FEATURES } else { builtin::BUILT_IN[0] };
            match builtin::workflow(name, registry) {
                Some(workflow) => workflow.map_err(CommandError::defect)?,
                None => {
                    return Err(CommandError::Internal("the reference application is missing".to_owned()));
                }
            }
        }
    };
    let mut switches = workflow.stages.iter().filter_map(|stage| stage.switch.as_ref());
    if args.normalize && !switches.any(|switch| switch.name == NORMALIZE) {
        return Err(CommandError::Input(format!(
            "--normalize: workflow {} has no optional stage {NORMALIZE}; leave out the option",
            workflow.name
        )));
    }
    let off = if args.normalize { Vec::new() } else { vec![NORMALIZE.to_owned()] };
    Ok(workflow.without(&off))
}

fn of_user(file: &Path, registry: &Registry) -> CommandResult<Workflow> {
    let built_in = file.to_str().filter(|_| !file.exists());
    let built_in = built_in.and_then(|name| builtin::workflow(name, registry));
    let workflow = built_in.unwrap_or_else(|| Workflow::load(file, registry)).map_err(CommandError::input)?;
    if let Some(input) = workflow.inputs.iter().find(|input| input.element != ElementType::Bgr8) {
        return Err(CommandError::Input(format!(
            "--workflow {}: input {} is of type {}; inputs of type {}, which the tile serves, are allowed (pleach run takes others)",
            file.display(),
            input.region,
            input.element,
            ElementType::Bgr8
        )));
    }
    Ok(workflow)
}

/// Returns the stage and the output with the mask: the reference's, or the first one.
pub(super) fn mask_of(args: &SegmentArgs, workflow: &Workflow) -> CommandResult<(usize, TaskOutput)> {
    let outputs = workflow.stages.iter().enumerate().flat_map(|(number, stage)| {
        let outputs = stage.outputs.iter().enumerate();
        outputs.map(move |(output, declared)| (number, output, declared.region.element))
    });
    let reference = workflow.reference.as_ref().map(|reference| (reference.stage, reference.output));
    let mut masks = outputs.filter(|(.., element)| *element == ElementType::Mask);
    let is_reference = |(stage, output, _): &(usize, usize, _)| reference == Some((*stage, *output));
    let found = masks.clone().find(is_reference).or_else(|| masks.next());
    match (found, &args.workflow) {
        (Some((stage, output, _)), _) => Ok((stage, single_run::of_stage(workflow, stage, output))),
        (None, Some(file)) => Err(CommandError::Input(format!(
            "--workflow {}: no stage has an output of type {}; such an output is required (pleach run analyzes workflows \
             without one)",
            file.display(),
            ElementType::Mask
        ))),
        (None, None) => Err(CommandError::Internal("the reference application has no mask".to_owned())),
    }
}

/// Returns the region of the nuclei with their features. `None` without features.
pub(super) fn nuclei_of(args: &SegmentArgs, workflow: &Workflow) -> CommandResult<Option<TaskOutput>> {
    if args.features.is_none() {
        return Ok(None);
    }
    let found = workflow.stages.iter().enumerate().find_map(|(stage, declared)| {
        let output =
            declared.outputs.iter().position(|output| output.region.element == ElementType::Objects)?;
        Some(single_run::of_stage(workflow, stage, output))
    });
    if found.is_none() {
        return Err(CommandError::Input(format!(
            "--features: workflow {} has no output of type {}; leave out the option, or --workflow",
            workflow.name,
            ElementType::Objects
        )));
    }
    Ok(found)
}

/// Returns the end of the command for a failed run: tasks of the built-in workflow run on every image.
pub(super) fn failure(args: &SegmentArgs, error: &ReplayError) -> CommandError {
    match &args.workflow {
        Some(file) => CommandError::Input(format!("--workflow {}: {error}", file.display())),
        None => CommandError::defect(error),
    }
}
