//! Workflows on tiles that have a halo: what measures is told which pixels are the tile's own.
//!
//! What lies in the halo belongs to the neighbors too, and would be counted by each of them. Nothing else changes: tasks
//! that make images go on to make them of whole windows.

use crate::operation::Registry;
use crate::workflow::{InputOrigin, RegionDecl, StageInput, TaskInput, Workflow};
use pleach_regions::ElementType;

/// The name under which workflows read the core of a tile.
const CORE: &str = "core";

impl Workflow {
    /// The same workflow for windows with a halo: operations that have a form that measures within a core
    /// ([`Operation::within_core`](crate::Operation::within_core)) are replaced by it, and read the core as the workflow's
    /// last input, a table. `None` where responses come from a stage that cannot leave the halo out.
    ///
    /// A stage measures within the core if one of its tasks has such a form. A stage that reads nothing but tables of other
    /// stages, as one that joins the responses of several, measures within the core if all of those do.
    #[must_use]
    pub fn within_cores(&self, registry: &Registry) -> Option<Self> {
        let mut workflow = self.clone();
        let region = RegionDecl { region: CORE.to_owned(), element: ElementType::Table };
        let input = workflow.inputs.len();
        workflow.inputs.push(region.clone());
        let mut measures: Vec<bool> = Vec::with_capacity(workflow.stages.len());
        for stage in &mut workflow.stages {
            // Stages come after those they read from.
            let of_stage = |input: &StageInput| match input.origin {
                InputOrigin::Stage { stage, .. } => {
                    input.region.element == ElementType::Table && measures[stage]
                }
                InputOrigin::Input(_) | InputOrigin::Reference => false,
            };
            let only_joins = !stage.inputs.is_empty() && stage.inputs.iter().all(of_stage);
            let core = stage.inputs.len();
            let mut reads = false;
            for task in &mut stage.tasks {
                let operation = registry.get(&task.operation, task.version)?;
                let Some((name, version)) = operation.within_core() else { continue };
                registry.get(name, version)?;
                (task.operation, task.version) = (name.to_owned(), version);
                task.reads.push(TaskInput::StageInput(core));
                reads = true;
            }
            if reads {
                stage.inputs.push(StageInput { region: region.clone(), origin: InputOrigin::Input(input) });
            }
            measures.push(reads || only_joins);
        }
        measures[workflow.response.stage].then_some(workflow)
    }
}
