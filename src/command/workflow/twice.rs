//! `pleach workflow check --twice`: runs a workflow twice on a tile, in different processes, and compares every output.

use crate::command::segment::read;
use crate::exit::{CommandError, CommandResult};
use crate::operations::end_processes;
use crate::terminal::print_line;
use pleach_regions::{DataRegion, Digest};
use pleach_study::single_run::{SingleRun, TaskOutput};
use pleach_workflow::{Registry, Value, Workflow, plain_name};
use std::path::Path;
use std::sync::Arc;

/// Runs the workflow at its default values twice.
///
/// # Errors
/// Returns an input error that names the first task whose output differs, unless its operation is declared to differ.
pub(super) fn check(workflow: &Workflow, tile: &Path, registry: &Registry) -> CommandResult {
    let image = Arc::new(read(tile)?);
    let outputs = outputs(workflow);
    let first = digests(workflow, &image, &outputs, registry)?;
    // State of a process, such as a seeded generator, must not reach the second run.
    end_processes();
    let second = digests(workflow, &image, &outputs, registry)?;
    let mut different =
        outputs.iter().zip(first.iter().zip(&second)).filter(|(_, (first, second))| first != second);
    if let Some((place, _)) = different.next() {
        let stage = &workflow.stages[place.stage];
        let task = &stage.tasks[place.task];
        if registry.get(&task.operation, task.version).is_some_and(|operation| !operation.is_deterministic())
        {
            print_line(&format!("{}: results differ between two runs, as declared", task.name));
            return Ok(());
        }
        return Err(CommandError::Input(format!(
            "--twice {}: stage {}, task {}: region \"{}\" differs between two runs of {}; make it a function of its inputs \
             and arguments, or declare determinism = \"none\"",
            tile.display(),
            stage.name,
            task.name,
            task.writes[place.output].region,
            plain_name(&task.operation),
        )));
    }
    print_line(&format!("{}: {} regions are equal in two runs", tile.display(), outputs.len()));
    Ok(())
}

/// Returns the outputs of all tasks that always run, in execution order.
fn outputs(workflow: &Workflow) -> Vec<TaskOutput> {
    let mut outputs = Vec::new();
    for (stage, of) in workflow.stages.iter().enumerate() {
        for (task, written) in of.tasks.iter().enumerate().filter(|(_, task)| task.guard.is_none()) {
            outputs.extend((0..written.writes.len()).map(|output| TaskOutput { stage, task, output }));
        }
    }
    outputs
}

fn digests(
    workflow: &Workflow,
    tile: &Arc<DataRegion>,
    outputs: &[TaskOutput],
    registry: &Registry,
) -> CommandResult<Vec<Digest>> {
    let values: Vec<Value> = workflow.parameters.iter().map(|parameter| parameter.default).collect();
    let run = SingleRun {
        workflow,
        registry,
        values: &values,
        tile: Arc::clone(tile),
        stain: None,
        reference: None,
    };
    let regions = run.run(outputs, |_, _| {}).map_err(CommandError::input)?;
    Ok(regions.iter().map(|region| region.digest()).collect())
}
