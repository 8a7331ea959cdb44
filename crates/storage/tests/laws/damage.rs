//! Corrupt files: detected on read, quarantined, reported once, and never returned.

use crate::memory::Memory;
use crate::regions::{key, noise, open, open_on, region};
use pleach_storage::files::{FileSystem, OsFileSystem};
use pleach_storage::{FolderKind, Inserted, RegionLoss, Tier, TierError};
use proptest::prelude::*;
use std::fs;
use std::path::Path;
use std::sync::Arc;

fn taken(path: &Path) -> u64 {
    OsFileSystem.metadata(path).unwrap().disk_bytes
}

proptest! {
    // Few cases, since each opens a folder twice.
    #![proptest_config(ProptestConfig::with_cases(20))]

    #[test]
    fn any_corruption_is_detected(
        damages in prop::collection::vec((0..12_u32, any::<prop::sample::Index>(), 0..10_u8), 1..20),
        shared: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let kind = if shared { FolderKind::Lustre } else { FolderKind::Ssd };
        let tier = open(folder.path(), kind);
        let mut quarantined_count = 0;
        for (number, place, how) in damages {
            let (key, path) = (key(number), tier.path(key(number)));
            tier.insert(key, &region(number)).unwrap();
            let mut bytes = fs::read(&path).unwrap();
            let place = place.index(bytes.len());
            let whole_bytes = taken(&path);
            match how {
                8 => bytes.truncate(place),
                9 => bytes.push(0),
                bit => bytes[place] ^= 1 << bit,
            }
            fs::write(&path, &bytes).unwrap();
            let (held_bytes, damaged_bytes) = (tier.held_bytes(), taken(&path));
            match tier.get(key) {
                // A changed LZ4 block may decode to the same content.
                Ok(found) => prop_assert_eq!(found, Some(region(number))),
                Err(error) => {
                    let said = error.to_string();
                    prop_assert!(said.starts_with(&format!("read region {key} from {}: decode ", path.display())), "{}", said);
                    let TierError::Lost { source: RegionLoss::Damaged { quarantined: Some(away), .. }, .. } = error else {
                        panic!("{said}")
                    };
                    prop_assert_eq!(fs::read(away).unwrap(), bytes);
                    quarantined_count += 1;
                    prop_assert_eq!(tier.get(key).unwrap(), None);
                    prop_assert!(!tier.contains(key).unwrap() && !tier.list().unwrap().contains(&key));
                    let still = held_bytes - whole_bytes + damaged_bytes;
                    prop_assert_eq!(tier.held_bytes(), still, "what is left of it still takes room");
                    prop_assert_eq!(tier.insert(key, &region(number)).unwrap(), Inserted::New);
                    prop_assert_eq!(tier.get(key).unwrap(), Some(region(number)));
                }
            }
        }
        let (listed, held_bytes) = (tier.list().unwrap(), tier.held_bytes());
        drop(tier);
        let tier = open(folder.path(), kind);
        prop_assert_eq!(tier.list().unwrap(), listed);
        prop_assert_eq!(tier.held_bytes(), held_bytes);
        prop_assert_eq!(fs::read_dir(folder.path().join("quarantine")).unwrap().count(), quarantined_count);
    }
}

#[test]
fn removed_file_is_reported_lost_once() {
    let folder = tempfile::tempdir().unwrap();
    let tier = open(folder.path(), FolderKind::Ssd);
    let empty_bytes = tier.held_bytes();
    tier.insert(key(1), &region(1)).unwrap();
    fs::remove_file(tier.path(key(1))).unwrap();
    let expected =
        format!("read region {} from {}: the file is missing", key(1), tier.path(key(1)).display());
    assert_eq!(tier.get(key(1)).unwrap_err().to_string(), expected);
    assert_eq!(tier.get(key(1)).unwrap(), None);
    assert_eq!(tier.held_bytes(), empty_bytes);
    // In a shared folder another process may have removed the file, so this is no loss.
    drop(tier);
    let tier = open(folder.path(), FolderKind::Lustre);
    tier.insert(key(1), &region(1)).unwrap();
    fs::remove_file(tier.path(key(1))).unwrap();
    assert_eq!(tier.get(key(1)).unwrap(), None);
    assert_eq!(tier.insert(key(1), &region(1)).unwrap(), Inserted::New);
}

#[test]
fn open_removes_incomplete_files_and_keeps_foreign_ones() {
    let folder = tempfile::tempdir().unwrap();
    let tier = open(folder.path(), FolderKind::Hdd);
    tier.insert(key(1), &region(1)).unwrap();
    let path = tier.path(key(1));
    drop(tier);
    let beside = |name: &str| path.with_file_name(name);
    let part = beside(&format!("{}.{:016x}.part", key(3), 5));
    let marker = folder.path().join("FORMAT.0000000000000005.part");
    let notes = beside("notes.txt");
    [&part, &marker, &notes].iter().for_each(|path| fs::write(path, [1; 5000]).unwrap());
    let tier = open(folder.path(), FolderKind::Hdd);
    assert_eq!(tier.list().unwrap(), [key(1)]);
    assert!(!part.exists() && !marker.exists() && notes.exists());
    let held_bytes = tier.held_bytes();
    drop(tier);
    fs::remove_file(notes).unwrap();
    let less = held_bytes - open(folder.path(), FolderKind::Hdd).held_bytes();
    assert!((5000..=16384).contains(&less), "the note took {less} bytes");
}

/// A region is neither listed nor counted if its insertion failed after any change. The next insertion succeeds.
#[test]
fn insertions_that_fail_anywhere_leave_nothing() {
    let region = noise(3, 9000);
    for changes in 0..6 {
        let files = Memory::default();
        let tier = open_on(Arc::new(files.clone()), Path::new(Memory::TIER), FolderKind::Ssd).unwrap();
        let empty_bytes = tier.held_bytes();
        files.kill_after(Some(changes));
        assert!(tier.insert(key(3), &region).is_err() == (changes < 6), "{changes}");
        files.kill_after(None);
        assert_eq!((tier.list().unwrap(), tier.held_bytes()), (vec![], empty_bytes), "{changes}");
        // After a failed folder sync, the tier refuses to write until it is reopened.
        let again = tier.insert(key(3), &region);
        assert!(
            matches!(again, Ok(Inserted::New))
                || matches!(again, Err(TierError::Stopped { .. }) if changes == 5)
        );
        let leaf = tier.path(key(3)).parent().unwrap().to_owned();
        drop(tier);
        let tier = open_on(Arc::new(files.clone()), Path::new(Memory::TIER), FolderKind::Ssd).unwrap();
        tier.insert(key(3), &region).unwrap();
        assert_eq!(tier.get(key(3)).unwrap().as_ref(), Some(&region));
        assert_eq!(files.list(&leaf).unwrap().len(), 1, "{changes}");
    }
}
