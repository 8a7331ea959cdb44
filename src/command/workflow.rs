//! `pleach workflow check|show`: checks and shows descriptors. [`import`] converts files of other programs, [`new`] and
//! [`stub`] begin workflows and operations, [`init`] a study, [`instrument`] proposes the cuts of a script, and [`cwl`] writes a tool
//! for other workflow systems.

mod cwl;
mod import;
pub(super) mod init;
pub(super) mod instrument;
mod new;
mod stub;
mod twice;

use crate::cli::WorkflowCommand;
use crate::exit::{CommandError, CommandResult};
use crate::terminal::{print_json, print_line};
use pleach_study::builtin;
use pleach_workflow::{
    DescriptorError, Domain, InputBounds, InputOrigin, OperationUse, Parameter, Problem, RegionDecl,
    RegionUse, Registry, Stage, TaskInput, Workflow, is_stage, operation_uses, plain_name, stage_file,
};
use std::path::Path;

/// Runs the command.
pub(super) fn execute(command: &WorkflowCommand, registry: &Registry) -> CommandResult {
    match command {
        WorkflowCommand::New { folder, python } => new::execute(folder, *python),
        WorkflowCommand::Import { file, out, map } => {
            import::execute(file, out.as_deref(), map.as_deref(), registry)
        }
        WorkflowCommand::Stub { file, rust, out, .. } => stub::execute(file, *rust, out.as_deref(), registry),
        WorkflowCommand::Check { file, twice: None, .. } if is_stage(file) => {
            let stage = stage_file(file, registry).map_err(|error| unchecked(file, registry, &error))?;
            print_line(&format!(
                "{}: stage {}: {} tasks, valid",
                file.display(),
                stage.name,
                stage.tasks.len()
            ));
            Ok(())
        }
        WorkflowCommand::Check { file, twice, .. } => {
            let workflow = load(file, registry).map_err(|error| unchecked(file, registry, &error))?;
            print_line(&format!(
                "{}: workflow {}: {} stages, {} tasks, {} parameters, valid",
                file.display(),
                workflow.name,
                workflow.stages.len(),
                workflow.stages.iter().map(|stage| stage.tasks.len()).sum::<usize>(),
                workflow.parameters.len(),
            ));
            twice.as_deref().map_or(Ok(()), |tile| twice::check(&workflow, tile, registry))
        }
        WorkflowCommand::Show { file, json, cwl, .. } => {
            let workflow = load(file, registry).map_err(CommandError::input)?;
            if *cwl {
                return print_json(&cwl::tool(file, &workflow)?);
            }
            if *json {
                return print_json(&workflow);
            }
            show(&workflow);
            Ok(())
        }
    }
}

fn load(file: &Path, registry: &Registry) -> Result<Workflow, DescriptorError> {
    let built_in = file.to_str().and_then(|name| builtin::workflow(name, registry));
    match built_in {
        Some(workflow) if !file.exists() => workflow,
        _ => Workflow::load(file, registry),
    }
}

/// Returns the end of a command for an invalid descriptor. Prints the operations that this program lacks, if there are several.
fn unchecked(file: &Path, registry: &Registry, error: &DescriptorError) -> CommandError {
    if !matches!(*error.problem, Problem::UnknownOperation { .. }) {
        return CommandError::input(error);
    }
    let Ok(uses) = operation_uses(file) else { return CommandError::input(error) };
    let missing: Vec<&OperationUse> =
        uses.iter().filter(|of| registry.get(&of.operation, of.version).is_none()).collect();
    // The error has the place of a single one.
    if missing.len() < 2 {
        return CommandError::input(error);
    }
    let mut names: Vec<(&str, u32)> = Vec::new();
    for of in &missing {
        let OperationUse { file, pointer, operation, version, .. } = of;
        let list = |regions: &[RegionUse]| {
            regions.iter().map(|region| region.name.as_str()).collect::<Vec<_>>().join(", ")
        };
        let arguments = of.arguments.iter().map(|argument| argument.name.as_str()).collect::<Vec<_>>();
        print_line(&format!(
            "{}: {pointer}: task {}: operation \"{operation}\" v{version} is unknown: ({})  {} -> {}",
            file.display(),
            of.task,
            arguments.join(", "),
            list(&of.reads),
            list(&of.writes)
        ));
        if !names.contains(&(operation, *version)) {
            names.push((operation, *version));
        }
    }
    CommandError::Input(format!(
        "{}: {} operations are unknown; `pleach workflow stub` writes their source; known are {}",
        file.display(),
        names.len(),
        registry.names().join(", ")
    ))
}

fn show(workflow: &Workflow) {
    print_line(&format!("workflow {}: {}", workflow.name, workflow.description));
    for (number, stage) in workflow.stages.iter().enumerate() {
        let optional = stage.switch.as_ref().map(|s| format!(" (skipped if {} = false)", s.name));
        print_line(&format!(
            "\nstage {} {}{}: {}",
            number + 1,
            stage.name,
            optional.unwrap_or_default(),
            stage.description
        ));
        for input in &stage.inputs {
            let from = match input.origin {
                InputOrigin::Input(_) => "the tile".to_owned(),
                InputOrigin::Stage { stage, .. } => format!("stage {}", workflow.stages[stage].name),
                InputOrigin::Reference => "the reference".to_owned(),
            };
            let bounds = match input.bounds {
                InputBounds::Own => String::new(),
                bounds => format!(", bounds {bounds}"),
            };
            let RegionDecl { region, element } = &input.region;
            print_line(&format!("  reads  {region} ({element}) from {from}{bounds}"));
        }
        for task in &stage.tasks {
            let names = stage.task_parameters(task).map(|p| workflow.parameters[p].name.as_str());
            let reads: Vec<&str> = task.operands().iter().map(|read| region_name(stage, *read)).collect();
            let writes: Vec<&str> = task.writes.iter().map(|region| region.region.as_str()).collect();
            print_line(&format!(
                "  {:<10} {:<24} ({})  {} -> {}",
                task.name,
                format!("{} v{}", plain_name(&task.operation), task.version),
                names.collect::<Vec<_>>().join(", "),
                reads.join(", "),
                writes.join(", "),
            ));
            for condition in task.guard.iter().flat_map(|guard| &guard.conditions) {
                let unless = if condition.expected { "if" } else { "unless" };
                let value = region_name(stage, task.reads[condition.value]);
                print_line(&format!("  {:<10} {unless} {value} {}", "", condition.comparison));
            }
        }
        for output in &stage.outputs {
            print_line(&format!("  writes {} ({})", output.region.region, output.region.element));
        }
    }
    print_line(&format!("\n{:<12} {:<8} {:>8}  values", "parameter", "type", "default"));
    for Parameter { name, value_type, default, domain } in &workflow.parameters {
        let kind = value_type.to_string();
        print_line(&format!("{name:<12} {kind:<8} {:>8}  {}", default.to_string(), values(domain)));
    }
}

fn region_name(stage: &Stage, read: TaskInput) -> &str {
    match read {
        TaskInput::StageInput(input) => &stage.inputs[input].region.region,
        TaskInput::Task { task, output } => &stage.tasks[task].writes[output].region,
    }
}

fn values(domain: &Domain) -> String {
    match domain {
        Domain::Continuous { low, high } => format!("{low} to {high}"),
        Domain::Distributed { distribution } => distribution.to_string(),
        Domain::Fixed { value } => format!("{value}, fixed"),
        Domain::Levels { values } => match values.as_slice() {
            [first, second, .., last] => format!("{first}, {second} … {last} ({} values)", values.len()),
            few => few.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
        },
    }
}
