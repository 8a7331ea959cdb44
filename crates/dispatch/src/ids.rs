//! Identifiers: an index each, and never mixed up.

use serde::{Deserialize, Serialize};
use std::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty), $letter:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub $inner);

        impl $name {
            /// As an index into the list that holds what it names.
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

/// A plan of the manager's: a study, or one part of a study whose parts follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct PlanId {
    /// The study.
    pub study: u32,
    /// Its phase, from 0.
    pub phase: u16,
    /// How often its sample has grown in this phase.
    pub round: u16,
}

impl PlanId {
    /// A study of one part, or the first part of one of several.
    #[must_use]
    pub const fn whole(study: u32) -> Self {
        Self { study, phase: 0, round: 0 }
    }

    /// The study as an index into the list that holds what it names.
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
    /// Nobody: a tier that all workers share, among those who hold a region.
    pub const SHARED: Self = Self(u32::MAX);
}

id!(
    /// One grant of a bucket to a worker; never used twice, so that late reports are recognized.
    LeaseId(u64), "lease "
);
id!(
    /// A place on a worker where one task can run.
    SlotId(u32), "slot "
);
