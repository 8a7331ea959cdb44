//! Driver `kubernetes`: the scale of a deployment whose pods are the workers of a pool.

use crate::kubernetes::{ClusterError, Namespace, Pod, PodChange, PodWatch};
use crate::pools::{DriverKind, ManagedPool, Pools};
use parking_lot::Mutex;
use pleach_provision::ScaleObservation;

/// Scale of the deployment of a pool.
#[derive(Debug)]
pub struct ScaleDriver {
    /// Name of the pool.
    pub pool: String,
    deployment: String,
    namespace: Namespace,
    /// Watch of the pods since the first observation.
    watch: Mutex<Option<PodWatch>>,
}

impl ScaleDriver {
    /// Creates the drivers of all pools with the driver `kubernetes`, each with the number of its pool.
    #[must_use]
    pub fn of_pools(pools: &Pools, namespace: &Namespace) -> Vec<(usize, Self)> {
        let driver = |(number, pool): (usize, &ManagedPool)| match &pool.driver.as_ref()?.kind {
            DriverKind::Kubernetes { deployment } => {
                let (pool, deployment) = (pool.spec.name.clone(), deployment.clone());
                let (namespace, watch) = (namespace.clone(), Mutex::new(None));
                Some((number, Self { pool, deployment, namespace, watch }))
            }
            DriverKind::Process { .. } | DriverKind::Command { .. } => None,
        };
        pools.0.iter().enumerate().filter_map(driver).collect()
    }

    /// Reads the scale. The pods come from a watch, which starts with the first call and calls `notify` for each change.
    /// While the watch has no pods, they are listed.
    ///
    /// # Errors
    /// Reason why the state of the pool is unknown.
    pub(crate) fn observe(
        &self,
        notify: impl Fn(PodChange) + Send + 'static,
    ) -> Result<ScaleObservation, String> {
        let scale = self.namespace.with_round(|round| round.scale(&self.deployment));
        let scale = scale.map_err(|error| error.to_string())?;
        let replicas = scale.replicas;
        let watched = self.watched(&scale.selector, notify);
        let is_watched = watched.is_some();
        let pods = match watched {
            Some(pods) => pods,
            None => {
                self.namespace
                    .with_round(|round| round.pods(&scale.selector))
                    .map_err(|error| error.to_string())?
                    .pods
            }
        };
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
        Ok(ScaleObservation { replicas, existing, obstacle, is_watched })
    }

    /// Returns the pods of the watch. Starts one if none watches this selector.
    fn watched(&self, selector: &str, notify: impl Fn(PodChange) + Send + 'static) -> Option<Vec<Pod>> {
        let mut watch = self.watch.lock();
        if watch.as_ref().is_none_or(|watch| watch.selector() != selector) {
            // Without a thread, the pods are listed, and the next call tries again.
            *watch = PodWatch::start(self.namespace.clone(), selector.to_owned(), notify).ok();
        }
        watch.as_ref().and_then(PodWatch::pods)
    }

    /// Lists the pods of the deployment, as names and identifiers.
    ///
    /// # Errors
    /// Reason why the pods are unknown.
    pub fn list(&self) -> Result<Vec<super::ListedWorker>, String> {
        let pods = self.read().map_err(|error| error.to_string())?;
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

    fn read(&self) -> Result<Vec<Pod>, ClusterError> {
        self.namespace.with_round(|round| {
            let scale = round.scale(&self.deployment)?;
            Ok(round.pods(&scale.selector)?.pods)
        })
    }
}
