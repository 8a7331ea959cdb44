//! Outputs that tasks or instances of a bucket still read, with every byte counted.

use crate::task_results::TaskResults;
use parking_lot::{Mutex, MutexGuard};
use pleach_dispatch::stage::OutputId;
use pleach_regions::{AcquiredOutputs, CachedRegion, DataRegion, MemoryCounter, RefState, RegionIdentity};
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

#[derive(Debug)]
struct Holding {
    region: Arc<DataRegion>,
    info: Option<RegionInfo>,
    /// The output is in the result cache, where other buckets may hold it too.
    shelved: bool,
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

    pub(super) fn region(&self, output: OutputId) -> Option<&Arc<DataRegion>> {
        self.outputs.get(&output).map(|holding| &holding.region)
    }

    pub(super) fn info(&self, output: OutputId) -> Option<RegionInfo> {
        self.outputs.get(&output).and_then(|holding| holding.info)
    }

    /// Adds an output that only this bucket holds.
    pub(super) fn add(&mut self, output: OutputId, region: Arc<DataRegion>, info: Option<RegionInfo>) {
        self.ledger.add(region.bytes());
        self.bytes += region.bytes();
        self.outputs.insert(output, Holding { region, info, shelved: false });
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
            self.bytes += region.bytes();
            let info = Some(RegionInfo { identity, origin: origin(number) });
            self.outputs.insert(id(number), Holding { region, info, shelved: true });
        }
    }

    /// Removes an output. It may stay in the result cache.
    pub(super) fn remove(&mut self, output: OutputId) {
        let Some(Holding { region, info, shelved }) = self.outputs.remove(&output) else { return };
        self.bytes -= region.bytes();
        let shelved = info.filter(|_| shelved);
        let holders = shelved.map(|known| self.results().shelf.release(&known.identity));
        // The last holder subtracts the bytes. `None` is an output that only this bucket holds.
        if holders != Some(RefState::Further) {
            self.ledger.subtract(region.bytes());
        }
    }
}
