//! Digest of an input file, as it occurs in submissions and paths.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// BLAKE3 digest of a file's content. Its text form is 64 hexadecimal digits in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct InputDigest([u8; 32]);

/// Error for a text that is no digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a BLAKE3 digest of 64 lower-case hexadecimal digits is allowed")]
pub struct InvalidDigest;

impl InputDigest {
    /// Returns the digest as 32 bytes.
    pub(crate) fn bytes(self) -> [u8; 32] {
        self.0
    }
}

impl From<blake3::Hash> for InputDigest {
    fn from(hash: blake3::Hash) -> Self {
        Self(hash.into())
    }
}

impl FromStr for InputDigest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        // Lower case only: a file has one name in the store, so a digest has one text form.
        if text.bytes().any(|digit| digit.is_ascii_uppercase()) {
            return Err(InvalidDigest);
        }
        blake3::Hash::from_hex(text).map(Self::from).map_err(|_| InvalidDigest)
    }
}

impl TryFrom<String> for InputDigest {
    type Error = InvalidDigest;

    fn try_from(text: String) -> Result<Self, InvalidDigest> {
        text.parse()
    }
}

impl From<InputDigest> for String {
    fn from(digest: InputDigest) -> Self {
        digest.to_string()
    }
}

impl fmt::Display for InputDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}
