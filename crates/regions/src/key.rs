//! Storage key of a data region.

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
