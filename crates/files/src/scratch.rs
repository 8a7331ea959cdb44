//! Scratch folders of processes: private, removed by their owner or, after a kill, by a sweep of the next process.
//!
//! A folder is named `PREFIX-PID-RANDOM` and contains a file `lock`, which its owner keeps locked. A free lock means a dead
//! owner. The creator makes the folder, then the file, then takes the lock. A sweep in between removes the unlocked file or
//! the empty folder, and the creator starts again under another name.
//!
//! On a file system with locks local to one machine, a sweep would take the folder of a live process on another machine for
//! abandoned. The caller checks that. Without lock support, a sweep removes only empty folders without a lock file.

use super::private;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const LOCK: &str = "lock";

/// Maximum attempts while sweeps of other processes remove the new folder.
const ATTEMPTS: usize = 16;

/// A scratch folder. It is removed on drop.
#[derive(Debug)]
pub struct Scratch {
    path: PathBuf,
    /// Locked while open.
    _lock: File,
}

impl Scratch {
    /// Creates a scratch folder in `parent`.
    ///
    /// # Errors
    /// Returns the system error.
    pub fn create(parent: &Path, prefix: &str) -> io::Result<Self> {
        for _ in 0..ATTEMPTS {
            let random = RandomState::new().hash_one(prefix);
            let path = parent.join(format!("{prefix}-{}-{random:016x}", std::process::id()));
            private::create_folder(&path)?;
            match lock_new(&path.join(LOCK)) {
                Ok(Some(lock)) => return Ok(Self { path, _lock: lock }),
                Ok(None) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("other processes remove new folders in this folder"))
    }

    /// Returns the folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes this user's scratch folders of dead processes. Returns the removed folders. A folder that cannot be removed
    /// is left for the next sweep.
    ///
    /// # Errors
    /// Returns the error of listing the folder.
    pub fn sweep(parent: &Path, prefix: &str) -> io::Result<Vec<PathBuf>> {
        let user = private::user();
        let mut gone = Vec::new();
        for entry in fs::read_dir(parent)? {
            let entry = entry?;
            let path = entry.path();
            let is_ours = |found: fs::Metadata| found.is_dir() && found.uid() == user;
            // Skips links, since no process creates a scratch folder as a link.
            if is_scratch(&entry.file_name(), prefix)
                && fs::symlink_metadata(&path).is_ok_and(is_ours)
                && matches!(remove_abandoned(&path), Ok(true))
            {
                gone.push(path);
            }
        }
        Ok(gone)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // After a failure, the next sweep removes the rest.
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// Creates and locks a lock file. `None` if a sweep has locked or removed it first.
fn lock_new(path: &Path) -> io::Result<Option<File>> {
    let lock = private::options().read(true).write(true).create_new(true).open(path)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {}
        Err(TryLockError::Error(error)) => return Err(error),
    }
    // A sweep may have removed the file before it was locked.
    Ok((lock.metadata()?.nlink() > 0).then_some(lock))
}

/// Returns whether a name is that of a scratch folder: `PREFIX-PID-RANDOM`.
fn is_scratch(name: &OsStr, prefix: &str) -> bool {
    let rest = name.to_str().and_then(|name| name.strip_prefix(prefix)?.strip_prefix('-'));
    rest.and_then(|rest| rest.split_once('-')).is_some_and(|(pid, random)| {
        pid.parse::<u32>().is_ok() && random.len() == 16 && u64::from_str_radix(random, 16).is_ok()
    })
}

/// Removes a folder if no process holds its lock. Returns whether it did.
fn remove_abandoned(path: &Path) -> io::Result<bool> {
    let lock_path = path.join(LOCK);
    let options = || {
        let mut options = private::options();
        options.read(true).write(true).custom_flags(libc::O_NOFOLLOW);
        options
    };
    let lock = match options().open(&lock_path) {
        Ok(lock) => lock,
        // Its creator is about to create the lock, or was killed before. Only an empty folder is removed.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return fs::remove_dir(path).map(|()| true),
        Err(error) => return Err(error),
    };
    // Also without lock support: then nothing shows that the owner is dead.
    if lock.try_lock().is_err() {
        return Ok(false);
    }
    // Removes the lock last, so that the next sweep can repeat an interrupted one.
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_name() == LOCK {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_file(&lock_path)?;
    fs::remove_dir(path)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREFIX: &str = "pleach-test";

    fn place(name: &str) -> PathBuf {
        let place = std::env::temp_dir().join(format!("pleach-scratch-{name}-{}", std::process::id()));
        fs::create_dir(&place).unwrap();
        place
    }

    fn names(place: &Path) -> Vec<PathBuf> {
        let mut names: Vec<PathBuf> =
            fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()).collect();
        names.sort();
        names
    }

    #[test]
    fn sweep_removes_dead_owners_folders_only() {
        let place = place("sweep");
        let alive = Scratch::create(&place, PREFIX).unwrap();
        fs::write(alive.path().join("tile"), "x").unwrap();
        // The state after a kill: all content is present, and the lock is free.
        let dead = Scratch::create(&place, PREFIX).unwrap();
        fs::create_dir(dead.path().join("inputs")).unwrap();
        fs::write(dead.path().join("inputs/tile"), "x").unwrap();
        let dead_path = dead.path().to_owned();
        let Scratch { _lock: lock, .. } = &dead;
        lock.unlock().unwrap();
        std::mem::forget(dead);
        // The state after a kill before the lock was created, and folders of other programs.
        let begun = place.join(format!("{PREFIX}-1-{:016x}", 7));
        fs::create_dir(&begun).unwrap();
        let foreign =
            [format!("{PREFIX}-1-notes"), format!("{PREFIX}-file"), "other-1-0000000000000001".into()];
        foreign.iter().for_each(|name| fs::create_dir(place.join(name)).unwrap());
        std::os::unix::fs::symlink(&place, place.join(format!("{PREFIX}-2-{:016x}", 8))).unwrap();
        let mut gone = Scratch::sweep(&place, PREFIX).unwrap();
        gone.sort();
        let mut expected = vec![dead_path, begun];
        expected.sort();
        assert_eq!(gone, expected);
        assert_eq!(names(&place).len(), 1 + foreign.len() + 1);
        assert!(alive.path().join("tile").exists());
        assert!(Scratch::sweep(&place, PREFIX).unwrap().is_empty());
        drop(alive);
        assert_eq!(names(&place).len(), foreign.len() + 1);
        fs::remove_dir_all(place).unwrap();
    }

    #[test]
    fn scratch_is_private_whatever_the_umask() {
        let place = place("modes");
        let scratch = Scratch::create(&place, PREFIX).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!([mode(scratch.path()), mode(&scratch.path().join(LOCK))], [0o700, 0o600]);
        drop(scratch);
        fs::remove_dir_all(place).unwrap();
    }
}
