//! Effects of a worker's state machine, for the shell to perform.

use crate::stage::NodeId;
use crate::{LeaseId, SlotId};
use std::time::Duration;

/// Effects for the shell to perform.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The stage under this lease may run one task in this slot. The stage then sends its next demand.
    Grant {
        /// The stage's lease.
        lease: LeaseId,
        /// The slot.
        slot: SlotId,
        /// The task.
        node: NodeId,
    },
    /// The accelerator in this slot runs a task, and this one is next if nothing changes: upload its inputs. The task is ready. It
    /// may start in any slot, or never. Emitted after [`enable_prefetch`](super::Worker::enable_prefetch).
    Prefetch {
        /// The stage's lease.
        lease: LeaseId,
        /// The slot of the accelerator.
        slot: SlotId,
        /// The task.
        node: NodeId,
    },
    /// Ask the manager for this many more buckets.
    Request {
        /// Buckets.
        buckets: u32,
        /// Only of later stages than this one: they release memory and deserve a slot as soon as one is free. Such
        /// a request replaces the one before, if that has not been answered.
        after: Option<u32>,
    },
    /// Nothing runs and nothing is admitted. Ask the manager to answer this sync after all its pending messages,
    /// and pass the answer to [`Worker::handle_sync_ack`](super::Worker::handle_sync_ack).
    Call {
        /// The sync's number.
        call: u64,
    },
    /// Storage must free this many bytes, but none that this lease reads. Then call
    /// [`Worker::handle_memory_freed`](super::Worker::handle_memory_freed).
    MakeRoom {
        /// Minimum of bytes to free.
        bytes: u64,
        /// The lease that needs them.
        lease: LeaseId,
    },
    /// The next task under this lease would not finish before the time limit: return its unstarted instances.
    HandBack {
        /// The lease.
        lease: LeaseId,
    },
    /// Ask the manager for an instance with a path longer than this, before a last task of an instance runs. Pass the answer to
    /// [`Worker::handle_query_answer`](super::Worker::handle_query_answer).
    Query {
        /// The path of the next task.
        longer_than: Duration,
    },
    /// Return half of the unstarted instances of this lease: other workers are idle.
    ShareHalf {
        /// The lease.
        lease: LeaseId,
    },
    /// Return spare instances of this lease with a longer path than this
    /// ([`take_spare`](crate::stage::BucketExecution::take_spare)).
    ShareSpare {
        /// The lease.
        lease: LeaseId,
        /// The path.
        longer_than: Duration,
    },
    /// The worker is stopping, and no task runs: leave.
    Leave,
}
