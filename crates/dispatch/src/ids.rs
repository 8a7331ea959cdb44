//! Identifiers: index types that the compiler keeps apart.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty), $letter:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub $inner);

        impl $name {
            /// Returns the id as an index into the list of its items.
            #[must_use]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($letter, "{}"), self.0)
            }
        }
    };
}

/// A plan of the manager: a study, or one round of a phase of a study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PlanId {
    /// The study.
    pub study: u32,
    /// Its phase, from 0.
    pub phase: u16,
    /// Its round: the number of times that the sample has grown in this phase.
    pub round: u16,
}

impl PlanId {
    /// Creates the id of a study with one round, or of the first round of a study.
    #[must_use]
    pub const fn first_round(study: u32) -> Self {
        Self { study, phase: 0, round: 0 }
    }

    /// Returns the study as an index into the list of studies.
    #[must_use]
    pub fn index(self) -> usize {
        self.study as usize
    }
}

impl fmt::Display for PlanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "study {}", self.study)?;
        if self.phase > 0 {
            write!(f, ", phase {}", u32::from(self.phase) + 1)?;
        }
        if self.round > 0 {
            write!(f, ", round {}", u32::from(self.round) + 1)?;
        }
        Ok(())
    }
}

id!(
    /// A stage instance of the plan.
    InstanceId(u32), "instance "
);
id!(
    /// A bucket of the plan.
    BucketId(u32), "bucket "
);
id!(
    /// A worker, from joining to leaving.
    WorkerId(u32), "worker "
);
impl WorkerId {
    /// No worker: marks a tier shared by all workers among the holders of a region.
    pub const SHARED: Self = Self(u32::MAX);
}

id!(
    /// A task instance of a bucket. Numbers follow the order of execution: depth-first, parents before children.
    NodeId(u32), "task "
);
id!(
    /// One grant of a bucket to a worker. Never reused, so that late reports are recognized.
    LeaseId(u64), "lease "
);
id!(
    /// Capacity of a worker for one running task.
    SlotId(u32), "slot "
);

/// Kind of a slot. The slots of a worker are numbered by kind: its cores first, then its accelerators.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotKind {
    /// A core.
    #[default]
    Core,
    /// An accelerator, which runs the device variant of an operation.
    Accelerator,
}

impl SlotKind {
    /// Returns the name in lines and labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Accelerator => "accelerator",
        }
    }
}

impl fmt::Display for SlotKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
