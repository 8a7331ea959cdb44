//! Measures small regions in a shared folder, each in a file of its own or packed, with 1 or 2 processes and 1 to 32
//! threads.
//!
//! `PLEACH_BENCH_REGIONS` sets the number of regions (default: 4,000), `PLEACH_BENCH_FOLDER` the parent folder. Each process
//! is simulated by a tier with its own locks, open files and index.

#![expect(clippy::print_stdout, reason = "a bench prints")]

use pleach_regions::{DataRegion, Raster, RegionKey};
use pleach_storage::files::OsFileSystem;
use pleach_storage::{FolderKind, FolderSettings, FolderTier, Tier};
use std::sync::Arc;
use std::time::Instant;

/// Threads in the runs with many threads.
const THREADS: u64 = 32;

fn key(number: u64) -> RegionKey {
    // Keys are digests, so all of their bytes must vary.
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    RegionKey(bytes)
}

/// Returns a region of 768 bytes of noise.
fn region(number: u64) -> Arc<DataRegion> {
    let mut state = number | 1;
    let noise = std::iter::from_fn(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        Some((state >> 56) as u8)
    });
    Arc::new(DataRegion::Bgr8(Raster::new(16, 16, 3, noise.take(768).collect()).expect("of that shape")))
}

fn rate(count: u64, act: impl FnOnce()) -> f64 {
    let began = Instant::now();
    act();
    count as f64 / began.elapsed().as_secs_f64()
}

/// Stores the regions with `threads` threads, spread over the tiers. Returns the regions stored per second.
fn store(tiers: &[FolderTier], threads: u64, numbers: std::ops::Range<u64>) -> f64 {
    rate(numbers.end - numbers.start, || {
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (tier, numbers) = (&tiers[thread as usize % tiers.len()], numbers.clone());
                scope.spawn(move || {
                    for number in numbers.skip(thread as usize).step_by(threads as usize) {
                        tier.insert(key(number), &region(number)).expect("room");
                    }
                });
            }
        });
    })
}

fn read(tier: &FolderTier, numbers: std::ops::Range<u64>) -> f64 {
    rate(numbers.end - numbers.start, || {
        for number in numbers {
            assert!(tier.get(key(number)).expect("whole").is_some());
        }
    })
}

fn main() {
    let count: u64 =
        std::env::var("PLEACH_BENCH_REGIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(4000);
    let place = std::env::var_os("PLEACH_BENCH_FOLDER").map_or_else(std::env::temp_dir, Into::into);
    let shared = FolderSettings::new(FolderKind::Lustre, 4 << 30);
    for (name, settings) in [("a file each", shared), ("packed", shared.packed())] {
        for (processes, threads) in [(1, 1), (1, THREADS), (2, 2), (2, THREADS)] {
            let folder = tempfile::tempdir_in(&place).expect("a folder that can be written to");
            let open =
                || FolderTier::open(Arc::new(OsFileSystem), folder.path(), settings).expect("a new folder");
            let tiers: Vec<FolderTier> = (0..processes).map(|_| open()).collect();
            let reader = open();
            let empty_bytes = reader.held_bytes();
            let stored = store(&tiers, threads, 0..count);
            let (own, others) = (read(&tiers[0], 0..count), read(&reader, 0..count));
            reader.list().expect("listed");
            let bytes = (reader.held_bytes() - empty_bytes) / count;
            let removed = rate(count, || {
                (0..count).for_each(|number| assert!(tiers[0].remove(key(number)).expect("there")))
            });
            println!(
                "{name}, {processes} processes, {threads} threads: stored {stored:.0} a second, read {own:.0}, by another \
                 process {others:.0}, removed one by one {removed:.0}; {bytes} bytes each"
            );
        }
    }
}
