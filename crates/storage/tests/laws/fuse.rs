//! A shared tier on a file system in user space (bindfs over FUSE). While its daemon is stopped, calls hang in the kernel, as on a
//! mount whose server is gone.

use crate::regions::{AMPLE_BYTES, key, region};
use pleach_storage::files::OsFileSystem;
use pleach_storage::{
    FolderKind, FolderSettings, FolderTier, GuardTimes, GuardedTier, Inserted, Tier, TierError, TierLocation,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A call that does not hang takes less, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(10);

const TIMES: GuardTimes = GuardTimes {
    limit: LIMIT,
    bytes_per_second: u64::MAX,
    first_pause: Duration::from_millis(50),
    max_pause: Duration::from_millis(100),
};

/// A folder that a daemon shows at a second place.
struct Mount {
    daemon: Child,
    at: TempDir,
    _of: TempDir,
}

impl Mount {
    /// Mounts an empty folder. `None` if this machine cannot, which is printed.
    #[expect(clippy::print_stdout, reason = "a skipped test is loud")]
    fn new(test: &str) -> Option<Self> {
        let (of, at) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let started =
            Command::new("bindfs").arg("-f").args([of.path(), at.path()]).stderr(Stdio::piped()).spawn();
        let mut daemon = match started {
            Ok(daemon) => daemon,
            Err(error) => {
                println!("SKIPPED {test}: there is no FUSE: bindfs does not start: {error}");
                return None;
            }
        };
        let begun = Instant::now();
        while !is_mounted(at.path()) {
            if let Some(status) = daemon.try_wait().unwrap() {
                let said = daemon.wait_with_output().unwrap().stderr;
                println!("{}", String::from_utf8_lossy(&said));
                println!("SKIPPED {test}: there is no FUSE: bindfs ends with {status}");
                return None;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "bindfs neither mounts nor ends");
            thread::park_timeout(Duration::from_millis(5));
        }
        Some(Self { daemon, at, _of: of })
    }

    /// Opens the tier on the mount.
    fn tier(&self) -> Arc<FolderTier> {
        let settings = FolderSettings::new(FolderKind::Lustre, AMPLE_BYTES);
        Arc::new(FolderTier::open(Arc::new(OsFileSystem), self.at.path(), settings).unwrap())
    }

    /// Sends a signal to the daemon.
    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.daemon.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "{name} is not sent");
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // A stopped daemon answers no request to unmount. Of the programs that can unmount, one may be missing.
        let _ = Command::new("kill").args(["-s", "CONT", &self.daemon.id().to_string()]).status();
        for program in [["fusermount3", "-uz"], ["umount", "-l"]] {
            let ended = Command::new(program[0]).arg(program[1]).arg(self.at.path()).status();
            if ended.is_ok_and(|status| status.success()) {
                break;
            }
        }
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// Returns whether the kernel lists a mount at a path. Asks the mount nothing.
fn is_mounted(path: &Path) -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    mounts.lines().any(|line| line.split(' ').nth(1).map(PathBuf::from).as_deref() == Some(path))
}

fn is_unavailable<T: std::fmt::Debug>(result: Result<T, TierError>) -> bool {
    matches!(result, Err(TierError::Unavailable { .. }))
}

#[test]
fn shared_tier_on_a_mount_that_hangs_is_used_again_once_it_answers() {
    let Some(mount) = Mount::new("shared_tier_on_a_mount_that_hangs_is_used_again_once_it_answers") else {
        return;
    };
    let within = mount.tier();
    let place = TierLocation::Folder(mount.at.path().to_owned());
    let tier = GuardedTier::new(Arc::clone(&within) as Arc<dyn Tier>, place, TIMES, |_| {});
    for number in 0..20 {
        assert_eq!(tier.insert(key(number), &region(number)).unwrap(), Inserted::New);
    }
    // Another node of the same file system reads them.
    let other = mount.tier();
    for number in 0..20 {
        assert_eq!(other.get(key(number)).unwrap(), Some(region(number)), "{number}");
    }
    mount.signal("STOP");
    // The kernel may have the content of files that were read, and does not have that of new ones.
    assert!(is_unavailable(tier.insert(key(50), &region(50))));
    assert!(!tier.is_available());
    assert!(is_unavailable(tier.remove(key(3))), "calls of an unavailable tier return at once");
    mount.signal("CONT");
    let begun = Instant::now();
    while !tier.is_available() || within.contains(key(3)).unwrap() || within.contains(key(50)).unwrap() {
        assert!(begun.elapsed() < 6 * LIMIT, "the tier stays unavailable, or misses a removal");
        thread::park_timeout(Duration::from_millis(5));
    }
    for number in (0..20).filter(|number| *number != 3) {
        assert_eq!(tier.get(key(number)).unwrap(), Some(region(number)), "{number}");
    }
}
