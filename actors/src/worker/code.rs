//! Code packages: operations that a client's study brings, loaded where the operator allows it.

use super::WorkerActor;
use super::bucket::resolve_stages;
use actix::prelude::*;
use pleach_dispatch::message::{CodePackage, ExternalOperation, ToManager};
use pleach_workflow::{Operation, Registry, plain_name};
use std::path::PathBuf;
use std::sync::Arc;
use tracing::{info, warn};

/// Loads code packages. The application implements it.
pub trait CodeLoader: Send + Sync {
    /// Loads the operations of a package, whose files are at these paths: the manifest, then its companions in order. Takes
    /// seconds.
    ///
    /// # Errors
    /// Returns the cause: operations whose identity differs from those of the package, or code that does not load.
    fn load(&self, package: &CodePackage, files: &[PathBuf]) -> Result<Vec<Arc<dyn Operation>>, String>;
}

/// Returns the external operations of a registry.
fn external_operations(registry: &Registry) -> Vec<ExternalOperation> {
    let external = registry.names().into_iter().filter(|name| plain_name(name) != *name);
    let versions =
        external.flat_map(|name| registry.versions(name).into_iter().map(move |version| (name, version)));
    let described = versions.filter_map(|(name, version)| {
        let components = registry.get(name, version)?.components().to_vec();
        Some(ExternalOperation { name: name.to_owned(), version, components })
    });
    described.collect()
}

impl WorkerActor {
    /// Reports the external operations of this worker to the manager, and whether it loads code of clients.
    pub(super) fn send_operations(&mut self, ctx: &mut Context<Self>) {
        let Some(remote) = &self.setup.remote else { return };
        let accepts_code = remote.code.is_some();
        let operations = external_operations(&self.setup.registry);
        if accepts_code || !operations.is_empty() {
            self.send(&ToManager::ExternalOperations { operations, accepts_code }, ctx);
        }
    }

    /// Fetches the files of a code package and loads it, beside other work.
    pub(super) fn load_code(&mut self, package: CodePackage, ctx: &mut Context<Self>) {
        let digest = package.manifest.digest_of_all();
        let remote = self.setup.remote.as_ref();
        let Some((loader, files)) =
            remote.and_then(|remote| Some((remote.code.clone()?, Arc::clone(&remote.files))))
        else {
            let cause = "code of clients is not allowed here; start the worker with --allow-code".to_owned();
            return self.send(&ToManager::CodeRefused { package: digest, cause }, ctx);
        };
        let loaded = async move {
            let paths = files.fetch_parts(&package.manifest).await?;
            let load = move || loader.load(&package, &paths);
            tokio::task::spawn_blocking(load).await.unwrap_or_else(|error| Err(error.to_string()))
        };
        ctx.spawn(loaded.into_actor(self).map(move |loaded, actor, ctx| match loaded {
            Ok(operations) => actor.add_operations(digest, operations, ctx),
            Err(cause) => {
                warn!("a code package is refused: {cause}");
                actor.send(&ToManager::CodeRefused { package: digest, cause }, ctx);
            }
        }));
    }

    /// Adds operations to those of this worker. Running studies use them from now on. Without accelerators, operations that need
    /// one are refused.
    fn add_operations(
        &mut self,
        package: [u8; 32],
        operations: Vec<Arc<dyn Operation>>,
        ctx: &mut Context<Self>,
    ) {
        let has_none = self.setup.resources.accelerators.is_empty();
        let is_refused = |operation: &Arc<dyn Operation>| has_none && operation.needs_accelerator();
        let (refused, operations): (Vec<_>, Vec<_>) = operations.into_iter().partition(is_refused);
        if let Some(first) = refused.first() {
            let name = plain_name(first.name());
            let cause = format!("{name} needs an accelerator; start the worker with --accelerators");
            self.send(&ToManager::CodeRefused { package, cause }, ctx);
        }
        for operation in &operations {
            info!(operation = operation.name(), "loaded {} {}", operation.name(), operation.version());
        }
        self.setup.registry = self.setup.registry.clone().extended(operations);
        let registry = &self.setup.registry;
        let counters = &mut self.counters;
        self.studies.resolve_again(|study, stages| {
            counters.begin(study, stages, registry);
            resolve_stages(stages, registry)
        });
        self.send_operations(ctx);
        self.apply_effects(ctx);
    }
}
