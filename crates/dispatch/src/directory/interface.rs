//! Effects of a directory, answers to look-ups, and counters.

use super::message::{DirectoryMessage, Member, MemberId, TaskRecord};
use pleach_regions::TaskKey;
use std::net::SocketAddr;

/// Answer to a look-up.
#[derive(Clone, Debug, PartialEq)]
pub enum Resolution {
    /// Run the task: this worker has the claim.
    Claimed,
    /// Run the task without a claim: its shard does not answer.
    Unclaimed,
    /// The task has been run.
    Found {
        /// Its outputs.
        record: TaskRecord,
        /// Workers that can send them.
        holders: Vec<Member>,
    },
}

/// Effects for the shell to perform.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Send a message to a member.
    Send {
        /// Its address.
        to: SocketAddr,
        /// The message.
        message: DirectoryMessage,
    },
    /// A look-up has been answered.
    Resolved {
        /// The task.
        key: TaskKey,
        /// The answer.
        resolution: Resolution,
    },
    /// This worker's shard refused the announcement of a result: log it.
    Refused {
        /// The task.
        key: TaskKey,
        /// The worker that announced it.
        member: MemberId,
        /// The reason.
        reason: RefusalReason,
    },
    /// A message in the name of another worker has been dropped: log it.
    Impersonated {
        /// The worker in the message, which did not send it.
        member: MemberId,
    },
}

/// Reason for a refused announcement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RefusalReason {
    /// The worker has no claim of the task. Reported once for each worker: one that hung has many results of ended claims.
    Unclaimed,
    /// An output has the identity of another task's output. Reported once for each worker.
    Misnamed,
    /// The result has other content than the known one.
    Differs,
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectoryStats {
    /// Look-ups.
    pub look_ups: u64,
    /// Look-ups answered with a result.
    pub found: u64,
    /// Look-ups answered with a claim.
    pub claimed: u64,
    /// Look-ups that waited for another worker.
    pub waited: u64,
    /// Look-ups without an answer.
    pub unanswered: u64,
    /// Claims of this shard that ended with their lease.
    pub expired: u64,
    /// Announcements of other content than the result has.
    pub differing: u64,
    /// Announcements without the claim of the task.
    pub unclaimed: u64,
    /// Announcements of outputs with the identity of another task's output.
    pub misnamed: u64,
    /// Messages in the name of another worker.
    pub impersonated: u64,
    /// Outputs that a holder did not send as announced.
    pub rejected: u64,
}
