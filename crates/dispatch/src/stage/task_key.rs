//! Task keys, computed from an operation, its argument values and the identities of its inputs.
//!
//! Equal keys mean equal outputs: for the result cache of a worker, its spilled results and the task cache.

use pleach_regions::{RegionIdentity, RegionKey, TaskKey};
use pleach_workflow::{Task, Value};

/// Version of the hashed bytes, raised with every change to them.
const SCHEME: &[u8] = b"pleach task 1";

/// Identity of a task's input, for its key.
#[derive(Clone, Copy, Debug)]
pub enum TaskInputId {
    /// A region in storage. Its key identifies its provenance.
    Stored(RegionKey),
    /// An output of another task.
    Output(RegionIdentity),
}

/// Computes the key of a task from its argument values and inputs.
#[must_use]
pub fn key(task: &Task, arguments: &[Value], reads: impl Iterator<Item = TaskInputId>) -> TaskKey {
    let mut hash = blake3::Hasher::new();
    hash.update(SCHEME);
    hash.update(&(task.operation.len() as u64).to_le_bytes());
    hash.update(task.operation.as_bytes());
    hash.update(&task.version.to_le_bytes());
    // An operation version has fixed numbers of arguments and inputs, so the hash needs no counts.
    for argument in arguments {
        let (tag, bytes) = match argument {
            Value::Integer(number) => (b'i', number.to_le_bytes()),
            Value::Real(real) => (b'r', real.get().to_bits().to_le_bytes()),
        };
        hash.update(&[tag]);
        hash.update(&bytes);
    }
    for read in reads {
        match read {
            TaskInputId::Stored(key) => hash.update(b"s").update(&key.0),
            TaskInputId::Output(identity) => hash.update(b"o").update(&identity.0),
        };
    }
    TaskKey(*hash.finalize().as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_regions::provenance_id;
    use pleach_workflow::ValueType;
    use std::collections::HashSet;

    fn task(operation: &str, version: u32) -> Task {
        let (name, description) = (String::new(), String::new());
        let (arguments, reads, writes) = (Vec::new(), Vec::new(), Vec::new());
        Task {
            name,
            description,
            operation: operation.to_owned(),
            version,
            arguments,
            reads,
            writes,
            guard: None,
        }
    }

    #[test]
    fn each_part_changes_the_key() {
        let one = Value::from_f64(1.0, ValueType::Real).unwrap();
        let same = [1; 32];
        let stored = RegionKey([1; 16]);
        let mut seen = HashSet::new();
        let mut new = |operation, version, values: &[Value], reads: &[TaskInputId]| {
            seen.insert(key(&task(operation, version), values, reads.iter().copied()).0)
        };
        assert!(new("a", 1, &[], &[]));
        assert!(new("b", 1, &[], &[]));
        assert!(new("a", 2, &[], &[]));
        assert!(new("a", 1, &[Value::Integer(1)], &[]));
        assert!(new("a", 1, &[Value::Integer(2)], &[]));
        assert!(new("a", 1, &[one], &[]));
        assert!(new("a", 1, &[], &[TaskInputId::Stored(stored)]));
        assert!(new("a", 1, &[], &[TaskInputId::Output(RegionIdentity(same))]));
        assert!(new("a", 1, &[], &[TaskInputId::Output(RegionIdentity(same)), TaskInputId::Stored(stored)]));
        assert!(new("a", 1, &[], &[TaskInputId::Stored(stored), TaskInputId::Output(RegionIdentity(same))]));
        let key = key(&task("a", 1), &[], std::iter::empty());
        assert_ne!(provenance_id(&key, 0), provenance_id(&key, 1));
        assert_ne!(provenance_id(&key, 0).0, key.0);
    }
}
