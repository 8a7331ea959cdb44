//! Task cache in object storage, for clusters without a shared file system.
//!
//! Names are `FORMAT`, `regions/USER/DIGEST` for each data region, and `traces/USER/HASH` for bundles of traces in the format of
//! segments. `USER` is the tag of the user whose quota the object counts on. Objects are written once and never changed.
//!
//! Opening and refreshing list the location and read new bundles, so traces are in memory and their lookup sends no request.
//! Traces take about 500 bytes of memory each. A thread of the cache uploads entries (`upload.rs`), so storing sends none
//! either. After a failed request the cache is offline: until the next refresh it sends no requests, and regions are missing.
//! Other processes find an entry after its upload and their next refresh.
//!
//! All content is verified: traces by the checksums of their records, regions by their digest.

mod contents;
mod upload;

pub(crate) use contents::Contents;

use super::{FoundTrace, InsertOutcome};
use crate::error::CacheError;
use crate::eviction::Limits;
use crate::key::{CacheKey, operation_tag};
use crate::label::UserTag;
use crate::open::Access;
use crate::record::{HEADER_BYTES, Header};
use crate::stats::{CacheCounters, CacheStats, CacheWarning, CacheWarnings, count};
use crate::trace::Trace;
use parking_lot::{Mutex, RwLock};
use pleach_regions::{DataRegion, Digest};
use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;
use upload::{Upload, Uploader};

/// Marker of this format. Raised together with that of folders.
const MARKER: &str = "pleach cache 2 in objects";
const MARKER_NAME: &str = "FORMAT";

/// Bundles and regions to request at once.
const REQUESTS_AT_ONCE: usize = 16;

/// 0.3 s: a load before the first one has been measured.
const ASSUMED_LATENCY_SECONDS: f64 = 0.3;

/// Bytes per second of one request, 50 MB/s: what object stores give one connection.
const BYTES_PER_SECOND: f64 = 50e6;

/// An object in storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectInfo {
    /// Name within the location.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Time of writing by the server's clock, in seconds since 1970.
    pub written_seconds: u64,
}

/// Object storage. All errors are of the network or the server. An implementation bounds the time of each call.
#[expect(clippy::missing_errors_doc, reason = "the comment of the trait covers all methods")]
pub trait Objects: fmt::Debug + Send + Sync {
    /// Returns all objects of the location.
    fn list(&self) -> io::Result<Vec<ObjectInfo>>;

    /// Returns the content of objects, several at once. `None` for a missing one.
    fn get(&self, names: &[String]) -> io::Result<Vec<Option<Vec<u8>>>>;

    /// Creates objects, several at once, unless they exist.
    fn put(&self, objects: Vec<(String, Vec<u8>)>) -> io::Result<()>;

    /// Removes objects. Missing ones are no error.
    fn remove(&self, names: &[String]) -> io::Result<()>;
}

/// State that the cache and its uploader share.
#[derive(Debug)]
pub(crate) struct Shared {
    store: Arc<dyn Objects>,
    limits: Limits,
    // Lock order: contents, reports. Each change is one call, so a panic leaves them consistent.
    contents: RwLock<Contents>,
    tally: CacheCounters,
    reports: Mutex<CacheWarnings>,
    offline: AtomicBool,
    now_seconds: AtomicU64,
}

impl Shared {
    /// Reports a failed request, and sends no more until the next refresh.
    fn fail(&self, error: &io::Error) {
        // Relaxed: the flag orders no other access. Several threads may fail at once, and one of them reports.
        if !self.offline.swap(true, Ordering::Relaxed) {
            self.reports.lock().add(CacheWarning::Unreachable { reason: error.to_string() });
        }
    }

    fn is_offline(&self) -> bool {
        self.offline.load(Ordering::Relaxed)
    }
}

/// Task cache in object storage.
#[derive(Debug)]
pub(crate) struct ObjectCache {
    shared: Arc<Shared>,
    /// `None` if the cache only reads.
    uploader: Option<Uploader>,
    /// Regions queued since the last refresh: several tasks may have equal outputs before the first one is uploaded.
    queued: Mutex<HashSet<Digest>>,
    /// Mean seconds of loads beyond their transfer, as bits of an `f64`. 0 before the first one.
    latency: AtomicU64,
}

impl ObjectCache {
    pub(crate) fn open(
        store: Arc<dyn Objects>,
        address: &str,
        limits: Limits,
        access: Access,
        now_seconds: u64,
    ) -> Result<Self, CacheError> {
        let refuse = |source| CacheError::Io { path: address.into(), source };
        let marker = || store.get(&[MARKER_NAME.to_owned()]).map(|mut found| found.pop().flatten());
        let mut found = marker().map_err(refuse)?;
        let mut is_empty = false;
        if found.is_none() {
            let listed = store.list().map_err(refuse)?;
            is_empty = listed.is_empty();
            // Another process has created the cache since.
            if listed.iter().any(|object| object.name == MARKER_NAME) {
                found = marker().map_err(refuse)?;
            }
        }
        let mut reports = CacheWarnings::default();
        let mut is_writable = access == Access::Write;
        match found.map(|bytes| String::from_utf8_lossy(&bytes).trim_end().to_owned()) {
            Some(found) if found == MARKER => {}
            Some(found) => {
                let found = found.lines().next().unwrap_or_default().chars().take(64).collect();
                return Err(CacheError::Version { path: address.into(), found, allowed: MARKER });
            }
            None if !is_empty => {
                return Err(CacheError::NotACache { path: address.into() });
            }
            None if is_writable => {
                let marker = (MARKER_NAME.to_owned(), format!("{MARKER}\n").into_bytes());
                if let Err(error) = store.put(vec![marker]) {
                    is_writable = false;
                    reports.add(CacheWarning::NotWritable { reason: error.to_string() });
                }
            }
            None => {}
        }
        let shared = Arc::new(Shared {
            store,
            limits,
            contents: RwLock::default(),
            tally: CacheCounters::default(),
            reports: Mutex::new(reports),
            offline: AtomicBool::new(false),
            now_seconds: AtomicU64::new(now_seconds),
        });
        let uploader =
            is_writable.then(|| Uploader::start(Arc::clone(&shared))).transpose().map_err(refuse)?;
        let cache = Self { shared, uploader, queued: Mutex::default(), latency: AtomicU64::new(0) };
        cache.read_changes().map_err(refuse)?;
        Ok(cache)
    }

    /// Lists the location and reads new bundles.
    fn read_changes(&self) -> io::Result<()> {
        let listed = self.shared.store.list()?;
        let new: Vec<String> = self.shared.contents.read().new_bundles(&listed);
        let mut read = HashSet::new();
        for names in new.chunks(REQUESTS_AT_ONCE) {
            let bundles = self.shared.store.get(names)?;
            for (name, bundle) in names.iter().zip(bundles) {
                // A bundle that another process has just evicted.
                let Some(bundle) = bundle else { continue };
                if !self.shared.contents.write().add_bundle(&bundle) {
                    count(&self.shared.tally.corrupt, 1);
                    let segment = name.clone();
                    self.shared.reports.lock().add(CacheWarning::CorruptBundle { name: segment });
                }
                read.insert(name.clone());
            }
        }
        self.shared.contents.write().set_listing(&listed, read);
        Ok(())
    }

    pub(crate) fn refresh(&self, now_seconds: u64) {
        self.shared.now_seconds.fetch_max(now_seconds, Ordering::Relaxed);
        self.queued.lock().clear();
        match self.read_changes() {
            Ok(()) => self.shared.offline.store(false, Ordering::Relaxed),
            Err(error) => self.shared.fail(&error),
        }
    }

    pub(crate) fn flush(&self) {
        if let Some(uploader) = &self.uploader {
            uploader.flush();
        }
    }

    pub(crate) fn lookup(&self, key: &CacheKey) -> Option<Trace> {
        let found = self.shared.contents.read().trace(key).and_then(|stored| Trace::from_bytes(&stored.body));
        let counter = if found.is_some() { &self.shared.tally.hits } else { &self.shared.tally.misses };
        count(counter, 1);
        found
    }

    pub(crate) fn load(&self, digest: &Digest) -> Option<DataRegion> {
        let found = self.find_region(digest);
        let counter = if found.is_some() { &self.shared.tally.hits } else { &self.shared.tally.misses };
        count(counter, 1);
        found
    }

    fn find_region(&self, digest: &Digest) -> Option<DataRegion> {
        if self.shared.is_offline() {
            return None;
        }
        let name = self.shared.contents.read().region(digest)?.0;
        let begun = Instant::now();
        let bytes = match self.shared.store.get(std::slice::from_ref(&name)) {
            Ok(mut found) => found.pop().flatten(),
            Err(error) => {
                self.shared.fail(&error);
                return None;
            }
        };
        self.measure(begun.elapsed().as_secs_f64(), bytes.as_ref().map_or(0, Vec::len));
        let decoded = bytes.as_ref().map(|bytes| DataRegion::decode(bytes));
        match decoded {
            Some(Ok((region, found))) if found == *digest => return Some(region),
            Some(_) => {
                count(&self.shared.tally.corrupt, 1);
                self.shared.reports.lock().add(CacheWarning::CorruptObject { name: name.clone() });
                if self.uploader.is_some() {
                    // A failure leaves it to the next reader.
                    let _ = self.shared.store.remove(std::slice::from_ref(&name));
                }
            }
            // Another process has evicted it since the last listing.
            None => {}
        }
        self.shared.contents.write().forget(&name);
        self.queued.lock().remove(digest);
        None
    }

    /// Updates the mean latency: of about the last 8 loads.
    fn measure(&self, seconds: f64, bytes: usize) {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let latency = (seconds - bytes as f64 / BYTES_PER_SECOND).max(0.0);
        let before = f64::from_bits(self.latency.load(Ordering::Relaxed));
        let mean = if before == 0.0 { latency } else { before + (latency - before) / 8.0 };
        // Relaxed: of two threads, one may overwrite the other's estimate.
        self.latency.store(mean.to_bits(), Ordering::Relaxed);
    }

    pub(crate) fn load_seconds(&self, bytes: f64) -> f64 {
        let measured = f64::from_bits(self.latency.load(Ordering::Relaxed));
        let latency = if measured == 0.0 { ASSUMED_LATENCY_SECONDS } else { measured };
        latency + bytes / BYTES_PER_SECOND
    }

    pub(crate) fn contains_region(&self, digest: &Digest) -> bool {
        // Offline, a region counts as missing, so that its task runs without waiting for the network.
        !self.shared.is_offline() && self.shared.contents.read().region(digest).is_some()
    }

    pub(crate) fn insert(&self, key: CacheKey, trace: &Trace) -> InsertOutcome {
        if self.shared.contents.read().trace(&key).is_some() {
            return self.counted(InsertOutcome::Known);
        }
        let Some(uploader) = self.uploader.as_ref().filter(|_| !self.shared.is_offline()) else {
            return self.counted(InsertOutcome::Not);
        };
        let (user, body) = (trace.label.as_ref().map_or("", |label| &label.user), trace.to_bytes());
        let now_seconds = self.shared.now_seconds.load(Ordering::Relaxed);
        let header = Header::of_trace(key.0, operation_tag(&trace.components.operation), &body, now_seconds);
        self.shared.contents.write().add_trace(&header, body.clone());
        let bytes = [&header.to_bytes()[..], &body].concat();
        self.counted(uploader.send(Upload::Trace { user: user.to_owned(), bytes }))
    }

    pub(crate) fn store(&self, digest: &Digest, region: &DataRegion, user: &str) -> InsertOutcome {
        if self.shared.contents.read().region(digest).is_some() || self.queued.lock().contains(digest) {
            return self.counted(InsertOutcome::Known);
        }
        let Some(uploader) = self.uploader.as_ref().filter(|_| !self.shared.is_offline()) else {
            return self.counted(InsertOutcome::Not);
        };
        let bytes = region.encode(digest);
        let bound =
            self.shared.limits.quota(UserTag::new(user)).map_or(u64::MAX, |(_, quota_bytes)| quota_bytes);
        if bytes.len() as u64 > bound.min(self.shared.limits.bytes) / 2 {
            return self.counted(InsertOutcome::Not);
        }
        let name = contents::region_name(UserTag::new(user), digest);
        let sent = uploader.send(Upload::Region { user: user.to_owned(), name, bytes });
        if sent == InsertOutcome::New {
            self.queued.lock().insert(*digest);
        }
        self.counted(sent)
    }

    fn counted(&self, stored: InsertOutcome) -> InsertOutcome {
        let tally = &self.shared.tally;
        let counter = match stored {
            InsertOutcome::New => &tally.stored,
            InsertOutcome::Known => &tally.known,
            InsertOutcome::Not => &tally.not_stored,
        };
        count(counter, 1);
        stored
    }

    pub(crate) fn counters(&self) -> CacheStats {
        self.shared.tally.statistics()
    }

    pub(crate) fn statistics(&self) -> CacheStats {
        let contents = self.shared.contents.read();
        let (traces, blobs, segments) = contents.counts();
        CacheStats { traces, blobs, segments, bytes: contents.bytes(), ..self.counters() }
    }

    pub(crate) fn take_reports(&self) -> Vec<CacheWarning> {
        self.shared.reports.lock().take()
    }

    pub(crate) fn traces(&self, operation: Option<&str>) -> impl Iterator<Item = FoundTrace> + '_ {
        let found = self.shared.contents.read().traces(operation.map(operation_tag));
        found.into_iter().filter_map(|(key, stored)| {
            let (trace, written_seconds) = (Trace::from_bytes(&stored.body)?, stored.written_seconds);
            let record_bytes = (HEADER_BYTES + stored.body.len()) as u64;
            Some(FoundTrace { key, trace, record_bytes, written_seconds, used_seconds: written_seconds })
        })
    }

    pub(crate) fn region_record_bytes(&self, digest: &Digest) -> Option<u64> {
        Some(self.shared.contents.read().region(digest)?.1)
    }

    pub(crate) fn bytes_of_users(&self) -> BTreeMap<UserTag, u64> {
        self.shared.contents.read().bytes_of_users()
    }
}
