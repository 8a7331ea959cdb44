//! Input store: files that clients have sent because the manager lacked them, by the BLAKE3 digest of their content.
//!
//! A file appears under its digest once all of it is on disk and has that digest. Until then readers do not see it.
//! The store belongs to one process at a time, and its files are readable by its user alone. Each process verifies a
//! file before it first counts as stored. It verifies the file again when its looks change or a worker has found it
//! corrupt. The store renames a corrupt file to `DIGEST.damaged`, so that a client can send it again. The store does
//! not know which studies read a file.

use parking_lot::Mutex;
use pleach_api::digest::InputDigest;
use pleach_storage::files::{FileStamp, private};
use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use thiserror::Error;
use tracing::error;

/// Suffix of the file name during a transfer.
const PART: &str = ".part";

/// Suffix of a corrupt file's name.
const DAMAGED: &str = ".damaged";

/// Reason why a file is not in the store.
#[derive(Debug, Error)]
pub enum InputError {
    /// The disk is full.
    #[error("no free space for input files in {}", .0.display())]
    Full(PathBuf),
    /// The store cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or folder of the store.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The received content has another digest.
    #[error("digest {found} instead of {expected}")]
    Other {
        /// Digest that the client named.
        expected: InputDigest,
        /// Digest of the received content.
        found: InputDigest,
    },
}

impl InputError {
    /// Converts an I/O error at `path` in the store. A full disk or an exceeded quota becomes [`InputError::Full`].
    pub(crate) fn at(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                Self::Full(path.parent().unwrap_or(path).to_owned())
            }
            _ => Self::File { path: path.to_owned(), source },
        }
    }
}

/// Store of one folder.
#[derive(Debug)]
pub struct InputStore {
    folder: PathBuf,
    /// Number of transfers begun. It makes the names of temporary files unique, so that two clients may send the same
    /// file at once.
    received: AtomicU64,
    verified: Verified,
}

/// Looks of the verified files, by digest. The lock is held while a file gets or loses its name: a corrupt file may
/// just have been replaced by a good one, which must not be set aside. Each change is one call, so a panic leaves the
/// map consistent.
type Verified = Arc<Mutex<HashMap<InputDigest, FileStamp>>>;

impl InputStore {
    /// Opens the store in `folder` and creates the folder if it is missing. Removes partial files of transfers that a
    /// previous process did not finish.
    ///
    /// # Errors
    /// [`InputError::Full`] and [`InputError::File`] when the folder cannot be created, read or cleared.
    pub fn open(folder: &Path) -> Result<Self, InputError> {
        let fail = |source| InputError::at(folder, source);
        private::create_folders(folder).map_err(fail)?;
        for entry in fs::read_dir(folder).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            if path.as_os_str().as_encoded_bytes().ends_with(PART.as_bytes()) {
                fs::remove_file(&path).map_err(|source| InputError::at(&path, source))?;
            }
        }
        let (received, verified) = (AtomicU64::new(0), Verified::default());
        Ok(Self { folder: folder.to_owned(), received, verified })
    }

    /// Returns whether a file of this name exists, intact or corrupt.
    pub(crate) fn names(&self, digest: InputDigest) -> bool {
        self.path(digest).is_file()
    }

    /// Returns whether the store has the intact file. The first call reads the whole file. A corrupt file is set
    /// aside.
    pub(crate) fn has(&self, digest: InputDigest) -> bool {
        let path = self.path(digest);
        // Before the content is read: a change during the read gives other looks, so the file is verified again.
        let Ok(looks) = looks(&path) else { return false };
        // Releases the lock before the file is read, which takes long and must not delay other files.
        if self.verified.lock().get(&digest) == Some(&looks) {
            return true;
        }
        let mut hasher = blake3::Hasher::new();
        let found =
            File::open(&path).and_then(|file| hasher.update_reader(file).map(|hasher| hasher.finalize()));
        let why = match found {
            Ok(found) if InputDigest::from(found) == digest => {
                self.verified.lock().insert(digest, looks);
                return true;
            }
            Ok(_) => "content does not match the digest in its name".to_owned(),
            Err(error) => format!("cannot be read: {error}"),
        };
        self.set_aside(digest, looks, &why);
        false
    }

    /// Verifies a file again although its looks are unchanged. For a file that a reader has found corrupt.
    pub(crate) fn has_still(&self, digest: InputDigest) -> bool {
        self.verified.lock().remove(&digest);
        self.has(digest)
    }

    /// Renames a corrupt file, unless its looks differ from `corrupt`: another file has the name by now.
    fn set_aside(&self, digest: InputDigest, corrupt: FileStamp, why: &str) {
        let path = self.path(digest);
        let away = self.folder.join(format!("{digest}{DAMAGED}"));
        let mut verified = self.verified.lock();
        if looks(&path).ok() != Some(corrupt) {
            return;
        }
        verified.remove(&digest);
        let moved = match fs::rename(&path, &away) {
            Ok(()) => format!("renamed to {}", away.display()),
            Err(error) => format!("renaming it failed: {error}"),
        };
        error!("the input file {} is corrupt: {why}; {moved}; pleach submit sends it again", path.display());
    }

    /// Returns the folder of the store.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of a file in the store, whether or not the file exists.
    pub(crate) fn path(&self, digest: InputDigest) -> PathBuf {
        self.folder.join(digest.to_string())
    }

    /// Removes files and folders of slide links whose names are not in `kept` and that are older than `grace`.
    /// Returns the bytes of the removed files.
    ///
    /// # Errors
    /// [`InputError::File`] when a file cannot be examined or removed.
    pub(crate) fn prune(&self, kept: &HashSet<String>, grace: Duration) -> Result<u64, InputError> {
        let mut bytes = 0;
        for entry in fs::read_dir(&self.folder).map_err(|source| InputError::at(&self.folder, source))? {
            let entry = entry.map_err(|source| InputError::at(&self.folder, source))?;
            let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
            let digest = name.split('.').next().unwrap_or_default();
            // A partial file belongs to a transfer in progress: `open` has removed those of earlier processes.
            if name.ends_with(PART) || kept.contains(&name) || digest.parse::<InputDigest>().is_err() {
                continue;
            }
            let fail = |source| InputError::at(&path, source);
            let found = entry.metadata().map_err(fail)?;
            // A time in the future, after the clock was set back, counts as age 0: the file stays.
            let age = found.modified().map_err(fail)?.elapsed().unwrap_or_default();
            if age < grace {
                continue;
            }
            if found.is_dir() {
                fs::remove_dir_all(&path).map_err(fail)?;
            } else {
                fs::remove_file(&path).map_err(fail)?;
                bytes += found.len();
            }
        }
        Ok(bytes)
    }

    /// Begins to receive a file into a temporary file.
    ///
    /// # Errors
    /// [`InputError::Full`] and [`InputError::File`] when the temporary file cannot be created.
    pub(crate) fn receive(&self, digest: InputDigest) -> Result<Receiving, InputError> {
        // Relaxed: only the uniqueness of the number matters.
        let number = self.received.fetch_add(1, Ordering::Relaxed);
        let part = self.folder.join(format!("{digest}.{number}{PART}"));
        let file = private::options()
            .write(true)
            .create_new(true)
            .open(&part)
            .map_err(|source| InputError::at(&part, source))?;
        let target = self.path(digest);
        let (hasher, verified) = (blake3::Hasher::new(), self.verified.clone());
        Ok(Receiving { expected: digest, hasher, file, part: TemporaryFile(part), target, verified })
    }
}

/// Transfer of one file. Dropping it before [`Receiving::finish`] removes the temporary file.
#[derive(Debug)]
pub(crate) struct Receiving {
    expected: InputDigest,
    hasher: blake3::Hasher,
    file: File,
    part: TemporaryFile,
    target: PathBuf,
    verified: Verified,
}

impl Receiving {
    /// Appends the next bytes.
    ///
    /// # Errors
    /// [`InputError::Full`] and [`InputError::File`] when they cannot be written.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), InputError> {
        self.hasher.update(bytes);
        self.file.write_all(bytes).map_err(|source| InputError::at(&self.part.0, source))
    }

    /// Ends the transfer after the last byte. On success the file is in the store and on disk. Returns its length in
    /// bytes.
    ///
    /// # Errors
    /// [`InputError`] when the digest differs or the file cannot be stored. The file is then not in the store.
    pub(crate) fn finish(self) -> Result<u64, InputError> {
        let found = InputDigest::from(self.hasher.finalize());
        if found != self.expected {
            return Err(InputError::Other { expected: self.expected, found });
        }
        let fail = |source| InputError::at(&self.part.0, source);
        // Sync before the rename: a name in the store must not refer to bytes that a loss of power can take.
        self.file.sync_all().map_err(fail)?;
        let mut verified = self.verified.lock();
        fs::rename(&self.part.0, &self.target).map_err(fail)?;
        // The written bytes were digested above. The next start of the manager finds a medium that has changed them
        // since.
        verified.extend(looks(&self.target).ok().map(|looks| (self.expected, looks)));
        // Not held during the sync of the folder, which waits for the disk.
        drop(verified);
        // The rename is durable once the folder is synced.
        let folder = self.target.parent().unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(fail)?;
        Ok(self.hasher.count())
    }
}

/// Returns the looks of a regular file.
fn looks(path: &Path) -> io::Result<FileStamp> {
    let found = fs::metadata(path)?;
    if found.is_file() { Ok(FileStamp::from(&found)) } else { Err(ErrorKind::InvalidInput.into()) }
}

/// Temporary file, removed on drop unless it was renamed.
#[derive(Debug)]
struct TemporaryFile(PathBuf);

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // After a rename nothing is left to remove. If the removal fails, the next `InputStore::open` removes the
        // file.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests;
