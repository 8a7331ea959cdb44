//! The key a data region is stored under.

use serde::{Deserialize, Serialize};
use std::fmt;

/// 128 bits that name one data region: the identity of the stage or task instance that writes it, and which
/// of its outputs it is. Equal keys mean equal bytes; who computes keys is up to the planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RegionKey(pub [u8; 16]);

impl fmt::Display for RegionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
