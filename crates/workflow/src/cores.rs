//! Workflows on tiles that have a halo: what measures is told which pixels are the tile's own.
//!
//! What lies in the halo belongs to the neighbours too, and would be counted by each of them. Nothing else changes: tasks
//! that make images go on to make them of whole windows.

use crate::operation::Registry;
use crate::workflow::{Origin, Read, RegionDecl, StageInput, Workflow};
use pleach_regions::ElementType;

/// The name under which workflows read the core of a tile.
const CORE: &str = "core";

impl Workflow {
    /// The same workflow for windows with a halo: operations that have a form that measures within a core
    /// ([`Operation::within_core`](crate::Operation::within_core)) are replaced by it, and read the core as the workflow's
    /// last input, a table. None where no task of the stage that responses come from has such a form.
    #[must_use]
    pub fn within_cores(&self, registry: &Registry) -> Option<Self> {
        let mut workflow = self.clone();
        let region = RegionDecl { region: CORE.to_owned(), element: ElementType::Table };
        let input = workflow.inputs.len();
        workflow.inputs.push(region.clone());
        let mut measures = false;
        for (number, stage) in workflow.stages.iter_mut().enumerate() {
            let core = stage.inputs.len();
            let mut reads = false;
            for task in &mut stage.tasks {
                let operation = registry.get(&task.operation, task.version)?;
                let Some((name, version)) = operation.within_core() else { continue };
                registry.get(name, version)?;
                (task.operation, task.version) = (name.to_owned(), version);
                task.reads.push(Read::StageInput(core));
                reads = true;
            }
            if reads {
                stage.inputs.push(StageInput { region: region.clone(), origin: Origin::Input(input) });
                measures |= number == workflow.response.stage;
            }
        }
        measures.then_some(workflow)
    }
}
