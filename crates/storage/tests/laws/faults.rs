//! Failing levels of a stack: a disk becomes read-only, or a folder inaccessible. Lower levels continue to work, and the
//! regions of the level are found again once it is repaired.

use crate::apart::{child, done, folder_of_child, on_new_file_system};
use crate::regions::{key, noise, open};
use pleach_storage::{
    EvictionPolicy, FolderKind, LevelId, LevelStats, RetentionValue, Tier, TierError, TierLevel, TierStack,
    WriteMode,
};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

const WORTH: RetentionValue = RetentionValue { seconds: 1.0, durable: false };

/// Creates a stack of a private folder and a slower shared one.
fn stack(folder: &Path) -> TierStack {
    let level = |name: &str, kind: FolderKind| {
        let path = folder.join(name);
        fs::create_dir_all(&path).unwrap();
        let (tier, shared) = (Arc::new(open(&path, kind)), kind.is_shared());
        TierLevel { name: name.into(), tier, policy: EvictionPolicy::Lru, write: WriteMode::Back, shared }
    };
    TierStack::new(vec![level("ssd", FolderKind::Ssd), level("lustre", FolderKind::Lustre)])
}

fn store(stack: &TierStack, number: u32) -> LevelId {
    stack.store(key(number), &noise(number, 10_000), WORTH).unwrap().level
}

fn found(stack: &TierStack, number: u32) -> LevelId {
    let (region, level) = stack.get(key(number)).unwrap().unwrap();
    assert_eq!(region, noise(number, 10_000));
    level
}

fn errors(stack: &TierStack) -> u64 {
    stack.counts().iter().map(|level: &LevelStats| level.errors).sum()
}

#[test]
fn a_disk_that_becomes_read_only_is_passed_over() {
    let Some(folder) = folder_of_child() else {
        return on_new_file_system("faults::a_disk_that_becomes_read_only_is_passed_over", "8m");
    };
    let stack = stack(&folder);
    assert_eq!(store(&stack, 0), LevelId(0));
    let ssd = folder.join("ssd");
    let run = |words: &[&str]| {
        let status = Command::new(words[0]).args(&words[1..]).arg(&ssd).status();
        assert!(status.unwrap().success(), "{words:?}");
    };
    run(&["mount", "--bind", ssd.to_str().unwrap()]);
    run(&["mount", "-o", "remount,bind,ro"]);
    assert_eq!((store(&stack, 1), errors(&stack)), (LevelId(1), 1));
    assert_eq!((found(&stack, 0), found(&stack, 1)), (LevelId(0), LevelId(1)));
    let error = stack.remove(key(0)).unwrap_err();
    assert!(error.to_string().ends_with("Read-only file system (os error 30)"), "{error}");
    assert!(stack.contains(key(0)) && stack.remove(key(1)).unwrap());
    run(&["umount"]);
    assert_eq!((store(&stack, 2), found(&stack, 0)), (LevelId(0), LevelId(0)));
    assert!(stack.remove(key(0)).unwrap());
    done(&folder);
}

/// Id of the unprivileged user, the same on every system.
const NOBODY: u32 = 65_534;

#[test]
fn a_folder_that_may_no_more_be_used_is_passed_over() {
    const NAME: &str = "faults::a_folder_that_may_no_more_be_used_is_passed_over";
    let Some(folder) = folder_of_child() else {
        let place = tempfile::tempdir().unwrap();
        // Root ignores permissions, so the test runs as another user.
        let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
        let around: &[&str] =
            if is_root { &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] } else { &[] };
        if is_root {
            let owned = std::os::unix::fs::chown(place.path(), Some(NOBODY), Some(NOBODY));
            let program = std::env::current_exe().unwrap();
            let may = Command::new("setpriv")
                .args(&around[1..])
                .args(["test", "-x"])
                .arg(program)
                .stderr(Stdio::null())
                .status();
            if owned.is_err() || !may.is_ok_and(|may| may.success()) {
                println!("SKIPPED {NAME}: no other user can run this program here");
                return;
            }
        }
        let ended = child(NAME, place.path(), around).output().unwrap();
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stdout));
        assert!(place.path().join("done").exists());
        return;
    };
    let stack = stack(&folder);
    assert_eq!(store(&stack, 0), LevelId(0));
    let leaf = folder.join("ssd/a/7");
    fs::set_permissions(&leaf, Permissions::from_mode(0o000)).unwrap();
    // Region 2 is in the inaccessible leaf folder, region 1 in the other.
    assert_eq!((store(&stack, 2), store(&stack, 1)), (LevelId(1), LevelId(0)));
    let error = stack.get(key(0)).unwrap_err();
    assert!(matches!(&error, TierError::Io { .. }), "{error}");
    assert!(error.to_string().ends_with("Permission denied (os error 13)"), "{error}");
    assert!(stack.contains(key(0)) && stack.levels()[0].tier.contains(key(0)).unwrap());
    assert!(stack.remove(key(0)).is_err());
    fs::set_permissions(&leaf, Permissions::from_mode(0o700)).unwrap();
    assert_eq!((found(&stack, 0), found(&stack, 2), found(&stack, 1)), (LevelId(0), LevelId(1), LevelId(0)));
    assert!(stack.remove(key(0)).unwrap());
    assert!(Tier::get(&stack, key(0)).unwrap().is_none());
    done(&folder);
}
