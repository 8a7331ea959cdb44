//! Workers that the provisioner has requested: they replace the estimate of coming workers.

use parking_lot::Mutex;
use pleach_api::schema::ProvisionStatus;
use pleach_dispatch::scaling::WorkerPool;
use pleach_provision::OwnedWorkers;
use std::collections::BTreeMap;

/// Workers of a pool with a driver.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PoolSupply {
    pub(crate) owned: OwnedWorkers,
    /// Last remark that an operator should read.
    pub(crate) remark: Option<String>,
}

/// Supplies of all pools with a driver, by the number of the pool. Provisioning writes them, and scaling reads them.
#[derive(Debug, Default)]
pub(crate) struct Supplies(Mutex<BTreeMap<usize, PoolSupply>>);

impl Supplies {
    pub(crate) fn update(&self, supplies: BTreeMap<usize, PoolSupply>) {
        self.0.lock().extend(supplies);
    }

    pub(crate) fn get(&self, pool: usize) -> Option<PoolSupply> {
        self.0.lock().get(&pool).cloned()
    }
}

impl PoolSupply {
    /// Corrects a pool by the workers that are coming. A pool without capacity has its present workers at most, so that the
    /// decision uses other pools.
    pub(super) fn correct(&self, pool: WorkerPool) -> WorkerPool {
        let (starting, owned) = (self.owned.starting, &self.owned);
        let starting_seconds = (pool.startup_seconds - owned.starting_seconds).max(0.0);
        let max = if owned.has_no_capacity { pool.max.min(pool.running + starting) } else { pool.max };
        WorkerPool { starting, starting_seconds, max, min: pool.min.min(max), ..pool }
    }

    /// Returns the supply as clients see it.
    pub(crate) fn status(&self) -> ProvisionStatus {
        ProvisionStatus {
            starting: self.owned.starting,
            joined: self.owned.joined,
            leaving: self.owned.leaving,
            failed_starts: self.owned.failed_starts,
            has_capacity: !self.owned.has_no_capacity,
            remark: self.remark.clone(),
        }
    }
}
