//! Location in object storage: bucket and prefix.
//!
//! This module opens no connection.

/// Maximum prefix length: the whole object name stays far below the 1,024 bytes that S3 allows.
const MAX_PREFIX_BYTES: usize = 200;

/// Location in object storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Location {
    /// Name of the bucket ([`S3Location::is_name`]).
    pub name: String,
    /// Address of a server other than Amazon's.
    pub endpoint: Option<String>,
    /// Region. `None` uses that of the environment, or `us-east-1`.
    pub region: Option<String>,
    /// Prefix of all object names ([`S3Location::is_prefix`]). May be empty.
    pub prefix: String,
}

impl S3Location {
    /// Returns whether S3 allows the bucket name: 3–63 lowercase letters, digits, dots and dashes, the latter two not at the
    /// ends.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        let is_inner = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit();
        let bytes = name.as_bytes();
        (3..=63).contains(&bytes.len())
            && bytes.iter().all(|letter| is_inner(*letter) || matches!(letter, b'.' | b'-'))
            && [bytes.first(), bytes.last()].iter().all(|end| end.is_some_and(|letter| is_inner(*letter)))
            && !name.contains("..")
    }

    /// Returns whether all servers and programs interpret the prefix in the same way: letters, digits, dots, dashes,
    /// underscores and single slashes, without parts that a path would resolve.
    #[must_use]
    pub fn is_prefix(prefix: &str) -> bool {
        let is_letter = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'.' | b'-' | b'_');
        prefix.is_empty()
            || prefix.len() <= MAX_PREFIX_BYTES
                && prefix
                    .split('/')
                    .all(|part| !matches!(part, "" | "." | "..") && part.bytes().all(is_letter))
    }

    /// Returns the address in the notation of other programs: `s3://bucket/prefix`.
    #[must_use]
    pub fn address(&self) -> String {
        let slash = if self.prefix.is_empty() { "" } else { "/" };
        format!("s3://{}{slash}{}", self.name, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_names_and_prefixes_are_validated() {
        let (long, longer) = ("a".repeat(63), "a".repeat(64));
        for name in ["abc", "a-b.c9", &long] {
            assert!(S3Location::is_name(name), "{name}");
        }
        for name in ["", "ab", "Abc", "a_b", "-abc", "abc.", "a..b", "a/b", "a\0b", &longer] {
            assert!(!S3Location::is_name(name), "{name:?}");
        }
        let (long, longer) = ("a".repeat(200), "a".repeat(201));
        for prefix in ["", "studies", "a/b_c/D.1-2", &long] {
            assert!(S3Location::is_prefix(prefix), "{prefix}");
        }
        for prefix in ["/", "a/", "/a", "a//b", "..", "a/../b", "a/./b", "a b", "a\0b", "ä", &longer] {
            assert!(!S3Location::is_prefix(prefix), "{prefix:?}");
        }
    }
}
