//! Valid names of region templates and their data regions.
//!
//! Names come from users and foreign files, and end up in paths, logs and keys of object stores. A name that
//! any of these could misinterpret is rejected. Names are never changed or escaped.

use std::fmt;
use thiserror::Error;

/// Maximum length of a name: the limit of common file systems for one component of a path.
pub const MAX_NAME_BYTES: usize = 255;

/// Number of characters of a rejected name in a message: enough to identify a name of any length.
const SHOWN_CHARACTERS: usize = 40;

/// Error of an invalid name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "region template: {field} {shown} of {bytes} bytes; 1 to {MAX_NAME_BYTES} bytes \
     without \"..\", slashes, backslashes and control characters are allowed, except \".\""
)]
pub struct NameError {
    /// The field with this name.
    pub field: &'static str,
    /// The name's beginning, quoted, with control characters escaped.
    pub shown: String,
    /// Bytes of the whole name.
    pub bytes: usize,
}

/// A validated name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RegionName(String);

impl RegionName {
    /// Validates `name`. `field` is the named field, for the message.
    pub(crate) fn new(field: &'static str, name: impl Into<String>) -> Result<Self, NameError> {
        let name = name.into();
        let refused = name.is_empty()
            || name.len() > MAX_NAME_BYTES
            || name == "."
            || name.contains("..")
            || name.contains(|character: char| matches!(character, '/' | '\\') || character.is_control());
        if !refused {
            return Ok(Self(name));
        }
        let shown: String = name.chars().take(SHOWN_CHARACTERS).collect();
        let more = if shown.len() < name.len() { "…" } else { "" };
        Err(NameError { field, shown: format!("{shown:?}{more}"), bytes: name.len() })
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn into_string(self) -> String {
        self.0
    }
}

/// Allows the lookup of unvalidated names in maps with validated keys.
impl std::borrow::Borrow<str> for RegionName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for RegionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in
            ["", ".", "..", "../x", "x/../y", "x..y", "x/y", "/x", "x\\y", "x\0", "x\ny", "\u{7f}", "\u{85}"]
        {
            let error = RegionName::new("id", name).unwrap_err();
            assert!(
                error.to_string().starts_with(&format!("region template: id {name:?} of {} b", name.len()))
            );
        }
        for name in ["mask", "slide 7.svs", ".hidden", "x.", "Gewebeprobe ä", "-", &"n".repeat(255)] {
            assert_eq!(RegionName::new("id", name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn a_message_names_the_field_the_value_and_what_is_allowed() {
        let expected = "region template: name \"a/b\" of 3 bytes; 1 to 255 bytes \
            without \"..\", slashes, backslashes and control characters are allowed, except \".\"";
        assert_eq!(RegionName::new("name", "a/b").unwrap_err().to_string(), expected);
        // The limit counts bytes, not characters, and the message stays short.
        let long = RegionName::new("name", "ä".repeat(128)).unwrap_err();
        assert_eq!((long.bytes, long.shown.chars().count()), (256, 40 + 3));
    }
}
