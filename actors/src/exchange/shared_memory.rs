//! Memory shared by the processes of one machine, as files of a folder in memory.
//!
//! A process holds a lock file in the folder for its lifetime, and creates one file per buffer that it offers
//! ([`send_buffers`]). The peer maps and reads it ([`receive_buffers`]). Only their owner can access the files, and their
//! names cannot be guessed. A file loses its name once both sides have opened it. After a kill, the next process that starts
//! removes the remaining files, because their lock is free.

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

/// Prefix of all file names.
const PREFIX: &str = "pleach-";

/// Suffix of lock files.
const LOCK: &str = ".lock";

/// Random bytes in a name.
const NAME_BYTES: usize = 16;

/// A folder on a machine, identified since the machine's start. Two processes with the same id see the same files.
/// Containers with separate folders have different ids.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SharedMemoryId {
    boot: String,
    device: u64,
    inode: u64,
}

/// The folder with this process's lock file.
#[derive(Debug)]
pub(super) struct SharedMemoryFolder {
    path: PathBuf,
    id: SharedMemoryId,
    /// Prefix of this process's file names.
    name: String,
    /// Locked while this file is open.
    _lock: File,
    /// Bytes of all buffers.
    used: Arc<AtomicU64>,
    max_bytes: u64,
}

impl SharedMemoryFolder {
    /// Removes the files of killed processes at `path`, and limits the buffers to `max_bytes`.
    pub(super) fn open(path: &Path, max_bytes: u64) -> io::Result<Self> {
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id")?.trim().to_owned();
        let metadata = fs::metadata(path)?;
        let id = SharedMemoryId { boot, device: metadata.dev(), inode: metadata.ino() };
        sweep(path)?;
        loop {
            let name = format!("{PREFIX}{}", random()?);
            let lock_path = path.join(format!("{name}{LOCK}"));
            // Created before any buffer, because a sweep finds the files of a killed process by its lock file.
            let lock = private(&lock_path)?;
            // Another process may have removed the file as stale before it was locked.
            if lock.try_lock().is_ok() && lock.metadata()?.nlink() > 0 {
                let used = Arc::default();
                return Ok(Self { path: path.to_owned(), id, name, _lock: lock, used, max_bytes });
            }
        }
    }

    pub(super) fn id(&self) -> &SharedMemoryId {
        &self.id
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a file name that cannot be guessed.
    fn file_name(&self) -> io::Result<String> {
        Ok(format!("{}-{}", self.name, random()?))
    }

    /// Reserves bytes for a buffer. `None` if the limit would be exceeded.
    fn reserve(&self, bytes: u64) -> Option<Reserved> {
        let room = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.max_bytes);
        // Relaxed: only the sum counts, and no other memory depends on it.
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room);
        taken.ok().map(|_| Reserved { used: Arc::clone(&self.used), bytes })
    }
}

impl Drop for SharedMemoryFolder {
    fn drop(&mut self) {
        // The sweep of another process removes the file if this fails.
        let _ = fs::remove_file(self.path.join(format!("{}{LOCK}", self.name)));
    }
}

/// Reserved bytes of the folder, returned on drop.
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

/// Creates a file for this user alone.
fn private(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(path)
}

fn random() -> io::Result<String> {
    let mut bytes = [0; NAME_BYTES];
    let none = |_| io::Error::other("the operating system returns no random numbers");
    SystemRandom::new().fill(&mut bytes).map_err(none)?;
    Ok(hex(&bytes))
}

/// Returns whether a name is valid for a buffer's file, without a path to another folder.
fn is_name(name: &str) -> bool {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
    name.strip_prefix(PREFIX).is_some_and(|rest| !rest.is_empty() && rest.chars().all(allowed))
}

/// Removes the files of dead processes.
fn sweep(path: &Path) -> io::Result<()> {
    let names: Vec<String> = fs::read_dir(path)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.starts_with(PREFIX))
        .collect();
    for owner in names.iter().filter_map(|name| name.strip_suffix(LOCK)) {
        let lock_path = path.join(format!("{owner}{LOCK}"));
        // The file belongs to another user or was removed meanwhile.
        let Ok(lock) = OpenOptions::new().read(true).write(true).open(&lock_path) else { continue };
        // A lock in use means a living owner. The kernel frees the locks of a killed process.
        if lock.try_lock().is_err() {
            continue;
        }
        let files = format!("{owner}-");
        for name in names.iter().filter(|name| name.starts_with(&files)) {
            // Best effort. A file that cannot be removed stays.
            let _ = fs::remove_file(path.join(OsStr::new(name)));
        }
        // Removed last: without the lock file, no later sweep would find the remaining files.
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
    fn open_removes_files_of_dead_processes_only() {
        let place = tempfile::tempdir().unwrap();
        let alive = SharedMemoryFolder::open(place.path(), 100).unwrap();
        private(&place.path().join(alive.file_name().unwrap())).unwrap();
        // State after a kill: files, and an unlocked lock file.
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
        assert_eq!(alive.id(), second.id());
        drop(second);
        assert_eq!(count(place.path()), 3);
    }

    #[test]
    fn shared_memory_stays_within_its_limit() {
        let place = tempfile::tempdir().unwrap();
        let folder = SharedMemoryFolder::open(place.path(), 100).unwrap();
        let first = folder.reserve(60).unwrap();
        assert!(folder.reserve(41).is_none() && folder.reserve(u64::MAX).is_none());
        let _second = folder.reserve(40).unwrap();
        drop(first);
        assert!(folder.reserve(60).is_some());
    }

    #[test]
    fn invalid_buffer_names_are_refused() {
        assert!(is_name("pleach-0aF-9"));
        for name in ["pleach-", "pleach-../x", "pleach-a/b", "other", "pleach-a.lock", "pleach-\0"] {
            assert!(!is_name(name), "{name:?}");
        }
    }
}
