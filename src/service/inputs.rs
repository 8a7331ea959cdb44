//! The input store: files that clients have sent since the manager lacks them, by the BLAKE3 digest of their content.
//!
//! A file is seen under its digest once all of it is on disk and has that digest, or not at all. The store belongs to one
//! process at a time, and its files to its user alone. A file is verified once in a process, before it counts as stored, and
//! again when its looks change or a worker has found it damaged. A damaged file is set aside as `DIGEST.damaged`, so that a
//! client can send it again. The store does not know which files are wanted.

use pleach_storage::files::{Looks, private};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use thiserror::Error;
use tracing::error;

/// What a file has at the end of its name while it is being received.
const PART: &str = ".part";

/// The end of a damaged file's name.
const DAMAGED: &str = ".damaged";

/// BLAKE3 of a file's content; as text, 64 hexadecimal digits in lower case.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct InputDigest([u8; 32]);

/// A text is no digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("64 hexadecimal digits in lower case are allowed, the BLAKE3 of a file")]
pub(crate) struct NoDigest;

impl InputDigest {
    /// As bytes.
    pub(crate) fn bytes(self) -> [u8; 32] {
        self.0
    }
}

impl From<blake3::Hash> for InputDigest {
    fn from(hash: blake3::Hash) -> Self {
        Self(hash.into())
    }
}

impl FromStr for InputDigest {
    type Err = NoDigest;

    fn from_str(text: &str) -> Result<Self, NoDigest> {
        // One file has one name, so there is one way to write a digest.
        if text.bytes().any(|digit| digit.is_ascii_uppercase()) {
            return Err(NoDigest);
        }
        blake3::Hash::from_hex(text).map(Self::from).map_err(|_| NoDigest)
    }
}

impl TryFrom<String> for InputDigest {
    type Error = NoDigest;

    fn try_from(text: String) -> Result<Self, NoDigest> {
        text.parse()
    }
}

impl From<InputDigest> for String {
    fn from(digest: InputDigest) -> Self {
        digest.to_string()
    }
}

impl fmt::Display for InputDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

/// Why a file is not in the store.
#[derive(Debug, Error)]
pub(crate) enum InputError {
    /// The disk is full.
    #[error("no room for input files in {}", .0.display())]
    Full(PathBuf),
    /// The store cannot be read or written.
    #[error("{}: {source}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// What has been received is another file.
    #[error("the file's digest is {found}, not {expected}")]
    Other {
        /// What was to be received.
        expected: InputDigest,
        /// What was.
        found: InputDigest,
    },
}

impl InputError {
    /// What went wrong at a file of the store.
    pub(crate) fn at(path: &Path, source: io::Error) -> Self {
        match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                Self::Full(path.parent().unwrap_or(path).to_owned())
            }
            _ => Self::File { path: path.to_owned(), source },
        }
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct InputStore {
    folder: PathBuf,
    /// So that two clients may send the same file at once.
    received: AtomicU64,
    verified: Verified,
}

/// Files whose content was verified, by their looks. Held while a file gets or loses its name: a good file that has just
/// replaced a damaged one is not set aside for it.
#[derive(Clone, Debug, Default)]
struct Verified(Arc<Mutex<HashMap<InputDigest, Looks>>>);

impl Verified {
    fn lock(&self) -> MutexGuard<'_, HashMap<InputDigest, Looks>> {
        // Each change is one call.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InputStore {
    /// The store of a folder, which is made where there is none. What was being received when the last process ended
    /// is removed.
    ///
    /// # Errors
    /// [`InputError::Full`] and [`InputError::File`].
    pub(crate) fn open(folder: &Path) -> Result<Self, InputError> {
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

    /// Whether there is a file of this name, whole or damaged.
    pub(crate) fn names(&self, digest: InputDigest) -> bool {
        self.path(digest).is_file()
    }

    /// Whether the file is here, and whole. The first time it takes as long as reading the file. A damaged file is set
    /// aside.
    pub(crate) fn has(&self, digest: InputDigest) -> bool {
        let path = self.path(digest);
        let Ok(looks) = looks(&path) else { return false };
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
            Ok(_) => "its content has another digest than its name".to_owned(),
            Err(error) => format!("it cannot be read: {error}"),
        };
        self.set_aside(digest, looks, &why);
        false
    }

    /// Verifies a file although its looks are known: it was found damaged as it was read.
    pub(crate) fn has_still(&self, digest: InputDigest) -> bool {
        self.verified.lock().remove(&digest);
        self.has(digest)
    }

    /// Takes a damaged file's name from it, unless another file has that name by now.
    fn set_aside(&self, digest: InputDigest, damaged: Looks, why: &str) {
        let path = self.path(digest);
        let away = self.folder.join(format!("{digest}{DAMAGED}"));
        let mut verified = self.verified.lock();
        if looks(&path).ok() != Some(damaged) {
            return;
        }
        verified.remove(&digest);
        let moved = match fs::rename(&path, &away) {
            Ok(()) => format!("it is set aside as {}", away.display()),
            Err(error) => format!("it could not be set aside: {error}"),
        };
        error!("the input file {} is damaged: {why}; {moved}; pleach submit sends it again", path.display());
    }

    /// Where all files are.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the file is, if it is here.
    pub(crate) fn path(&self, digest: InputDigest) -> PathBuf {
        self.folder.join(digest.to_string())
    }

    /// Removes files, and folders of links to them, that are not among `kept` by their names and were written longer ago
    /// than `grace`. Returns the bytes of the files.
    ///
    /// # Errors
    /// [`InputError::File`].
    pub(crate) fn prune(&self, kept: &HashSet<String>, grace: Duration) -> Result<u64, InputError> {
        let mut bytes = 0;
        for entry in fs::read_dir(&self.folder).map_err(|source| InputError::at(&self.folder, source))? {
            let entry = entry.map_err(|source| InputError::at(&self.folder, source))?;
            let (name, path) = (entry.file_name().to_string_lossy().into_owned(), entry.path());
            let digest = name.split('.').next().unwrap_or_default();
            if name.ends_with(PART) || kept.contains(&name) || digest.parse::<InputDigest>().is_err() {
                continue;
            }
            let fail = |source| InputError::at(&path, source);
            let found = entry.metadata().map_err(fail)?;
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

    /// Begins to receive a file.
    ///
    /// # Errors
    /// [`InputError::Full`] and [`InputError::File`].
    pub(crate) fn receive(&self, digest: InputDigest) -> Result<Receiving, InputError> {
        let number = self.received.fetch_add(1, Ordering::Relaxed);
        let part = self.folder.join(format!("{digest}.{number}{PART}"));
        let file = private::options()
            .write(true)
            .create_new(true)
            .open(&part)
            .map_err(|source| InputError::at(&part, source))?;
        let target = self.path(digest);
        let (hasher, verified) = (blake3::Hasher::new(), self.verified.clone());
        Ok(Receiving { expected: digest, hasher, file, part: Part(part), target, verified })
    }
}

/// A file that is being received; dropped before its end, it is gone.
#[derive(Debug)]
pub(crate) struct Receiving {
    expected: InputDigest,
    hasher: blake3::Hasher,
    file: File,
    part: Part,
    target: PathBuf,
    verified: Verified,
}

impl Receiving {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// [`InputError::Full`] and [`InputError::File`].
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<(), InputError> {
        self.hasher.update(bytes);
        self.file.write_all(bytes).map_err(|source| InputError::at(&self.part.0, source))
    }

    /// All bytes have been taken. When this returns well the file is in the store, and on disk; its length is returned.
    ///
    /// # Errors
    /// [`InputError`]; the file is not in the store then.
    pub(crate) fn finish(self) -> Result<u64, InputError> {
        let found = InputDigest::from(self.hasher.finalize());
        if found != self.expected {
            return Err(InputError::Other { expected: self.expected, found });
        }
        let fail = |source| InputError::at(&self.part.0, source);
        self.file.sync_all().map_err(fail)?;
        let mut verified = self.verified.lock();
        fs::rename(&self.part.0, &self.target).map_err(fail)?;
        // What was digested is what was written; a medium that changes it meanwhile is found out by the next start.
        verified.extend(looks(&self.target).ok().map(|looks| (self.expected, looks)));
        drop(verified);
        // The rename is durable once the folder is.
        let folder = self.target.parent().unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(fail)?;
        Ok(self.hasher.count())
    }
}

/// The looks of a regular file.
fn looks(path: &Path) -> io::Result<Looks> {
    let found = fs::metadata(path)?;
    if found.is_file() { Ok(Looks::from(&found)) } else { Err(ErrorKind::InvalidInput.into()) }
}

/// A temporary file; it goes when this does, unless it has got its name.
#[derive(Debug)]
struct Part(PathBuf);

impl Drop for Part {
    fn drop(&mut self) {
        // After a rename there is nothing to remove; what cannot be removed goes when the store is opened next.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests;
