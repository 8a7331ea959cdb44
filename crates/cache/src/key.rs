//! Cache key of a task instance: 32 bytes, and the components it is derived from.
//!
//! The caller provides values and identities.

use pleach_regions::Digest;
use std::fmt;

/// Identifies one task instance: BLAKE3 of its [`KeyComponents`], or of anything else that determines its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CacheKey(pub [u8; 32]);

impl fmt::Display for CacheKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Digest(self.0).fmt(f)
    }
}

/// Everything that determines the outputs of a task instance. Stored with a trace, so that a cache miss can be explained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyComponents {
    /// The operation.
    pub operation: String,
    /// Its version.
    pub version: u32,
    /// Names and values of its arguments, in the operation's order.
    pub arguments: Vec<(String, String)>,
    /// Names and identities of its inputs, in the operation's order: content digests of regions or files.
    pub inputs: Vec<(String, Digest)>,
}

/// Context of key derivation. The number is raised when the hashed byte string changes.
const KEY_CONTEXT: &str = "pleach task key 1";

impl KeyComponents {
    /// Returns the key of the task instance with these components.
    ///
    /// The length precedes every part, so that different lists never yield the same bytes.
    #[must_use]
    pub fn key(&self) -> CacheKey {
        let mut hasher = blake3::Hasher::new_derive_key(KEY_CONTEXT);
        let mut part = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        part(self.operation.as_bytes());
        part(&self.version.to_le_bytes());
        // The count separates arguments from inputs, which come last and need none.
        part(&(self.arguments.len() as u64).to_le_bytes());
        for (name, value) in &self.arguments {
            part(name.as_bytes());
            part(value.as_bytes());
        }
        for (name, identity) in &self.inputs {
            part(name.as_bytes());
            part(&identity.0);
        }
        CacheKey(*hasher.finalize().as_bytes())
    }
}

/// Returns a number that distinguishes operations without reading their names.
pub(crate) fn operation_tag(operation: &str) -> u64 {
    let mut tag = [0; 8];
    tag.copy_from_slice(&blake3::hash(operation.as_bytes()).as_bytes()[..8]);
    u64::from_le_bytes(tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn components() -> KeyComponents {
        KeyComponents {
            operation: "nuclei.candidates".to_owned(),
            version: 1,
            arguments: vec![("G1".to_owned(), "80".to_owned()), ("FillHoles".to_owned(), "4".to_owned())],
            inputs: vec![("rc".to_owned(), Digest([1; 32])), ("recon".to_owned(), Digest([2; 32]))],
        }
    }

    #[test]
    fn every_component_counts_and_none_runs_into_another() {
        let change = |change: fn(&mut KeyComponents)| {
            let mut changed = components();
            change(&mut changed);
            changed.key()
        };
        let keys = [
            components().key(),
            change(|c| c.operation.push('2')),
            change(|c| c.version = 2),
            change(|c| c.arguments[0].1 = "8".to_owned()),
            change(|c| (c.arguments[0].0, c.arguments[0].1) = ("G18".to_owned(), "0".to_owned())),
            change(|c| c.arguments.swap(0, 1)),
            change(|c| c.arguments.truncate(1)),
            change(|c| c.inputs[1].1 = Digest([3; 32])),
            change(|c| c.inputs.truncate(1)),
            change(|c| {
                let name = c.arguments.pop().map(|(name, _)| name).unwrap_or_default();
                c.inputs.insert(0, (name, Digest([4; 32])));
            }),
        ];
        for (place, key) in keys.iter().enumerate() {
            assert!(!keys[..place].contains(key), "number {place} has another's key");
        }
    }

    /// Keys persist on disk, so they must not change without a new version of the cache.
    #[test]
    fn keys_are_stable() {
        assert_eq!(components().key().to_string()[..16], *"6dd7ff5a3ccfe8cf");
    }
}
