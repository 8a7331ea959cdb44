//! Identity of an external operation: the components that determine its results, and their digest.
//!
//! The digest is part of the operation's name in plans, task keys and caches, as `python:MODULE.FUNCTION@DIGEST`. A change of any
//! component is another operation. The components are stored beside results, so that a difference has a reason.

mod gpu;

use crate::error::ExternalError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// Version of the interface between pleach and external programs. A change that alters results raises it.
pub(crate) const CONTRACT: u32 = 1;

/// Prefix of components that are files of the package.
pub(crate) const FILE_COMPONENT: &str = "file ";

/// Hex digits of a digest in a name: 128 bits.
pub const DIGEST_DIGITS: usize = 32;

/// Components of the identity of an operation, by name: `python`, `platform`, `numpy`, `nuclei.py`, and others.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity(pub BTreeMap<String, String>);

impl FromIterator<(String, String)> for Identity {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(components: T) -> Self {
        Self(components.into_iter().collect())
    }
}

impl Identity {
    /// Adds a component.
    pub(crate) fn add(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// Adds model and driver of the GPU.
    pub(crate) fn add_gpu(&mut self) {
        self.add("GPU", gpu::description());
    }

    /// Adds a file by its content.
    ///
    /// # Errors
    /// Returns [`ExternalError::File`] if it cannot be read.
    pub(crate) fn add_file(&mut self, folder: &Path, file: &Path) -> Result<(), ExternalError> {
        self.add(format!("{FILE_COMPONENT}{}", file.display()), digest_of(&folder.join(file))?);
        Ok(())
    }

    /// Adds the program of a command by its content.
    ///
    /// # Errors
    /// Returns [`ExternalError::File`] if it cannot be read.
    pub(crate) fn add_program(&mut self, name: &str, file: &Path) -> Result<(), ExternalError> {
        self.add(format!("program {name}"), digest_of(file)?);
        Ok(())
    }

    /// Returns the digest: BLAKE3 over the components, each with its length.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in self.0.iter().flat_map(|(name, value)| [name, value]) {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().to_hex()[..DIGEST_DIGITS].to_owned()
    }

    /// Returns the differences to an earlier identity, such as `numpy 2.4.0 -> 2.5.0` and `nuclei.py changed`.
    #[must_use]
    pub fn differences(&self, earlier: &Self) -> Vec<String> {
        let names: std::collections::BTreeSet<&String> = self.0.keys().chain(earlier.0.keys()).collect();
        let differs = names.into_iter().filter(|name| self.0.get(*name) != earlier.0.get(*name));
        differs.map(|name| wording(name, earlier.0.get(name), self.0.get(name))).collect()
    }
}

/// Returns the digest of a file's content.
fn digest_of(file: &Path) -> Result<String, ExternalError> {
    let fail = |cause| ExternalError::File { file: file.to_owned(), cause };
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(std::fs::File::open(file).map_err(fail)?).map_err(fail)?;
    Ok(hasher.finalize().to_hex()[..DIGEST_DIGITS].to_owned())
}

/// Words the change of a component.
fn wording(name: &str, earlier: Option<&String>, now: Option<&String>) -> String {
    if let ("GPU", Some(earlier), Some(now)) = (name, earlier, now) {
        return format!("GPU {earlier} -> {now}");
    }
    let file = name.strip_prefix(FILE_COMPONENT).or(name.strip_prefix("program "));
    // A version is followed by the digest of its files.
    let version = |value: &String| value.split(' ').next().unwrap_or_default().to_owned();
    match (earlier.map(version), now.map(version)) {
        (Some(_), Some(_)) if file.is_some() => format!("{} changed", file.unwrap_or(name)),
        (Some(earlier), Some(now)) if earlier != now && name != "manifest entry" => {
            format!("{name} {earlier} -> {now}")
        }
        (Some(_), Some(_)) => format!("{name} changed"),
        (None, Some(_)) => format!("{} added", file.unwrap_or(name)),
        (_, None) => format!("{} removed", file.unwrap_or(name)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(components: &[(&str, &str)]) -> Identity {
        let mut identity = Identity::default();
        components.iter().for_each(|(name, value)| identity.add(*name, *value));
        identity
    }

    #[test]
    fn names_and_values_are_delimited() {
        assert_ne!(identity(&[("a", "bc")]).digest(), identity(&[("ab", "c")]).digest());
        assert_eq!(identity(&[("a", "b")]).digest().len(), DIGEST_DIGITS);
    }

    #[test]
    fn differences_are_worded() {
        let earlier = identity(&[
            ("numpy", "2.4.0 aa"),
            ("file nuclei.py", "1"),
            ("manifest entry", "1"),
            ("scipy", "1.0 a"),
            ("program magick", "1"),
            ("GPU", "NVIDIA A, driver 580"),
        ]);
        let now = identity(&[
            ("numpy", "2.5.0 bb"),
            ("file nuclei.py", "2"),
            ("manifest entry", "2"),
            ("scipy", "1.0 b"),
            ("file w.npz", "3"),
            ("program magick", "2"),
            ("GPU", "NVIDIA B, driver 580"),
        ]);
        let wanted = [
            "GPU NVIDIA A, driver 580 -> NVIDIA B, driver 580",
            "nuclei.py changed",
            "w.npz added",
            "manifest entry changed",
            "numpy 2.4.0 -> 2.5.0",
            "magick changed",
            "scipy changed",
        ];
        assert_eq!(now.differences(&earlier), wanted);
        assert!(now.differences(&now).is_empty());
    }
}
