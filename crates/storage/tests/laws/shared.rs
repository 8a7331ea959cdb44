//! Shared folders, opened by several tiers of this process or by several processes. Regions have files of their own or are
//! packed.

use crate::apart::{child, folder_of_child};
use crate::regions::{AMPLE_BYTES, key, noise, open, open_with};
use pleach_storage::{FolderKind, FolderSettings, FolderTier, Inserted, Tier};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

const KIND: FolderKind = FolderKind::Lustre;

fn packed(path: &Path) -> FolderTier {
    let settings = FolderSettings::new(KIND, AMPLE_BYTES).packed();
    open_with(path, settings)
}

#[test]
fn region_written_by_one_tier_is_found_by_the_other() {
    let folder = tempfile::tempdir().unwrap();
    what_one_writes(&[(); 2].map(|()| open(folder.path(), KIND)));
    let folder = tempfile::tempdir().unwrap();
    what_one_writes(&[(); 2].map(|()| packed(folder.path())));
    assert!(!packed(folder.path()).path(key(1)).exists());
    // Only the second tier packs.
    let folder = tempfile::tempdir().unwrap();
    what_one_writes(&[open(folder.path(), KIND), packed(folder.path())]);
}

fn what_one_writes([one, other]: &[FolderTier; 2]) {
    assert_eq!(one.insert(key(1), &noise(1, 5000)).unwrap(), Inserted::New);
    assert!(other.contains(key(1)).unwrap());
    assert_eq!(other.get(key(1)).unwrap(), Some(noise(1, 5000)));
    assert_eq!(other.insert(key(1), &noise(1, 5000)).unwrap(), Inserted::AlreadyPresent);
    assert_eq!(other.list().unwrap(), [key(1)]);
    assert_eq!(other.held_bytes(), one.held_bytes());
    assert!(other.remove(key(1)).unwrap());
    assert!(!one.contains(key(1)).unwrap());
    assert_eq!(one.get(key(1)).unwrap(), None);
    assert_eq!(one.insert(key(1), &noise(1, 5000)).unwrap(), Inserted::New);
    assert!(other.remove(key(1)).unwrap());
    one.remove(key(1)).unwrap();
    assert_eq!((one.list().unwrap(), one.held_bytes()), (vec![], other.held_bytes()));
}

/// An opener removes unfinished files older than 1 h. Younger ones stay, since another process may be writing them.
#[test]
fn only_old_incomplete_files_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let tier = open(folder.path(), KIND);
    let beside = |number: u64| tier.path(key(1)).with_file_name(format!("{}.{number:016x}.part", key(1)));
    for (number, minutes) in [(1, 50), (2, 70)] {
        fs::write(beside(number), "").unwrap();
        let modified = SystemTime::now() - Duration::from_secs(minutes * 60);
        fs::File::options().write(true).open(beside(number)).unwrap().set_modified(modified).unwrap();
    }
    let another = open(folder.path(), KIND);
    assert!(beside(1).exists() && !beside(2).exists());
    assert_eq!(another.list().unwrap(), []);
    drop((another, tier));
    // A private folder has no other writers, so all unfinished files are removed.
    let private = open(folder.path(), FolderKind::Hdd);
    assert!(!private.path(key(1)).with_file_name(format!("{}.{:016x}.part", key(1), 1)).exists());
}

/// 3 processes write the same keys at the same time. Every insertion succeeds, and every region is whole.
#[test]
fn processes_write_the_same_keys() {
    write_the_same_keys("shared::processes_write_the_same_keys", 30_000, |path| open(path, KIND));
}

#[test]
fn processes_pack_the_same_keys() {
    write_the_same_keys("shared::processes_pack_the_same_keys", 700, packed);
}

fn write_the_same_keys(test: &str, size_bytes: u32, open_shared: fn(&Path) -> FolderTier) {
    const COUNT: u32 = 60;
    if let Some(folder) = folder_of_child() {
        let tier = open_shared(&folder);
        for number in 0..COUNT {
            tier.insert(key(number), &noise(number, size_bytes)).unwrap();
            assert_eq!(tier.get(key(number)).unwrap(), Some(noise(number, size_bytes)));
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let reader = open_shared(folder.path());
    let writers = [(); 3].map(|()| child(test, folder.path(), &[]).stdout(Stdio::null()).spawn().unwrap());
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    let verify = |tier: &FolderTier| {
        for number in 0..COUNT {
            assert_eq!(tier.get(key(number)).unwrap(), Some(noise(number, size_bytes)));
        }
        assert_eq!(tier.list().unwrap().len(), COUNT as usize);
    };
    verify(&reader);
    drop(reader);
    let tier = open(folder.path(), FolderKind::Hdd);
    verify(&tier);
    if tier.path(key(0)).exists() {
        let leaf = tier.path(key(0)).parent().unwrap().to_owned();
        assert_eq!(fs::read_dir(leaf).unwrap().count(), COUNT as usize / 2);
    }
    // One removal suffices, although several processes stored the region.
    for number in 0..COUNT {
        assert!(tier.remove(key(number)).unwrap());
        assert_eq!(tier.get(key(number)).unwrap(), None);
    }
    drop(tier);
    assert_eq!(open_shared(folder.path()).list().unwrap(), []);
}
