//! Opens a cache: indexes the segments, truncates torn writes, and evicts expired and excess segments.
//!
//! Only segments without a writer are truncated or removed, under the folder lock.

use crate::Cache;
use crate::compaction::{SealedSegment, merge};
use crate::error::CacheError;
use crate::eviction::{Limits, Room, SpaceRequest, is_expired, make_room};
use crate::folder::{self, Folder};
use crate::index::Index;
use crate::segment::{START, ScanEnd, Segment, SegmentHead};
use crate::stats::{CacheWarning, CacheWarnings};
use crate::writer::{Writer, open_segment};
use pleach_files::{FileSystem, OpenFile, OsFileSystem};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Access mode of a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Lookup and storage. Lookup only if the folder is not writable.
    Write,
    /// Lookup only: nothing in the folder is changed, not even usage times.
    Read,
}

/// Returns the seconds since 1970, 0 for earlier times.
pub(crate) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

impl Cache {
    /// Opens the cache in a folder, or creates one if the folder is empty or missing.
    ///
    /// A folder that is not writable is opened for reading. That and all corrupt content are reported
    /// ([`Cache::take_reports`]). Opening waits while another process opens the folder or extends a segment.
    ///
    /// # Errors
    /// Returns a [`CacheError`] if the folder cannot be read, holds something else, or was written by another version.
    pub fn open(path: &Path, limits: Limits, now: SystemTime) -> Result<Self, CacheError> {
        Self::open_on(Arc::new(OsFileSystem), path, limits, Access::Write, now)
    }

    /// Opens the cache in a folder of any file system.
    ///
    /// # Errors
    /// Same as [`Cache::open`].
    pub fn open_on(
        files: Arc<dyn FileSystem>,
        path: &Path,
        limits: Limits,
        access: Access,
        now: SystemTime,
    ) -> Result<Self, CacheError> {
        let folder = Folder::find(files, path, access == Access::Write)?;
        let now_seconds = seconds(now);
        let mut opened = OpenedCache::default();
        let mut lock = None;
        if access == Access::Write {
            let prepared = folder.prepare().and_then(|file| {
                opened.recover(&folder, &*file, limits, now_seconds)?;
                Ok(file)
            });
            match prepared {
                Ok(file) => lock = Some(file),
                Err(error) => {
                    // Discards a partial index: all segments are read again below, without repairs.
                    opened.index = Index::default();
                    opened.reports.add(CacheWarning::NotWritable { reason: error.to_string() });
                }
            }
        }
        if lock.is_none() {
            let refuse = |source| CacheError::Io { path: path.to_owned(), source };
            for number in folder.numbers().map_err(refuse)? {
                opened.read(&folder, number);
            }
        }
        let writer = lock.map(|lock| Writer::new(folder.clone(), lock, limits));
        Ok(Self::new(folder, opened, writer, limits.user_bytes, now_seconds))
    }
}

/// State found at open.
#[derive(Debug, Default)]
pub(crate) struct OpenedCache {
    pub(crate) index: Index,
    pub(crate) reports: CacheWarnings,
    pub(crate) corrupt: u64,
    pub(crate) evicted: u64,
}

impl OpenedCache {
    /// Reads all segments, repairs those without a writer, and enforces the limits.
    fn recover(
        &mut self,
        folder: &Folder,
        lock: &dyn OpenFile,
        limits: Limits,
        now_seconds: u64,
    ) -> io::Result<()> {
        // Held to the end: no process may create or extend a segment while sizes are summed and segments removed.
        let _locked = Folder::lock(lock)?;
        let mut closed = Vec::new();
        for number in folder.numbers()? {
            match self.recover_segment(folder, number, limits, now_seconds) {
                Ok(segment) => closed.extend(segment),
                // An unreadable segment costs only its own entries.
                Err(error) => self.unreadable(number, &error),
            }
        }
        let request = SpaceRequest { extra_bytes: 0, limit_bytes: limits.bytes, quota: None, now_seconds };
        if let Room::Made(evicted) = make_room(folder, request)? {
            let evicted = evicted.numbers;
            evicted.iter().for_each(|number| self.index.forget(*number));
            closed.retain(|segment| !evicted.contains(&segment.number));
            self.evicted += evicted.len() as u64;
        }
        self.evicted += merge(folder, lock, limits, &mut self.index, closed, now_seconds)?.len() as u64;
        Ok(())
    }

    /// Reads a segment. A segment without a writer is repaired, and returned if it stays.
    fn recover_segment(
        &mut self,
        folder: &Folder,
        number: u64,
        limits: Limits,
        now_seconds: u64,
    ) -> io::Result<Option<SealedSegment>> {
        let Some(segment) = open_segment(folder, number, true)? else { return Ok(None) };
        // A live writer holds the lock: its unfinished end is a write in progress, not corruption.
        if !segment.file.try_lock()? {
            index_records(&mut self.index, &Arc::new(segment), START)?;
            return Ok(None);
        }
        let (user, used_seconds) = match segment.beginning()? {
            SegmentHead::Segment { user, used_seconds }
                if !is_expired(used_seconds, now_seconds, limits.age) =>
            {
                // A time in the future would protect the segment from eviction.
                (user, used_seconds.min(now_seconds))
            }
            beginning => {
                match beginning {
                    SegmentHead::Segment { .. } => self.evicted += 1,
                    SegmentHead::Nothing => {}
                    SegmentHead::Broken => {
                        self.corrupt += 1;
                        self.reports.add(CacheWarning::NotASegment { segment: folder::name(number) });
                    }
                }
                folder.remove(number)?;
                return Ok(None);
            }
        };
        let segment = Arc::new(segment);
        let (end, ending) = index_records(&mut self.index, &segment, START)?;
        let length = segment.file.length()?;
        if ending != ScanEnd::Clean {
            self.corrupt += 1;
            let (segment, dropped_bytes) = (folder::name(number), length - end);
            self.reports.add(CacheWarning::Cut { segment, kept_bytes: end, dropped_bytes });
        }
        if end == START {
            self.index.forget(number);
            folder.remove(number)?;
            return Ok(None);
        }
        // Frees the preallocated space of a killed writer, which counts against the limit.
        if end < length {
            segment.file.set_length(end)?;
        }
        // `make_room` evicts only segments whose lock it gets.
        segment.file.unlock()?;
        Ok(Some(SealedSegment { number, bytes: end, used_seconds, user }))
    }

    /// Reads a segment without changing it.
    fn read(&mut self, folder: &Folder, number: u64) {
        let entered = open_segment(folder, number, false).and_then(|segment| match segment {
            Some(segment) => index_records(&mut self.index, &Arc::new(segment), START),
            None => Ok((0, ScanEnd::Clean)),
        });
        if let Err(error) = entered {
            self.unreadable(number, &error);
        }
    }

    fn unreadable(&mut self, number: u64, error: &io::Error) {
        self.index.forget(number);
        let (segment, reason) = (folder::name(number), error.to_string());
        self.reports.add(CacheWarning::Unreadable { segment, reason });
    }
}

/// Indexes the records of a segment from `from` on. Returns the end offset and the kind of end. A torn or broken end may be
/// a write in progress.
pub(crate) fn index_records(
    index: &mut Index,
    segment: &Arc<Segment>,
    from: u64,
) -> io::Result<(u64, ScanEnd)> {
    // A live writer may not have written the file header yet.
    if !matches!(segment.beginning()?, SegmentHead::Segment { .. }) {
        return Ok((START, ScanEnd::Clean));
    }
    let found = segment.scan(from, |header, place| index.add(&header, place))?;
    index.know(segment, found.0);
    Ok(found)
}
