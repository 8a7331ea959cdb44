//! Memory that processes of one machine share, as files of a folder that is kept in memory.
//!
//! A process has a lock file there, which it holds as long as it lives, and a file for each piece of memory that it lends
//! ([`send_buffers`]); whoever borrows one reads it ([`receive_buffers`]). Files are for their owner alone, their names cannot be guessed,
//! and they have one only until they are open on both sides. What a killed process leaves is removed by the next one
//! that starts: nobody holds its lock.

pub(super) mod receive_buffers;
pub(super) mod send_buffers;

use crate::transport::token::hex;
use ring::rand::{SecureRandom, SystemRandom};
use serde::{Deserialize, Serialize};
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the names of all files begin with.
const PREFIX: &str = "pleach-";

/// What the names of lock files end with.
const LOCK: &str = ".lock";

/// Random bytes in a name.
const NAME_BYTES: usize = 16;

/// A folder on a machine that has been started once. Two processes that see the same one see the same files: in
/// containers with a folder of their own each, they do not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SharedMemoryId {
    boot: String,
    device: u64,
    inode: u64,
}

/// The folder, with this process's lock in it.
#[derive(Debug)]
pub(super) struct SharedMemoryFolder {
    path: PathBuf,
    place: SharedMemoryId,
    /// What the names of this process's files begin with.
    name: String,
    /// Held as long as it is open.
    _lock: File,
    /// Bytes lent.
    used: Arc<AtomicU64>,
    most_bytes: u64,
}

impl SharedMemoryFolder {
    /// Removes what killed processes have left at `path`, and prepares to lend up to `most_bytes`.
    pub(super) fn open(path: &Path, most_bytes: u64) -> io::Result<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        let metadata = fs::metadata(path)?;
        let place = SharedMemoryId { boot, device: metadata.dev(), inode: metadata.ino() };
        sweep(path)?;
        loop {
            let name = format!("{PREFIX}{}", random()?);
            let lock_path = path.join(format!("{name}{LOCK}"));
            let lock = private(&lock_path)?;
            // Another process may have taken it for a dead one's before it was held.
            if lock.try_lock().is_ok() && lock.metadata()?.nlink() > 0 {
                let used = Arc::default();
                return Ok(Self { path: path.to_owned(), place, name, _lock: lock, used, most_bytes });
            }
        }
    }

    pub(super) fn place(&self) -> &SharedMemoryId {
        &self.place
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// A name that nobody can guess.
    fn file_name(&self) -> io::Result<String> {
        Ok(format!("{}-{}", self.name, random()?))
    }

    /// Room for so many bytes, unless too many are lent.
    fn reserve(&self, bytes: u64) -> Option<Reserved> {
        let room = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.most_bytes);
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room);
        taken.ok().map(|_| Reserved { used: Arc::clone(&self.used), bytes })
    }
}

impl Drop for SharedMemoryFolder {
    fn drop(&mut self) {
        // The others' sweep removes it where this fails.
        let _ = fs::remove_file(self.path.join(format!("{}{LOCK}", self.name)));
    }
}

/// Room in the folder, as long as it lives.
#[derive(Debug)]
struct Reserved {
    used: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A new file for this user alone.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

fn random() -> io::Result<String> {
    let mut bytes = [0; NAME_BYTES];
    let none = |_| io::Error::other("the system gives no random numbers");
    SystemRandom::new().fill(&mut bytes).map_err(none)?;
    Ok(hex(&bytes))
}

/// Whether this can be the name of a file that a process lends: nothing that leads elsewhere.
fn is_name(name: &str) -> bool {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    name.strip_prefix(PREFIX).is_some_and(|rest| !rest.is_empty() && rest.chars().all(allowed))
}

/// Removes the files of processes that are gone.
fn sweep(path: &Path) -> io::Result<()> {
    let names: Vec<String> = fs::read_dir(path)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with(PREFIX))
        .collect();
    for owner in names.iter().filter_map(|name| name.strip_suffix(LOCK)) {
        let lock_path = path.join(format!("{owner}{LOCK}"));
        // Another user's, or gone meanwhile: not ours to remove.
        let Ok(lock) = OpenOptions::new().read(true).write(true).open(&lock_path) else { continue };
        if lock.try_lock().is_err() {
            continue;
        }
        let files = format!("{owner}-");
        for name in names.iter().filter(|name| name.starts_with(&files)) {
            // What cannot be removed is tried again by whoever starts next.
            let _ = fs::remove_file(path.join(OsStr::new(name)));
        }
        let _ = fs::remove_file(&lock_path);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(path: &Path) -> usize {
        fs::read_dir(path).unwrap().count()
    }

    #[test]
    fn what_a_killed_process_leaves_is_removed_and_what_a_living_one_has_is_not() {
        let place = tempfile::tempdir().unwrap();
        let alive = SharedMemoryFolder::open(place.path(), 100).unwrap();
        private(&place.path().join(alive.file_name().unwrap())).unwrap();
        // As after a kill: files, and a lock that nobody holds.
        let dead = format!("{PREFIX}{}", random().unwrap());
        for end in [LOCK, "-1", "-2"] {
            private(&place.path().join(format!("{dead}{end}"))).unwrap();
        }
        fs::write(place.path().join("something else"), "").unwrap();
        assert_eq!(count(place.path()), 6);
        let second = SharedMemoryFolder::open(place.path(), 100).unwrap();
        assert_eq!(
            count(place.path()),
            4,
            "the first one's two, the second one's lock, and what is not ours"
        );
        assert_eq!(alive.place(), second.place());
        drop(second);
        assert_eq!(count(place.path()), 3);
    }

    #[test]
    fn no_more_is_lent_than_may_be() {
        let place = tempfile::tempdir().unwrap();
        let folder = SharedMemoryFolder::open(place.path(), 100).unwrap();
        let first = folder.reserve(60).unwrap();
        assert!(folder.reserve(41).is_none() && folder.reserve(u64::MAX).is_none());
        let _second = folder.reserve(40).unwrap();
        drop(first);
        assert!(folder.reserve(60).is_some());
    }

    #[test]
    fn names_lead_nowhere_else() {
        assert!(is_name("pleach-0aF-9"));
        for name in ["pleach-", "pleach-../x", "pleach-a/b", "other", "pleach-a.lock", "pleach-\0"] {
            assert!(!is_name(name), "{name:?}");
        }
    }
}
