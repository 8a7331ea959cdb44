//! Task results of one simulated worker, by the rules of the result cache of a real one.

use pleach_dispatch::LeaseId;
use pleach_dispatch::directory::{ResultOutput, TaskRecord};
use pleach_dispatch::stage::NodeId;
use pleach_regions::{RegionIdentity, TaskKey};
use std::collections::{BTreeMap, BTreeSet, HashMap};

#[derive(Debug)]
struct Region {
    bytes: u64,
    /// Outputs of buckets that refer to it. It is not evicted meanwhile.
    users: u32,
    /// Number of the last use.
    used: u64,
    tasks: Vec<TaskKey>,
}

/// Results in the memory of a worker, and running tasks.
#[derive(Debug, Default)]
pub(super) struct Results {
    tasks: HashMap<TaskKey, TaskRecord>,
    regions: HashMap<RegionIdentity, Region>,
    /// Unused regions, by the number of their last use.
    unused: BTreeMap<u64, RegionIdentity>,
    running: HashMap<TaskKey, Vec<(LeaseId, NodeId)>>,
    bytes: u64,
    uses: u64,
    pub(super) peak_bytes: u64,
}

impl Results {
    /// Takes the wanted outputs of a task, if all are present.
    pub(super) fn acquire(&mut self, key: &TaskKey, wanted: &[bool]) -> Option<TaskRecord> {
        let record = self.tasks.get(key).filter(|record| record.has(wanted))?.clone();
        let outputs = record.outputs.iter().zip(wanted);
        let outputs: Vec<Option<ResultOutput>> =
            outputs.map(|(output, wanted)| output.filter(|_| *wanted)).collect();
        outputs.iter().flatten().for_each(|output| self.add_user(&output.identity));
        Some(TaskRecord { outputs, ..record })
    }

    fn add_user(&mut self, identity: &RegionIdentity) {
        if let Some(region) = self.regions.get_mut(identity) {
            self.unused.remove(&region.used);
            region.users += 1;
        }
    }

    /// Adds outputs of a task, each with one user.
    pub(super) fn insert(&mut self, key: TaskKey, record: &TaskRecord) {
        for output in record.outputs.iter().flatten() {
            let region = self.regions.entry(output.identity).or_insert_with(|| {
                self.bytes += output.bytes;
                Region { bytes: output.bytes, users: 0, used: 0, tasks: Vec::new() }
            });
            if !region.tasks.contains(&key) {
                region.tasks.push(key);
            }
            self.add_user(&output.identity);
        }
        let known = self.tasks.entry(key).or_insert_with(|| record.clone());
        for (known, new) in known.outputs.iter_mut().zip(&record.outputs) {
            *known = known.or(*new);
        }
        self.peak_bytes = self.peak_bytes.max(self.bytes);
    }

    pub(super) fn release(&mut self, identity: &RegionIdentity) {
        let Some(region) = self.regions.get_mut(identity) else { return };
        region.users -= 1;
        if region.users == 0 {
            self.uses += 1;
            region.used = self.uses;
            self.unused.insert(self.uses, *identity);
        }
    }

    /// Evicts unused regions, the least recently used first. Returns the tasks that lost an output.
    pub(super) fn evict(&mut self, budget_bytes: u64) -> BTreeSet<TaskKey> {
        let mut dropped = BTreeSet::new();
        while self.bytes > budget_bytes {
            let Some((_, identity)) = self.unused.pop_first() else { break };
            let Some(region) = self.regions.remove(&identity) else { continue };
            self.bytes -= region.bytes;
            for task in region.tasks {
                self.tasks.remove(&task);
                dropped.insert(task);
            }
        }
        dropped
    }

    pub(super) fn has(&self, identity: &RegionIdentity) -> bool {
        self.regions.contains_key(identity)
    }

    pub(super) fn is_running(&self, key: &TaskKey) -> bool {
        self.running.contains_key(key)
    }

    pub(super) fn begin(&mut self, key: TaskKey) {
        self.running.entry(key).or_default();
    }

    pub(super) fn wait(&mut self, key: TaskKey, lease: LeaseId, node: NodeId) {
        self.running.entry(key).or_default().push((lease, node));
    }

    /// Ends a task. Returns the tasks that waited for it.
    pub(super) fn end(&mut self, key: &TaskKey) -> Vec<(LeaseId, NodeId)> {
        self.running.remove(key).unwrap_or_default()
    }
}
