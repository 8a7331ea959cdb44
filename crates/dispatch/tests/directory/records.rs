//! Keys, records and addresses of numbered tasks and members.

use pleach_dispatch::directory::{Member, MemberId, NodeDigest, ResultOutput, TaskRecord};
use pleach_regions::{Digest, RegionIdentity, TaskKey};
use std::net::{Ipv6Addr, SocketAddr};

/// Returns the key of a task. Uniform in its first bytes, as hashes are.
pub(crate) fn key(task: u64) -> TaskKey {
    let mut key = [0; 32];
    key[..8].copy_from_slice(&task.wrapping_mul(0xd134_2543_de82_ef95).to_le_bytes());
    key[8..16].copy_from_slice(&task.to_le_bytes());
    TaskKey(key)
}

/// Returns the task of a key.
pub(crate) fn content(key: TaskKey) -> u64 {
    let mut task = [0; 8];
    task.copy_from_slice(&key.0[8..16]);
    u64::from_le_bytes(task)
}

/// Returns the record of a task with one output.
pub(crate) fn record(task: u64) -> TaskRecord {
    record_of(task, &[Some(task)])
}

/// Returns the record of a task with outputs of these contents.
pub(crate) fn record_of(task: u64, contents: &[Option<u64>]) -> TaskRecord {
    let output = |content: u64| {
        let mut bytes = [7; 32];
        bytes[..8].copy_from_slice(&content.to_le_bytes());
        ResultOutput { identity: RegionIdentity(bytes), digest: Digest(bytes), bytes: 1 }
    };
    let outputs = contents.iter().map(|content| content.map(output)).collect();
    TaskRecord { origin: key(task), outputs, seconds: 1.0 }
}

pub(crate) fn address(member: MemberId) -> SocketAddr {
    SocketAddr::from((Ipv6Addr::from(u128::from(member.0)), 1))
}

/// Returns the node of a member: each has its own.
pub(crate) fn node(member: MemberId) -> NodeDigest {
    NodeDigest::of(&format!("w{}", member.0))
}

pub(crate) fn member(id: MemberId) -> Member {
    Member { id, address: address(id), node: node(id) }
}
