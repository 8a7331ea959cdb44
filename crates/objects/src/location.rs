//! Which bucket, and where in it.
//!
//! Nothing here connects to anything.

/// Longest prefix: with the rest of a name it stays far below the 1024 bytes that S3 allows.
const MAX_PREFIX_BYTES: usize = 200;

/// A place in object storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct S3Location {
    /// Name of the bucket ([`S3Location::is_name`]).
    pub name: String,
    /// Address of a server that is not Amazon's.
    pub endpoint: Option<String>,
    /// Region; that of the environment, or `us-east-1`, where it is none.
    pub region: Option<String>,
    /// What the names of all objects begin with ([`S3Location::is_prefix`]); may be empty.
    pub prefix: String,
}

impl S3Location {
    /// Whether it is a name that S3 allows: 3 to 63 letters in lower case, digits, dots and dashes, not at the ends.
    #[must_use]
    pub fn is_name(name: &str) -> bool {
        let is_inner = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit();
        let bytes = name.as_bytes();
        (3..=63).contains(&bytes.len())
            && bytes.iter().all(|letter| is_inner(*letter) || matches!(letter, b'.' | b'-'))
            && [bytes.first(), bytes.last()].iter().all(|end| end.is_some_and(|letter| is_inner(*letter)))
            && !name.contains("..")
    }

    /// Whether it is a prefix that means the same to every server and every program: letters, digits, dots, dashes,
    /// underscores and single slashes, and no part that a path would resolve.
    #[must_use]
    pub fn is_prefix(prefix: &str) -> bool {
        let is_letter = |letter: u8| letter.is_ascii_alphanumeric() || matches!(letter, b'.' | b'-' | b'_');
        prefix.is_empty()
            || prefix.len() <= MAX_PREFIX_BYTES
                && prefix
                    .split('/')
                    .all(|part| !matches!(part, "" | "." | "..") && part.bytes().all(is_letter))
    }

    /// The place in the words of other programs: `s3://bucket/prefix`.
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
    fn names_and_prefixes() {
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
