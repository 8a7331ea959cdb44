//! Driver `kubernetes`: the scale of a deployment whose pods are the workers of a pool.

use crate::kubernetes::{ClusterError, Namespace, Pod};
use crate::pools::{DriverKind, ManagedPool, Pools};
use pleach_provision::ScaleObservation;

/// Scale of the deployment of a pool.
#[derive(Debug)]
pub struct ScaleDriver {
    /// Name of the pool.
    pub pool: String,
    deployment: String,
    namespace: Namespace,
}

impl ScaleDriver {
    /// Creates the drivers of all pools with the driver `kubernetes`, each with the number of its pool.
    #[must_use]
    pub fn of_pools(pools: &Pools, namespace: &Namespace) -> Vec<(usize, Self)> {
        let driver = |(number, pool): (usize, &ManagedPool)| match &pool.driver.as_ref()?.kind {
            DriverKind::Kubernetes { deployment } => {
                let (pool, deployment) = (pool.spec.name.clone(), deployment.clone());
                Some((number, Self { pool, deployment, namespace: namespace.clone() }))
            }
            DriverKind::Process { .. } | DriverKind::Command { .. } => None,
        };
        pools.0.iter().enumerate().filter_map(driver).collect()
    }

    /// Reads the scale and the pods.
    ///
    /// # Errors
    /// Reason why the state of the pool is unknown.
    pub(crate) fn observe(&self) -> Result<ScaleObservation, String> {
        let (replicas, pods) = self.read().map_err(|error| error.to_string())?;
        let existing = u32::try_from(pods.len()).unwrap_or(u32::MAX);
        let uncreated = || {
            (existing < replicas).then(|| {
                format!(
                    "the cluster has created {existing} of {replicas} pods; a quota or an admission check may refuse them (kubectl \
                     describe deployment {} and its replica set)",
                    self.deployment
                )
            })
        };
        let obstacle = pods.into_iter().find_map(|pod| pod.obstacle).or_else(uncreated);
        Ok(ScaleObservation { replicas, existing, obstacle })
    }

    /// Lists the pods of the deployment, as names and identifiers.
    ///
    /// # Errors
    /// Reason why the pods are unknown.
    pub fn list(&self) -> Result<Vec<super::ListedWorker>, String> {
        let (_, pods) = self.read().map_err(|error| error.to_string())?;
        let worker = |pod: Pod| super::ListedWorker { name: pod.name, handle: pod.uid };
        Ok(pods.into_iter().map(worker).collect())
    }

    /// Sets the number of pods. Returns the number before.
    ///
    /// # Errors
    /// Reason why the number may differ.
    pub fn set(&self, replicas: u32) -> Result<u32, String> {
        let set = self.namespace.with_round(|round| round.set_scale(&self.deployment, replicas));
        set.map_err(|error| error.to_string())
    }

    fn read(&self) -> Result<(u32, Vec<Pod>), ClusterError> {
        self.namespace.with_round(|round| {
            let scale = round.scale(&self.deployment)?;
            Ok((scale.replicas, round.pods(&scale.selector)?))
        })
    }
}
