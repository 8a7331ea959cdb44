//! The outputs that tasks of a bucket, or its instances, have yet to read, with every byte counted.

use crate::task_results::TaskResults;
use pleach_dispatch::stage::OutputId;
use pleach_regions::{AcquiredOutputs, CachedRegion, DataRegion, MemoryCounter, RefState, RegionIdentity};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What stands for a region.
#[derive(Clone, Copy, Debug)]
pub(super) struct RegionInfo {
    /// What it holds, as far as that is known; else how it came about.
    pub(super) identity: RegionIdentity,
    /// How it came about.
    pub(super) origin: RegionIdentity,
}

#[derive(Debug)]
struct Holding {
    region: Arc<DataRegion>,
    known: Option<RegionInfo>,
    /// It is on the shelf, where others may hold it too.
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
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of all that is held, each output counted, equal or not: what the bucket would hold on its own.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn region(&self, output: OutputId) -> Option<&Arc<DataRegion>> {
        self.outputs.get(&output).map(|holding| &holding.region)
    }

    pub(super) fn known(&self, output: OutputId) -> Option<RegionInfo> {
        self.outputs.get(&output).and_then(|holding| holding.known)
    }

    /// Holds an output that nobody else holds.
    pub(super) fn add(&mut self, output: OutputId, region: Arc<DataRegion>, known: Option<RegionInfo>) {
        self.ledger.add(region.bytes());
        self.bytes += region.bytes();
        self.outputs.insert(output, Holding { region, known, shelved: false });
    }

    /// Holds outputs of a task that are on the shelf; `origin` says how each came about.
    pub(super) fn add_shelved(
        &mut self,
        outputs: AcquiredOutputs,
        id: impl Fn(usize) -> OutputId,
        origin: impl Fn(usize) -> RegionIdentity,
    ) {
        for (number, output) in outputs.into_iter().enumerate() {
            let Some((CachedRegion { identity, region }, holders)) = output else { continue };
            if holders == RefState::First {
                self.ledger.add(region.bytes());
            }
            self.bytes += region.bytes();
            let known = Some(RegionInfo { identity, origin: origin(number) });
            self.outputs.insert(id(number), Holding { region, known, shelved: true });
        }
    }

    /// Lets go of an output; on the shelf it may stay.
    pub(super) fn remove(&mut self, output: OutputId) {
        let Some(Holding { region, known, shelved }) = self.outputs.remove(&output) else { return };
        self.bytes -= region.bytes();
        let shelved = known.filter(|_| shelved);
        let holders = shelved.map(|known| self.results().shelf.release(&known.identity));
        if holders != Some(RefState::Further) {
            self.ledger.subtract(region.bytes());
        }
    }
}
