//! Small stages and keys, built by hand.

use pleach_regions::{ElementType, RegionKey};
use pleach_workflow::{InputOrigin, RegionDecl, Stage, StageInput, StageOutput, Task, TaskInput};

/// Returns a key that prints its number.
pub(crate) fn key(number: u32) -> RegionKey {
    RegionKey(u128::from(number).to_be_bytes())
}

/// Returns a task that consumes these parameters of the stage, reads these regions and has `writes` outputs.
pub(crate) fn task(name: &str, arguments: &[usize], reads: &[TaskInput], writes: usize) -> Task {
    Task {
        name: name.to_owned(),
        description: String::new(),
        operation: format!("test.{name}"),
        version: 1,
        arguments: arguments.to_vec(),
        reads: reads.to_vec(),
        writes: (0..writes).map(|output| region(&format!("{name}.{output}"))).collect(),
        guard: None,
    }
}

/// Returns a stage of these tasks, in this order. Each entry of `outputs` names a task and one of its outputs.
pub(crate) fn stage(parameters: usize, inputs: usize, tasks: Vec<Task>, outputs: &[(usize, usize)]) -> Stage {
    let input = |number| StageInput::new(region(&format!("in{number}")), InputOrigin::Input(number));
    let output = |&(task, output): &(usize, usize)| {
        StageOutput::new(region(&format!("out{task}.{output}")), task, output)
    };
    Stage {
        name: "stage".to_owned(),
        description: String::new(),
        inputs: (0..inputs).map(input).collect(),
        outputs: outputs.iter().map(output).collect(),
        parameters: (0..parameters).collect(),
        tasks,
        switch: None,
    }
}

fn region(name: &str) -> RegionDecl {
    RegionDecl { region: name.to_owned(), element: ElementType::Gray8 }
}
