//! Task cache in a folder: lookup and storage of entries from any number of threads.
//!
//! Combines the index (`index.rs`) with the writer (`writer.rs`). A lookup waits for the disk access of another thread only
//! during a refresh. A failing disk never fails a study.

use super::{FoundTrace, InsertOutcome};
use crate::folder::{self, Folder};
use crate::index::Index;
use crate::key::{CacheKey, operation_tag};
use crate::label::UserTag;
use crate::open::{OpenedCache, index_records, seconds};
use crate::record::{Header, Kind};
use crate::segment::{RecordLocation, Segment, SegmentHead};
use crate::stats::{CacheCounters, CacheStats, CacheWarning, CacheWarnings, count};
use crate::trace::Trace;
use crate::writer::{Append, Writer, open_segment};
use parking_lot::{Mutex, RwLock};
use pleach_regions::{DataRegion, Digest};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// Task cache in a folder.
#[derive(Debug)]
pub(crate) struct DiskCache {
    folder: Folder,
    // Lock order: writer, index, reports. Each change is one call on maps, or a record whose header is written last, so a
    // panic leaves them consistent.
    index: RwLock<Index>,
    writer: Mutex<Option<Writer>>,
    /// Whether usage times and tombstone marks are written.
    writable: bool,
    quota_bytes: Option<u64>,
    tally: CacheCounters,
    reports: Mutex<CacheWarnings>,
    now_seconds: AtomicU64,
}

impl DiskCache {
    pub(crate) fn new(
        folder: Folder,
        opened: OpenedCache,
        writer: Option<Writer>,
        quota_bytes: Option<u64>,
        now_seconds: u64,
    ) -> Self {
        let OpenedCache { index, reports, corrupt, evicted } = opened;
        let tally =
            CacheCounters { corrupt: corrupt.into(), evicted: evicted.into(), ..CacheCounters::default() };
        Self {
            folder,
            index: RwLock::new(index),
            writable: writer.is_some(),
            quota_bytes,
            writer: Mutex::new(writer),
            tally,
            reports: Mutex::new(reports),
            now_seconds: AtomicU64::new(now_seconds),
        }
    }

    /// Returns the trace of a task instance. `None` if there is no trace or it is corrupt.
    pub(crate) fn lookup(&self, key: &CacheKey) -> Option<Trace> {
        self.find(Kind::Trace, &key.0, |body| Trace::from_bytes(&body))
    }

    /// Returns the data region with this digest. `None` if there is no region or its content has another digest.
    pub(crate) fn load(&self, digest: &Digest) -> Option<DataRegion> {
        self.find(Kind::Blob, &digest.0, |body| {
            let (region, found) = DataRegion::decode(&body).ok()?;
            (found == *digest).then_some(region)
        })
    }

    /// Returns whether a data region was present when its segment was read. [`load`](Self::load) may still find it corrupt.
    pub(crate) fn contains_region(&self, digest: &Digest) -> bool {
        self.index.read().contains(Kind::Blob, &digest.0)
    }

    /// Stores the trace of a task instance, on the quota of the user in its label.
    pub(crate) fn insert(&self, key: CacheKey, trace: &Trace) -> InsertOutcome {
        let user = trace.label.as_ref().map_or("", |label| &label.user);
        self.store_with(user, Kind::Trace, &key.0, |now_seconds| {
            let body = trace.to_bytes();
            (Header::of_trace(key.0, operation_tag(&trace.components.operation), &body, now_seconds), body)
        })
    }

    /// Stores a data region, on the quota of `user` unless that is empty. `digest` is its own ([`DataRegion::digest`]).
    pub(crate) fn store(&self, digest: &Digest, region: &DataRegion, user: &str) -> InsertOutcome {
        self.store_with(user, Kind::Blob, &digest.0, |now_seconds| {
            let body = region.encode(digest);
            (Header::of_blob(digest.0, &body, now_seconds), body)
        })
    }

    /// Reads the changes of other processes since the last call, and sets the time to `now`. Lists the folder once and reads
    /// the headers of new records. Lookups wait meanwhile.
    pub(crate) fn refresh(&self, now: SystemTime) {
        // The maximum, since calls of several threads may arrive out of order.
        self.now_seconds.fetch_max(seconds(now), Ordering::Relaxed);
        // Locked before the listing, since segments that other threads index later are missing in it.
        let mut index = self.index.write();
        // A folder that cannot be listed is treated as unchanged.
        let Ok(numbers) = self.folder.numbers() else { return };
        let gone: Vec<u64> =
            index.numbers().filter(|number| numbers.binary_search(number).is_err()).collect();
        gone.into_iter().for_each(|number| index.forget(number));
        for number in numbers {
            if let Err(error) = self.refresh_segment(&mut index, number) {
                let (segment, reason) = (folder::name(number), error.to_string());
                self.report(CacheWarning::Unreadable { segment, reason });
            }
        }
    }

    fn refresh_segment(&self, index: &mut Index, number: u64) -> io::Result<()> {
        let (segment, from) = match index.indexed(number) {
            Some(known) => known,
            None => match open_segment(&self.folder, number, self.writable)? {
                Some(segment) => (Arc::new(segment), crate::segment::START),
                None => return Ok(()),
            },
        };
        index_records(index, &segment, from).map(|_| ())
    }

    /// Returns the counters since the cache was opened, and its current content.
    pub(crate) fn statistics(&self) -> CacheStats {
        let numbers = self.folder.numbers().unwrap_or_default();
        let length = |number: &u64| open_segment(&self.folder, *number, false).ok()??.file.length().ok();
        let segments_bytes: u64 = numbers.iter().filter_map(length).sum();
        let (traces, blobs) = self.index.read().counts();
        CacheStats {
            traces,
            blobs,
            segments: numbers.len() as u64,
            bytes: segments_bytes + self.folder.small_files_bytes().unwrap_or(0),
            ..self.tally.statistics()
        }
    }

    /// Returns the counters since the cache was opened. Its content counts 0: unlike [`statistics`](Self::statistics), this
    /// reads no file.
    pub(crate) fn counters(&self) -> CacheStats {
        self.tally.statistics()
    }

    /// Returns the warnings since the last call, at most the first 100.
    pub(crate) fn take_reports(&self) -> Vec<CacheWarning> {
        self.reports.lock().take()
    }

    /// Finds an entry and decodes its body with `read`. An entry that fails to decode is dropped.
    fn find<T>(&self, kind: Kind, id: &[u8; 32], read: impl FnOnce(Vec<u8>) -> Option<T>) -> Option<T> {
        // The index lock ends with this statement, so that no lookup waits for the disk. The open file stays readable
        // after an eviction.
        let found = self.index.read().find(kind, id);
        let Some((segment, place)) = found else {
            count(&self.tally.misses, 1);
            return None;
        };
        let record = segment.read(&place);
        let body = record.ok().flatten().filter(|(header, _)| (header.kind, &header.id) == (kind, id));
        match body.and_then(|(_, body)| read(body)) {
            Some(entry) => {
                segment.touch(self.now_seconds.load(Ordering::Relaxed));
                count(&self.tally.hits, 1);
                Some(entry)
            }
            None => {
                self.drop_corrupt(kind, id, &segment, &place);
                count(&self.tally.misses, 1);
                None
            }
        }
    }

    fn drop_corrupt(&self, kind: Kind, id: &[u8; 32], segment: &Segment, place: &RecordLocation) {
        segment.write_tombstone(place);
        self.index.write().remove(kind, id, place);
        count(&self.tally.corrupt, 1);
        self.report(CacheWarning::Damaged { segment: folder::name(place.segment), offset: place.offset });
    }

    /// Stores the entry that `record` creates, unless it is already stored.
    fn store_with(
        &self,
        user: &str,
        kind: Kind,
        id: &[u8; 32],
        record: impl FnOnce(u64) -> (Header, Vec<u8>),
    ) -> InsertOutcome {
        if self.index.read().contains(kind, id) {
            count(&self.tally.known, 1);
            return InsertOutcome::Known;
        }
        // Before the encoding, which a cache without a writer would waste.
        if self.writer.lock().is_none() {
            count(&self.tally.not_stored, 1);
            return InsertOutcome::Not;
        }
        let now_seconds = self.now_seconds.load(Ordering::Relaxed);
        // Encoding takes longest, so it runs before the writer lock is taken.
        let (header, body) = record(now_seconds);
        let stored = self.append(user, &header, &body, now_seconds);
        let counter = match stored {
            InsertOutcome::New => &self.tally.stored,
            InsertOutcome::Known => &self.tally.known,
            InsertOutcome::Not => &self.tally.not_stored,
        };
        count(counter, 1);
        stored
    }

    fn append(&self, user: &str, header: &Header, body: &[u8], now_seconds: u64) -> InsertOutcome {
        let mut slot = self.writer.lock();
        // Another thread may have stored the entry, or have found the disk full.
        if self.index.read().contains(header.kind, &header.id) {
            return InsertOutcome::Known;
        }
        let Some(writer) = slot.as_mut() else { return InsertOutcome::Not };
        let written = writer.append(UserTag::new(user), header, body, now_seconds);
        // Also after a failure: the segments evicted before it are gone.
        let evicted = writer.take_evicted();
        count(&self.tally.evicted, evicted.numbers.len() as u64);
        count(&self.tally.quota_evicted_bytes, evicted.by_quota_bytes);
        if evicted.by_quota_bytes > 0 || matches!(written, Ok(Append::QuotaFull)) {
            let (user, quota_bytes) = (user.to_owned(), self.quota_bytes.unwrap_or(u64::MAX));
            self.report(CacheWarning::QuotaReached { user, quota_bytes });
        }
        // Taken after the disk write, so that lookups continue during it.
        let mut index = self.index.write();
        evicted.numbers.into_iter().for_each(|number| index.forget(number));
        match written {
            Ok(Append::Written(written)) => {
                let (place, number) = (written.location, written.segment.number);
                assert!(place.segment == number, "an entry of segment {number} is located in {place:?}");
                assert!(place.offset < written.end, "{place:?} begins behind its end {}", written.end);
                index.add(header, place);
                index.know(&written.segment, written.end);
                InsertOutcome::New
            }
            Ok(Append::FolderFull | Append::QuotaFull) => InsertOutcome::Not,
            Err(error) => {
                // Released first: dropping the writer waits for the disk.
                drop(index);
                // Dropping the writer truncates its segment behind the last whole record.
                *slot = None;
                self.report(CacheWarning::Stopped { reason: error.to_string() });
                InsertOutcome::Not
            }
        }
    }

    /// Returns the traces, or those of an operation, read one at a time. Corrupt traces are skipped.
    pub(crate) fn traces(&self, operation: Option<&str>) -> impl Iterator<Item = FoundTrace> + '_ {
        let places = self.index.read().traces(operation.map(operation_tag));
        places.into_iter().filter_map(|(key, place)| {
            // Locked once per trace, so that storage continues meanwhile. The segment may have been evicted since.
            let (segment, _) = self.index.read().indexed(place.segment)?;
            let (header, body) = segment.read(&place).ok()??;
            let trace = Trace::from_bytes(&body).filter(|_| header.id == key)?;
            let SegmentHead::Segment { used_seconds, .. } = segment.beginning().ok()? else { return None };
            let (key, record_bytes) = (CacheKey(key), header.record_bytes());
            Some(FoundTrace {
                key,
                trace,
                record_bytes,
                written_seconds: place.written_seconds,
                used_seconds,
            })
        })
    }

    /// Returns the bytes of a data region's record. `None` if the cache has no such region.
    pub(crate) fn region_record_bytes(&self, digest: &Digest) -> Option<u64> {
        let (_, place) = self.index.read().find(Kind::Blob, &digest.0)?;
        Some(place.body_bytes + crate::record::HEADER_BYTES as u64)
    }

    /// Returns the bytes of each user's segments, by tag.
    pub(crate) fn bytes_of_users(&self) -> BTreeMap<UserTag, u64> {
        let mut bytes: BTreeMap<UserTag, u64> = BTreeMap::new();
        for number in self.folder.numbers().unwrap_or_default() {
            // Skips segments that another process has just evicted.
            let Ok(Some(segment)) = open_segment(&self.folder, number, false) else { continue };
            if let (Ok(SegmentHead::Segment { user, .. }), Ok(length)) =
                (segment.beginning(), segment.file.length())
            {
                *bytes.entry(user).or_default() += length;
            }
        }
        bytes
    }

    fn report(&self, report: CacheWarning) {
        self.reports.lock().add(report);
    }
}
