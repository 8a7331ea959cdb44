//! Measures 1 million small packed regions in one folder: storing, memory, listing, opening, removing and compacting. Each
//! step runs once, since it changes the folder for the next step.
//!
//! `PLEACH_BENCH_REGIONS` sets the number of regions (default: 1,000,000), `PLEACH_BENCH_FOLDER` the parent folder.

#![expect(clippy::print_stdout, reason = "a bench prints")]

use pleach_regions::{DataRegion, RegionKey, Table};
use pleach_storage::files::OsFileSystem;
use pleach_storage::{
    EvictionPolicy, FolderKind, FolderSettings, FolderTier, Tier, TierLevel, TierMaintenance, TierStack,
    WriteMode,
};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// 64 threads store at the same time, so that one fsync serves many of them.
const THREADS: u64 = 64;

fn key(number: u64) -> RegionKey {
    // Keys are digests, so all of their bytes must vary.
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    RegionKey(bytes)
}

fn region(number: u64) -> Arc<DataRegion> {
    let columns = [("dice", number as f64), ("jaccard", 0.5), ("nuclei", 812.0)];
    Arc::new(DataRegion::Table(Table::new(columns)))
}

/// Returns the resident set size of this process in bytes. Returns 0 if it is unknown.
fn resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.split_whitespace().next().and_then(|number| number.parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn open(path: &Path) -> FolderTier {
    let settings = FolderSettings::new(FolderKind::Ssd, 20 << 30).packed();
    FolderTier::open(Arc::new(OsFileSystem), path, settings).expect("a new folder")
}

fn step<T>(what: &str, count: u64, act: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let done = act();
    let seconds = began.elapsed().as_secs_f64();
    println!("{what}: {seconds:.2} s, {:.0} a second", count as f64 / seconds);
    done
}

fn main() {
    let count: u64 =
        std::env::var("PLEACH_BENCH_REGIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(1_000_000);
    let place = std::env::var_os("PLEACH_BENCH_FOLDER").map_or_else(std::env::temp_dir, Into::into);
    let folder = tempfile::tempdir_in(place).expect("a folder that can be written to");
    let tier = open(folder.path());
    let empty_bytes = tier.held_bytes();
    step("store", count, || {
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let tier = &tier;
                scope.spawn(move || {
                    for number in (thread..count).step_by(THREADS as usize) {
                        tier.insert(key(number), &region(number)).expect("room");
                    }
                });
            }
        });
    });
    println!("on disk: {:.1} bytes a region", (tier.held_bytes() - empty_bytes) as f64 / count as f64);
    drop(tier);
    let before = resident_bytes();
    let tier = step("open", count, || open(folder.path()));
    println!("index: {:.0} bytes a region", (resident_bytes() - before) as f64 / count as f64);
    let listed = step("list", count, || tier.list().expect("listed"));
    assert_eq!(listed.len() as u64, count);
    drop(listed);
    step("get 10 000", 10_000, || {
        for number in (0..count).step_by((count / 10_000).max(1) as usize) {
            assert!(tier.get(key(number)).expect("whole").is_some());
        }
    });
    let before = resident_bytes();
    let tier = Arc::new(tier);
    let level = TierLevel {
        name: "ssd".into(),
        tier: Arc::clone(&tier) as Arc<dyn Tier>,
        policy: EvictionPolicy::Lru,
        write: WriteMode::Back,
        shared: false,
    };
    let stack = step("enter into a stack", count, || TierStack::new(vec![level]));
    println!("stack: {:.0} bytes a region", (resident_bytes() - before) as f64 / count as f64);
    step("remove every other", count / 2, || {
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                let stack = &stack;
                scope.spawn(move || {
                    for number in (thread * 2..count).step_by(THREADS as usize * 2) {
                        stack.remove(key(number)).expect("removed");
                    }
                });
            }
        });
    });
    let rewritten = step("compact", count / 2, || tier.compact());
    println!(
        "{rewritten} files rewritten, {:.1} bytes a region",
        (tier.held_bytes() - empty_bytes) as f64 / (count / 2) as f64
    );
}
