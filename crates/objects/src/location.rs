//! Location in object storage: bucket and prefix.
//!
//! This module opens no connection.

use thiserror::Error;

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

    /// Parses `s3://BUCKET/PREFIX`, with `?endpoint=URL` for a server other than Amazon's and `region=NAME`.
    ///
    /// # Errors
    /// Returns [`InvalidLocation`], which names the wrong part and the allowed ones.
    pub fn parse(address: &str) -> Result<Self, InvalidLocation> {
        let fail = |part: &'static str, value: &str, allowed: &'static str| {
            Err(InvalidLocation { part, value: value.to_owned(), allowed })
        };
        let Some(rest) = address.strip_prefix("s3://") else {
            return fail("address", address, "s3://BUCKET/PREFIX is allowed");
        };
        let (place, settings) = rest.split_once('?').unwrap_or((rest, ""));
        let (name, prefix) = place.split_once('/').unwrap_or((place, ""));
        let prefix = prefix.trim_end_matches('/');
        if !Self::is_name(name) {
            return fail("bucket", name, "3 to 63 lowercase letters, digits, dots and dashes are allowed");
        }
        if !Self::is_prefix(prefix) {
            return fail(
                "prefix",
                prefix,
                "letters, digits, dots, dashes, underscores and single slashes are allowed",
            );
        }
        let mut location =
            Self { name: name.to_owned(), endpoint: None, region: None, prefix: prefix.to_owned() };
        for setting in settings.split('&').filter(|setting| !setting.is_empty()) {
            match setting.split_once('=') {
                Some(("endpoint", url)) if url.starts_with("http://") || url.starts_with("https://") => {
                    location.endpoint = Some(url.to_owned());
                }
                Some(("region", region)) if !region.is_empty() => location.region = Some(region.to_owned()),
                _ => {
                    return fail(
                        "setting",
                        setting,
                        "endpoint=http://HOST, endpoint=https://HOST and region=NAME are allowed",
                    );
                }
            }
        }
        Ok(location)
    }

    /// Returns the address in the notation of other programs: `s3://bucket/prefix`.
    #[must_use]
    pub fn address(&self) -> String {
        let slash = if self.prefix.is_empty() { "" } else { "/" };
        format!("s3://{}{slash}{}", self.name, self.prefix)
    }
}

/// An address in object storage is invalid.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{part} {value:?} is invalid; {allowed}")]
pub struct InvalidLocation {
    part: &'static str,
    value: String,
    allowed: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_parsed_and_invalid_parts_named() {
        let parsed =
            S3Location::parse("s3://studies/a/b/?endpoint=http://127.0.0.1:9000&region=eu-1").unwrap();
        let expected = S3Location {
            name: "studies".to_owned(),
            endpoint: Some("http://127.0.0.1:9000".to_owned()),
            region: Some("eu-1".to_owned()),
            prefix: "a/b".to_owned(),
        };
        assert_eq!((parsed.address().as_str(), parsed), ("s3://studies/a/b", expected));
        assert_eq!(S3Location::parse("s3://studies").unwrap().prefix, "");
        for (address, part) in [
            ("s4://studies", "address"),
            ("s3:///a", "bucket"),
            ("s3://Studies", "bucket"),
            ("s3://studies/a//b", "prefix"),
            ("s3://studies/../b", "prefix"),
            ("s3://studies?endpoint=ftp://a", "setting"),
            ("s3://studies?zone=1", "setting"),
        ] {
            let error = S3Location::parse(address).unwrap_err();
            assert_eq!(error.part, part, "{address}");
        }
    }

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
