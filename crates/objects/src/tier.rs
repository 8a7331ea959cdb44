//! Tier in object storage: one object per region, created only if its name is unused.
//!
//! A dedicated runtime does the network I/O while the caller waits. The tier retries every request for a limited time, up to
//! a deadline. It digests content on read, and moves a corrupt object to quarantine within the bucket. It enforces the
//! capacity by the last listing and the insertions and removals of this process, so several processes can exceed it
//! together. Large regions are uploaded in parts, several at once.

use crate::S3Location;
use crate::client::{self, Timeouts, put};
use futures_util::TryStreamExt;
use object_store::path::Path as ObjectPath;
use object_store::{Error, ObjectMeta, ObjectStore, ObjectStoreExt};
use parking_lot::Mutex;
use pleach_regions::{DataRegion, RegionKey};
use pleach_storage::{
    Durability, Inserted, Quarantined, RegionFile, RegionLoss, Tier, TierError, TierLocation, TierMaintenance,
};
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, SystemTime};
use tokio::runtime::Runtime;

/// Maximum retry time for transient failures (an overloaded server, a broken connection): 30 s.
const RETRY_SECONDS: u64 = 30;

/// 120 s: enough for a 1 GB region over a slow line. After this the caller gets an error, even if retries remain.
const DEADLINE: Duration = Duration::from_secs(120);

const SUFFIX: &str = ".region";
const QUARANTINE: &str = "quarantine";

/// Sizes of known objects, and of uploads in progress.
#[derive(Debug, Default)]
struct ObjectIndex {
    regions: HashMap<RegionKey, u64>,
    held_bytes: u64,
}

impl ObjectIndex {
    fn add(&mut self, key: RegionKey, bytes: u64) {
        let before = self.regions.insert(key, bytes).unwrap_or(0);
        self.held_bytes = self.held_bytes - before + bytes;
    }

    fn forget(&mut self, key: RegionKey) {
        self.held_bytes -= self.regions.remove(&key).unwrap_or(0);
    }
}

/// Tier that stores data regions in a bucket.
#[derive(Debug)]
pub struct S3Tier {
    store: Arc<dyn ObjectStore>,
    address: String,
    prefix: String,
    capacity_bytes: u64,
    /// Each change is one call, so a panic leaves the index consistent.
    books: Mutex<ObjectIndex>,
    reserved_bytes: AtomicU64,
    /// `None` during drop.
    runtime: Option<Runtime>,
}

impl S3Tier {
    /// Opens and lists an existing location.
    ///
    /// # Errors
    /// Returns [`TierError::Io`] if it cannot be reached or listed.
    pub fn open(bucket: &S3Location, capacity_bytes: u64) -> Result<Self, TierError> {
        let address = bucket.address();
        let failed =
            |source| TierError::Io { action: "open the tier", path: PathBuf::from(&address), source };
        let timeouts = Timeouts { request: DEADLINE, retry: Duration::from_secs(RETRY_SECONDS) };
        let store = client::connect(bucket, timeouts).map_err(failed)?;
        let runtime = client::runtime().map_err(failed)?;
        let tier = Self {
            store,
            prefix: bucket.prefix.clone(),
            capacity_bytes,
            books: Mutex::default(),
            reserved_bytes: AtomicU64::new(0),
            runtime: Some(runtime),
            address,
        };
        tier.refresh()?;
        Ok(tier)
    }

    /// Replaces the index by a listing of the location, which shows the changes of other processes.
    fn refresh(&self) -> Result<(), TierError> {
        let found = self.found()?;
        let mut books = ObjectIndex::default();
        for object in found {
            match key_of(&object.location) {
                Some(key) => books.add(key, object.size),
                // Quarantined objects count as well.
                None => books.held_bytes += object.size,
            }
        }
        *self.books.lock() = books;
        Ok(())
    }

    /// Lists the objects of the location, with times by the server's clock.
    fn found(&self) -> Result<Vec<ObjectMeta>, TierError> {
        let prefix = ObjectPath::from(self.prefix.as_str());
        self.perform("list", &prefix, |store| {
            let prefix = prefix.clone();
            async move { store.list(Some(&prefix)).try_collect().await }
        })
    }

    fn object(&self, key: RegionKey) -> ObjectPath {
        let name = key.to_string();
        ObjectPath::from(format!("{}/{}/{name}{SUFFIX}", self.prefix, &name[..2]))
    }

    fn shown(&self, object: &ObjectPath) -> PathBuf {
        let within = object.as_ref().strip_prefix(&self.prefix).unwrap_or(object.as_ref());
        PathBuf::from(format!("{}/{}", self.address, within.trim_start_matches('/')))
    }

    /// Runs an operation on the runtime and waits for it. A missing object is an error.
    fn perform<T: Send + 'static, F>(
        &self,
        action: &'static str,
        object: &ObjectPath,
        act: impl FnOnce(Arc<dyn ObjectStore>) -> F,
    ) -> Result<T, TierError>
    where
        F: Future<Output = Result<T, Error>> + Send + 'static,
    {
        let failed = |source| TierError::Io { action, path: self.shown(object), source };
        let Some(runtime) = &self.runtime else { return Err(failed(io::ErrorKind::BrokenPipe.into())) };
        // Waits on a channel, since `block_on` panics on a thread that drives another runtime.
        let (answer, wait) = mpsc::channel();
        let acting = act(Arc::clone(&self.store));
        runtime.spawn(async move {
            // The caller holds the receiver until the answer arrives, so sending cannot fail.
            let _ = answer.send(tokio::time::timeout(DEADLINE, acting).await);
        });
        match wait.recv() {
            Ok(Ok(Ok(done))) => Ok(done),
            Ok(Ok(Err(error))) => Err(failed(client::system_error(error))),
            Ok(Err(_)) => Err(failed(io::ErrorKind::TimedOut.into())),
            // The task has panicked, and so closed its end of the channel.
            Err(_) => Err(failed(io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// Reserves space for an object. The caller releases it.
    fn reserve(&self, key: RegionKey, needed_bytes: u64) -> Result<(), TierError> {
        // Holds the index lock to the end, so that two reservations cannot both pass the check.
        let books = self.books.lock();
        let held_bytes = books.held_bytes + self.reserved_bytes.load(Ordering::Relaxed);
        if held_bytes.saturating_add(needed_bytes) > self.capacity_bytes {
            let (place, capacity_bytes) = (TierLocation::Bucket(self.address.clone()), self.capacity_bytes);
            return Err(TierError::Full { key, place, needed_bytes, held_bytes, capacity_bytes });
        }
        // Relaxed: the reservation changes only under the index lock.
        let before = self.reserved_bytes.fetch_add(needed_bytes, Ordering::Relaxed);
        let capacity_bytes = self.capacity_bytes;
        assert!(
            before.saturating_add(needed_bytes) <= capacity_bytes,
            "{key} of {needed_bytes} bytes is reserved beside {before}, of {capacity_bytes}"
        );
        Ok(())
    }

    /// Moves a corrupt object to quarantine. `None` if that fails.
    fn quarantine(&self, key: RegionKey, object: &ObjectPath) -> Option<PathBuf> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        // The number only keeps names apart, so truncation does no harm.
        let name = format!("{}/{QUARANTINE}/{key}.{:016x}{SUFFIX}", self.prefix, now.as_nanos() as u64);
        let away = ObjectPath::from(name);
        let (from, to) = (object.clone(), away.clone());
        // S3 has no rename. The copy comes first, so that a failure loses no content.
        let moved = self.perform("move away", object, |store| async move {
            store.copy(&from, &to).await?;
            store.delete(&from).await
        });
        moved.is_ok().then(|| self.shown(&away))
    }
}

impl Drop for S3Tier {
    fn drop(&mut self) {
        // Waiting is not allowed on threads of another runtime, and no work is left to wait for.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Returns the key of the region in an object, parsed from its name.
fn key_of(object: &ObjectPath) -> Option<RegionKey> {
    let mut parts = object.as_ref().rsplit('/');
    let digits = parts.next()?.strip_suffix(SUFFIX)?;
    let key = RegionKey(u128::from_str_radix(digits, 16).ok()?.to_be_bytes());
    (key.to_string() == digits && parts.next() == Some(&digits[..2])).then_some(key)
}

/// Converts the error for a missing object to `None`.
fn or_none<T>(done: Result<T, TierError>) -> Result<Option<T>, TierError> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(TierError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl Tier for S3Tier {
    fn insert(&self, key: RegionKey, region: &Arc<DataRegion>) -> Result<Inserted, TierError> {
        // Spares an upload. The conditional write decides between concurrent insertions.
        if self.contains(key)? {
            return Ok(Inserted::AlreadyPresent);
        }
        let bytes = region.encode(&region.digest());
        let (object, length) = (self.object(key), bytes.len() as u64);
        self.reserve(key, length)?;
        let put = self.perform("write", &object, |store| {
            let object = object.clone();
            async move { put(&*store, &object, bytes).await }
        });
        // The object replaces its reservation under the index lock, so that `reserve` counts exactly one of them.
        let mut books = self.books.lock();
        let reserved_bytes = self.reserved_bytes.fetch_sub(length, Ordering::Relaxed);
        assert!(
            reserved_bytes >= length,
            "{key} of {length} bytes is written, {reserved_bytes} were reserved"
        );
        match put {
            Ok(_) => {
                books.add(key, length);
                Ok(Inserted::New)
            }
            // Another process has stored the region first, or a retry followed a request with a lost response.
            Err(TierError::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
                books.add(key, length);
                Ok(Inserted::AlreadyPresent)
            }
            Err(error) => Err(error),
        }
    }

    fn get(&self, key: RegionKey) -> Result<Option<Arc<DataRegion>>, TierError> {
        let object = self.object(key);
        let read = self.perform("read", &object, |store| {
            let object = object.clone();
            async move { store.get(&object).await?.bytes().await }
        });
        let Some(bytes) = or_none(read)? else {
            self.books.lock().forget(key);
            return Ok(None);
        };
        match DataRegion::decode(&bytes) {
            Ok((region, _)) => Ok(Some(Arc::new(region))),
            Err(source) => {
                let quarantined = self.quarantine(key, &object);
                let mut books = self.books.lock();
                books.forget(key);
                // The content still takes its space, in quarantine or under its old name.
                books.held_bytes += bytes.len() as u64;
                let source = RegionLoss::Damaged { quarantined, source };
                Err(TierError::Lost { key, path: self.shown(&object), source })
            }
        }
    }

    fn remove(&self, key: RegionKey) -> Result<bool, TierError> {
        // S3 does not report the removal of a missing object as an error.
        let was_there = self.contains(key)?;
        let object = self.object(key);
        let gone = self.perform("remove", &object, |store| {
            let object = object.clone();
            async move { store.delete(&object).await }
        });
        or_none(gone)?;
        self.books.lock().forget(key);
        Ok(was_there)
    }

    fn contains(&self, key: RegionKey) -> Result<bool, TierError> {
        let object = self.object(key);
        let found = self.perform("look for", &object, |store| {
            let object = object.clone();
            async move { store.head(&object).await }
        });
        Ok(or_none(found)?.is_some())
    }

    fn list(&self) -> Result<Vec<RegionKey>, TierError> {
        self.refresh()?;
        let mut keys: Vec<RegionKey> = self.books.lock().regions.keys().copied().collect();
        keys.sort_unstable();
        Ok(keys)
    }

    fn held_bytes(&self) -> u64 {
        self.books.lock().held_bytes + self.reserved_bytes.load(Ordering::Relaxed)
    }

    fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    fn durability(&self) -> Durability {
        Durability::PowerLoss
    }
}

impl TierMaintenance for S3Tier {
    fn inventory(&self) -> Result<Vec<RegionFile>, TierError> {
        let region = |object: ObjectMeta| {
            let (disk_bytes, modified) = (object.size, object.last_modified.into());
            key_of(&object.location).map(|key| RegionFile { key, disk_bytes, modified, is_packed: false })
        };
        let mut all: Vec<RegionFile> = self.found()?.into_iter().filter_map(region).collect();
        all.sort_unstable_by_key(|region| region.key);
        Ok(all)
    }

    fn quarantine_files(&self) -> Result<Vec<Quarantined>, TierError> {
        let folder = ObjectPath::from(format!("{}/{QUARANTINE}", self.prefix));
        let away = |object: ObjectMeta| {
            object.location.prefix_matches(&folder).then(|| Quarantined {
                path: self.shown(&object.location),
                disk_bytes: object.size,
                modified: object.last_modified.into(),
            })
        };
        Ok(self.found()?.into_iter().filter_map(away).collect())
    }

    fn discard(&self, file: &Quarantined) -> Result<(), TierError> {
        let name = file.path.file_name().unwrap_or_default().to_string_lossy();
        let object = ObjectPath::from(format!("{}/{QUARANTINE}/{name}", self.prefix));
        let gone = self.perform("remove", &object, |store| {
            let object = object.clone();
            async move { store.delete(&object).await }
        });
        or_none(gone)?;
        let mut books = self.books.lock();
        // Saturates: a file that another process has quarantined since the last listing is not counted.
        books.held_bytes = books.held_bytes.saturating_sub(file.disk_bytes);
        Ok(())
    }

    /// Returns 0. Each region is its own object, so compaction frees no bytes.
    fn compact(&self) -> usize {
        0
    }
}
