//! Packed regions in a shared folder with several writers. Each tier reads the records of the other writers without being
//! reopened, while writers die, remove and compact.

use crate::gate::Gate;
use crate::memory::Memory;
use crate::regions::{AMPLE_BYTES, key, noise, region};
use crate::stale::Stale;
use pleach_storage::files::{FileSystem, OsFileSystem};
use pleach_storage::{FolderKind, FolderSettings, FolderTier, Inserted, Tier, TierMaintenance};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

fn open_in(files: Arc<dyn FileSystem>, path: &Path, capacity_bytes: u64) -> FolderTier {
    let settings = FolderSettings::new(FolderKind::Lustre, capacity_bytes).packed();
    FolderTier::open(files, path, settings).unwrap()
}

fn open(path: &Path) -> FolderTier {
    open_in(Arc::new(OsFileSystem), path, AMPLE_BYTES)
}

fn segments(path: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(path.join("pack")).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<PathBuf> =
        all.filter(|path| path.extension().is_some_and(|end| end == "pack")).collect();
    all.sort();
    all
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Insert(u32),
    Get(u32),
    Remove(u32),
    Contains(u32),
    List,
    Compact,
    Reopen,
}

/// Returns steps, each with the index of the tier that performs it.
fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
    let number = 0..14_u32;
    let step = prop_oneof![
        5 => number.clone().prop_map(Step::Insert),
        2 => number.clone().prop_map(Step::Get),
        4 => number.clone().prop_map(Step::Remove),
        1 => number.prop_map(Step::Contains),
        1 => Just(Step::List),
        1 => Just(Step::Compact),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec((0..3_usize, step), 1..60)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Three tiers on one folder return the same results as a single tier.
    #[test]
    fn several_writers_keep_the_tier_contract(steps in steps()) {
        let files = Memory::default();
        // Segments of 64 KiB, so that each writer has several.
        let open = || open_in(Arc::new(files.clone()), Path::new(Memory::TIER), 4 << 20);
        let mut tiers = [open(), open(), open()];
        let empty_bytes = tiers[0].held_bytes();
        let mut recorder = BTreeMap::new();
        for (who, step) in steps {
            let tier = &tiers[who];
            match step {
                Step::Insert(number) => {
                    let known = recorder.insert(key(number), region(number)).is_some();
                    let expected = if known { Inserted::AlreadyPresent } else { Inserted::New };
                    prop_assert_eq!(tier.insert(key(number), &region(number)).unwrap(), expected);
                }
                Step::Get(number) => {
                    assert_eq!(tier.get(key(number)).unwrap().as_ref(), recorder.get(&key(number)));
                }
                Step::Remove(number) => {
                    prop_assert_eq!(tier.remove(key(number)).unwrap(), recorder.remove(&key(number)).is_some());
                }
                Step::Contains(number) => {
                    prop_assert_eq!(tier.contains(key(number)).unwrap(), recorder.contains_key(&key(number)));
                }
                Step::List => prop_assert!(tier.list().unwrap().iter().eq(recorder.keys())),
                Step::Compact => {
                    tier.compact();
                }
                // Another tier may acquire its writer number before the new one writes.
                Step::Reopen => tiers[who] = open(),
            }
        }
        for tier in &tiers {
            prop_assert!(tier.list().unwrap().iter().eq(recorder.keys()));
            for (key, region) in &recorder {
                assert_eq!(tier.get(*key).unwrap().as_ref(), Some(region));
            }
        }
        let held = tiers.each_ref().map(Tier::held_bytes);
        prop_assert_eq!(held, [held[0]; 3]);
        recorder.keys().for_each(|key| assert!(tiers[0].remove(*key).unwrap()));
        // 3 rounds: a tombstone is needed until the segment with its record is removed, and that segment may hold another
        // needed tombstone.
        for _ in 0..3 {
            for tier in &tiers {
                tier.compact();
            }
        }
        tiers.iter().for_each(|tier| assert_eq!(tier.list().unwrap(), []));
        prop_assert_eq!(tiers.each_ref().map(Tier::held_bytes), [empty_bytes; 3]);
    }
}

/// A writer killed during a write does not hide its reported records. The next writer truncates the torn record and appends
/// to the same segment.
#[test]
fn writer_killed_within_a_record_loses_only_that_record() {
    for torn_bytes in [1, 51, 52, 300] {
        let folder = tempfile::tempdir().unwrap();
        let watcher = open(folder.path());
        let owner = open(folder.path());
        for number in 0..3 {
            owner.insert(key(number), &noise(number, 700)).unwrap();
        }
        drop(owner);
        let [path] = segments(folder.path()).try_into().unwrap();
        let whole = fs::read(&path).unwrap();
        fs::File::options().append(true).open(&path).unwrap().write_all(&whole[..torn_bytes]).unwrap();
        let verify = |tier: &FolderTier, count: u32| {
            for number in 0..count {
                assert_eq!(
                    tier.get(key(number)).unwrap(),
                    Some(noise(number, 700)),
                    "{torn_bytes}, {number}"
                );
            }
            assert_eq!(tier.list().unwrap().len(), count as usize, "{torn_bytes}");
        };
        verify(&watcher, 3);
        let next = open(folder.path());
        assert_eq!(fs::read(&path).unwrap(), whole, "what was never whole is cut off");
        next.insert(key(3), &noise(3, 700)).unwrap();
        [&watcher, &next].into_iter().for_each(|tier| verify(tier, 4));
        assert_eq!(segments(folder.path()), [path]);
    }
}

/// A region removed by a process that did not write it stays removed after deaths, reopens and compactions.
#[test]
fn region_removed_by_another_writer_stays_removed() {
    let folder = tempfile::tempdir().unwrap();
    let [owner, remover] = [(); 2].map(|()| open(folder.path()));
    for number in 0..4 {
        owner.insert(key(number), &noise(number, 700)).unwrap();
    }
    remover.insert(key(9), &noise(9, 700)).unwrap();
    assert!(remover.remove(key(1)).unwrap());
    let expected = [key(0), key(2), key(3), key(9)];
    assert_eq!((owner.get(key(1)).unwrap(), owner.list().unwrap()), (None, expected.to_vec()));
    // Another process compacts the segment of the remover, and copies the tombstone.
    drop(remover);
    assert!(owner.remove(key(9)).unwrap());
    assert_eq!(owner.insert(key(9), &noise(9, 700)).unwrap(), Inserted::New);
    owner.compact();
    drop(owner);
    let next = open(folder.path());
    assert_eq!((next.get(key(1)).unwrap(), next.list().unwrap()), (None, expected.to_vec()));
    // A region stored again has a new id, so the tombstone does not bury it.
    assert_eq!(next.insert(key(1), &noise(1, 700)).unwrap(), Inserted::New);
    next.compact();
    drop(next);
    assert_eq!(open(folder.path()).get(key(1)).unwrap(), Some(noise(1, 700)));
}

/// Three tiers insert, read, remove and compact at the same time. Only one thread at a time uses a region, so each result is
/// known.
#[test]
fn concurrent_compaction_keeps_stored_regions() {
    const NUMBERS: usize = 40;
    const STEPS: usize = 250;
    let folder = tempfile::tempdir().unwrap();
    let stored: Vec<Mutex<bool>> = (0..NUMBERS).map(|_| Mutex::new(false)).collect();
    // Segments of 64 KiB.
    let tiers = [(); 3].map(|()| open_in(Arc::new(OsFileSystem), folder.path(), 4 << 20));
    let gone = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for (who, tier) in tiers.iter().enumerate() {
            let (stored, gone) = (&stored, &gone);
            scope.spawn(move || {
                let mut state = 0x9e37_79b9_u32 ^ (who as u32) << 7;
                for step in 0..STEPS {
                    state ^= state << 13;
                    state ^= state >> 17;
                    state ^= state << 5;
                    let number = state >> 8;
                    let mut is_stored = stored[number as usize % NUMBERS].lock().unwrap();
                    let number = number % NUMBERS as u32;
                    match state % 8 {
                        0..3 => {
                            let inserted = tier.insert(key(number), &noise(number, 6000)).unwrap();
                            assert_eq!(inserted == Inserted::AlreadyPresent, *is_stored, "{who}, {step}");
                            *is_stored = true;
                        }
                        3..5 => {
                            assert_eq!(tier.remove(key(number)).unwrap(), *is_stored, "{who}, {step}");
                            *is_stored = false;
                        }
                        _ => {
                            let expected = is_stored.then(|| noise(number, 6000));
                            assert_eq!(tier.get(key(number)).unwrap(), expected, "{who}, {step}");
                        }
                    }
                    drop(is_stored);
                    if step % 10 == who {
                        gone.fetch_add(tier.compact() as u32, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert!(gone.into_inner() > 0);
    for tier in &tiers {
        for number in 0..NUMBERS as u32 {
            let is_stored = *stored[number as usize].lock().unwrap();
            assert_eq!(tier.get(key(number)).unwrap(), is_stored.then(|| noise(number, 6000)));
        }
    }
}

/// With stale reads, as on network file systems, a tier reopens the files before it reports a region as missing.
#[test]
fn stale_reads_are_repeated_before_a_region_is_missing() {
    let files = Memory::default();
    let [one, other] = [(); 2]
        .map(|()| open_in(Arc::new(Stale(Arc::new(files.clone()))), Path::new(Memory::TIER), AMPLE_BYTES));
    for number in 0..20 {
        let (writer, reader) = if number % 3 == 0 { (&one, &other) } else { (&other, &one) };
        assert_eq!(reader.get(key(number)).unwrap(), None);
        writer.insert(key(number), &noise(number, 700)).unwrap();
        assert_eq!(reader.get(key(number)).unwrap(), Some(noise(number, 700)));
    }
    for number in (0..20).step_by(2) {
        assert!(one.remove(key(number)).unwrap());
    }
    let expected: Vec<u32> = (1..20).step_by(2).collect();
    for tier in [&one, &other] {
        let mut listed = tier.list().unwrap();
        listed.sort_by_key(|key| key.0[15]);
        assert_eq!(listed, expected.iter().map(|number| key(*number)).collect::<Vec<_>>());
    }
}

/// Without locks a tier stores each region in a file of its own. It reads regions packed by others, but cannot remove them.
#[test]
fn folder_without_locks_packs_nothing() {
    let files = Memory::default();
    let packer = open_in(Arc::new(files.clone()), Path::new(Memory::TIER), AMPLE_BYTES);
    packer.insert(key(1), &noise(1, 700)).unwrap();
    let without = Gate::new(files.clone(), |_, _| {}).without_locks();
    let tier = open_in(Arc::new(without), Path::new(Memory::TIER), AMPLE_BYTES);
    assert_eq!(tier.get(key(1)).unwrap(), Some(noise(1, 700)));
    tier.insert(key(2), &noise(2, 700)).unwrap();
    assert!(files.metadata(&tier.path(key(2))).is_ok());
    assert_eq!(packer.get(key(2)).unwrap(), Some(noise(2, 700)));
    assert!(tier.remove(key(2)).unwrap());
    let error = tier.remove(key(1)).unwrap_err().to_string();
    assert!(error.contains("the file system has no locks"), "{error}");
    assert_eq!(tier.get(key(1)).unwrap(), Some(noise(1, 700)));
}
