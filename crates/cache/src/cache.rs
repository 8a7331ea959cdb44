//! Public interface of the task cache: lookup and storage of entries from any number of threads.
//!
//! Combines the index (`index.rs`) with the writer (`writer.rs`). A lookup waits for the disk access of another thread only
//! during a refresh. A failing disk never fails a study.

mod prior;

pub use prior::PriorResults;

use crate::folder::{self, Folder};
use crate::index::Index;
use crate::key::{CacheKey, operation_tag};
use crate::open::{OpenedCache, index_records, seconds};
use crate::record::{Header, Kind};
use crate::segment::{RecordLocation, Segment};
use crate::stats::{CacheCounters, CacheStats, CacheWarning, CacheWarnings, count};
use crate::trace::Trace;
use crate::writer::{Writer, open_segment};
use parking_lot::{Mutex, RwLock};
use pleach_regions::{DataRegion, Digest};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

/// Results of earlier studies. See the crate's documentation.
#[derive(Debug)]
pub struct Cache {
    folder: Folder,
    // Lock order: writer, index, reports. Each change is one call on maps, or a record whose header is written last, so a
    // panic leaves them consistent.
    index: RwLock<Index>,
    writer: Mutex<Option<Writer>>,
    /// Whether usage times and tombstone marks are written.
    writable: bool,
    tally: CacheCounters,
    reports: Mutex<CacheWarnings>,
    now_seconds: AtomicU64,
}

/// Result of storing an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InsertOutcome {
    /// The entry is newly stored.
    New,
    /// The entry was already stored.
    Known,
    /// The entry is not stored: the folder is not writable, is full, or the entry exceeds half of the limit.
    Not,
}

impl Cache {
    pub(crate) fn new(folder: Folder, opened: OpenedCache, writer: Option<Writer>, now_seconds: u64) -> Self {
        let OpenedCache { index, reports, corrupt, evicted } = opened;
        let tally =
            CacheCounters { corrupt: corrupt.into(), evicted: evicted.into(), ..CacheCounters::default() };
        Self {
            folder,
            index: RwLock::new(index),
            writable: writer.is_some(),
            writer: Mutex::new(writer),
            tally,
            reports: Mutex::new(reports),
            now_seconds: AtomicU64::new(now_seconds),
        }
    }

    /// Returns the trace of a task instance. `None` if there is no trace or it is corrupt.
    pub fn lookup(&self, key: &CacheKey) -> Option<Trace> {
        self.find(Kind::Trace, &key.0, |body| Trace::from_bytes(&body))
    }

    /// Returns the data region with this digest. `None` if there is no region or its content has another digest.
    pub fn load(&self, digest: &Digest) -> Option<DataRegion> {
        self.find(Kind::Blob, &digest.0, |body| {
            let (region, found) = DataRegion::decode(&body).ok()?;
            (found == *digest).then_some(region)
        })
    }

    /// Returns whether a data region was present when its segment was read. [`load`](Self::load) may still find it corrupt.
    #[must_use]
    pub fn contains_region(&self, digest: &Digest) -> bool {
        self.index.read().contains(Kind::Blob, &digest.0)
    }

    /// Stores the trace of a task instance.
    pub fn insert(&self, key: CacheKey, trace: &Trace) -> InsertOutcome {
        self.store_with(Kind::Trace, &key.0, |now_seconds| {
            let body = trace.to_bytes();
            (Header::of_trace(key.0, operation_tag(&trace.components.operation), &body, now_seconds), body)
        })
    }

    /// Stores a data region. `digest` is its own ([`DataRegion::digest`]).
    pub fn store(&self, digest: &Digest, region: &DataRegion) -> InsertOutcome {
        self.store_with(Kind::Blob, &digest.0, |now_seconds| {
            let body = region.encode(digest);
            (Header::of_blob(digest.0, &body, now_seconds), body)
        })
    }

    /// Reads the changes of other processes since the last call, and sets the time to `now`. Lists the folder once and reads
    /// the headers of new records. Lookups wait meanwhile.
    pub fn refresh(&self, now: SystemTime) {
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
    #[must_use]
    pub fn statistics(&self) -> CacheStats {
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

    /// Returns the warnings since the last call, at most the first 100.
    pub fn take_reports(&self) -> Vec<CacheWarning> {
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
        let stored = self.append(&header, &body, now_seconds);
        let counter = match stored {
            InsertOutcome::New => &self.tally.stored,
            InsertOutcome::Known => &self.tally.known,
            InsertOutcome::Not => &self.tally.not_stored,
        };
        count(counter, 1);
        stored
    }

    fn append(&self, header: &Header, body: &[u8], now_seconds: u64) -> InsertOutcome {
        let mut slot = self.writer.lock();
        // Another thread may have stored the entry, or have found the disk full.
        if self.index.read().contains(header.kind, &header.id) {
            return InsertOutcome::Known;
        }
        let Some(writer) = slot.as_mut() else { return InsertOutcome::Not };
        let written = writer.append(header, body, now_seconds);
        // Also after a failure: the segments evicted before it are gone.
        let evicted = writer.take_evicted();
        count(&self.tally.evicted, evicted.len() as u64);
        // Taken after the disk write, so that lookups continue during it.
        let mut index = self.index.write();
        evicted.into_iter().for_each(|number| index.forget(number));
        match written {
            Ok(Some(written)) => {
                let (place, number) = (written.location, written.segment.number);
                assert!(place.segment == number, "an entry of segment {number} is located in {place:?}");
                assert!(place.offset < written.end, "{place:?} begins behind its end {}", written.end);
                index.add(header, place);
                index.know(&written.segment, written.end);
                InsertOutcome::New
            }
            Ok(None) => InsertOutcome::Not,
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

    /// Returns the traces of an operation, read one at a time. Corrupt traces are skipped.
    pub(crate) fn traces_of(&self, operation: &str) -> impl Iterator<Item = (CacheKey, u64, Trace)> + '_ {
        let places = self.index.read().of_operation(operation_tag(operation));
        places.into_iter().filter_map(|(key, place)| {
            // Locked once per trace, so that storage continues meanwhile. The segment may have been evicted since.
            let (segment, _) = self.index.read().indexed(place.segment)?;
            let (header, body) = segment.read(&place).ok()??;
            let trace = Trace::from_bytes(&body).filter(|_| header.id == key)?;
            Some((CacheKey(key), place.written_seconds, trace))
        })
    }

    fn report(&self, report: CacheWarning) {
        self.reports.lock().add(report);
    }
}
