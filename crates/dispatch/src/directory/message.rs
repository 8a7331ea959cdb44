//! Messages between the directories of two workers.

use pleach_regions::{Digest, RegionIdentity, TaskKey, provenance_id};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;

/// A worker process in the directory: its incarnation, a random number of each start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct MemberId(pub u64);

impl fmt::Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// The node of a worker: the first 16 bytes of the BLAKE3 digest of the name in its certificate. Members are compared by it,
/// and a digest has a constant size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct NodeDigest(pub [u8; 16]);

impl NodeDigest {
    /// Digests the name in a certificate.
    #[must_use]
    pub fn of(name: &str) -> Self {
        let mut digest = [0; 16];
        digest.copy_from_slice(&blake3::hash(name.as_bytes()).as_bytes()[..16]);
        Self(digest)
    }
}

/// A worker that takes part in the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// Its process.
    pub id: MemberId,
    /// Address for messages and fetches.
    pub address: SocketAddr,
    /// Its node, as the manager has verified it.
    pub node: NodeDigest,
}

/// Number of a claim, assigned by the shard that grants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ClaimId(pub u64);

/// A change of the members.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberChange {
    /// Members not in `joined` have left, as the manager has a new list.
    pub is_complete: bool,
    /// New members.
    pub joined: Vec<Member>,
    /// Members that have left or are lost.
    pub left: Vec<MemberId>,
}

/// One output of a finished task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultOutput {
    /// Its identity in the keys of its readers.
    pub identity: RegionIdentity,
    /// Digest of its content, which every receiver verifies.
    pub digest: Digest,
    /// Bytes in memory.
    pub bytes: u64,
}

/// A finished task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// Key by the provenance of its inputs.
    pub origin: TaskKey,
    /// Its outputs. `None` if the output was not wanted when the task ran.
    pub outputs: Vec<Option<ResultOutput>>,
    /// Wall seconds of its run.
    pub seconds: f64,
}

/// Maximum bytes of an output in a record, 1 TiB: far beyond the memory of a worker, and sums of such numbers fit 64 bits.
const MAX_OUTPUT_BYTES: u64 = 1 << 40;

impl TaskRecord {
    /// Returns whether a record can be one of this task: each identity is the provenance or the digest of its output, and
    /// the numbers are in range. Results are cached by identity, so any other one would stand for the output of another task.
    #[must_use]
    pub fn is_of(&self, key: &TaskKey) -> bool {
        let is_named = |(number, output): (usize, &Option<ResultOutput>)| {
            output.is_none_or(|output| {
                let ResultOutput { identity, digest, bytes } = output;
                let is_own = identity.0 == digest.0 || identity == provenance_id(key, number);
                is_own && bytes <= MAX_OUTPUT_BYTES
            })
        };
        self.seconds.is_finite() && self.seconds >= 0.0 && self.outputs.iter().enumerate().all(is_named)
    }

    /// Returns whether the record has all these outputs.
    #[must_use]
    pub fn has(&self, wanted: &[bool]) -> bool {
        let is_there = |(wanted, output): (&bool, &Option<ResultOutput>)| !wanted || output.is_some();
        self.outputs.len() == wanted.len() && wanted.iter().zip(&self.outputs).all(is_there)
    }

    /// Returns whether both records have the same content, as far as both know it.
    #[must_use]
    pub fn agrees_with(&self, other: &Self) -> bool {
        let same = |(a, b): (&Option<ResultOutput>, &Option<ResultOutput>)| match (a, b) {
            (Some(a), Some(b)) => a.digest == b.digest,
            _ => true,
        };
        self.outputs.len() == other.outputs.len() && self.outputs.iter().zip(&other.outputs).all(same)
    }

    /// Counts known outputs.
    #[must_use]
    pub fn known(&self) -> usize {
        self.outputs.iter().flatten().count()
    }
}

/// Request to the shard of a key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Asks for a result, and for the claim if there is none.
    LookUp {
        /// The task.
        key: TaskKey,
        /// Outputs that the asker wants.
        wanted: Vec<bool>,
    },
    /// Extends a claim.
    Renew {
        /// The task.
        key: TaskKey,
    },
    /// The sender has run a task under its claim, and can send the outputs.
    Hold {
        /// The task.
        key: TaskKey,
        /// Its outputs.
        record: TaskRecord,
        /// The claim.
        claim: ClaimId,
    },
    /// The sender has the outputs that the entry lists, and can send them too.
    Replica {
        /// The task.
        key: TaskKey,
        /// Its outputs.
        record: TaskRecord,
    },
    /// The sender will not run a claimed task.
    Abandon {
        /// The task.
        key: TaskKey,
    },
    /// The sender has evicted the outputs of a task.
    Drop {
        /// The task.
        key: TaskKey,
    },
    /// A holder did not send an output, or sent other content than announced.
    Reject {
        /// The task.
        key: TaskKey,
        /// The holder.
        holder: MemberId,
    },
}

impl Request {
    /// Returns the task that it is about.
    #[must_use]
    pub fn key(&self) -> TaskKey {
        match self {
            Self::LookUp { key, .. }
            | Self::Renew { key }
            | Self::Hold { key, .. }
            | Self::Replica { key, .. }
            | Self::Abandon { key }
            | Self::Drop { key }
            | Self::Reject { key, .. } => *key,
        }
    }
}

/// Reply of a shard, at once or later.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// The asker has the claim.
    Claimed {
        /// The task.
        key: TaskKey,
        /// Number of the claim, which announces the result.
        claim: ClaimId,
    },
    /// Another worker has the claim. [`Found`](Self::Found) or [`Released`](Self::Released) follows.
    Computing {
        /// The task.
        key: TaskKey,
    },
    /// The task has been run.
    Found {
        /// The task.
        key: TaskKey,
        /// Its outputs.
        record: TaskRecord,
        /// Workers that can send them.
        holders: Vec<MemberId>,
    },
    /// A claim has ended without a result: look up again.
    Released {
        /// The task.
        key: TaskKey,
    },
}

impl Reply {
    /// Returns the task that it is about.
    #[must_use]
    pub fn key(&self) -> TaskKey {
        match self {
            Self::Claimed { key, .. }
            | Self::Computing { key }
            | Self::Found { key, .. }
            | Self::Released { key } => *key,
        }
    }
}

/// Requests and replies of one worker to another, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DirectoryMessage {
    /// The sender.
    pub from: MemberId,
    /// Requests to the receiver's shard.
    pub requests: Vec<Request>,
    /// Replies of the sender's shard.
    pub replies: Vec<Reply>,
}
