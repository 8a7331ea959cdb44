//! Outputs that tasks or instances of a bucket still read, with every byte counted.
//!
//! An output of a task that another worker ran is *remote* until the first task that reads it fetches it. Its bytes count
//! from the beginning, so the fetch needs no further admission.

use crate::task_results::{TaskResults, result_key};
use parking_lot::{Mutex, MutexGuard};
use pleach_dispatch::directory::Member;
use pleach_dispatch::stage::OutputId;
use pleach_regions::{
    AcquiredOutputs, CachedRegion, DataRegion, Digest, MemoryCounter, RefState, RegionIdentity, RegionKey,
    TaskKey,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Identities of a region.
#[derive(Clone, Copy, Debug)]
pub(super) struct RegionInfo {
    /// Identity by content if known, otherwise by provenance.
    pub(super) identity: RegionIdentity,
    /// Identity by provenance.
    pub(super) origin: RegionIdentity,
}

/// A task that another worker has run.
#[derive(Debug)]
pub(super) struct RemoteTask {
    /// Key of the task by the content of its inputs.
    pub(super) key: TaskKey,
    /// Its key by the provenance of its inputs, at the worker that ran it.
    pub(super) origin: TaskKey,
    /// Wall seconds of its run.
    pub(super) seconds: f64,
    /// Number of its outputs.
    pub(super) outputs: usize,
    /// Workers that can send its outputs.
    pub(super) holders: Vec<Member>,
}

/// An output of such a task.
#[derive(Clone, Debug)]
pub(super) struct RemoteOutput {
    pub(super) task: Arc<RemoteTask>,
    pub(super) identity: RegionIdentity,
    pub(super) digest: Digest,
}

impl RemoteOutput {
    /// Returns the key under which its holders send it.
    pub(super) fn fetch_key(&self) -> RegionKey {
        result_key(&self.identity)
    }
}

#[derive(Debug)]
enum Content {
    Local {
        region: Arc<DataRegion>,
        /// The output is in the result cache, where other buckets may hold it too.
        shelved: bool,
    },
    Remote(RemoteOutput),
}

#[derive(Debug)]
struct Holding {
    content: Content,
    info: Option<RegionInfo>,
    bytes: u64,
}

#[derive(Debug)]
pub(super) struct LiveOutputs {
    outputs: HashMap<OutputId, Holding>,
    bytes: u64,
    ledger: Arc<MemoryCounter>,
    results: Arc<Mutex<TaskResults>>,
}

impl LiveOutputs {
    pub(super) fn new(ledger: Arc<MemoryCounter>, results: Arc<Mutex<TaskResults>>) -> Self {
        Self { outputs: HashMap::new(), bytes: 0, ledger, results }
    }

    pub(super) fn results(&self) -> MutexGuard<'_, TaskResults> {
        self.results.lock()
    }

    /// Returns the bytes of all live outputs, counting equal ones separately: the bytes that the bucket would hold on its
    /// own.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns an output in memory.
    pub(super) fn region(&self, output: OutputId) -> Option<&Arc<DataRegion>> {
        match &self.outputs.get(&output)?.content {
            Content::Local { region, .. } => Some(region),
            Content::Remote(_) => None,
        }
    }

    /// Returns an output that is to be fetched.
    pub(super) fn remote(&self, output: OutputId) -> Option<&RemoteOutput> {
        match &self.outputs.get(&output)?.content {
            Content::Local { .. } => None,
            Content::Remote(remote) => Some(remote),
        }
    }

    /// Returns the bytes of an output in memory, here or elsewhere. Zero if it has been dropped.
    pub(super) fn bytes_of(&self, output: OutputId) -> u64 {
        self.outputs.get(&output).map_or(0, |holding| holding.bytes)
    }

    pub(super) fn info(&self, output: OutputId) -> Option<RegionInfo> {
        self.outputs.get(&output).and_then(|holding| holding.info)
    }

    fn insert(&mut self, output: OutputId, content: Content, info: Option<RegionInfo>, bytes: u64) {
        self.bytes += bytes;
        let before = self.outputs.insert(output, Holding { content, info, bytes });
        assert!(before.is_none(), "{output:?} is held twice");
    }

    /// Adds an output that only this bucket holds.
    pub(super) fn add(&mut self, output: OutputId, region: Arc<DataRegion>, info: Option<RegionInfo>) {
        self.ledger.add(region.bytes());
        let bytes = region.bytes();
        self.insert(output, Content::Local { region, shelved: false }, info, bytes);
    }

    /// Adds the outputs of a task from the result cache. `origin` returns the provenance of each.
    pub(super) fn add_shelved(
        &mut self,
        outputs: AcquiredOutputs,
        id: impl Fn(usize) -> OutputId,
        origin: impl Fn(usize) -> RegionIdentity,
    ) {
        for (number, output) in outputs.into_iter().enumerate() {
            let Some((CachedRegion { identity, region }, holders)) = output else { continue };
            // Buckets share one copy in the result cache, so the ledger counts it for the first holder only.
            if holders == RefState::First {
                self.ledger.add(region.bytes());
            }
            let (bytes, info) = (region.bytes(), Some(RegionInfo { identity, origin: origin(number) }));
            self.insert(id(number), Content::Local { region, shelved: true }, info, bytes);
        }
    }

    /// Adds an output of a task that another worker has run.
    pub(super) fn add_remote(
        &mut self,
        output: OutputId,
        remote: RemoteOutput,
        origin: RegionIdentity,
        bytes: u64,
    ) {
        let info = Some(RegionInfo { identity: remote.identity, origin });
        self.insert(output, Content::Remote(remote), info, bytes);
    }

    /// Puts a fetched output into the result cache, for other buckets and other workers. `source` is its root input. Does
    /// nothing if the output has been dropped or fetched meanwhile.
    pub(super) fn localize(&mut self, output: OutputId, region: Arc<DataRegion>, source: Option<RegionKey>) {
        let Some(Holding { content, .. }) = self.outputs.get_mut(&output) else { return };
        let Content::Remote(RemoteOutput { task, identity, .. }) = content else { return };
        let mut outputs = vec![None; task.outputs];
        outputs[output.output] = Some(CachedRegion { identity: *identity, region });
        let mut results = self.results.lock();
        let held = results.shelf.insert(task.key, task.origin, source, outputs, task.seconds);
        results.offer(*identity);
        drop(results);
        let Some((CachedRegion { region, .. }, holders)) = held.into_iter().flatten().next() else { return };
        if holders == RefState::First {
            self.ledger.add(region.bytes());
        }
        *content = Content::Local { region, shelved: true };
    }

    /// Removes an output. It may stay in the result cache.
    pub(super) fn remove(&mut self, output: OutputId) {
        let Some(Holding { content, info, bytes }) = self.outputs.remove(&output) else { return };
        self.bytes -= bytes;
        let Content::Local { region, shelved } = content else { return };
        let shelved = info.filter(|_| shelved);
        let holders = shelved.map(|known| self.results().shelf.release(&known.identity));
        // The last holder subtracts the bytes. `None` is an output that only this bucket holds.
        if holders != Some(RefState::Further) {
            self.ledger.subtract(region.bytes());
        }
    }
}
