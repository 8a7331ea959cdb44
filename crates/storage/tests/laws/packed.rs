//! Packed regions: compaction frees dead bytes, a corrupt record hides no other record, and one fsync serves many writers.

use crate::gate::Gate;
use crate::memory::Memory;
use crate::regions::{AMPLE_BYTES, key, noise, open, open_with, region};
use pleach_storage::files::FileSystem;
use pleach_storage::{FolderKind, FolderSettings, FolderTier, Inserted, RegionLoss, Tier, TierError};
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};

/// A private folder and a shared one.
const KINDS: [FolderKind; 2] = [FolderKind::Ssd, FolderKind::Lustre];

fn packed(path: &Path, kind: FolderKind) -> FolderTier {
    let settings = FolderSettings::new(kind, AMPLE_BYTES).packed();
    open_with(path, settings)
}

fn segments(path: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(path.join("pack")).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<PathBuf> =
        all.filter(|path| path.extension().is_some_and(|end| end == "pack")).collect();
    all.sort();
    all
}

#[test]
fn many_regions_take_one_file() {
    for (kind, other) in [(KINDS[0], KINDS[1]), (KINDS[1], KINDS[0])] {
        let folder = tempfile::tempdir().unwrap();
        let tier = packed(folder.path(), kind);
        let empty_bytes = tier.held_bytes();
        for number in 0..200 {
            tier.insert(key(number), &noise(number, 500)).unwrap();
        }
        assert_eq!(segments(folder.path()).len(), 1);
        let bytes = tier.held_bytes() - empty_bytes;
        // A region in its own file takes a block of 4,096 bytes. A packed one takes its content, a record header of 52 bytes
        // and an encoding header of 48 bytes. A shared folder also preallocates space for tombstones.
        let stones = if kind.is_shared() { AMPLE_BYTES / 64 / 16 * 9 / 8 } else { 0 };
        assert!((200 * 600..200 * 660 + 8192 + stones).contains(&bytes), "{bytes} bytes");
        assert_eq!(tier.insert(key(7), &noise(7, 500)).unwrap(), Inserted::AlreadyPresent);
        // A larger region has a file of its own.
        tier.insert(key(1000), &noise(1000, 100_000)).unwrap();
        assert!(tier.path(key(1000)).exists() && !tier.path(key(7)).exists());
        drop(tier);
        // A tier that packs nothing and a tier of the other kind find all regions.
        for open in [|path: &Path, kind, _| open(path, kind), |path: &Path, _, other| packed(path, other)] {
            let tier = open(folder.path(), kind, other);
            assert_eq!((tier.list().unwrap().len(), tier.get(key(7)).unwrap()), (201, Some(noise(7, 500))));
        }
        let tier = packed(folder.path(), other);
        assert!(tier.remove(key(7)).unwrap());
        tier.insert(key(2000), &noise(2000, 500)).unwrap();
        drop(tier);
        let tier = packed(folder.path(), kind);
        assert_eq!((tier.get(key(7)).unwrap(), tier.get(key(2000)).unwrap()), (None, Some(noise(2000, 500))));
        let left = (0..200).filter(|number| *number != 7).chain([1000, 2000]);
        left.for_each(|number| assert!(tier.remove(key(number)).unwrap(), "{number}"));
        assert_eq!((segments(folder.path()), tier.held_bytes()), (vec![], empty_bytes), "{kind:?}");
    }
}

/// Removed regions between live ones free their space. The tier finds the same regions and bytes after it is reopened.
#[test]
fn compaction_frees_dead_bytes() {
    for kind in KINDS {
        let folder = tempfile::tempdir().unwrap();
        let empty_bytes = open(folder.path(), kind).held_bytes();
        let settings = FolderSettings::new(kind, empty_bytes + 1_000_000).packed();
        let tier = open_with(folder.path(), settings);
        let fill = |from: u32| {
            let mut number = from;
            while tier.insert(key(number), &noise(number, 20_000)).is_ok() {
                assert!(tier.held_bytes() <= settings.capacity_bytes);
                number += 1;
            }
            number - from
        };
        let count = fill(0);
        assert!(count > 40, "{count}");
        // Removes every other region, so that every segment keeps live records.
        (0..count).step_by(2).for_each(|number| assert!(tier.remove(key(number)).unwrap()));
        assert!(tier.free_bytes() > 400_000);
        let again = fill(1000);
        assert!(again >= count / 2 - 4, "{again} of {count}");
        let expected = |number: u32| if number < 1000 { number % 2 == 1 } else { true };
        let verify = |tier: &FolderTier| {
            for number in (0..count).chain(1000..1000 + again) {
                let found = tier.get(key(number)).unwrap();
                assert_eq!(found, expected(number).then(|| noise(number, 20_000)), "{number}");
            }
        };
        verify(&tier);
        let held_bytes = tier.held_bytes();
        drop(tier);
        let tier = open_with(folder.path(), settings);
        verify(&tier);
        assert_eq!(tier.held_bytes(), held_bytes, "{kind:?}");
    }
}

proptest! {
    // Few cases, since each opens a folder twice.
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn damage_hides_one_region(
        place: prop::sample::Index, bit in 0..8_u8, is_open: bool, kind in prop::sample::select(&KINDS),
    ) {
        const COUNT: u32 = 12;
        let folder = tempfile::tempdir().unwrap();
        let tier = packed(folder.path(), kind);
        for number in 0..COUNT {
            tier.insert(key(number), &region(number)).unwrap();
        }
        let held = is_open.then_some(tier);
        let [path]: [PathBuf; 1] = segments(folder.path()).try_into().unwrap();
        let mut bytes = fs::read(&path).unwrap();
        let place = place.index(bytes.len());
        bytes[place] ^= 1 << bit;
        fs::write(&path, &bytes).unwrap();
        let tier = held.unwrap_or_else(|| packed(folder.path(), kind));
        let mut gone = Vec::new();
        for number in 0..COUNT {
            match tier.get(key(number)) {
                Ok(Some(found)) => prop_assert_eq!(found, region(number)),
                Ok(None) => gone.push(number),
                Err(TierError::Lost { source: RegionLoss::Damaged { quarantined: Some(away), .. }, .. }) => {
                    prop_assert!(away.exists());
                    prop_assert_eq!(tier.get(key(number)).unwrap(), None);
                    gone.push(number);
                }
                Err(error) => panic!("{error}"),
            }
        }
        prop_assert!(gone.len() <= 1, "{:?}", gone);
        for number in gone {
            prop_assert_eq!(tier.insert(key(number), &region(number)).unwrap(), Inserted::New);
        }
        drop(tier);
        let tier = packed(folder.path(), kind);
        for number in 0..COUNT {
            // A record that was not read while the folder was open is found corrupt now.
            let found = tier.get(key(number));
            prop_assert!(found.is_err() || found.unwrap().is_none_or(|found| found == region(number)));
        }
    }
}

/// Threads that append during an fsync are all served by the next one.
#[test]
fn one_fsync_serves_all_waiting_writers() {
    const WRITERS: usize = 8;
    for kind in KINDS {
        let counts = Arc::new((Mutex::new((0, 0)), Condvar::new()));
        let of_gate = Arc::clone(&counts);
        let gate = Gate::new(Memory::default(), move |what, path| {
            if path.extension().is_none_or(|end| end != "pack") {
                return;
            }
            let (count, changed) = &*of_gate;
            let mut count = count.lock().unwrap();
            match what {
                "write" => count.0 += 1,
                "sync" => {
                    count.1 += 1;
                    // Blocks the first fsync until all threads have written.
                    while count.0 < WRITERS {
                        count = changed.wait(count).unwrap();
                    }
                }
                _ => {}
            }
            changed.notify_all();
        });
        let settings = FolderSettings::new(kind, AMPLE_BYTES).packed();
        let tier = FolderTier::open(Arc::new(gate), Path::new(Memory::TIER), settings).unwrap();
        std::thread::scope(|scope| {
            for number in 0..WRITERS as u32 {
                let tier = &tier;
                scope.spawn(move || tier.insert(key(number), &noise(number, 100)).unwrap());
            }
        });
        let (written, synced) = *counts.0.lock().unwrap();
        assert_eq!((written, tier.list().unwrap().len()), (WRITERS, WRITERS));
        assert!(synced <= 2, "{synced} waits");
    }
}

/// A region is not listed if its insertion failed after any change. Later insertions succeed, or are refused once an fsync
/// has failed.
#[test]
fn insertions_that_fail_anywhere_leave_nothing() {
    for kind in KINDS {
        let settings = FolderSettings::new(kind, AMPLE_BYTES).packed();
        let open = |files: &Memory| {
            FolderTier::open(Arc::new(files.clone()), Path::new(Memory::TIER), settings).unwrap()
        };
        // An insertion writes and syncs. In a shared folder it also publishes its watermark.
        let needed = if kind.is_shared() { 3 } else { 2 };
        for changes in 0..6 {
            let files = Memory::default();
            let tier = open(&files);
            tier.insert(key(1), &noise(1, 50)).unwrap();
            files.kill_after(Some(changes));
            let inserted = tier.insert(key(3), &noise(3, 900));
            files.kill_after(None);
            assert_eq!(inserted.is_ok(), changes >= needed, "{changes} changes: {inserted:?}");
            assert_eq!(tier.contains(key(3)).unwrap(), inserted.is_ok());
            let is_written_only = (1..needed).contains(&changes);
            match tier.insert(key(4), &noise(4, 10)) {
                Ok(_) => assert!(!is_written_only),
                Err(error) => {
                    assert!(matches!(error, TierError::Stopped { .. }) && is_written_only, "{error}")
                }
            }
            let mut listed = tier.list().unwrap();
            drop(tier);
            let tier = open(&files);
            // The record was written but not reported as stored, and no tombstone could be written for it.
            listed.extend(is_written_only.then_some(key(3)));
            listed.sort_unstable();
            assert_eq!(tier.list().unwrap(), listed, "{changes}");
            assert_eq!(tier.get(key(1)).unwrap(), Some(noise(1, 50)));
            tier.insert(key(3), &noise(3, 900)).unwrap();
            assert_eq!(tier.get(key(3)).unwrap(), Some(noise(3, 900)));
            let names = files.list(&Path::new(Memory::TIER).join("pack")).unwrap();
            assert_eq!(names.iter().filter(|(name, _)| name.ends_with(".pack")).count(), 1);
        }
    }
}
