//! A solution of the merging problem: every instance in exactly one bucket.
//!
//! Buckets are stored flat (one list of members, one list of ends), so that a million single-instance buckets take
//! two allocations. [`ReuseSummary`](crate::ReuseSummary) computes their costs.

use thiserror::Error;

use crate::merge_problem::{Member, MergeProblem};

/// Groups of stage instances. Each group runs as one and executes its own reuse tree.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Buckets {
    members: Vec<Member>,
    ends: Vec<u32>,
}

/// Violation of the partition of instances into buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PartitionError {
    /// An instance is in no bucket or in several.
    #[error("partition the stage instances: number {member} is in {buckets} buckets")]
    Occurrences {
        /// Its position in the problem.
        member: usize,
        /// Number of buckets that contain it.
        buckets: usize,
    },
    /// A bucket contains an instance that the problem does not have.
    #[error("partition the stage instances: number {member} of {instances} does not exist")]
    Unknown {
        /// The position it names.
        member: u32,
        /// Instances of the problem.
        instances: usize,
    },
    /// A bucket is empty.
    #[error("partition the stage instances: bucket {bucket} is empty")]
    Empty {
        /// Its position.
        bucket: usize,
    },
}

impl Buckets {
    /// Appends a bucket.
    pub fn push(&mut self, members: impl IntoIterator<Item = Member>) {
        self.members.extend(members);
        let end = self.members.len();
        assert!(end <= u32::MAX as usize, "bucket {} ends at {end}, beyond 32-bit ids", self.ends.len());
        self.ends.push(end as u32);
    }

    /// Counts the members of all buckets.
    pub(crate) fn members(&self) -> usize {
        self.members.len()
    }

    /// Returns the number of buckets.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether the solution has no bucket.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the members of a bucket.
    pub fn get(&self, bucket: usize) -> &[Member] {
        let start = if bucket == 0 { 0 } else { self.ends[bucket - 1] };
        &self.members[start as usize..self.ends[bucket] as usize]
    }

    /// Returns the buckets, in order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &[Member]> {
        (0..self.len()).map(|bucket| self.get(bucket))
    }

    /// Returns the bucket of each instance of the problem, by position.
    pub fn bucket_of(&self) -> Vec<u32> {
        let end = self.ends.last().copied().unwrap_or(0) as usize;
        assert!(end == self.members.len(), "buckets end at {end} of {} members", self.members.len());
        let mut bucket_of = vec![0; self.members.len()];
        for (bucket, members) in (0..).zip(self.iter()) {
            for member in members {
                bucket_of[member.0 as usize] = bucket;
            }
        }
        bucket_of
    }

    /// Checks the post-condition of every strategy: no bucket is empty, and each instance is in exactly one.
    ///
    /// # Errors
    /// Returns the first empty bucket, or the first instance that is not in exactly one.
    pub fn check_partition(&self, problem: &MergeProblem) -> Result<(), PartitionError> {
        let mut found = vec![0_usize; problem.len()];
        for (bucket, members) in self.iter().enumerate() {
            if members.is_empty() {
                return Err(PartitionError::Empty { bucket });
            }
            for member in members {
                let instances = problem.len();
                let unknown = PartitionError::Unknown { member: member.0, instances };
                *found.get_mut(member.0 as usize).ok_or(unknown)? += 1;
            }
        }
        match found.iter().position(|buckets| *buckets != 1) {
            Some(member) => Err(PartitionError::Occurrences { member, buckets: found[member] }),
            None => Ok(()),
        }
    }

    /// Returns the size of the largest bucket in instances, 0 without any.
    pub fn max_size(&self) -> usize {
        self.iter().map(<[Member]>::len).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::merge_problem::TaskCosts;

    #[test]
    fn a_partition_holds_every_instance_once() {
        let problem = MergeProblem::new(1, vec![0; 3], vec![0; 3], TaskCosts::Count).unwrap();
        let check = |lists: &[&[u32]]| {
            let mut buckets = Buckets::default();
            for list in lists {
                buckets.push(list.iter().copied().map(Member));
            }
            buckets.check_partition(&problem)
        };
        assert_eq!(check(&[&[2, 0], &[1]]), Ok(()));
        assert_eq!(check(&[&[2, 0]]), Err(PartitionError::Occurrences { member: 1, buckets: 0 }));
        assert_eq!(check(&[&[2, 0], &[1, 2]]), Err(PartitionError::Occurrences { member: 2, buckets: 2 }));
        assert_eq!(check(&[&[2, 0], &[]]), Err(PartitionError::Empty { bucket: 1 }));
        assert_eq!(check(&[&[3]]), Err(PartitionError::Unknown { member: 3, instances: 3 }));
    }
}
