//! Public interface of the task cache, in a folder (`on_disk`) or in object storage (`in_objects`).

mod in_objects;
mod nearest;
mod on_disk;
mod prior;
mod search;

pub use in_objects::{ObjectInfo, Objects};
pub use nearest::{Difference, Nearest};
pub use prior::PriorResults;
pub use search::{Entry, Query};

use crate::error::CacheError;
use crate::eviction::Limits;
use crate::folder::Folder;
use crate::key::CacheKey;
use crate::label::UserTag;
use crate::open::{Access, OpenedCache, seconds};
use crate::stats::{CacheStats, CacheWarning};
use crate::trace::Trace;
use crate::writer::Writer;
use in_objects::ObjectCache;
use on_disk::DiskCache;
use pleach_regions::{DataRegion, Digest};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

/// Bytes per second of a lookup with verification and decoding, or of encoding and writing, on an average disk.
const DISK_BYTES_PER_SECOND: f64 = 150e6;

/// Results of earlier studies. See the crate's documentation.
#[derive(Debug)]
pub struct Cache(Backend);

#[derive(Debug)]
enum Backend {
    Disk(Box<DiskCache>),
    Objects(Box<ObjectCache>),
}

/// A trace with its location's metadata.
#[derive(Debug)]
pub(crate) struct FoundTrace {
    pub(crate) key: CacheKey,
    pub(crate) trace: Trace,
    pub(crate) record_bytes: u64,
    pub(crate) written_seconds: u64,
    /// Time of the last use of an entry of its segment. In object storage, that of writing.
    pub(crate) used_seconds: u64,
}

/// Result of storing an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertOutcome {
    /// The entry is newly stored. In object storage, it is in the queue for its upload.
    New,
    /// The entry was already stored.
    Known,
    /// The entry is not stored: the cache is not writable, is full, or the entry exceeds half of the limit.
    Not,
}

impl Cache {
    pub(crate) fn new(
        folder: Folder,
        opened: OpenedCache,
        writer: Option<Writer>,
        quota_bytes: Option<u64>,
        now_seconds: u64,
    ) -> Self {
        let cache = DiskCache::new(folder, opened, writer, quota_bytes, now_seconds);
        Self(Backend::Disk(Box::new(cache)))
    }

    /// Opens the cache in a location of object storage, or creates one if the location is empty. `address` is for messages.
    /// Reads all traces into memory.
    ///
    /// A location that is not writable is opened for reading, which is reported ([`Cache::take_reports`]).
    ///
    /// # Errors
    /// Returns a [`CacheError`] if the location cannot be reached, holds something else, or was written by another version.
    pub fn open_objects(
        store: Arc<dyn Objects>,
        address: &str,
        limits: Limits,
        access: Access,
        now: SystemTime,
    ) -> Result<Self, CacheError> {
        let cache = ObjectCache::open(store, address, limits, access, seconds(now))?;
        Ok(Self(Backend::Objects(Box::new(cache))))
    }

    /// Returns the trace of a task instance. `None` if there is no trace or it is corrupt.
    pub fn lookup(&self, key: &CacheKey) -> Option<Trace> {
        match &self.0 {
            Backend::Disk(cache) => cache.lookup(key),
            Backend::Objects(cache) => cache.lookup(key),
        }
    }

    /// Returns the data region with this digest. `None` if there is no region or its content has another digest.
    pub fn load(&self, digest: &Digest) -> Option<DataRegion> {
        match &self.0 {
            Backend::Disk(cache) => cache.load(digest),
            Backend::Objects(cache) => cache.load(digest),
        }
    }

    /// Returns whether a data region was present when its segment or location was read. [`load`](Self::load) may still find
    /// it corrupt.
    #[must_use]
    pub fn contains_region(&self, digest: &Digest) -> bool {
        match &self.0 {
            Backend::Disk(cache) => cache.contains_region(digest),
            Backend::Objects(cache) => cache.contains_region(digest),
        }
    }

    /// Stores the trace of a task instance, on the quota of the user in its label.
    pub fn insert(&self, key: CacheKey, trace: &Trace) -> InsertOutcome {
        match &self.0 {
            Backend::Disk(cache) => cache.insert(key, trace),
            Backend::Objects(cache) => cache.insert(key, trace),
        }
    }

    /// Stores a data region, on the quota of `user` unless that is empty. `digest` is its own ([`DataRegion::digest`]).
    pub fn store(&self, digest: &Digest, region: &DataRegion, user: &str) -> InsertOutcome {
        match &self.0 {
            Backend::Disk(cache) => cache.store(digest, region, user),
            Backend::Objects(cache) => cache.store(digest, region, user),
        }
    }

    /// Returns whether the cache is in object storage, where loading a region takes a request.
    #[must_use]
    pub fn is_remote(&self) -> bool {
        matches!(self.0, Backend::Objects(_))
    }

    /// Predicts the seconds for loading a region of `bytes` encoded bytes: of an average disk, or as measured since the cache
    /// was opened.
    #[must_use]
    pub fn load_seconds(&self, bytes: f64) -> f64 {
        match &self.0 {
            Backend::Disk(_) => bytes / DISK_BYTES_PER_SECOND,
            Backend::Objects(cache) => cache.load_seconds(bytes),
        }
    }

    /// Reads the changes of other processes since the last call, and sets the time to `now`. In a folder, lookups wait
    /// meanwhile.
    pub fn refresh(&self, now: SystemTime) {
        match &self.0 {
            Backend::Disk(cache) => cache.refresh(now),
            Backend::Objects(cache) => cache.refresh(seconds(now)),
        }
    }

    /// Waits until all stored entries are in object storage, or cannot be. Does nothing for a folder.
    pub fn flush(&self) {
        if let Backend::Objects(cache) = &self.0 {
            cache.flush();
        }
    }

    /// Returns the counters since the cache was opened, and its current content.
    #[must_use]
    pub fn statistics(&self) -> CacheStats {
        match &self.0 {
            Backend::Disk(cache) => cache.statistics(),
            Backend::Objects(cache) => cache.statistics(),
        }
    }

    /// Returns the counters since the cache was opened. Its content counts 0: unlike [`statistics`](Self::statistics), this
    /// reads no file.
    #[must_use]
    pub fn counters(&self) -> CacheStats {
        match &self.0 {
            Backend::Disk(cache) => cache.counters(),
            Backend::Objects(cache) => cache.counters(),
        }
    }

    /// Returns the warnings since the last call, at most the first 100.
    pub fn take_reports(&self) -> Vec<CacheWarning> {
        match &self.0 {
            Backend::Disk(cache) => cache.take_reports(),
            Backend::Objects(cache) => cache.take_reports(),
        }
    }

    /// Returns the traces, or those of an operation, read one at a time. Corrupt traces are skipped.
    pub(crate) fn traces(&self, operation: Option<&str>) -> Box<dyn Iterator<Item = FoundTrace> + '_> {
        match &self.0 {
            Backend::Disk(cache) => Box::new(cache.traces(operation)),
            Backend::Objects(cache) => Box::new(cache.traces(operation)),
        }
    }

    /// Returns the bytes of a data region's record. `None` if the cache has no such region.
    pub(crate) fn region_record_bytes(&self, digest: &Digest) -> Option<u64> {
        match &self.0 {
            Backend::Disk(cache) => cache.region_record_bytes(digest),
            Backend::Objects(cache) => cache.region_record_bytes(digest),
        }
    }

    /// Returns the bytes of each user's entries, by tag.
    pub(crate) fn bytes_of_users(&self) -> BTreeMap<UserTag, u64> {
        match &self.0 {
            Backend::Disk(cache) => cache.bytes_of_users(),
            Backend::Objects(cache) => cache.bytes_of_users(),
        }
    }
}
