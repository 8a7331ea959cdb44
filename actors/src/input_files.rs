//! Input files of a worker: opened locally if present, otherwise fetched from the manager by content digest.
//!
//! The files of a multi-file slide are located one by one and then linked into one folder (`input_files/slide_links.rs`).
//!
//! A file is present if a local file has its content digest, at any path. Fetched files are stored by digest in a folder,
//! with an atomic publish (write, fsync, rename). Each is verified before its first use in a process. A corrupt file is
//! removed and fetched again. All files are private, because they are images of other users.

mod slide_links;

pub use slide_links::{gather, gathered};

use crate::exchange::file_key;
use crate::transport::quic::RegionArrival;
use parking_lot::Mutex;
use pleach_dispatch::message::FileContent;
use pleach_regions::{Digest, RegionKey};
use pleach_storage::files::FileStamp;
use pleach_storage::files::private::{self, Claim};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tracing::warn;

/// Result of a fetch: a file or an error.
type FetchResult = Option<Result<PathBuf, String>>;

/// Requested content, with the channel of its waiting callers.
type Awaited = ([u8; 32], watch::Sender<FetchResult>);

/// Store of a worker's input files.
#[derive(Debug)]
pub struct InputFileStore {
    folder: PathBuf,
    /// Requests content from the manager.
    ask: UnboundedSender<[u8; 32]>,
    digested: Mutex<HashMap<PathBuf, (FileStamp, [u8; 32])>>,
    /// Locked while the files of a slide are linked.
    gathering: Mutex<()>,
    /// Requested content, by the key of its transfer.
    awaited: Mutex<HashMap<RegionKey, Awaited>>,
}

impl InputFileStore {
    /// Opens a store of fetched files in `folder`, which requests missing content through `ask`. Removes incomplete files of
    /// earlier processes.
    ///
    /// # Errors
    /// Returns an error if the folder cannot be created.
    pub fn open(folder: PathBuf, ask: UnboundedSender<[u8; 32]>) -> io::Result<Self> {
        match private::claim(&folder)? {
            Claim::Private => {}
            claim => warn!("{}: {claim}", folder.display()),
        }
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "part") {
                fs::remove_file(path)?;
            }
        }
        let (digested, gathering, awaited) = (Mutex::default(), Mutex::default(), Mutex::default());
        Ok(Self { folder, ask, digested, gathering, awaited })
    }

    /// Returns the path of a file if it and all its companions are present. Reads the files at their paths, unless it did so
    /// before.
    ///
    /// # Errors
    /// Returns the path of a missing file.
    pub fn open_local(&self, file: &FileContent) -> Result<PathBuf, String> {
        let place = |part: FileContent| self.local_part(&part).ok_or(part.path);
        // Digested without the lock, because a large file takes long.
        let places = file.parts().map(place).collect::<Result<Vec<PathBuf>, String>>()?;
        // Tasks of several slots may link the same slide at once.
        let _one_by_one = self.gathering.lock();
        gather(&self.folder, file, places).map_err(|error| format!("{}: {error}", file.path))
    }

    fn local_part(&self, file: &FileContent) -> Option<PathBuf> {
        let kept = self.stored_path(&file.digest);
        match self.digest(&kept) {
            Some(found) if found == file.digest => return Some(kept),
            Some(_) => self.discard(&kept),
            None => {}
        }
        let path = Path::new(&file.path);
        (self.digest(path)? == file.digest).then(|| path.to_owned())
    }

    /// Fetches a missing file and its companions from the manager.
    ///
    /// # Errors
    /// Names the unavailable file and the cause.
    pub async fn fetch(&self, file: &FileContent) -> Result<(), String> {
        for part in file.parts() {
            self.fetch_part(&part).await.map_err(|cause| format!("{}: {cause}", part.path))?;
        }
        Ok(())
    }

    /// Returns the paths of a file and its companions, in order. Fetches those that are missing.
    ///
    /// # Errors
    /// Names the unavailable file and the cause.
    pub async fn fetch_parts(self: &Arc<Self>, file: &FileContent) -> Result<Vec<PathBuf>, String> {
        let mut paths = Vec::new();
        for part in file.parts() {
            let (store, wanted) = (Arc::clone(self), part.clone());
            // Large files are digested beside other work.
            let found = tokio::task::spawn_blocking(move || store.local_part(&wanted)).await;
            let path = match found.map_err(|error| error.to_string())? {
                Some(path) => path,
                None => self.fetch_part(&part).await.map_err(|cause| format!("{}: {cause}", part.path))?,
            };
            paths.push(path);
        }
        Ok(paths)
    }

    async fn fetch_part(&self, file: &FileContent) -> Result<PathBuf, String> {
        if let Some(path) = self.local_part(file) {
            return Ok(path);
        }
        let key = file_key(&Digest(file.digest));
        let (mut come, is_first) = {
            let mut awaited = self.awaited.lock();
            // Registered before the request, so that an answer finds its callers. Only the first caller requests.
            let is_first = !awaited.contains_key(&key);
            let entry = awaited.entry(key).or_insert_with(|| (file.digest, watch::channel(None).0));
            (entry.1.subscribe(), is_first)
        };
        if is_first && self.ask.send(file.digest).is_err() {
            return Err("the worker is shutting down".to_owned());
        }
        let come = come.wait_for(Option::is_some).await.map(|come| come.clone());
        match come {
            Ok(Some(come)) => come,
            _ => Err("the worker is shutting down".to_owned()),
        }
    }

    /// Returns requested content that has not arrived, to request it again over a new connection.
    #[must_use]
    pub fn awaited(&self) -> Vec<[u8; 32]> {
        let awaited = self.awaited.lock();
        awaited.values().map(|(digest, _)| *digest).collect()
    }

    /// Stores an arrival that may be a requested file, and passes it to its waiting callers. May block.
    pub fn arrived(&self, arrival: RegionArrival) {
        let (key, content) = match arrival {
            Ok(region) => (region.key, Ok(region.bytes)),
            Err(lost) => {
                let why = format!("the transfer was incomplete, the file may have changed: {lost}");
                (lost.key, Err(why))
            }
        };
        // Unlocked before the hash and the write, so that new requests need not wait for the disk.
        let digest = {
            let awaited = self.awaited.lock();
            awaited.get(&key).map(|(digest, _)| *digest)
        };
        // Stored already, if it was requested over two connections and has arrived over both.
        let Some(digest) = digest else { return };
        let kept = content.and_then(|bytes| {
            let path = self.stored_path(&digest);
            let fail = |error| format!("failed to store an input file as {}: {error}", path.display());
            // Hashed again: the key has only half of the digest, and the transfer verifies the digest that its sender
            // announced.
            if *blake3::hash(&bytes).as_bytes() != digest {
                return Err(
                    "the content of the received input file does not match the requested digest".to_owned()
                );
            }
            self.keep(&path, &bytes).map(|()| path.clone()).map_err(fail)
        });
        self.come(key, kept);
    }

    /// Handles the manager's answer that it does not have the content.
    pub fn refused(&self, digest: &[u8; 32]) {
        let why = "not in the input store of the manager; submit the study again with its files".to_owned();
        self.come(file_key(&Digest(*digest)), Err(why));
    }

    fn come(&self, key: RegionKey, what: Result<PathBuf, String>) {
        let mut awaited = self.awaited.lock();
        if let Some((_, come)) = awaited.remove(&key) {
            come.send_replace(Some(what));
        }
    }

    /// Handles a file whose content differs from its known digest. A fetched file is removed, so that the next task fetches
    /// it again.
    pub fn handle_corrupt(&self, digest: &[u8; 32]) {
        let kept = self.stored_path(digest);
        // Forces a new digest, because bits may change on a disk without a new stamp.
        self.digested.lock().remove(&kept);
        if self.digest(&kept).is_some_and(|found| found != *digest) {
            self.discard(&kept);
        }
    }

    /// Removes a corrupt file.
    fn discard(&self, kept: &Path) {
        warn!(
            "removed the corrupt input file {}: its content does not match the digest in its name; the next \
             task fetches it again",
            kept.display()
        );
        self.digested.lock().remove(kept);
        // The next fetch replaces a file that cannot be removed.
        let _ = fs::remove_file(kept);
    }

    fn stored_path(&self, digest: &[u8; 32]) -> PathBuf {
        self.folder.join(blake3::Hash::from_bytes(*digest).to_hex().as_str())
    }

    /// Stores content under the digest in its name.
    fn keep(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let part = path.with_extension("part");
        let mut options = private::options();
        let created = options.write(true).create(true).truncate(true).open(&part);
        let written = created.and_then(|mut file| {
            file.write_all(bytes)?;
            // Before the rename: after a crash, no file under a digest may be incomplete.
            file.sync_data()
        });
        let renamed = written.and_then(|()| fs::rename(&part, path));
        if renamed.is_err() {
            // An incomplete file would take up space.
            let _ = fs::remove_file(&part);
        }
        // The rename is on disk only after the folder is synced.
        renamed.and_then(|()| File::open(&self.folder)?.sync_all())
    }

    fn digest(&self, path: &Path) -> Option<[u8; 32]> {
        let facts = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        // Taken before the read, so that a change during the read makes the next call digest the file again.
        let looks = FileStamp::from(&facts);
        let known = self.digested.lock().get(path).copied();
        if let Some((_, digest)) = known.filter(|(before, _)| *before == looks) {
            return Some(digest);
        }
        // The file is read without the lock, so that other files do not wait.
        let mut hash = blake3::Hasher::new();
        hash.update_reader(File::open(path).ok()?).ok()?;
        let digest = *hash.finalize().as_bytes();
        let mut digested = self.digested.lock();
        digested.insert(path.to_owned(), (looks, digest));
        Some(digest)
    }
}
