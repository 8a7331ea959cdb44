//! Reads of a node while one of its tiers is slow: requests to the storage actor for regions in memory and on the disk, each of the
//! latter behind 8 reads from a shared tier that takes 20 ms for each. Memory is also read without an actor.
//!
//! `cargo bench -p pleach-actors --bench tiers`. Absolute numbers depend on the machine and its load.

use actix::prelude::*;
use pleach_actors::spill::SpillStore;
use pleach_actors::storage::{FreeMemory, GetRegion, SetPlacement, StorageActor};
use pleach_regions::{DataRegion, RamTier, Raster, RegionKey};
use pleach_storage::files::OsFileSystem;
use pleach_storage::{
    BoundedRam, Durability, EvictionPolicy, FolderKind, FolderSettings, FolderTier, Inserted, Tier,
    TierError, TierLevel, TierStack, WriteMode,
};
use pleach_workflow::TierKind;
use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Regions on the disk, each read once.
const ON_DISK: u32 = 100;
/// Reads of the shared tier before the requests for memory.
const AT_FIRST: u32 = 40;
/// Reads of the shared tier before each read of the disk.
const BESIDE: u32 = 8;
/// Regions in the shared tier, each read once.
const SHARED: u32 = AT_FIRST + ON_DISK * BESIDE;
/// Time of one read of the shared tier.
const SLOW: Duration = Duration::from_millis(20);
/// Requests for regions in memory.
const HITS: u32 = 20_000;

/// A shared tier that takes [`SLOW`] for each read.
#[derive(Debug)]
struct SlowTier(BoundedRam);

impl Tier for SlowTier {
    fn insert(&self, key: RegionKey, region: &Arc<DataRegion>) -> Result<Inserted, TierError> {
        self.0.insert(key, region)
    }
    fn get(&self, key: RegionKey) -> Result<Option<Arc<DataRegion>>, TierError> {
        let found = self.0.get(key)?;
        if found.is_some() {
            std::thread::sleep(SLOW);
        }
        Ok(found)
    }
    fn remove(&self, key: RegionKey) -> Result<bool, TierError> {
        self.0.remove(key)
    }
    fn contains(&self, key: RegionKey) -> Result<bool, TierError> {
        self.0.contains(key)
    }
    fn list(&self) -> Result<Vec<RegionKey>, TierError> {
        self.0.list()
    }
    fn held_bytes(&self) -> u64 {
        self.0.held_bytes()
    }
    fn capacity_bytes(&self) -> u64 {
        self.0.capacity_bytes()
    }
    fn durability(&self) -> Durability {
        self.0.durability()
    }
}

/// Returns the key and the region of a number: 256 x 256 px.
fn region(number: u32) -> (RegionKey, Arc<DataRegion>) {
    let mut key = [1; 16];
    key[..4].copy_from_slice(&number.to_be_bytes());
    let raster = Raster::filled(256, 256, 1, number as u8).expect("a raster");
    (RegionKey(key), Arc::new(DataRegion::Gray8(raster)))
}

/// Prints reads a second, and the percentiles of their latencies.
#[expect(clippy::print_stdout, reason = "a benchmark prints")]
fn show(name: &str, mut latencies: Vec<Duration>) {
    let all: Duration = latencies.iter().sum();
    latencies.sort_unstable();
    let at = |part: f64| latencies[((latencies.len() - 1) as f64 * part) as usize];
    let rate = latencies.len() as f64 / all.as_secs_f64();
    println!("{name:<56} {rate:>12.0}/s  p50 {:>10.1?}  p99 {:>10.1?}", at(0.5), at(0.99));
}

async fn read(storage: &Addr<StorageActor>, numbers: impl Iterator<Item = u32>) -> Vec<Duration> {
    let mut latencies = Vec::new();
    for number in numbers {
        let begun = Instant::now();
        let found = storage.send(GetRegion(region_key(number))).await;
        assert!(matches!(found, Ok(Ok(_))), "region {number} is missing");
        latencies.push(begun.elapsed());
    }
    latencies
}

fn region_key(number: u32) -> RegionKey {
    region(number).0
}

async fn measure(is_saturated: bool) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let settings = FolderSettings::new(FolderKind::Ssd, 1 << 30);
    let disk: Arc<dyn Tier> = Arc::new(FolderTier::open(Arc::new(OsFileSystem), folder.path(), settings)?);
    let shared: Arc<dyn Tier> = Arc::new(SlowTier(BoundedRam::new(Arc::default(), 1 << 30)));
    let levels = [("ssd", disk, false), ("lustre", shared, true)].map(|(name, tier, shared)| TierLevel {
        name: name.to_owned(),
        tier,
        policy: EvictionPolicy::Lru,
        write: WriteMode::Back,
        shared,
    });
    let spill = Arc::new(SpillStore::new(TierStack::new(levels.into()))?);
    let ram = Arc::new(RamTier::default());
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build()?);
    let storage =
        StorageActor::new(HashMap::new(), pool, Arc::clone(&ram)).with_spill(Some(Arc::clone(&spill)));
    let storage = storage.start();
    let spilled = 1..1 + ON_DISK + SHARED;
    let slow = 1 + ON_DISK..1 + ON_DISK + SHARED;
    storage
        .send(SetPlacement(slow.clone().map(|number| (region_key(number), TierKind::Lustre)).collect()))
        .await?;
    for (key, region) in spilled.map(region) {
        ram.insert(key, region).map_err(|error| error.to_string())?;
    }
    storage.send(FreeMemory { bytes: u64::MAX, but: HashSet::new(), replicas: Vec::new() }).await?;
    assert_eq!(ram.len(), 0, "all regions are spilled");
    let (key, hit) = region(0);
    ram.insert(key, hit).map_err(|error| error.to_string())?;
    let mut busy = Vec::new();
    let mut slow = slow.filter(|_| is_saturated);
    let mut read_slowly = |reads: u32| {
        busy.extend(slow.by_ref().take(reads as usize).map(|number| {
            let storage = storage.clone();
            tokio::task::spawn_local(async move { storage.send(GetRegion(region_key(number))).await.is_ok() })
        }));
    };
    let beside = if is_saturated { "beside a busy shared tier" } else { "alone" };
    read_slowly(AT_FIRST);
    show(&format!("memory by the storage actor, {beside}"), read(&storage, (0..HITS).map(|_| 0)).await);
    let direct = (0..HITS).map(|_| {
        let begun = Instant::now();
        assert!(ram.get(key).is_some());
        begun.elapsed()
    });
    show(&format!("memory without an actor, {beside}"), direct.collect());
    let mut disk = Vec::new();
    for number in 1..=ON_DISK {
        read_slowly(BESIDE);
        // Sends the requests for the shared tier first.
        tokio::task::yield_now().await;
        disk.extend(read(&storage, number..=number).await);
    }
    show(&format!("disk, {beside}"), disk);
    for read in busy {
        assert!(read.await?, "the storage actor answers");
    }
    spill.settle();
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    System::new().block_on(async {
        measure(false).await?;
        measure(true).await
    })
}
