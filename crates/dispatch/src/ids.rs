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

id!(
    /// A study of the manager's.
    StudyId(u32), "study "
);
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
    /// One grant of a bucket to a worker; never used twice, so that late reports are recognised.
    LeaseId(u64), "lease "
);
id!(
    /// A place on a worker where one task can run.
    SlotId(u32), "slot "
);
