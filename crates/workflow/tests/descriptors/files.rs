//! The shipped descriptors, for tests that insert mistakes.

use crate::registry::{registry, shipped};
use pleach_workflow::{DescriptorError, Workflow};
use serde_json::Value;
use std::collections::BTreeMap;

/// Names of the files. The first one is the workflow.
const NAMES: [&str; 5] =
    ["workflow.json", "normalization.json", "segmentation.json", "comparison.json", "object-comparison.json"];

/// Documents by file name.
pub(crate) struct Files(BTreeMap<&'static str, Value>);

impl Files {
    pub(crate) fn shipped() -> Self {
        let folder = shipped();
        let read = |name| {
            let text = std::fs::read_to_string(folder.with_file_name(name)).expect("a shipped descriptor");
            (name, text.parse().expect("JSON"))
        };
        Self(NAMES.into_iter().map(read).collect())
    }

    pub(crate) fn workflow(&mut self) -> &mut Value {
        self.document("workflow.json")
    }

    pub(crate) fn normalization(&mut self) -> &mut Value {
        self.document("normalization.json")
    }

    /// Returns task `number` of the segmentation, `t1` to `t7`.
    pub(crate) fn task(&mut self, number: usize) -> &mut Value {
        &mut self.segmentation()["tasks"][number - 1]
    }

    pub(crate) fn segmentation(&mut self) -> &mut Value {
        self.document("segmentation.json")
    }

    pub(crate) fn comparison(&mut self) -> &mut Value {
        self.document("comparison.json")
    }

    pub(crate) fn object_comparison(&mut self) -> &mut Value {
        self.document("object-comparison.json")
    }

    /// Returns a response table of the workflow.
    pub(crate) fn response(&mut self, table: usize) -> &mut Value {
        &mut self.workflow()["response"][table]
    }

    fn document(&mut self, name: &'static str) -> &mut Value {
        self.0.get_mut(name).expect("a shipped descriptor")
    }

    pub(crate) fn load(&self) -> Result<Workflow, DescriptorError> {
        let texts: Vec<_> = NAMES.iter().map(|name| (*name, self.0[name].to_string())).collect();
        embedded(&texts.iter().map(|(name, text)| (*name, text.as_str())).collect::<Vec<_>>())
    }
}

pub(crate) fn embedded(files: &[(&str, &str)]) -> Result<Workflow, DescriptorError> {
    Workflow::embedded(files, &registry())
}

/// Inserts one mistake, and expects this message on one line. The comparison omits the parser's line and column, since
/// a program writes these documents.
#[track_caller]
pub(crate) fn refused(mistake: impl FnOnce(&mut Files), message: &str) {
    let mut files = Files::shipped();
    mistake(&mut files);
    let said = files.load().expect_err("a mistake").to_string();
    assert_eq!(said.lines().count(), 1);
    assert_eq!(said.split(" at line ").next(), Some(message));
}
