//! Distributions that the modules of a manifest import, with the allowed versions (PEP 440).

use super::Reader;
use pep440_rs::{Version, VersionSpecifiers};
use pleach_workflow::toml_fields::FieldError;
use std::fmt;
use std::str::FromStr;

/// A distribution with its allowed versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// Name of the distribution.
    pub distribution: String,
    /// Allowed versions. Without specifiers, all versions are.
    versions: VersionSpecifiers,
}

impl Requirement {
    /// Reads a name, or a name with version specifiers such as `numpy>=2.2,<3`. `None` for other text: extras, markers and
    /// addresses are not part of it.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let end = text.find(|letter: char| !is_of_name(letter)).unwrap_or(text.len());
        let (name, versions) = text.split_at(end);
        let is_name = name.starts_with(|letter: char| letter.is_ascii_alphanumeric())
            && name.ends_with(|letter: char| letter.is_ascii_alphanumeric());
        let versions = VersionSpecifiers::from_str(versions.trim()).ok()?;
        is_name.then(|| Self { distribution: name.to_owned(), versions })
    }

    /// Returns whether it allows a version. Without specifiers it allows each text, otherwise versions of PEP 440 only.
    pub(crate) fn allows(&self, version: &str) -> bool {
        self.versions.is_empty()
            || Version::from_str(version).is_ok_and(|version| self.versions.contains(&version))
    }

    /// Returns whether the name is that of a distribution, as indexes compare names (PEP 503).
    pub(crate) fn is_of(&self, distribution: &str) -> bool {
        normalized(&self.distribution) == normalized(distribution)
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let versions: String = self.versions.to_string().split_whitespace().collect();
        write!(formatter, "{}{versions}", self.distribution)
    }
}

/// Reads the requirements of a manifest.
pub(super) fn read(reader: &Reader<'_>, written: &[String]) -> Result<Vec<Requirement>, FieldError> {
    let read = |(index, text): (usize, &String)| match Requirement::parse(text) {
        Some(requirement) => Ok(requirement),
        None => reader.fail(
            &format!("package.requires[{index}]"),
            format!("{text:?}"),
            "the name of a distribution is allowed, with or without versions, such as \"numpy>=2.2,<3\"",
        ),
    };
    written.iter().enumerate().map(read).collect()
}

fn is_of_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '.' | '_' | '-')
}

fn normalized(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|part| !part.is_empty());
    parts.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specifiers_limit_versions() {
        for (text, allowed, refused) in [
            ("numpy", &["1.0", "odd version"][..], &[][..]),
            ("numpy>=2.2", &["2.2", "2.10.1", "3.0rc1"], &["2.1.9", "odd version"]),
            ("scikit-image >= 0.24, < 1", &["0.24.0", "0.25.2"], &["0.9", "1.0"]),
            ("Pillow~=11.1", &["11.1", "11.9"], &["12.0", "11.0"]),
            ("scipy==1.15.*", &["1.15.3"], &["1.16"]),
            ("scipy!=1.15.1", &["1.15.2"], &["1.15.1"]),
        ] {
            let requirement = Requirement::parse(text).unwrap();
            for version in allowed {
                assert!(requirement.allows(version), "{text}: {version}");
            }
            for version in refused {
                assert!(!requirement.allows(version), "{text}: {version}");
            }
        }
        let requirement = Requirement::parse(" scikit_image>=0.24, <1 ").unwrap();
        assert_eq!(requirement.to_string(), "scikit_image>=0.24,<1");
        assert!(requirement.is_of("Scikit-Image") && !requirement.is_of("scikit"));
    }

    #[test]
    fn other_text_is_refused() {
        for text in [
            "",
            "numpy>",
            "numpy 2.2",
            "numpy[all]",
            "numpy; python_version > '3'",
            "numpy @ file:///x",
            ">=2",
            "-x",
        ] {
            assert_eq!(Requirement::parse(text), None, "{text}");
        }
    }
}
