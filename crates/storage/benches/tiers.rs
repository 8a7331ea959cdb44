//! Measures storing and reading a region in each tier, compared with copying as many bytes and writing them to a synced
//! file. Results are bytes of the region in memory per second.
//!
//! A second group stores the same number of 16 MB regions with 1, 2, 4 and 8 writers, compared with plain files.
//!
//! `PLEACH_BENCH_FOLDER` names a folder on the disk to measure. The default is the system's folder for temporary files.
//! Reads are served from the page cache, since the regions have just been written.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pleach_regions::{DataRegion, MemoryCounter, Raster, RegionKey};
use pleach_storage::files::OsFileSystem;
use pleach_storage::{BoundedRam, FolderKind, FolderSettings, FolderTier, Tier};
use std::fs::{self, File};
use std::hint::black_box;
use std::io::Write;
use std::sync::Arc;
use tempfile::TempDir;

/// Returns an image of noise, since tissue compresses hardly better. Shape: `side_px × side_px`, 3 channels.
fn image(side_px: u32) -> Arc<DataRegion> {
    let mut state = 1_u32;
    let noise = std::iter::from_fn(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some((state >> 24) as u8)
    });
    let data = noise.take((side_px * side_px * 3) as usize).collect();
    Arc::new(DataRegion::Bgr8(Raster::new(side_px, side_px, 3, data).expect("of that shape")))
}

fn folder() -> TempDir {
    let place = std::env::var_os("PLEACH_BENCH_FOLDER").map_or_else(std::env::temp_dir, Into::into);
    tempfile::tempdir_in(place).expect("a folder that can be written to")
}

/// Creates a RAM tier, and one tier of each kind in a new folder.
fn tiers(places: &[TempDir; 4]) -> Vec<(&'static str, Box<dyn Tier>)> {
    let ram = BoundedRam::new(Arc::new(MemoryCounter::default()), 1 << 30);
    let durable = FolderSettings::new(FolderKind::Ssd, 1 << 30);
    let kinds = [
        ("folder", durable),
        ("packed folder", durable.packed()),
        ("scratch folder", durable.scratch()),
        ("packed scratch folder", durable.scratch().packed()),
    ];
    let folders = kinds.into_iter().zip(places).map(|((name, settings), place)| {
        let tier = FolderTier::open(Arc::new(OsFileSystem), place.path(), settings).expect("a new folder");
        (name, Box::new(tier) as Box<dyn Tier>)
    });
    [("ram", Box::new(ram) as Box<dyn Tier>)].into_iter().chain(folders).collect()
}

fn measure(criterion: &mut Criterion) {
    let key = RegionKey([7; 16]);
    for (name, side_px) in [("48 MB", 4000), ("48 kB", 128), ("768 B", 16)] {
        let region = image(side_px);
        let bytes = region.bytes();
        let mut group = criterion.benchmark_group("tiers");
        group.sample_size(10).throughput(Throughput::Bytes(bytes));
        let places = [(); 4].map(|()| folder());
        for (tier_name, tier) in tiers(&places) {
            let id = |what: &str| BenchmarkId::new(format!("{what} {tier_name}"), name);
            group.bench_function(id("insert"), |bencher| {
                let empty = || tier.remove(key).expect("removed");
                bencher.iter_batched(
                    empty,
                    |_| tier.insert(key, &region).expect("room"),
                    BatchSize::PerIteration,
                );
            });
            group.bench_function(id("get"), |bencher| bencher.iter(|| tier.get(key).expect("whole")));
        }
        let source = region.raster(region.element()).expect("an image").data();
        group.bench_function(BenchmarkId::new("memcpy", name), |bencher| {
            let mut target = vec![0; source.len()];
            bencher.iter(|| black_box(&mut target).copy_from_slice(black_box(source)));
        });
        let plain = folder();
        let path = plain.path().join("plain");
        group.bench_function(BenchmarkId::new("write and fsync", name), |bencher| {
            let write = |mut file: File| file.write_all(source).and_then(|()| file.sync_all());
            let fresh = || {
                let _ = fs::remove_file(&path);
                File::create(&path).expect("a new file")
            };
            bencher.iter_batched(fresh, |file| write(file).expect("written"), BatchSize::PerIteration);
        });
        group.bench_function(BenchmarkId::new("read", name), |bencher| {
            bencher.iter(|| fs::read(&path).expect("there"));
        });
        group.finish();
    }
}

/// Regions stored by all writers together: 2 for each of 8 writers.
const REGIONS: u64 = 16;

/// Calls `store` with the numbers of all regions, on `writers` threads.
fn share(writers: u64, store: impl Fn(u64) + Sync) {
    std::thread::scope(|scope| {
        for writer in 0..writers {
            let store = &store;
            scope.spawn(move || (writer..REGIONS).step_by(writers as usize).for_each(store));
        }
    });
}

fn measure_writers(criterion: &mut Criterion) {
    let region = image(2310);
    let source = region.raster(region.element()).expect("an image").data();
    // Each key is in another leaf, as most keys are, since they are digests.
    let key = |number: u64| RegionKey([(number * 37) as u8; 16]);
    let mut group = criterion.benchmark_group("writers");
    group.sample_size(10).throughput(Throughput::Bytes(REGIONS * region.bytes()));
    for writers in [1, 2, 4, 8] {
        for (name, settings) in [
            ("folder", FolderSettings::new(FolderKind::Ssd, 1 << 30)),
            ("shared folder", FolderSettings::new(FolderKind::Lustre, 1 << 30)),
            ("scratch folder", FolderSettings::new(FolderKind::Ssd, 1 << 30).scratch()),
        ] {
            let place = folder();
            let tier =
                FolderTier::open(Arc::new(OsFileSystem), place.path(), settings).expect("a new folder");
            group.bench_function(BenchmarkId::new(name, writers), |bencher| {
                let empty = || (0..REGIONS).for_each(|number| assert!(tier.remove(key(number)).is_ok()));
                let store = |number| assert!(tier.insert(key(number), &region).is_ok());
                bencher.iter_batched(empty, |()| share(writers, store), BatchSize::PerIteration);
            });
        }
        let place = folder();
        group.bench_function(BenchmarkId::new("write and fsync", writers), |bencher| {
            let path = |number: u64| place.path().join(number.to_string());
            let empty = || {
                (0..REGIONS).for_each(|number| drop(fs::remove_file(path(number))));
                File::open(place.path()).and_then(|folder| folder.sync_all()).expect("synced");
            };
            let store = |number| {
                let mut file = File::create_new(path(number)).expect("a new file");
                file.write_all(source).and_then(|()| file.sync_all()).expect("written");
            };
            bencher.iter_batched(empty, |()| share(writers, store), BatchSize::PerIteration);
        });
    }
    group.finish();
}

criterion_group!(benches, measure, measure_writers);
criterion_main!(benches);
