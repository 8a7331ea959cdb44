//! Built-in operations and workflows of this binary.

mod join;
mod noop;
mod registration;

use pleach_pathology::NUCLEI_DESCRIPTORS;
use pleach_workflow::{DescriptorError, Registry, Workflow};

/// Workflows that a study can name instead of a file, the reference application first.
pub const BUILT_IN: [&str; 2] = ["nuclei", "noop"];

/// Returns the operations linked into this binary.
pub fn registry() -> Registry {
    let registry = pleach_pathology::registry().with(noop::Echo).with(join::Join);
    registration::register(registry).extended(pleach_volumes::operations())
}

/// Returns a built-in workflow. `None` if the name is unknown.
pub fn workflow(name: &str, registry: &Registry) -> Option<Result<Workflow, DescriptorError>> {
    let descriptors: &[(&str, &str)] = match name {
        "nuclei" => &NUCLEI_DESCRIPTORS,
        "noop" => &noop::DESCRIPTORS,
        _ => return None,
    };
    Some(Workflow::embedded(descriptors, registry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_halo_changes_what_measures_and_nothing_else() {
        let registry = registry();
        let whole = workflow("nuclei", &registry).unwrap().unwrap();
        let within = whole.within_cores(&registry).unwrap();
        let core = within.inputs.last().unwrap();
        assert_eq!((within.inputs.len(), &*core.region), (whole.inputs.len() + 1, "core"));
        let operations = |workflow: &Workflow| -> Vec<String> {
            let tasks = workflow.stages.iter().flat_map(|stage| &stage.tasks);
            tasks.map(|task| task.operation.clone()).collect()
        };
        let (before, after) = (operations(&whole), operations(&within));
        let changed: Vec<_> = before.iter().zip(&after).filter(|(a, b)| a != b).collect();
        let expected =
            [("compare.masks", "compare.core-masks"), ("compare.objects", "compare.owned-objects")];
        assert_eq!(changed.len(), 2);
        assert!(changed.iter().zip(expected).all(|((a, b), expected)| (a.as_str(), b.as_str()) == expected));
        for (stage, other) in whole.stages.iter().zip(&within.stages).take(2) {
            assert_eq!(format!("{stage:?}"), format!("{other:?}"));
        }
        // Every operation reads as many regions as it has inputs, of accepted element types.
        for stage in &within.stages {
            for task in &stage.tasks {
                let operation = registry.get(&task.operation, task.version).unwrap();
                assert_eq!(task.reads.len(), operation.inputs().len());
                for (read, port) in task.reads.iter().zip(operation.inputs()) {
                    if let pleach_workflow::TaskInput::StageInput(input) = read {
                        assert!(port.element.accepts(stage.inputs[*input].region.element));
                    }
                }
            }
        }
        let noop = workflow("noop", &registry).unwrap().unwrap();
        assert!(noop.within_cores(&registry).is_none());
        // Each of the joined tables is measured within the core.
        let joined = whole.joining(&[0, 1], &registry).unwrap();
        let within = operations(&joined.within_cores(&registry).unwrap());
        assert!(expected.iter().all(|(_, core)| within.iter().any(|operation| operation == core)));
    }
}
