//! Kinds of slots.

use serde::{Deserialize, Serialize};

/// Kind of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum SlotKind {
    /// A core.
    #[default]
    Core,
    /// An accelerator.
    Accelerator,
}
