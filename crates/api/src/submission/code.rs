//! Code of external operations in a submission: manifests with the files that their operations read.

use super::{
    Companion, InputFile, InvalidSubmission, Submission, UndescribedError, digested, part, unreadable,
};
use crate::digest::InputDigest;
use pleach_dispatch::message::{self, CodePackage, ExternalOperation, FileContent};
use pleach_external::CodeFiles;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::{Component, Path};

/// A manifest with the files that its operations read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubmittedCode {
    /// The manifest.
    manifest: InputFile,
    /// The other files, by their paths below the manifest's folder.
    files: Vec<Companion>,
    /// `NAME@DIGEST` of its operations.
    operations: Vec<String>,
}

impl SubmittedCode {
    /// Digests the files.
    pub(super) fn new(code: &CodeFiles) -> Result<Self, UndescribedError> {
        let manifest = code.manifest.canonicalize().map_err(|cause| unreadable(&code.manifest, cause))?;
        let folder = manifest.parent().unwrap_or(Path::new(""));
        let file = |name: &std::path::PathBuf| {
            let (digest, bytes) = digested(&folder.join(name))?;
            Ok(Companion { name: name.to_string_lossy().into_owned(), digest, bytes })
        };
        let files = code.files.iter().map(file).collect::<Result<_, UndescribedError>>()?;
        let (digest, bytes) = digested(&manifest)?;
        let manifest = InputFile { path: manifest.to_string_lossy().into_owned(), digest, bytes };
        Ok(Self { manifest, files, operations: code.operations.clone() })
    }

    pub(super) fn content(&self) -> FileContent {
        let InputFile { path, digest, bytes } = &self.manifest;
        let companion = |file: &Companion| message::Companion {
            name: file.name.clone(),
            digest: file.digest.bytes(),
            bytes: file.bytes,
        };
        let companions = self.files.iter().map(companion).collect();
        FileContent { path: path.clone(), digest: digest.bytes(), bytes: *bytes, companions }
    }

    /// Checks that the names are different paths below the folder of the manifest. Workers create files of these names.
    fn check(&self) -> Result<(), InvalidSubmission> {
        let manifest = Path::new(&self.manifest.path);
        let own = manifest.file_name().and_then(|name| name.to_str());
        let mut known: HashSet<&str> = own.into_iter().collect();
        for Companion { name, .. } in &self.files {
            let mut parts = Path::new(name).components();
            let is_below = !name.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)));
            if !is_below || name.contains(['\\', '\0']) || !known.insert(name) {
                return Err(InvalidSubmission::Code {
                    manifest: self.manifest.path.clone(),
                    found: name.clone(),
                });
            }
        }
        Ok(())
    }
}

impl Submission {
    /// Returns the code of its external operations, as in messages to workers.
    #[must_use]
    pub fn code_packages(&self) -> Vec<CodePackage> {
        let described = self.external_operations();
        let package = |code: &SubmittedCode| {
            let operations = described.iter().filter(|operation| code.operations.contains(&operation.name));
            CodePackage { manifest: code.content(), operations: operations.cloned().collect() }
        };
        self.code.iter().map(package).collect()
    }

    /// Returns its external operations.
    #[must_use]
    pub fn external_operations(&self) -> Vec<ExternalOperation> {
        let external = self.operations.iter().map(|operation| ExternalOperation {
            name: operation.name.clone(),
            version: operation.version(),
            components: operation.components().to_vec(),
        });
        external.collect()
    }

    /// Returns the digests of the files of code.
    #[must_use]
    pub fn code_files(&self) -> Vec<InputDigest> {
        self.code_parts().into_iter().map(|file| file.digest).collect()
    }

    /// Returns the files of code.
    pub(super) fn code_parts(&self) -> Vec<InputFile> {
        let parts = self.code.iter().flat_map(|code| code.content().parts().collect::<Vec<_>>());
        parts.map(part).collect()
    }

    pub(super) fn check_code(&self) -> Result<(), InvalidSubmission> {
        self.code.iter().try_for_each(SubmittedCode::check)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(names: &[&str]) -> SubmittedCode {
        let digest = blake3::hash(b"").into();
        let files =
            names.iter().map(|name| Companion { name: (*name).to_owned(), digest, bytes: 0 }).collect();
        let manifest = InputFile { path: "/flow/pleach.toml".to_owned(), digest, bytes: 0 };
        SubmittedCode { manifest, files, operations: Vec::new() }
    }

    /// Workers create files of these names below a folder of theirs.
    #[test]
    fn files_of_code_stay_below_the_folder_of_their_manifest() {
        assert!(code(&["nuclei.py", "inner/deep/weights.npz", ".hidden"]).check().is_ok());
        for name in ["../nuclei.py", "/etc/passwd", "inner/../../x", "", "pleach.toml", "a\\b", "a\0b"] {
            let text = code(&["other.py", name]).check().unwrap_err().to_string();
            assert!(text.contains("/flow/pleach.toml: file ") && text.contains("below the folder"), "{text}");
        }
        assert!(code(&["a.py", "a.py"]).check().is_err());
    }
}
