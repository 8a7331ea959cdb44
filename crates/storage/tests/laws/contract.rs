//! What every tier has to do, against a recorder that is a plain map.

use crate::memory::Memory;
use crate::regions::{AMPLE_BYTES, key, noise, open, open_on, region};
use pleach_regions::{DataRegion, Ledger, RegionKey};
use pleach_storage::files::{Disk, Files};
use pleach_storage::{
    BoundedRam, Durability, FolderKind, FolderSettings, FolderTier, Inserted, Level, Policy, Tier, TierError,
    TierStack, WriteMode,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// What the folders of a tier without regions take in memory, and one block.
const EMPTY_BYTES: u64 = (1 + 2 + 16 + 256 + 1) * 4096;

/// One thing to do with the region of a number.
#[derive(Clone, Copy, Debug)]
enum Step {
    Insert(u32),
    /// Another region under the key of this one: the first stays.
    InsertOther(u32),
    Get(u32),
    Remove(u32),
    Contains(u32),
    List,
    /// Closes the tier and opens it again, if it survives that.
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let number = 0..12_u32;
    let step = prop_oneof![
        4 => number.clone().prop_map(Step::Insert),
        1 => number.clone().prop_map(Step::InsertOther),
        2 => number.clone().prop_map(Step::Get),
        2 => number.clone().prop_map(Step::Remove),
        1 => number.prop_map(Step::Contains),
        1 => Just(Step::List),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..40)
}

/// Makes a tier; called again, one that holds what the last one held, which is closed by then.
type Open<'a> = &'a dyn Fn() -> Box<dyn Tier>;

/// Does all steps and compares every answer. What a tier may refuse is what exceeds its capacity; it then is as before.
fn check(open: Open<'_>, steps: &[Step]) {
    let mut tier = Some(open());
    let empty_bytes = tier.as_ref().unwrap().held_bytes();
    let mut recorder: BTreeMap<RegionKey, Arc<DataRegion>> = BTreeMap::new();
    for step in steps {
        let held = tier.as_ref().unwrap();
        match *step {
            Step::Insert(number) | Step::InsertOther(number) => {
                let other = matches!(step, Step::InsertOther(_));
                let (key, region) = (key(number), region(if other { number + 12 } else { number }));
                match held.insert(key, &region) {
                    Ok(inserted) => {
                        let known = recorder.contains_key(&key);
                        assert_eq!(inserted, if known { Inserted::Known } else { Inserted::New });
                        recorder.entry(key).or_insert(region);
                    }
                    Err(TierError::Full { needed_bytes, held_bytes, capacity_bytes, .. }) => {
                        assert!(held_bytes + needed_bytes > capacity_bytes && !recorder.contains_key(&key));
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            Step::Get(number) => {
                assert_eq!(held.get(key(number)).unwrap().as_ref(), recorder.get(&key(number)))
            }
            Step::Remove(number) => {
                assert_eq!(held.remove(key(number)).unwrap(), recorder.remove(&key(number)).is_some());
            }
            Step::Contains(number) => {
                assert_eq!(held.contains(key(number)).unwrap(), recorder.contains_key(&key(number)));
            }
            Step::List => {}
            Step::Reopen if held.durability() == Durability::Process => {}
            Step::Reopen => {
                let held_bytes = held.held_bytes();
                drop(tier.take());
                tier = Some(open());
                assert_eq!(tier.as_ref().unwrap().held_bytes(), held_bytes, "bytes counted anew");
            }
        }
        let held = tier.as_ref().unwrap();
        assert!(held.list().unwrap().iter().eq(recorder.keys()), "{step:?}");
        assert!(held.held_bytes() <= held.capacity_bytes());
    }
    let held = tier.unwrap();
    for (key, region) in &recorder {
        assert_eq!(held.get(*key).unwrap().as_ref(), Some(region));
        assert!(held.remove(*key).unwrap());
    }
    // Folders do not become smaller; those here need not have become larger.
    assert_eq!(held.held_bytes(), empty_bytes);
}

fn check_folder(
    files: &Arc<dyn Files>,
    path: &Path,
    (kind, pack_below_bytes): (FolderKind, u64),
    room_bytes: Option<u64>,
    steps: &[Step],
) {
    let empty_bytes = open_on(Arc::clone(files), path, kind).unwrap().held_bytes();
    let capacity_bytes = room_bytes.map_or(AMPLE_BYTES, |room| empty_bytes + room);
    let settings = FolderSettings { pack_below_bytes, ..FolderSettings::new(kind, capacity_bytes) };
    check(&|| Box::new(FolderTier::open(Arc::clone(files), path, settings).unwrap()), steps);
}

/// What all files and folders take of the disk, by another way.
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

/// Any kind of folder, with none, some or all regions packed.
fn kinds() -> impl Strategy<Value = (FolderKind, u64)> {
    let kinds = [FolderKind::Ssd, FolderKind::Hdd, FolderKind::Lustre];
    (prop::sample::select(kinds.to_vec()), prop::sample::select(vec![0, 2000, 64 << 10]))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn ram(steps in steps(), room_bytes in prop::option::of(0..20_000_u64)) {
        check(&|| Box::new(BoundedRam::new(Arc::new(Ledger::default()), room_bytes.unwrap_or(AMPLE_BYTES))), &steps);
    }

    #[test]
    fn folders_of_a_file_system_in_memory(
        steps in steps(), kind in kinds(), room_bytes in prop::option::of(1..60_000_u64),
    ) {
        let files: Arc<dyn Files> = Arc::new(Memory::default());
        check_folder(&files, Path::new(Memory::TIER), kind, room_bytes, &steps);
    }
}

/// A level that lets others go for what is new.
fn level(name: &str, tier: impl Tier + 'static, shared: bool) -> Level {
    Level { name: name.into(), tier: Arc::new(tier), policy: Policy::Lru, write: WriteMode::Back, shared }
}

/// Folders of a file system in memory, a private one above a shared one; perhaps RAM above both.
fn stack(files: &Memory, ram_bytes: Option<u64>, room_bytes: u64) -> TierStack {
    let folder = |name: &str, kind, room_bytes: u64| {
        let path = Path::new(Memory::TIER).join(name);
        let _ = files.create_folder(&path);
        let empty_bytes = open_on(Arc::new(files.clone()), &path, kind).unwrap().held_bytes();
        let settings =
            FolderSettings::new(kind, (EMPTY_BYTES.max(empty_bytes) + room_bytes).min(AMPLE_BYTES));
        FolderTier::open(Arc::new(files.clone()), &path, settings.packed()).unwrap()
    };
    let ram = ram_bytes.map(|bytes| level("ram", BoundedRam::new(Arc::new(Ledger::default()), bytes), false));
    let private = level("ssd", folder("ssd", FolderKind::Ssd, room_bytes), false);
    let shared = level("lustre", folder("lustre", FolderKind::Lustre, AMPLE_BYTES), true);
    TierStack::new(ram.into_iter().chain([private, shared]).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn stacks(steps in steps(), ram_bytes in prop::option::of(0..20_000_u64), room_bytes in 0..60_000_u64) {
        let files = Memory::default();
        check(&|| Box::new(stack(&files, ram_bytes, room_bytes)), &steps);
    }
}

proptest! {
    // Each takes hundreds of syncs.
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn folders_on_disk(
        steps in steps(), kind in kinds(), room_bytes in prop::option::of(1..60_000_u64),
    ) {
        let folder = tempfile::tempdir().unwrap();
        check_folder(&(Arc::new(Disk) as Arc<dyn Files>), folder.path(), kind, room_bytes, &steps);
    }
}

#[test]
fn what_is_held_is_what_the_disk_says() {
    let folder = tempfile::tempdir().unwrap();
    let settings =
        FolderSettings { pack_below_bytes: 9000, ..FolderSettings::new(FolderKind::Ssd, AMPLE_BYTES) };
    let tier = FolderTier::open(Arc::new(Disk), folder.path(), settings).unwrap();
    assert_eq!(tier.held_bytes(), walked_bytes(folder.path()));
    for number in 0..60 {
        tier.insert(key(number), &noise(number, 1 + number * 331)).unwrap();
        assert_eq!(tier.held_bytes(), walked_bytes(folder.path()));
    }
    (0..60).step_by(2).for_each(|number| assert!(tier.remove(key(number)).unwrap()));
    assert_eq!(tier.held_bytes(), walked_bytes(folder.path()));
}

/// Threads that insert, read and remove the same few regions: every answer is one that some order gives, and the books
/// are right in the end.
#[test]
fn many_threads() {
    let folder = tempfile::tempdir().unwrap();
    let ram = BoundedRam::new(Arc::new(Ledger::default()), AMPLE_BYTES);
    let private = open(folder.path(), FolderKind::Ssd);
    let place = tempfile::tempdir().unwrap();
    let settings = FolderSettings::new(FolderKind::Ssd, AMPLE_BYTES).packed();
    let packed = FolderTier::open(Arc::new(Disk), place.path(), settings).unwrap();
    for tier in [&ram as &dyn Tier, &private, &packed] {
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
