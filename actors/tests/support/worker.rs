//! Worker with an exchange, and the regions that it holds.

use crate::cluster::{ANYWHERE, Cluster, soon};
use pleach_actors::exchange::{Exchange, ExchangeSetup, HolderError};
use pleach_actors::transport::hello::{Hello, Version};
use pleach_actors::transport::identity::Role;
use pleach_actors::transport::settings::Settings;
use pleach_regions::{DataRegion, MemoryCounter, RamTier, RegionKey};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Exchange of a worker, with its memory.
pub(crate) struct Worker {
    pub(crate) exchange: Exchange,
    pub(crate) ram: Arc<RamTier>,
    pub(crate) ledger: Arc<MemoryCounter>,
}

impl Worker {
    pub(crate) fn new(cluster: &Cluster, name: &str, shared: Option<PathBuf>) -> Self {
        Self::with(cluster, name, shared, cluster.settings.clone())
    }

    pub(crate) fn with(cluster: &Cluster, name: &str, shared: Option<PathBuf>, settings: Settings) -> Self {
        let ledger = Arc::new(MemoryCounter::default());
        let ram = Arc::new(RamTier::new(Arc::clone(&ledger)));
        let setup = ExchangeSetup {
            credentials: cluster.credentials(name, Role::Worker, 30),
            hello: Hello::default(),
            version: Version::current(),
            settings,
            clock: cluster.clock(),
            board: cluster.board(),
            ram: Arc::clone(&ram),
            spill: None,
            shared,
        };
        let exchange = Exchange::start(&cluster.network, ANYWHERE, setup).expect("an address");
        Self { exchange, ram, ledger }
    }

    pub(crate) fn holds(self, key: RegionKey, region: &Arc<DataRegion>) -> Self {
        self.ram.insert(key, Arc::clone(region)).expect("a key of its own");
        self
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.exchange.address()
    }

    pub(crate) async fn fetch(
        &self,
        key: RegionKey,
        from: &[SocketAddr],
    ) -> Result<Arc<DataRegion>, Vec<HolderError>> {
        let fetched = soon(self.exchange.fetch(key, from)).await;
        fetched.map_err(|error| error.tried.into_iter().map(|tried| tried.failure).collect())
    }
}
