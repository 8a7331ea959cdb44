//! Every tier of this crate and every stack of them keeps the contract (`recorder.rs`).

use crate::memory::Memory;
use crate::recorder::{Step, check, steps};
use crate::regions::{AMPLE_BYTES, key, noise, open, open_on, open_settled, open_with, region};
use pleach_regions::MemoryCounter;
use pleach_storage::files::{FileSystem, OsFileSystem};
use pleach_storage::{
    BoundedRam, Durability, EvictionPolicy, FolderKind, FolderSettings, FolderTier, GuardTimes, GuardedTier,
    Tier, TierLevel, TierLocation, TierMaintenance, TierStack, WriteMode,
};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;

/// Bytes of an empty tier in the in-memory file system, plus one block: the root, 2 + 16 + 256 folders, each 4,096 bytes.
const EMPTY_BYTES: u64 = (1 + 2 + 16 + 256 + 1) * 4096;

fn check_folder(
    files: &Arc<dyn FileSystem>,
    path: &Path,
    (kind, pack_below_bytes, durability): (FolderKind, u64, Durability),
    room_bytes: Option<u64>,
    steps: &[Step],
) {
    let empty_bytes = open_on(Arc::clone(files), path, kind).unwrap().held_bytes();
    let capacity_bytes = room_bytes.map_or(AMPLE_BYTES, |room| empty_bytes + room);
    let settings =
        FolderSettings { pack_below_bytes, durability, ..FolderSettings::new(kind, capacity_bytes) };
    check(&|| Box::new(open_settled(files, path, settings)), steps);
}

/// Returns the disk usage of all files and folders, computed independently of the tier.
fn walked_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let about = std::fs::symlink_metadata(path).unwrap();
    let inside = if about.is_dir() {
        std::fs::read_dir(path).unwrap().map(|entry| walked_bytes(&entry.unwrap().path())).sum()
    } else {
        0
    };
    let least_bytes = if about.is_dir() { 0 } else { about.len() };
    (about.blocks() * 512).max(least_bytes) + inside
}

/// Returns any kind of folder, with none, some or all regions packed, durable or scratch.
fn kinds() -> impl Strategy<Value = (FolderKind, u64, Durability)> {
    let kinds = [FolderKind::Ssd, FolderKind::Hdd, FolderKind::Lustre];
    let durability = prop::sample::select(vec![Durability::PowerLoss, Durability::Process]);
    (prop::sample::select(kinds.to_vec()), prop::sample::select(vec![0, 2000, 64 << 10]), durability)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn guarded_tier_keeps_the_contract(steps in steps(), room_bytes in prop::option::of(0..20_000_u64)) {
        let ram = || BoundedRam::new(Arc::new(MemoryCounter::default()), room_bytes.unwrap_or(AMPLE_BYTES));
        check(&|| Box::new(GuardedTier::new(Arc::new(ram()), TierLocation::Ram, GuardTimes::default(), |_| {})), &steps);
    }

    #[test]
    fn ram_tier_keeps_the_contract(steps in steps(), room_bytes in prop::option::of(0..20_000_u64)) {
        check(&|| Box::new(BoundedRam::new(Arc::new(MemoryCounter::default()), room_bytes.unwrap_or(AMPLE_BYTES))), &steps);
    }

    #[test]
    fn folder_tier_on_a_memory_file_system_keeps_the_contract(
        steps in steps(), kind in kinds(), room_bytes in prop::option::of(1..60_000_u64),
    ) {
        let files: Arc<dyn FileSystem> = Arc::new(Memory::default());
        check_folder(&files, Path::new(Memory::TIER), kind, room_bytes, &steps);
    }
}

/// Creates a level with LRU eviction.
fn level(name: &str, tier: impl Tier + 'static, shared: bool) -> TierLevel {
    TierLevel {
        name: name.into(),
        tier: Arc::new(tier),
        policy: EvictionPolicy::Lru,
        write: WriteMode::Back,
        shared,
    }
}

/// Creates a stack of a private and a shared folder in memory, with RAM on top if `ram_bytes` is given.
fn stack(files: &Memory, ram_bytes: Option<u64>, room_bytes: u64) -> TierStack {
    let folder = |name: &str, kind, room_bytes: u64| {
        let path = Path::new(Memory::TIER).join(name);
        let _ = files.create_folder(&path);
        let empty_bytes = open_on(Arc::new(files.clone()), &path, kind).unwrap().held_bytes();
        let settings =
            FolderSettings::new(kind, (EMPTY_BYTES.max(empty_bytes) + room_bytes).min(AMPLE_BYTES));
        FolderTier::open(Arc::new(files.clone()), &path, settings.packed()).unwrap()
    };
    let ram = ram_bytes
        .map(|bytes| level("ram", BoundedRam::new(Arc::new(MemoryCounter::default()), bytes), false));
    let private = level("ssd", folder("ssd", FolderKind::Ssd, room_bytes), false);
    let shared = level("lustre", folder("lustre", FolderKind::Lustre, AMPLE_BYTES), true);
    TierStack::new(ram.into_iter().chain([private, shared]).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn tier_stacks_keep_the_contract(steps in steps(), ram_bytes in prop::option::of(0..20_000_u64), room_bytes in 0..60_000_u64) {
        let files = Memory::default();
        check(&|| Box::new(stack(&files, ram_bytes, room_bytes)), &steps);
    }
}

proptest! {
    // Few cases, since each takes hundreds of fsyncs.
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn folder_tier_on_disk_keeps_the_contract(
        steps in steps(), kind in kinds(), room_bytes in prop::option::of(1..60_000_u64),
    ) {
        let folder = tempfile::tempdir().unwrap();
        check_folder(&(Arc::new(OsFileSystem) as Arc<dyn FileSystem>), folder.path(), kind, room_bytes, &steps);
    }
}

#[test]
fn stored_bytes_equal_the_disk_usage() {
    for kind in [FolderKind::Ssd, FolderKind::Lustre] {
        let folder = tempfile::tempdir().unwrap();
        let settings = FolderSettings { pack_below_bytes: 9000, ..FolderSettings::new(kind, AMPLE_BYTES) };
        let tier = open_with(folder.path(), settings);
        assert_eq!(tier.held_bytes(), walked_bytes(folder.path()));
        for number in 0..60 {
            tier.insert(key(number), &noise(number, 1 + number * 331)).unwrap();
            assert_eq!(tier.held_bytes(), walked_bytes(folder.path()), "{kind:?}");
        }
        (0..60).step_by(2).for_each(|number| assert!(tier.remove(key(number)).unwrap()));
        assert_eq!(tier.held_bytes(), walked_bytes(folder.path()), "{kind:?}");
        tier.compact();
        assert_eq!(tier.held_bytes(), walked_bytes(folder.path()), "{kind:?}");
    }
}

/// Threads insert, read and remove the same few regions. Reads return only their content, and the bytes in use return to
/// those of the empty tier.
#[test]
fn concurrent_use_of_a_tier_keeps_contents_and_accounting() {
    let folder = tempfile::tempdir().unwrap();
    let ram = BoundedRam::new(Arc::new(MemoryCounter::default()), AMPLE_BYTES);
    let private = open(folder.path(), FolderKind::Ssd);
    let place = tempfile::tempdir().unwrap();
    let settings = FolderSettings::new(FolderKind::Ssd, AMPLE_BYTES).packed();
    let packed = open_with(place.path(), settings);
    let common = tempfile::tempdir().unwrap();
    let settings = FolderSettings::new(FolderKind::Lustre, AMPLE_BYTES).packed();
    let shared = open_with(common.path(), settings);
    for tier in [&ram as &dyn Tier, &private, &packed, &shared] {
        let empty_bytes = tier.held_bytes();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    for step in 0..60 {
                        let number = (step * 7 + thread * 3) % 5;
                        match (step + thread) % 3 {
                            0 => drop(tier.insert(key(number), &region(number)).unwrap()),
                            1 => drop(tier.remove(key(number)).unwrap()),
                            _ => {
                                let found = tier.get(key(number)).unwrap();
                                assert!(found.is_none_or(|found| found == region(number)));
                            }
                        }
                    }
                });
            }
        });
        for key in tier.list().unwrap() {
            assert!(tier.get(key).unwrap().is_some() && tier.remove(key).unwrap());
        }
        assert_eq!(tier.held_bytes(), empty_bytes);
    }
    drop(private);
    assert_eq!(open(folder.path(), FolderKind::Ssd).list().unwrap(), []);
}
