//! Worker process of a cluster, as an actor with an exchange and one slot, that runs the toy operation.

use crate::cluster::Cluster;
use crate::costly::Costly;
use crate::toy::{Input, Watch, input_key, registry};
use crate::worker;
use actix::prelude::*;
use pleach_actors::directory::DirectoryMetrics;
use pleach_actors::exchange::Exchange;
use pleach_actors::input_files::InputFileStore;
use pleach_actors::storage::{Source, StorageActor};
use pleach_actors::task::Accelerators;
use pleach_actors::task::unmetered;
use pleach_actors::worker::{
    GetWorkerMetrics, InputReader, RemoteSetup, Resources, WorkerActor, WorkerSetup, unmeasured,
};
use pleach_cache::PriorResults;
use pleach_dispatch::message::InputFile;
use pleach_regions::RamTier;
use pleach_workflow::{Operation, Registry};
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

struct NoFiles;

impl InputReader for NoFiles {
    fn source(&self, input: &InputFile, _: &Arc<InputFileStore>) -> Arc<dyn Source> {
        unreachable!("{input:?}")
    }
}

pub(crate) struct Worker {
    pub(crate) actor: Addr<WorkerActor>,
    pub(crate) exchange: Exchange,
    pub(crate) ram: Arc<RamTier>,
    pub(crate) watch: Arc<Watch>,
    /// Receiver of its events and folder of its fetched files, kept open and never read.
    _rest: (UnboundedReceiver<pleach_actors::worker::WorkerEvent>, tempfile::TempDir),
}

impl Worker {
    pub(crate) fn start(cluster: &Cluster, name: &str, incarnation: u64) -> Self {
        let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("threads"));
        let worker::Worker { exchange, ram, ledger } = worker::Worker::new(cluster, name, None);
        let input: Arc<dyn Source> = Arc::new(Input { value: Ok(1.0), loads: Arc::default() });
        let storage =
            StorageActor::new(HashMap::from([(input_key(0), input)]), Arc::clone(&pool), Arc::clone(&ram));
        let storage = storage.with_exchange(exchange.clone()).start();
        let folder = tempfile::tempdir().expect("a folder");
        let (ask, asks) = unbounded_channel();
        let files = Arc::new(InputFileStore::open(folder.path().join("inputs"), ask).expect("a folder"));
        let (events, received) = unbounded_channel();
        let remote = RemoteSetup {
            code: None,
            incarnation,
            exchange: exchange.clone(),
            opener: Arc::new(NoFiles),
            files,
            asks: Some(asks),
            events,
            window: 1,
        };
        let (operations, watch) = registry();
        let step = operations.get("toy.step", 1).expect("the operation");
        let actor = WorkerActor::unconnected(WorkerSetup {
            resources: Resources {
                slots: NonZeroU32::MIN,
                accelerators: Accelerators::default(),
                memory_bytes: u64::MAX,
                active_paths: None,
                meter: unmetered,
                process_bytes: unmeasured,
            },
            registry: Registry::new([Arc::new(Costly(Arc::clone(step))) as Arc<dyn Operation>]),
            storage,
            pool,
            ram: Arc::clone(&ram),
            spill: None,
            ledger,
            costs: Arc::default(),
            prior: PriorResults::default(),
            peak_bytes: Arc::default(),
            remote: Some(remote),
        });
        Self { actor: actor.start(), exchange, ram, watch, _rest: (received, folder) }
    }

    pub(crate) async fn directory(&self) -> DirectoryMetrics {
        self.actor.send(GetWorkerMetrics).await.expect("the worker lives").directory
    }
}
