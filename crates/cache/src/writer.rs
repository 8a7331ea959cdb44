//! Appends new entries to the active segment of this process. The segment grows in steps, and a full one is replaced.
//!
//! The writer extends a segment before it writes there, under the folder lock, and only while all files together stay within
//! the limit. The limit therefore holds at every moment for any number of writers. The caller indexes the written entries.

use crate::eviction::make_room;
use crate::folder::Folder;
use crate::record::Header;
use crate::segment::{RecordLocation, START, Segment};
use pleach_files::{OpenFile, OpenMode};
use std::io;
use std::sync::Arc;

/// Maximum segment size: 1/32 of the limit, so that eviction removes a small share, and the number of open files stays
/// within the limit of a process.
const SEGMENTS_WITHIN_LIMIT: u64 = 32;

/// Minimum segment size. Small limits, used only in tests, still fit a few traces per segment.
const SEGMENT_LEAST_BYTES: u64 = 4096;

/// Extension step: 1 MiB keeps locking rare and the unused end of a short study small.
const STEP_BYTES: u64 = 1 << 20;

/// Appends entries.
#[derive(Debug)]
pub(crate) struct Writer {
    folder: Folder,
    lock: Box<dyn OpenFile>,
    limit_bytes: u64,
    active: Option<Active>,
    evicted: Vec<u64>,
}

/// The active segment, locked by this process.
#[derive(Debug)]
struct Active {
    segment: Arc<Segment>,
    /// Offset of the next record.
    end: u64,
    /// Length of the file.
    reserved: u64,
}

/// A written entry.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) location: RecordLocation,
    pub(crate) segment: Arc<Segment>,
    /// Offset of the end of its record.
    pub(crate) end: u64,
}

impl Writer {
    /// Creates a writer without an active segment.
    pub(crate) fn new(folder: Folder, lock: Box<dyn OpenFile>, limit_bytes: u64) -> Self {
        Self { folder, lock, limit_bytes, active: None, evicted: Vec::new() }
    }

    /// Writes an entry. `None` if it exceeds half of the limit or eviction cannot free enough space.
    ///
    /// # Errors
    /// Returns the system error. Earlier entries stay intact, and nothing more should be written.
    pub(crate) fn append(
        &mut self,
        header: &Header,
        body: &[u8],
        now_seconds: u64,
    ) -> io::Result<Option<Written>> {
        let record_bytes = header.record_bytes();
        if START + record_bytes > self.limit_bytes / 2 || !self.room_for(record_bytes, now_seconds)? {
            return Ok(None);
        }
        let Some(active) = &mut self.active else { return Ok(None) };
        let (end, reserved) = (active.end + record_bytes, active.reserved);
        assert!(end <= reserved, "a record ends at {end}, and {reserved} bytes of the segment are granted");
        let location = active.segment.write(active.end, header, body)?;
        active.end = end;
        Ok(Some(Written { location, segment: Arc::clone(&active.segment), end: active.end }))
    }

    /// Returns the segments evicted since the last call.
    pub(crate) fn take_evicted(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.evicted)
    }

    /// Returns the maximum size of a segment with several records.
    pub(crate) fn segment_bytes(limit_bytes: u64) -> u64 {
        (limit_bytes / SEGMENTS_WITHIN_LIMIT).max(SEGMENT_LEAST_BYTES)
    }

    /// Ensures an active segment with space for a record. Returns false if eviction cannot free enough space.
    fn room_for(&mut self, record_bytes: u64, now_seconds: u64) -> io::Result<bool> {
        let segment_bytes = Self::segment_bytes(self.limit_bytes);
        if self.active.as_ref().is_some_and(|active| active.end + record_bytes > segment_bytes) {
            self.close()?;
        }
        let Some(active) = &self.active else { return self.begin(record_bytes, now_seconds) };
        let (end, reserved) = (active.end, active.reserved);
        let missing = (end + record_bytes).saturating_sub(reserved);
        let step = STEP_BYTES.min(segment_bytes.saturating_sub(reserved)).max(missing);
        let granted = if missing == 0 { 0 } else { self.lengthen(missing, step, now_seconds)? };
        if granted >= missing {
            return Ok(true);
        }
        // Evicting all other segments does not suffice. The active segment can be evicted once it is closed.
        self.close()?;
        self.begin(record_bytes, now_seconds)
    }

    /// Extends the active segment by `step` bytes, by `missing` if `step` does not fit, or not at all.
    fn lengthen(&mut self, missing: u64, step: u64, now_seconds: u64) -> io::Result<u64> {
        let locked = Folder::lock(&*self.lock)?;
        let Some(active) = &mut self.active else { return Ok(0) };
        for bytes in [step, missing] {
            if let Some(evicted) = make_room(&self.folder, bytes, self.limit_bytes, now_seconds)? {
                self.evicted.extend(evicted);
                assert!(bytes >= missing, "{bytes} bytes are granted, {missing} are missing");
                active.segment.file.set_length(active.reserved + bytes)?;
                active.reserved += bytes;
                return Ok(bytes);
            }
        }
        drop(locked);
        Ok(0)
    }

    /// Creates a segment with space for a record and makes it the active one. Returns false if eviction cannot free enough
    /// space.
    fn begin(&mut self, record_bytes: u64, now_seconds: u64) -> io::Result<bool> {
        let needed = START + record_bytes;
        let wanted = STEP_BYTES.min(Self::segment_bytes(self.limit_bytes)).max(needed);
        let locked = Folder::lock(&*self.lock)?;
        for bytes in [wanted, needed] {
            if let Some(evicted) = make_room(&self.folder, bytes, self.limit_bytes, now_seconds)? {
                self.evicted.extend(evicted);
                let segment = new_segment(&self.folder, &*self.lock, bytes, now_seconds)?;
                assert!(bytes >= needed, "{bytes} bytes are granted, {needed} are needed");
                assert!(self.active.is_none(), "segment {} begins beside another one", segment.number);
                self.active = Some(Active { segment: Arc::new(segment), end: START, reserved: bytes });
                return Ok(true);
            }
        }
        drop(locked);
        Ok(false)
    }

    /// Closes the active segment: truncates it to its records and allows its eviction.
    fn close(&mut self) -> io::Result<()> {
        let Some(active) = self.active.take() else { return Ok(()) };
        // Needs no folder lock: closing only shrinks the folder, and the segment lock keeps other processes from
        // evicting it.
        let Active { end, reserved, .. } = active;
        assert!((START..=reserved).contains(&end), "a segment ends at {end}, {reserved} bytes are granted");
        if active.end == START {
            self.folder.remove(active.segment.number)?;
        } else {
            active.segment.file.set_length(active.end)?;
        }
        // Unlocked last: another process may evict an unlocked segment.
        active.segment.file.unlock()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // After a failure, the next process that opens the folder repairs the segment.
        let _ = self.close();
    }
}

/// Creates a locked segment of `bytes` bytes. The caller holds the folder lock, and the folder has space for it.
pub(crate) fn new_segment(
    folder: &Folder,
    lock: &dyn OpenFile,
    bytes: u64,
    used_seconds: u64,
) -> io::Result<Segment> {
    let (number, file) = folder.new_segment(lock)?;
    if !file.try_lock()? {
        // Only a holder of the folder lock may lock segments, so no other process can hold this lock.
        return Err(io::Error::other(format!(
            "segment {number} is locked by a process without the folder \
                                             lock"
        )));
    }
    file.set_length(bytes)?;
    let segment = Segment::new(number, file, true);
    segment.begin(used_seconds)?;
    Ok(segment)
}

/// Opens a segment for reading, and with `writable` for recording its use. `None` if it does not exist.
pub(crate) fn open_segment(folder: &Folder, number: u64, writable: bool) -> io::Result<Option<Segment>> {
    let how = if writable { OpenMode::Write } else { OpenMode::Read };
    Ok(folder.segment(number, how)?.map(|file| Segment::new(number, file, writable)))
}
