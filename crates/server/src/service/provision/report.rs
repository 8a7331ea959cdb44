//! Reports of provisioning: remarks in the log and for clients, metrics.

use crate::pools::Pools;
use crate::service::scaling::PoolSupply;
use pleach_provision::{DriverAnswer, ProvisionRemark, Provisioner};
use pleach_telemetry::catalog as of;
use std::collections::BTreeMap;
use tracing::{info, warn};

/// Log of remarks, which keeps the last warning of each pool for clients.
#[derive(Debug)]
pub(super) struct Reporter {
    pools: Pools,
    /// Last warning of each pool, by its number in the pool file.
    warnings: BTreeMap<usize, String>,
}

impl Reporter {
    pub(super) fn new(pools: Pools) -> Self {
        Self { pools, warnings: BTreeMap::new() }
    }

    pub(super) fn log(&mut self, remark: &ProvisionRemark) {
        if !remark.is_warning() {
            info!("{remark}");
            return;
        }
        warn!("{remark}");
        if let Some(pool) = self.pool(remark) {
            self.warnings.insert(pool, remark.to_string());
        }
    }

    fn pool(&self, remark: &ProvisionRemark) -> Option<usize> {
        match remark {
            ProvisionRemark::NoCapacity { pool, .. } | ProvisionRemark::ListFailed { pool, .. } => {
                self.pools.0.iter().position(|other| other.spec.name == *pool)
            }
            ProvisionRemark::UnknownPool { .. } => None,
            ProvisionRemark::Requested { name, .. }
            | ProvisionRemark::Adopted { name, .. }
            | ProvisionRemark::StartFailed { name, .. }
            | ProvisionRemark::Ended { name, .. }
            | ProvisionRemark::Stopping { name }
            | ProvisionRemark::StopFailed { name, .. }
            | ProvisionRemark::Orphan { name, .. }
            | ProvisionRemark::Double { name, .. } => self.pools.of(name),
        }
    }

    /// Counts the answer to a start. A start with a handle ends the warning of its pool.
    pub(super) fn count(&mut self, answer: &DriverAnswer) {
        let outcome = match answer {
            DriverAnswer::Started { name, .. } => {
                if let Some(pool) = self.pools.of(name) {
                    self.warnings.remove(&pool);
                }
                "started"
            }
            DriverAnswer::NotStarted { .. } => "refused",
            DriverAnswer::StartUnknown { .. } => "unknown",
            _ => return,
        };
        of::WORKER_STARTS.with([outcome]).increment(1);
    }

    /// Returns the workers of the pools with these numbers.
    pub(super) fn supplies(
        &self,
        provisioner: &Provisioner,
        numbers: &[usize],
    ) -> BTreeMap<usize, PoolSupply> {
        let supply = |(pool, number): (usize, &usize)| {
            let remark = self.warnings.get(number).cloned();
            (*number, PoolSupply { owned: provisioner.counts(pool), remark })
        };
        numbers.iter().enumerate().map(supply).collect()
    }
}
