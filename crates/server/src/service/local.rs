//! Lookup of input files at their client's paths, for managers that share a file system with clients.
//!
//! A submission names paths of its client's machine. On the manager such a path may be another file, a pipe, an
//! endless device or a hanging mount. So the lookup opens regular files only and reads at most 1 byte more than the
//! file should have. Each lookup runs on a thread of its own, which is left behind when it hangs. No lock is held
//! meanwhile.

use crate::input_store::InputStore;
use pleach_api::digest::InputDigest;
use rustix::fs::OFlags;
use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::Builder;
use std::time::Duration;
use thiserror::Error;

/// 5 s without a block mean that the file system hangs. Slow file systems return a block within 1 s.
const PATIENCE: Duration = Duration::from_secs(5);

/// 1 MiB per read.
const BLOCK_BYTES: usize = 1 << 20;

/// Maximum number of hanging threads. Each ends when its file system answers.
const MAX_HANGING: usize = 16;

static HANGING: AtomicUsize = AtomicUsize::new(0);

/// Path of a submission that is a device, pipe or socket on the manager, so that no client can have read it as a
/// file.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("inputs: path {}: {found} is not allowed; a regular file is allowed", path.display())]
pub(crate) struct NotRegularFile {
    path: PathBuf,
    found: &'static str,
}

/// Lookup of the files of one submission.
#[derive(Debug)]
pub(crate) struct Lookup<'a> {
    store: &'a InputStore,
    patience: Duration,
    /// Whether a file system hung. From then on, files that are not in the store count as missing, and their client
    /// sends them.
    has_hung: AtomicBool,
}

impl<'a> Lookup<'a> {
    pub(crate) fn new(store: &'a InputStore) -> Self {
        Self { store, patience: PATIENCE, has_hung: AtomicBool::new(false) }
    }

    /// Returns the path of a file with this content: in the store, or at its client's path if the content is the
    /// same. Returns `None` if neither place has it, or if it cannot be read in time.
    ///
    /// # Errors
    /// [`NotRegularFile`] when the path is a device, pipe or socket.
    pub(crate) fn find(
        &self,
        path: &Path,
        digest: InputDigest,
        bytes: u64,
    ) -> Result<Option<PathBuf>, NotRegularFile> {
        if self.store.has(digest) {
            return Ok(Some(self.store.path(digest)));
        }
        // Relaxed: both are bounds on waiting and guard no other memory.
        if self.has_hung.load(Ordering::Relaxed) || HANGING.load(Ordering::Relaxed) >= MAX_HANGING {
            return Ok(None);
        }
        let looked = self.inspect(path, bytes)?;
        Ok((looked == Some(digest)).then(|| path.to_owned()))
    }

    fn inspect(&self, path: &Path, bytes: u64) -> Result<Option<InputDigest>, NotRegularFile> {
        let (answer, answered) = channel();
        let read = Arc::new(AtomicU64::new(0));
        let (of, counted) = (path.to_owned(), Arc::clone(&read));
        let look = move || {
            // The caller may have given up the lookup.
            let _ = answer.send(digest(&of, bytes, &counted));
        };
        let Ok(thread) = Builder::new().name("input".to_owned()).spawn(look) else { return Ok(None) };
        let mut before = 0;
        loop {
            match answered.recv_timeout(self.patience) {
                Ok(looked) => return looked,
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
            }
            let now = read.load(Ordering::Relaxed);
            // Bytes since the last wait show a slow file system, which is not a hanging one.
            if now == before {
                self.has_hung.store(true, Ordering::Relaxed);
                HANGING.fetch_add(1, Ordering::Relaxed);
                // The thread counts as hanging until its file system answers.
                let wait = move || {
                    let _ = thread.join();
                    HANGING.fetch_sub(1, Ordering::Relaxed);
                };
                // Without a thread that waits, the count would never decrease.
                if Builder::new().name("input".to_owned()).spawn(wait).is_err() {
                    HANGING.fetch_sub(1, Ordering::Relaxed);
                }
                return Ok(None);
            }
            before = now;
        }
    }
}

/// Returns the digest of a regular file with this length. `None` if the length differs or the file cannot be read.
fn digest(path: &Path, bytes: u64, read: &AtomicU64) -> Result<Option<InputDigest>, NotRegularFile> {
    let is_it = |facts: &Metadata| match irregular(facts.file_type()) {
        Some(found) => Err(NotRegularFile { path: path.to_owned(), found }),
        None => Ok(facts.is_file() && facts.len() == bytes),
    };
    // Before the file is opened: opening some devices has side effects.
    let Ok(facts) = path.metadata() else { return Ok(None) };
    if !is_it(&facts)? {
        return Ok(None);
    }
    // The path may have changed since the check: a pipe must not block, and a terminal must not take control of the
    // process.
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
    let opened = OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path);
    let Ok((file, facts)) = opened.and_then(|file| file.metadata().map(|facts| (file, facts))) else {
        return Ok(None);
    };
    // Checked again on the open file, because the path may have been replaced since the first check.
    if !is_it(&facts)? {
        return Ok(None);
    }
    Ok(digest_of(&file, bytes, read).ok())
}

fn digest_of(file: &File, bytes: u64, read: &AtomicU64) -> io::Result<InputDigest> {
    let (mut hasher, mut block) = (blake3::Hasher::new(), vec![0; BLOCK_BYTES]);
    // One byte more than expected: a file that has grown gets another digest.
    let mut file = file.take(bytes.saturating_add(1));
    loop {
        match file.read(&mut block)? {
            0 => return Ok(hasher.finalize().into()),
            length => {
                hasher.update(&block[..length]);
                read.fetch_add(length as u64, Ordering::Relaxed);
            }
        }
    }
}

/// Names the kind of a file that no client can have read as input. `None` for regular files and for folders: a folder
/// may have taken the place of a client's file.
fn irregular(kind: FileType) -> Option<&'static str> {
    if kind.is_fifo() {
        Some("a pipe (FIFO)")
    } else if kind.is_socket() {
        Some("a socket")
    } else if kind.is_char_device() || kind.is_block_device() {
        Some("a device")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType as Kind, Mode, mknodat};
    use std::fs;
    use std::os::unix::net::UnixListener;

    fn look(place: &Path, name: &str, content: &[u8]) -> Result<Option<PathBuf>, NotRegularFile> {
        let store = InputStore::open(&place.join("store")).unwrap();
        let (digest, bytes) = (blake3::hash(content).into(), content.len() as u64);
        Lookup::new(&store).find(&place.join(name), digest, bytes)
    }

    #[test]
    fn path_that_is_no_regular_file_is_refused_unread() {
        let place = tempfile::tempdir().unwrap();
        mknodat(CWD, place.path().join("fifo"), Kind::Fifo, Mode::RWXU, 0).unwrap();
        let _socket = UnixListener::bind(place.path().join("socket")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", place.path().join("zero")).unwrap();
        for (name, found) in [("fifo", "a pipe (FIFO)"), ("socket", "a socket"), ("zero", "a device")] {
            let path = place.path().join(name);
            let expected =
                format!("inputs: path {}: {found} is not allowed; a regular file is allowed", path.display());
            assert_eq!(look(place.path(), name, b"one").unwrap_err().to_string(), expected);
        }
    }

    #[test]
    fn file_elsewhere_is_found_only_with_its_content_and_length() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("folder")).unwrap();
        fs::write(place.path().join("same"), b"one").unwrap();
        fs::write(place.path().join("other"), b"two").unwrap();
        fs::write(place.path().join("longer"), b"onetwo").unwrap();
        assert_eq!(look(place.path(), "same", b"one"), Ok(Some(place.path().join("same"))));
        for name in ["other", "longer", "folder", "nothing"] {
            assert_eq!(look(place.path(), name, b"one"), Ok(None), "{name}");
        }
        // A sparse file of 1 TiB is rejected by its length, unread.
        let sparse = File::create(place.path().join("sparse")).unwrap();
        sparse.set_len(1 << 40).unwrap();
        assert_eq!(look(place.path(), "sparse", b"one"), Ok(None));
    }
}
