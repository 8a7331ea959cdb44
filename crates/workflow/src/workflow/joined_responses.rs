//! Joins the responses of several tables of one run in a last stage.
//!
//! A study has one table of responses. For metrics of several tables, the workflow keeps the stages of all of them, and
//! an additional last stage joins them. The stages compute the same results as without the join.

use crate::operation::Registry;
use crate::workflow::{
    InputOrigin, RegionDecl, ResponseTable, Stage, StageInput, StageOutput, Task, TaskInput, Workflow,
};
use pleach_regions::ElementType;

/// Name and version of the operation that joins two tables: columns of the first, then of the second.
pub const JOIN: (&str, u32) = ("tables.join", 1);

/// Name of the joining stage.
const NAME: &str = "responses";

impl Workflow {
    /// Returns the same workflow with its responses from these tables, one after the other. `tables` has the indices of
    /// [`Workflow::measuring`], ascending, at least one. The `retained` stages stay, whether or not a table depends on them. Returns `None` if the required operation [`JOIN`] is not
    /// linked.
    #[must_use]
    pub fn joining(&self, tables: &[usize], retained: &[usize], registry: &Registry) -> Option<Self> {
        let [first, others @ ..] = tables else { return None };
        if others.is_empty() {
            return Some(self.measuring_all(&[*first], retained));
        }
        let (name, version) = JOIN;
        registry.get(name, version)?;
        let mut workflow = self.measuring_all(tables, retained);
        let all: Vec<ResponseTable> = std::iter::once(workflow.response.clone())
            .chain(std::mem::take(&mut workflow.alternatives))
            .collect();
        let inputs = all.iter().map(|table| {
            let region = workflow.stages[table.stage].outputs[table.output].region.clone();
            StageInput::new(region, InputOrigin::Stage { stage: table.stage, output: table.output })
        });
        let inputs: Vec<StageInput> = inputs.collect();
        let unused = |name: &str| {
            let stages = workflow.stages.iter().all(|stage| stage.name != name);
            stages && inputs.iter().all(|input| input.region.region != name)
        };
        let names =
            (1..).map(|number| if number == 1 { NAME.to_owned() } else { format!("{NAME}-{number}") });
        let name_of_stage = names.into_iter().find(|name| unused(name))?;
        let region = |task: usize| {
            let is_last = task + 2 == all.len();
            let region =
                if is_last { name_of_stage.clone() } else { format!("{name_of_stage}-part-{}", task + 1) };
            RegionDecl { region, element: ElementType::Table }
        };
        let tasks = (0..all.len() - 1).map(|task| Task {
            name: if all.len() == 2 { "join".to_owned() } else { format!("join-{}", task + 1) },
            description: "Puts tables together".to_owned(),
            operation: name.to_owned(),
            version,
            arguments: Vec::new(),
            reads: vec![
                task.checked_sub(1)
                    .map_or(TaskInput::StageInput(0), |before| TaskInput::Task { task: before, output: 0 }),
                TaskInput::StageInput(task + 1),
            ],
            writes: vec![region(task)],
            guard: None,
        });
        let tasks: Vec<Task> = tasks.collect();
        let last = tasks.len() - 1;
        let stage = Stage {
            name: name_of_stage.clone(),
            description: "Puts the responses of a run into one table".to_owned(),
            inputs,
            outputs: vec![StageOutput::new(region(last), last, 0)],
            parameters: Vec::new(),
            tasks,
            switch: None,
        };
        workflow.stages.push(stage);
        let metrics = all.into_iter().flat_map(|table| table.metrics).collect();
        workflow.response = ResponseTable { stage: workflow.stages.len() - 1, output: 0, metrics };
        Some(workflow)
    }
}
