//! Keys of data regions and tasks, and identities of regions.

use serde::{Deserialize, Serialize};
use std::fmt;

/// 128 bits that identify one data region: the identity of the stage or task instance that writes it, and the index of the
/// output. Equal keys mean equal bytes. The planner computes keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RegionKey(pub [u8; 16]);

impl fmt::Display for RegionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// 256 bits that identify a task with everything its outputs depend on: equal keys mean equal outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskKey(pub [u8; 32]);

/// 256 bits that identify a region: a digest of its content or of its provenance. Equal identities mean equal bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RegionIdentity(pub [u8; 32]);

/// Returns the identity of an output with unknown digest: its provenance.
#[must_use]
pub fn provenance_id(key: &TaskKey, output: usize) -> RegionIdentity {
    let mut hash = blake3::Hasher::new();
    hash.update(b"pleach derived 1");
    hash.update(&key.0);
    hash.update(&(output as u64).to_le_bytes());
    RegionIdentity(*hash.finalize().as_bytes())
}

/// Returns the identity of a stage input with unknown content, once it is the output of a task that was skipped.
#[must_use]
pub fn input_id(key: &RegionKey) -> RegionIdentity {
    let mut hash = blake3::Hasher::new();
    hash.update(b"pleach input 1");
    hash.update(&key.0);
    RegionIdentity(*hash.finalize().as_bytes())
}
