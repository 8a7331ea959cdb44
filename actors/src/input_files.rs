//! Input files on a worker: where they lie if they lie here, and otherwise fetched from the manager by what they hold.
//!
//! The files of a slide in several files are looked for one by one, and then lie together, by links (`input_files/gather.rs`).
//!
//! A file counts as here when its content has the digest that it is known by, wherever it is. Fetched files are kept in a
//! folder by digest: written under another name, synced, and renamed. Each is verified before its first use in a process; a
//! damaged one is removed and fetched again. All of them are private: they are other users' images.

mod slide_links;

pub use slide_links::{digest_of_all, digest_of_files, gather, gathered};

use crate::exchange::file_key;
use crate::transport::quic::RegionArrival;
use pleach_dispatch::message::FileContent;
use pleach_regions::{Digest, RegionKey};
use pleach_storage::files::Looks;
use pleach_storage::files::private::{self, Claim};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tracing::warn;

/// What came of a fetch: a file, or why there is none.
type Come = Option<Result<PathBuf, String>>;

/// Content that has been asked for, and those who wait for it.
type Awaited = ([u8; 32], watch::Sender<Come>);

/// See the module.
#[derive(Debug)]
pub struct InputFileStore {
    folder: PathBuf,
    /// Asks the manager for content.
    ask: UnboundedSender<[u8; 32]>,
    digested: Mutex<HashMap<PathBuf, (Looks, [u8; 32])>>,
    /// Held while the files of a slide are put together.
    gathering: Mutex<()>,
    /// Content that has been asked for, by the key under which it comes.
    awaited: Mutex<HashMap<RegionKey, Awaited>>,
}

impl InputFileStore {
    /// Keeps fetched files in `folder`; what is lacking is asked for through `ask`.
    ///
    /// # Errors
    /// When there cannot be such a folder. What an earlier process did not finish is removed.
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

    /// The file, if it is here, as a slide in several files if all of them are. It reads the files that are at their paths,
    /// unless it did before.
    ///
    /// # Errors
    /// The path of a file that is not here.
    pub fn here(&self, file: &FileContent) -> Result<PathBuf, String> {
        let place = |part: FileContent| self.part_here(&part).ok_or(part.path);
        let places = file.parts().map(place).collect::<Result<Vec<PathBuf>, String>>()?;
        let _one_by_one = self.gathering.lock().unwrap_or_else(PoisonError::into_inner);
        gather(&self.folder, file, places).map_err(|error| format!("{}: {error}", file.path))
    }

    fn part_here(&self, file: &FileContent) -> Option<PathBuf> {
        let kept = self.kept(&file.digest);
        match self.digest(&kept) {
            Some(found) if found == file.digest => return Some(kept),
            Some(_) => self.discard(&kept),
            None => {}
        }
        let path = Path::new(&file.path);
        (self.digest(path)? == file.digest).then(|| path.to_owned())
    }

    /// Has the file here, with its companions, fetched from the manager if need be.
    ///
    /// # Errors
    /// Which file cannot be had, and why.
    pub async fn fetch(&self, file: &FileContent) -> Result<(), String> {
        for part in file.parts() {
            self.get_part(&part).await.map_err(|cause| format!("{}: {cause}", part.path))?;
        }
        Ok(())
    }

    async fn get_part(&self, file: &FileContent) -> Result<PathBuf, String> {
        if let Some(path) = self.part_here(file) {
            return Ok(path);
        }
        let key = file_key(&Digest(file.digest));
        let (mut come, is_first) = {
            let mut awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
            let is_first = !awaited.contains_key(&key);
            let entry = awaited.entry(key).or_insert_with(|| (file.digest, watch::channel(None).0));
            (entry.1.subscribe(), is_first)
        };
        if is_first && self.ask.send(file.digest).is_err() {
            return Err("the worker ends".to_owned());
        }
        let come = come.wait_for(Option::is_some).await.map(|come| come.clone());
        match come {
            Ok(Some(come)) => come,
            _ => Err("the worker ends".to_owned()),
        }
    }

    /// Content that has been asked for and has not come: to be asked for again when there is a new connection.
    #[must_use]
    pub fn awaited(&self) -> Vec<[u8; 32]> {
        let awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        awaited.values().map(|(digest, _)| *digest).collect()
    }

    /// Something has come that may be a file: kept, and given to whoever waits for it. To be called where it may take
    /// time.
    pub fn arrived(&self, arrival: RegionArrival) {
        let (key, content) = match arrival {
            Ok(region) => (region.key, Ok(region.bytes)),
            Err(lost) => {
                let why = format!("it did not come whole, and may have changed where it lies: {lost}");
                (lost.key, Err(why))
            }
        };
        let digest = {
            let awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
            awaited.get(&key).map(|(digest, _)| *digest)
        };
        let Some(digest) = digest else { return };
        let kept = content.and_then(|bytes| {
            let path = self.kept(&digest);
            let fail = |error| format!("failed to keep an input file as {}: {error}", path.display());
            if *blake3::hash(&bytes).as_bytes() != digest {
                return Err("an input file came with other content than was asked for".to_owned());
            }
            self.keep(&path, &bytes).map(|()| path.clone()).map_err(fail)
        });
        self.come(key, kept);
    }

    /// The manager does not have it.
    pub fn refused(&self, digest: &[u8; 32]) {
        let why = "the manager does not have it; it has to be submitted with its files".to_owned();
        self.come(file_key(&Digest(*digest)), Err(why));
    }

    fn come(&self, key: RegionKey, what: Result<PathBuf, String>) {
        let mut awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, come)) = awaited.remove(&key) {
            come.send_replace(Some(what));
        }
    }

    /// The content of a file that is read has another digest than it was known by: if it was fetched, it is removed, so that
    /// the next task fetches it again.
    pub fn is_damaged(&self, digest: &[u8; 32]) {
        let kept = self.kept(digest);
        self.digested.lock().unwrap_or_else(PoisonError::into_inner).remove(&kept);
        if self.digest(&kept).is_some_and(|found| found != *digest) {
            self.discard(&kept);
        }
    }

    /// Removes a damaged file.
    fn discard(&self, kept: &Path) {
        warn!(
            "removed the damaged input file {}: its content has another digest than its name; it is fetched again",
            kept.display()
        );
        self.digested.lock().unwrap_or_else(PoisonError::into_inner).remove(kept);
        // What cannot be removed is replaced by the file that is fetched.
        let _ = fs::remove_file(kept);
    }

    fn kept(&self, digest: &[u8; 32]) -> PathBuf {
        self.folder.join(blake3::Hash::from_bytes(*digest).to_hex().as_str())
    }

    /// Keeps the content of a file, which has the digest that the name tells.
    fn keep(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let part = path.with_extension("part");
        let mut options = private::options();
        let created = options.write(true).create(true).truncate(true).open(&part);
        let written = created.and_then(|mut file| {
            file.write_all(bytes)?;
            file.sync_data()
        });
        let renamed = written.and_then(|()| fs::rename(&part, path));
        if renamed.is_err() {
            // Whatever there is of it takes room.
            let _ = fs::remove_file(&part);
        }
        renamed.and_then(|()| File::open(&self.folder)?.sync_all())
    }

    fn digest(&self, path: &Path) -> Option<[u8; 32]> {
        let facts = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        let looks = Looks::from(&facts);
        let known = self.digested.lock().unwrap_or_else(PoisonError::into_inner).get(path).copied();
        if let Some((_, digest)) = known.filter(|(before, _)| *before == looks) {
            return Some(digest);
        }
        let mut hash = blake3::Hasher::new();
        hash.update_reader(File::open(path).ok()?).ok()?;
        let digest = *hash.finalize().as_bytes();
        let mut digested = self.digested.lock().unwrap_or_else(PoisonError::into_inner);
        digested.insert(path.to_owned(), (looks, digest));
        Some(digest)
    }
}
