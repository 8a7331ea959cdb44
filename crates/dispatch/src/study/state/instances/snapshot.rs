//! Snapshot of a study for a replan on another thread.

use super::Instances;
use crate::{BucketId, InstanceId};

/// Buckets of the instances of a study at one moment. Grants continue meanwhile, so the study may differ from it by the
/// time that new buckets are ready.
#[derive(Clone, Debug)]
pub struct StudySnapshot {
    bucket_of: Vec<BucketId>,
    movable: Vec<bool>,
}

impl Instances {
    /// Takes a snapshot.
    pub(crate) fn snapshot(&self) -> StudySnapshot {
        StudySnapshot { bucket_of: self.bucket_of.clone(), movable: self.movable.clone() }
    }
}

impl StudySnapshot {
    /// Returns the current or last bucket of an instance. `None` if the study does not have the instance.
    #[must_use]
    pub fn bucket_of(&self, instance: InstanceId) -> Option<BucketId> {
        self.bucket_of.get(instance.index()).copied()
    }

    /// Returns whether an instance is open and has no lease, so that it may be moved. Isolated instances may not.
    #[must_use]
    pub fn is_unstarted(&self, instance: InstanceId) -> bool {
        self.movable.get(instance.index()).copied().unwrap_or(false)
    }

    /// Returns the instances that may be moved, with their buckets, ascending.
    pub fn unstarted(&self) -> impl Iterator<Item = (InstanceId, BucketId)> {
        let all = (0u32..).map(InstanceId).zip(&self.bucket_of).zip(&self.movable);
        all.filter(|(_, movable)| **movable).map(|((instance, bucket), _)| (instance, *bucket))
    }
}
