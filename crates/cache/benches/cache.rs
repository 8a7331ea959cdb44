//! Measures the cache: traces inserted and looked up per second, data regions stored and loaded, opening and `nearest`.
//!
//! The cache is in the system's folder for temporary files. It syncs nothing, so the bench measures the page cache. Results
//! for regions are bytes in memory per second.

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pleach_cache::{Cache, CacheKey, KeyComponents, Limits, Output, Trace};
use pleach_regions::{DataRegion, Digest, Raster};
use std::path::Path;
use std::time::{Duration, SystemTime};

const TRACES: u32 = 10_000;

/// Returns a trace like that of a segmentation task.
fn trace(number: u32) -> (CacheKey, Trace) {
    let digest = |name: u32| Digest::of_bytes(&(number * 4 + name).to_le_bytes());
    let components = KeyComponents {
        operation: "nuclei.candidates".to_owned(),
        version: 1,
        arguments: vec![("G1".to_owned(), number.to_string()), ("FillHoles".to_owned(), "4".to_owned())],
        inputs: vec![("rc".to_owned(), digest(0)), ("recon".to_owned(), digest(1))],
    };
    let mask = DataRegion::Mask(Raster::filled(4096, 4096, 1, 0).expect("a shape"));
    let outputs = vec![Output::new(&mask, digest(2)), Output::new(&mask, digest(3))];
    (components.key(), Trace { outputs, seconds: 0.65, components, label: None })
}

/// Returns a mask of discs on a grid, with about as many edges as nuclei have. Each `number` yields another mask.
fn mask(number: u32, side_px: u32) -> DataRegion {
    let inside = |x: u32, y: u32| {
        let (dx, dy) = (((x + number) % 29) as i32 - 14, (y % 31) as i32 - 15);
        dx * dx + dy * dy < 100
    };
    let pixels = (0..side_px).flat_map(|y| (0..side_px).map(move |x| if inside(x, y) { 255 } else { 0 }));
    DataRegion::Mask(Raster::new(side_px, side_px, 1, pixels.collect()).expect("of that shape"))
}

/// Returns an image of noise, since tissue compresses hardly better.
fn image(number: u32, side_px: u32) -> DataRegion {
    let mut state = number;
    let noise = std::iter::from_fn(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        Some((state >> 24) as u8)
    });
    let pixels = noise.take((side_px * side_px) as usize).collect();
    DataRegion::Gray8(Raster::new(side_px, side_px, 1, pixels).expect("of that shape"))
}

fn open(path: &Path) -> Cache {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    Cache::open(path, Limits { bytes: 8 << 30, ..Limits::default() }, now).expect("a new folder")
}

fn traces(criterion: &mut Criterion) {
    let all: Vec<(CacheKey, Trace)> = (0..TRACES).map(trace).collect();
    let mut group = criterion.benchmark_group("traces");
    group.sample_size(10).throughput(Throughput::Elements(u64::from(TRACES)));
    let fresh = || {
        let folder = tempfile::tempdir().expect("a folder for temporary files");
        let cache = open(folder.path());
        (folder, cache)
    };
    group.bench_function("insert", |bencher| {
        let insert = |(folder, cache): (tempfile::TempDir, Cache)| {
            all.iter().for_each(|(key, trace)| {
                assert_eq!(cache.insert(*key, trace), pleach_cache::InsertOutcome::New)
            });
            (folder, cache)
        };
        bencher.iter_batched(fresh, insert, BatchSize::PerIteration);
    });
    let (folder, cache) = fresh();
    all.iter()
        .for_each(|(key, trace)| assert_eq!(cache.insert(*key, trace), pleach_cache::InsertOutcome::New));
    group.bench_function("lookup", |bencher| {
        bencher.iter(|| all.iter().filter(|(key, _)| cache.lookup(key).is_some()).count());
    });
    group.bench_function("lookup of what is not there", |bencher| {
        bencher.iter(|| {
            (0..TRACES).filter(|number| cache.lookup(&CacheKey([*number as u8; 32])).is_some()).count()
        });
    });
    let mut wanted = all[0].1.components.clone();
    wanted.arguments[0].1 = "none".to_owned();
    group.bench_function("nearest", |bencher| bencher.iter(|| cache.nearest(&wanted)));
    drop(cache);
    group.bench_function("open", |bencher| bencher.iter(|| open(folder.path())));
    group.finish();
}

fn blobs(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("blobs");
    for (megapixels, side_px) in [(1, 1024), (16, 4096)] {
        for (name, make) in [("mask", mask as fn(u32, u32) -> DataRegion), ("gray8", image)] {
            let regions: Vec<DataRegion> = (0..4).map(|number| make(number, side_px)).collect();
            let digests: Vec<Digest> = regions.iter().map(DataRegion::digest).collect();
            let bytes = regions.iter().map(DataRegion::bytes).sum();
            group.sample_size(10).throughput(Throughput::Bytes(bytes));
            let id = |what: &str| BenchmarkId::new(format!("{what} {name}"), format!("{megapixels} Mpx"));
            let store = |(folder, cache): (tempfile::TempDir, Cache)| {
                for (digest, region) in digests.iter().zip(&regions) {
                    assert_eq!(cache.store(digest, region, ""), pleach_cache::InsertOutcome::New);
                }
                (folder, cache)
            };
            let fresh = || {
                let folder = tempfile::tempdir().expect("a folder for temporary files");
                let cache = open(folder.path());
                (folder, cache)
            };
            group.bench_function(id("store"), |bencher| {
                bencher.iter_batched(fresh, store, BatchSize::PerIteration);
            });
            let (_folder, cache) = store(fresh());
            group.bench_function(id("load"), |bencher| {
                bencher.iter(|| digests.iter().filter(|digest| cache.load(digest).is_some()).count());
            });
        }
    }
    group.finish();
}

criterion_group!(benches, traces, blobs);
criterion_main!(benches);
