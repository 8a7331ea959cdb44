//! Releases of regions during their load.

use super::*;
use pleach_regions::Raster;
use pleach_storage::files::OsFileSystem;
use pleach_storage::{
    EvictionPolicy, FolderKind, FolderSettings, FolderTier, Tier, TierLevel, TierStack, WriteMode,
};
use std::sync::mpsc;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// A file whose load reports its start, and then waits for the test.
struct Slow {
    opened: UnboundedSender<()>,
    word: parking_lot::Mutex<mpsc::Receiver<()>>,
}

impl Source for Slow {
    fn load(&self) -> Result<DataRegion, TaskFailure> {
        self.opened.send(()).expect("the test waits");
        self.word.lock().recv().expect("the test gives it");
        Ok(DataRegion::Gray8(Raster::filled(100, 100, 1, 7).expect("a raster")))
    }
}

/// Regions in memory and in the shared tier after a release during the load of one, and another request after the release.
fn left_after_release(asks_again: bool) -> (usize, usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = FolderSettings::new(FolderKind::Lustre, 1 << 30);
    let shared = FolderTier::open(Arc::new(OsFileSystem), folder.path(), settings).expect("a tier");
    let shared: Arc<dyn Tier> = Arc::new(shared);
    let level = TierLevel {
        name: "lustre".to_owned(),
        tier: Arc::clone(&shared),
        policy: EvictionPolicy::Lru,
        write: WriteMode::Back,
        shared: true,
    };
    let below = Arc::new(SpillStore::new(TierStack::new(vec![level])).expect("threads"));
    let ((opened, mut is_opened), (give, word)) = (unbounded_channel(), mpsc::channel());
    let key = RegionKey([1; 16]);
    let source: Arc<dyn Source> = Arc::new(Slow { opened, word: word.into() });
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("threads"));
    System::new().block_on(async {
        let storage = StorageActor::new(HashMap::from([(key, source)]), pool, Arc::default());
        let storage = storage.with_spill(Some(Arc::clone(&below))).start();
        storage.send(ShareInputs).await.expect("there");
        let first = actix::spawn(storage.send(GetRegion(key)));
        is_opened.recv().await.expect("it is read");
        storage.send(ReleaseRegions(vec![key])).await.expect("there");
        if asks_again {
            storage.do_send(GetRegion(key));
        }
        assert_eq!(storage.send(CountRegions).await.expect("there"), 0);
        give.send(()).expect("it waits");
        assert!(first.await.expect("it ends").expect("there").is_ok(), "a request is answered all the same");
        let in_memory = storage.send(CountRegions).await.expect("there");
        below.settle();
        (in_memory, shared.list().expect("a list").len())
    })
}

#[test]
fn region_released_during_its_load_is_kept_for_a_later_request_only() {
    assert_eq!(left_after_release(false), (0, 0));
    assert_eq!(left_after_release(true), (1, 1));
}
