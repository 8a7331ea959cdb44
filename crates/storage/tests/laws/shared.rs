//! A folder that several have open at once: threads with a tier each, and processes.

use crate::apart::{child, folder_of_child};
use crate::regions::{key, noise, open};
use pleach_storage::{FolderKind, Inserted, Tier};
use std::fs;
use std::process::Stdio;
use std::time::{Duration, SystemTime};

const KIND: FolderKind = FolderKind::Lustre;

#[test]
fn what_one_writes_the_other_finds() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = [(); 2].map(|()| open(folder.path(), KIND));
    assert_eq!(one.insert(key(1), &noise(1, 5000)).unwrap(), Inserted::New);
    assert!(other.contains(key(1)).unwrap());
    assert_eq!(other.get(key(1)).unwrap(), Some(noise(1, 5000)));
    assert_eq!(other.insert(key(1), &noise(1, 5000)).unwrap(), Inserted::Known);
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

/// What another process is writing stays, what has not been touched for an hour goes.
#[test]
fn only_what_is_old_is_left_over() {
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
    // In a private folder there is nobody else.
    let private = open(folder.path(), FolderKind::Hdd);
    assert!(!private.path(key(1)).with_file_name(format!("{}.{:016x}.part", key(1), 1)).exists());
}

/// Processes that write the same keys at the same time: each is there once, whole, and everybody was told that it is.
#[test]
fn processes_write_the_same_keys() {
    const COUNT: u32 = 60;
    if let Some(folder) = folder_of_child() {
        let tier = open(&folder, KIND);
        for number in 0..COUNT {
            tier.insert(key(number), &noise(number, 30_000)).unwrap();
            assert_eq!(tier.get(key(number)).unwrap(), Some(noise(number, 30_000)));
        }
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let writers = [(); 3].map(|()| {
        child("shared::processes_write_the_same_keys", folder.path(), &[])
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    });
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    let tier = open(folder.path(), FolderKind::Hdd);
    assert_eq!(tier.list().unwrap().len(), COUNT as usize);
    for number in 0..COUNT {
        assert_eq!(tier.get(key(number)).unwrap(), Some(noise(number, 30_000)));
        assert_eq!(
            fs::read_dir(tier.path(key(number)).parent().unwrap()).unwrap().count(),
            COUNT as usize / 2
        );
    }
}
