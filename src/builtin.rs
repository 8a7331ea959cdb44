//! What this binary carries: operations, and the workflows that use them.

mod join;
mod noop;

use pleach_workflow::{DescriptorError, Registry, Workflow};

/// The reference application's descriptors; the workflow file first.
const NUCLEI: [(&str, &str); 5] = [
    ("workflow.json", include_str!("../crates/pathology/descriptors/nuclei/workflow.json")),
    ("normalization.json", include_str!("../crates/pathology/descriptors/nuclei/normalization.json")),
    ("segmentation.json", include_str!("../crates/pathology/descriptors/nuclei/segmentation.json")),
    ("comparison.json", include_str!("../crates/pathology/descriptors/nuclei/comparison.json")),
    ("object-comparison.json", include_str!("../crates/pathology/descriptors/nuclei/object-comparison.json")),
];

/// Workflows that a study can name instead of a file; the reference application first.
pub(crate) const BUILT_IN: [&str; 2] = ["nuclei", "noop"];

/// The operations linked in.
pub(crate) fn registry() -> Registry {
    pleach_pathology::registry().with(noop::Echo).with(join::Join)
}

/// A built-in workflow by name.
pub(crate) fn workflow(name: &str, registry: &Registry) -> Option<Result<Workflow, DescriptorError>> {
    let descriptors: &[(&str, &str)] = match name {
        "nuclei" => &NUCLEI,
        "noop" => &noop::DESCRIPTORS,
        _ => return None,
    };
    Some(Workflow::embedded(descriptors, registry))
}
