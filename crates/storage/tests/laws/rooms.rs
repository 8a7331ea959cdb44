//! Folder tiers without space, or without a folder that they can write to.

use crate::apart::{done, folder_of_child, on_new_file_system};
use crate::regions::{AMPLE_BYTES, key, noise, open, open_on, open_with};
use pleach_storage::files::{FileSystem, OsFileSystem};
use pleach_storage::{FolderKind, FolderSettings, FolderTier, Inserted, RegionLoss, Tier, TierError};
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

const KIND: FolderKind = FolderKind::Ssd;

fn refusal(path: &Path, kind: FolderKind) -> String {
    open_on(Arc::new(OsFileSystem), path, kind).unwrap_err().to_string()
}

#[test]
fn invalid_tier_folder_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let shown = |name: &str| format!("open the tier {}: ", at(name).display());
    assert_eq!(refusal(&at("none"), KIND), shown("none") + "No such file or directory (os error 2)");
    fs::write(at("file"), "").unwrap();
    assert_eq!(refusal(&at("file"), KIND), shown("file") + "not a folder; an existing folder is allowed");
    assert_eq!(refusal(&at("file/below"), KIND), shown("file/below") + "Not a directory (os error 20)");
    fs::create_dir(at("other")).unwrap();
    fs::write(at("other/thesis.txt"), "").unwrap();
    let expected = "the folder contains other files, such as \"thesis.txt\"; an empty folder is allowed";
    assert_eq!(refusal(&at("other"), KIND), shown("other") + expected);
    fs::create_dir(at("newer")).unwrap();
    fs::write(at("newer/FORMAT"), "pleach tier 3\n").unwrap();
    let expected = "FORMAT is \"pleach tier 3\"; \"pleach tier 2\" is allowed; name another folder";
    assert_eq!(refusal(&at("newer"), KIND), shown("newer") + expected);
    fs::create_dir_all(at("mount/lost+found")).unwrap();
    assert_eq!(open(&at("mount"), KIND).list().unwrap(), []);
}

#[test]
fn a_folder_without_room_for_regions_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let empty_bytes = open(folder.path(), KIND).held_bytes();
    for capacity_bytes in [0, empty_bytes] {
        let settings = FolderSettings::new(KIND, capacity_bytes);
        let error = FolderTier::open(Arc::new(OsFileSystem), folder.path(), settings).unwrap_err();
        let expected = format!(
            "capacity of {capacity_bytes} bytes; more than {empty_bytes} bytes are \
                                needed for its empty folders"
        );
        assert!(error.to_string().ends_with(&expected), "{error}");
    }
}

#[test]
fn a_private_folder_is_opened_once() {
    let folder = tempfile::tempdir().unwrap();
    let private = open(folder.path(), KIND);
    let expected = format!("open the tier {}: the folder is in use by another tier", folder.path().display());
    assert_eq!(refusal(folder.path(), KIND), expected);
    assert_eq!(refusal(folder.path(), FolderKind::Lustre), expected);
    drop(private);
    let _shared = open(folder.path(), FolderKind::Lustre);
    let _another = open(folder.path(), FolderKind::Lustre);
    assert_eq!(refusal(folder.path(), KIND), expected);
}

#[test]
fn small_regions_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let settings = FolderSettings { min_bytes: 1000, ..FolderSettings::new(KIND, AMPLE_BYTES) };
    let tier = open_with(folder.path(), settings);
    assert!(matches!(tier.insert(key(1), &noise(1, 999)), Err(TierError::TooSmall { bytes: 999, .. })));
    assert_eq!(tier.insert(key(1), &noise(1, 1000)).unwrap(), Inserted::New);
}

/// Capacity counts blocks and folders. Insertions succeed as long as their maximum size fits, and never exceed the capacity.
#[test]
fn capacity_is_kept_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let empty_bytes = open(folder.path(), KIND).held_bytes();
    let settings = FolderSettings::new(KIND, empty_bytes + 200_000);
    let tier = open_with(folder.path(), settings);
    let mut count = 0;
    let error = loop {
        match tier.insert(key(count), &noise(count, 9000)) {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
        assert!(tier.held_bytes() <= settings.capacity_bytes && count < 100);
    };
    let TierError::Full { needed_bytes, held_bytes, .. } = error else { panic!("{error}") };
    assert_eq!(held_bytes, tier.held_bytes());
    assert!(held_bytes + needed_bytes > settings.capacity_bytes);
    assert!(needed_bytes >= 9048 && count >= 10, "{count} regions, {needed_bytes} bytes for one more");
    assert!(tier.remove(key(0)).unwrap());
    assert_eq!(tier.insert(key(count), &noise(count, 9000)).unwrap(), Inserted::New);
    // Reopened with a smaller capacity, the tier keeps its regions and refuses new ones.
    drop(tier);
    let settings = FolderSettings::new(KIND, empty_bytes + 100_000);
    let tier = open_with(folder.path(), settings);
    assert_eq!(tier.list().unwrap().len(), count as usize);
    assert!(matches!(tier.insert(key(0), &noise(0, 1)), Err(TierError::Full { .. })));
}

#[test]
fn insertion_on_a_full_disk_fails_without_trace() {
    let Some(folder) = folder_of_child() else {
        return on_new_file_system("rooms::insertion_on_a_full_disk_fails_without_trace", "2m");
    };
    // An insertion that would use the reserve is refused.
    let settings = FolderSettings { reserve_bytes: 1 << 20, ..FolderSettings::new(KIND, AMPLE_BYTES) };
    let tier = open_with(&folder, settings);
    tier.insert(key(0), &noise(0, 500_000)).unwrap();
    let error = tier.insert(key(1), &noise(1, 600_000)).unwrap_err();
    assert!(matches!(error, TierError::DiskFull { reserve_bytes: 1_048_576, .. }), "{error}");
    drop(tier);
    // Another program fills the disk, so an insertion fails before or during its write and leaves no bytes in use.
    let tier = open(&folder, KIND);
    let held_bytes = tier.held_bytes();
    let mut refused = 0;
    for number in 1..40 {
        let balloon = folder.join("balloon");
        if number > 1 {
            let free = rustix::fs::statvfs(&folder).unwrap();
            fs::write(&balloon, vec![0; (free.f_bavail * free.f_frsize) as usize]).unwrap();
        }
        match tier.insert(key(number), &noise(number, 100_000)) {
            Ok(_) => assert!(tier.remove(key(number)).unwrap()),
            Err(TierError::DiskFull { .. } | TierError::Io { .. }) => refused += 1,
            Err(error) => panic!("{error}"),
        }
        let _ = fs::remove_file(balloon);
        assert_eq!((tier.list().unwrap(), tier.held_bytes()), (vec![key(0)], held_bytes));
    }
    assert_eq!(refused, 38);
    assert_eq!(tier.get(key(0)).unwrap(), Some(noise(0, 500_000)));
    assert_eq!(tier.insert(key(1), &noise(1, 600_000)).unwrap(), Inserted::New);
    done(&folder);
}

#[test]
fn read_only_disk_fails_insertions_and_keeps_reads() {
    let Some(folder) = folder_of_child() else {
        return on_new_file_system("rooms::read_only_disk_fails_insertions_and_keeps_reads", "4m");
    };
    // Mounts the folder read-only over itself, while the tier has it open.
    let run = |words: &[&str]| {
        let status = Command::new(words[0]).args(&words[1..]).arg(&folder).status();
        assert!(status.unwrap().success(), "{words:?}");
    };
    let tier = open(&folder, KIND);
    for number in 0..2 {
        tier.insert(key(number), &noise(number, 10_000)).unwrap();
    }
    let path = tier.path(key(1));
    let mut bytes = fs::read(&path).unwrap();
    bytes[100] ^= 1;
    fs::write(&path, bytes).unwrap();
    let held_bytes = tier.held_bytes();
    run(&["mount", "--bind", folder.to_str().unwrap()]);
    run(&["mount", "-o", "remount,bind,ro"]);
    let error = tier.insert(key(2), &noise(2, 10_000)).unwrap_err();
    assert!(error.to_string().ends_with("Read-only file system (os error 30)"), "{error}");
    assert!(tier.remove(key(0)).is_err());
    assert_eq!(tier.get(key(0)).unwrap(), Some(noise(0, 10_000)));
    // The corrupt file cannot be moved to quarantine, and the tier does not return it.
    let lost = tier.get(key(1)).unwrap_err();
    assert!(
        matches!(lost, TierError::Lost { source: RegionLoss::Damaged { quarantined: None, .. }, .. }),
        "{lost}"
    );
    assert_eq!((tier.list().unwrap(), tier.held_bytes()), (vec![key(0)], held_bytes));
    drop(tier);
    assert!(refusal(&folder, KIND).ends_with("Read-only file system (os error 30)"));
    run(&["umount"]);
    assert_eq!(open(&folder, KIND).get(key(0)).unwrap(), Some(noise(0, 10_000)));
    done(&folder);
}

/// Tombstones fit into space that was preallocated before the disk was full.
#[test]
fn packed_regions_are_removed_from_a_shared_folder_on_a_full_disk() {
    const NAME: &str = "rooms::packed_regions_are_removed_from_a_shared_folder_on_a_full_disk";
    let Some(folder) = folder_of_child() else { return on_new_file_system(NAME, "8m") };
    let settings = FolderSettings::new(FolderKind::Lustre, 128 << 20).packed();
    let open = || open_with(&folder, settings);
    let (tier, other) = (open(), open());
    other.insert(key(0), &noise(0, 1000)).unwrap();
    let region = |number| noise(number, 2000);
    let mut stored = 1;
    while tier.insert(key(stored), &region(stored)).is_ok() {
        stored += 1;
    }
    // Segments have 2 MiB, so there are several.
    assert!(stored > 2000, "{stored} regions");
    // Another program fills the disk to the last byte.
    let free = || OsFileSystem.space(&folder).unwrap().free_bytes;
    let filler = folder.join("pack/filler");
    let mut file = fs::File::create(&filler).unwrap();
    while free() > 0 {
        assert!(file.write(&[7; 4096]).is_ok_and(|written| written > 0));
    }
    assert!(matches!(tier.insert(key(9999), &region(9999)), Err(error) if error.is_lack_of_room()));
    // Both the writer of a region and another process can remove it.
    for number in 0..200 {
        assert!(tier.remove(key(2 * number)).unwrap(), "region {number}");
        assert!(other.remove(key(2 * number + 1)).unwrap(), "region {number}");
        assert!(!tier.contains(key(2 * number + 1)).unwrap() && !other.contains(key(2 * number)).unwrap());
    }
    // No space is free yet: the segments also hold live records.
    assert_eq!(free(), 0);
    let left = (400..stored).map(key).collect::<std::collections::BTreeSet<_>>();
    let listed = || tier.list().unwrap().into_iter().collect::<std::collections::BTreeSet<_>>();
    assert_eq!(listed(), left);
    // A later process sees the removals. It removes regions too, since it continues in the segment of the dead writer.
    drop(other);
    let later = open();
    assert_eq!(later.list().unwrap().into_iter().collect::<std::collections::BTreeSet<_>>(), left);
    assert!(later.remove(key(400)).unwrap() && !tier.contains(key(400)).unwrap());
    // A process keeps removed segments on disk as long as it has them open, so it must be closed here.
    drop(later);
    // Empty segments are removed, which makes space for further tombstones.
    for number in 401..stored {
        assert!(tier.remove(key(number)).unwrap(), "region {number} of {stored}");
    }
    assert_eq!(listed().len(), 0);
    assert!(free() > 4 << 20);
    tier.insert(key(9999), &region(9999)).unwrap();
    fs::remove_file(&filler).unwrap();
    done(&folder);
}
