//! What this binary carries: operations, and the workflows that use them.

use pleach_workflow::{DescriptorError, Registry, Workflow};

/// The reference application's descriptors; the workflow file first.
const NUCLEI: [(&str, &str); 5] = [
    ("workflow.json", include_str!("../crates/pathology/descriptors/nuclei/workflow.json")),
    ("normalization.json", include_str!("../crates/pathology/descriptors/nuclei/normalization.json")),
    ("segmentation.json", include_str!("../crates/pathology/descriptors/nuclei/segmentation.json")),
    ("comparison.json", include_str!("../crates/pathology/descriptors/nuclei/comparison.json")),
    ("object-comparison.json", include_str!("../crates/pathology/descriptors/nuclei/object-comparison.json")),
];

/// Workflows that a study can name instead of a file.
pub(crate) const BUILT_IN: [&str; 1] = ["nuclei"];

/// The operations linked in.
pub(crate) fn registry() -> Registry {
    pleach_pathology::registry()
}

/// A built-in workflow by name.
pub(crate) fn workflow(name: &str, registry: &Registry) -> Option<Result<Workflow, DescriptorError>> {
    (name == BUILT_IN[0]).then(|| Workflow::embedded(&NUCLEI, registry))
}
