//! Built-in operations and workflows of this binary.

mod noop;
mod registration;
mod tables;

use pleach_pathology::{LEVELSET_DESCRIPTORS, NUCLEI_DESCRIPTORS, NUCLEI_FEATURES_DESCRIPTORS};
use pleach_workflow::{DescriptorError, Registry, Workflow};

/// Workflows that a study can name instead of a file, the reference application first.
pub const BUILT_IN: [&str; 4] = ["nuclei", "levelset", "nuclei-features", "noop"];

/// Returns the operations linked into this binary.
pub fn registry() -> Registry {
    let built_in = pleach_pathology::registry().with(noop::ECHO);
    let with_tables = tables::OPERATIONS.into_iter().fold(built_in, Registry::with);
    registration::register(with_tables).extended(pleach_volumes::operations())
}

/// Returns a built-in workflow. `None` if the name is unknown.
pub fn workflow(name: &str, registry: &Registry) -> Option<Result<Workflow, DescriptorError>> {
    let descriptors: &[(&str, &str)] = match name {
        "nuclei" => &NUCLEI_DESCRIPTORS,
        "levelset" => &LEVELSET_DESCRIPTORS,
        "nuclei-features" => &NUCLEI_FEATURES_DESCRIPTORS,
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
        // Features are measured within the core by one operation.
        let features = workflow("nuclei-features", &registry).unwrap().unwrap();
        let (before, after) = (operations(&features), operations(&features.within_cores(&registry).unwrap()));
        let changed: Vec<_> = before.iter().zip(&after).filter(|(a, b)| a != b).collect();
        assert!(
            changed
                .iter()
                .any(|(a, b)| (a.as_str(), b.as_str()) == ("features.summary", "features.core-summary"))
        );
        assert_eq!(changed.len(), 3);
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
        let levelset = workflow("levelset", &registry).unwrap().unwrap();
        assert_eq!(
            operations(&levelset.within_cores(&registry).unwrap())[7..],
            expected.map(|(_, core)| core)
        );
        let noop = workflow("noop", &registry).unwrap().unwrap();
        assert!(noop.within_cores(&registry).is_none());
        // A retained stage stays where no response depends on it.
        let stages = |retained: &[usize]| whole.joining(&[0], retained, &registry).unwrap().stages.len();
        let other = whole.alternatives[0].stage;
        assert_eq!(stages(&[other]), stages(&[]) + 1);
        // Each of the joined tables is measured within the core.
        let joined = whole.joining(&[0, 1], &[], &registry).unwrap();
        let within = operations(&joined.within_cores(&registry).unwrap());
        assert!(expected.iter().all(|(_, core)| within.iter().any(|operation| operation == core)));
        // Regions of interest have variants of their own, which read a mask.
        let regions = whole.within_regions(&registry).unwrap();
        assert!(regions.inputs.last().is_some_and(pleach_workflow::RegionDecl::is_counted));
        let regions = operations(&regions);
        let counted = ["compare.counted-masks", "compare.counted-objects"];
        assert!(counted.iter().all(|name| regions.iter().any(|operation| operation == name)));
        assert!(noop.within_regions(&registry).is_none());
    }

    #[test]
    fn parameter_that_no_task_reads_stays_in_every_selection() {
        let registry = registry();
        let levelset = workflow("levelset", &registry).unwrap().unwrap();
        let names = |workflow: &Workflow| -> Vec<String> {
            workflow.parameters.iter().map(|parameter| parameter.name.clone()).collect()
        };
        let all = names(&levelset);
        assert_eq!((all.len(), all.last().unwrap().as_str()), (9, "dummy"));
        let dummy = all.len() - 1;
        assert!(levelset.stages.iter().all(|stage| !stage.parameters.contains(&dummy)));
        assert_eq!(names(&levelset.without(&["normalize".to_owned()])), all);
        assert_eq!(names(&levelset.measuring(1)), all);
        assert_eq!(names(&levelset.joining(&[0, 1], &[], &registry).unwrap()), all);
    }
}
