//! External operations as managers and workers describe them, and their code.

use super::FileContent;
use serde::{Deserialize, Serialize};

/// An external operation: a function in Python, or a command.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExternalOperation {
    /// `NAME@DIGEST`.
    pub name: String,
    /// Version.
    pub version: u32,
    /// Components of its identity, by name: what determines its results.
    pub components: Vec<(String, String)>,
}

impl ExternalOperation {
    /// Returns the name without the digest.
    #[must_use]
    pub fn plain_name(&self) -> &str {
        pleach_workflow::plain_name(&self.name)
    }
}

/// Code of external operations: a manifest with the files that its operations read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CodePackage {
    /// The manifest. Its companions are the other files, by their paths below its folder.
    pub manifest: FileContent,
    /// The operations of the study that it declares.
    pub operations: Vec<ExternalOperation>,
}
