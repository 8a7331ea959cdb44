//! Adapts workflows to tiles that count in part only: measuring tasks read that part.
//!
//! Objects in the halo also belong to the windows of neighboring tiles, and each tile would count them. Objects outside of
//! all regions of interest may lack an annotation. Tasks that create images still compute whole windows.

use crate::operation::{Operation, Registry};
use crate::workflow::{InputOrigin, RegionDecl, StageInput, TaskInput, Workflow};
use pleach_regions::ElementType;

/// Name of the core in workflows.
const CORE: &str = "core";

/// Name of the mask of pixels that count.
const COUNTED: &str = "counted";

/// Variant of an operation that measures within a part: name and version.
type Variant = fn(&dyn Operation) -> Option<(&'static str, u32)>;

impl RegionDecl {
    /// Returns whether this is the mask of pixels that count, an input of [`Workflow::within_regions`].
    #[must_use]
    pub fn is_counted(&self) -> bool {
        self.region == COUNTED && self.element == ElementType::Mask
    }
}

impl Workflow {
    /// Returns the same workflow for windows with a halo. Operations with a variant that measures within a core
    /// ([`Operation::within_core`](crate::Operation::within_core)) are replaced by it, and read the core as the
    /// workflow's last input, a table. Returns `None` if a stage without such an operation provides the responses.
    ///
    /// A stage measures within the core if one of its tasks has such a variant. A stage that reads only tables of other
    /// stages, for example to join their responses, measures within the core if all of these do.
    #[must_use]
    pub fn within_cores(&self, registry: &Registry) -> Option<Self> {
        let core = RegionDecl { region: CORE.to_owned(), element: ElementType::Table };
        self.within(&core, |operation| operation.within_core(), registry)
    }

    /// Returns the same workflow for regions of interest, as [`within_cores`](Self::within_cores): its last input is a
    /// mask of the pixels that count, which are those of the core within a region
    /// ([`Operation::within_regions`](crate::Operation::within_regions)).
    #[must_use]
    pub fn within_regions(&self, registry: &Registry) -> Option<Self> {
        let counted = RegionDecl { region: COUNTED.to_owned(), element: ElementType::Mask };
        self.within(&counted, |operation| operation.within_regions(), registry)
    }

    /// Returns the same workflow with the variants of operations that read `region`.
    fn within(&self, region: &RegionDecl, variant: Variant, registry: &Registry) -> Option<Self> {
        let mut workflow = self.clone();
        let input = workflow.inputs.len();
        workflow.inputs.push(region.clone());
        let mut measures: Vec<bool> = Vec::with_capacity(workflow.stages.len());
        for stage in &mut workflow.stages {
            // Stages are in topological order, so `measures` has an entry for each stage that this one reads.
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
                let Some((name, version)) = variant(&**operation) else { continue };
                registry.get(name, version)?;
                (task.operation, task.version) = (name.to_owned(), version);
                task.push_operand(TaskInput::StageInput(core));
                reads = true;
            }
            if reads {
                stage.inputs.push(StageInput::new(region.clone(), InputOrigin::Input(input)));
            }
            measures.push(reads || only_joins);
        }
        measures[workflow.response.stage].then_some(workflow)
    }
}
