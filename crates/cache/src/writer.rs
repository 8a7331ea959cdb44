//! Where new entries go: the one segment that this process writes to, lengthened as it fills and followed by the next.
//!
//! A segment is lengthened before anything is written there, under the folder's lock, and only as far as all files
//! together stay within the limit: so the limit holds at every moment, however many processes write. What has been
//! written is not entered into an index here.

use crate::eviction::make_room;
use crate::folder::Folder;
use crate::record::Header;
use crate::segment::{RecordLocation, START, Segment};
use pleach_files::{OpenFile, OpenMode};
use std::io;
use std::sync::Arc;

/// A segment is closed at this part of the limit, so that eviction takes a small share of what there is, and no more
/// files are open than a process may have.
const SEGMENTS_WITHIN_LIMIT: u64 = 32;

/// Small limits, which only tests have, still leave room for a few traces a segment.
const SEGMENT_LEAST_BYTES: u64 = 4096;

/// A segment is lengthened by this much at a time: rarely enough for the lock not to matter, and little enough for a
/// short study to leave no gap.
const STEP_BYTES: u64 = 1 << 20;

/// Writes entries.
#[derive(Debug)]
pub(crate) struct Writer {
    folder: Folder,
    lock: Box<dyn OpenFile>,
    limit_bytes: u64,
    active: Option<Active>,
    evicted: Vec<u64>,
}

/// The segment being written, which this process has locked.
#[derive(Debug)]
struct Active {
    segment: Arc<Segment>,
    /// Where the next record goes.
    end: u64,
    /// The length of the file.
    reserved: u64,
}

/// An entry that has been written.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) place: RecordLocation,
    pub(crate) segment: Arc<Segment>,
    /// Where its record ends.
    pub(crate) end: u64,
}

impl Writer {
    /// A writer that has written nothing.
    pub(crate) fn new(folder: Folder, lock: Box<dyn OpenFile>, limit_bytes: u64) -> Self {
        Self { folder, lock, limit_bytes, active: None, evicted: Vec::new() }
    }

    /// Writes an entry; none when it would take more than half of the limit, or nothing else can go for it.
    ///
    /// # Errors
    /// What the system says. What was written before stays whole; nothing more should be written.
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
        let place = active.segment.write(active.end, header, body)?;
        active.end += record_bytes;
        Ok(Some(Written { place, segment: Arc::clone(&active.segment), end: active.end }))
    }

    /// The segments that have been removed since this was asked last.
    pub(crate) fn take_evicted(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.evicted)
    }

    /// Bytes at which a segment is followed by the next.
    pub(crate) fn segment_bytes(limit_bytes: u64) -> u64 {
        (limit_bytes / SEGMENTS_WITHIN_LIMIT).max(SEGMENT_LEAST_BYTES)
    }

    /// Sees to it that there is an active segment with room for a record.
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
        // Nothing can go any more but what this process has written itself.
        self.close()?;
        self.begin(record_bytes, now_seconds)
    }

    /// Lengthens the active segment by `step` bytes, or `missing` if there is not as much room, or not at all.
    fn lengthen(&mut self, missing: u64, step: u64, now_seconds: u64) -> io::Result<u64> {
        let locked = Folder::lock(&*self.lock)?;
        let Some(active) = &mut self.active else { return Ok(0) };
        for bytes in [step, missing] {
            if let Some(evicted) = make_room(&self.folder, bytes, self.limit_bytes, now_seconds)? {
                self.evicted.extend(evicted);
                active.segment.file.set_length(active.reserved + bytes)?;
                active.reserved += bytes;
                return Ok(bytes);
            }
        }
        drop(locked);
        Ok(0)
    }

    /// Begins a segment with room for a record, and makes it the active one.
    fn begin(&mut self, record_bytes: u64, now_seconds: u64) -> io::Result<bool> {
        let needed = START + record_bytes;
        let wanted = STEP_BYTES.min(Self::segment_bytes(self.limit_bytes)).max(needed);
        let locked = Folder::lock(&*self.lock)?;
        for bytes in [wanted, needed] {
            if let Some(evicted) = make_room(&self.folder, bytes, self.limit_bytes, now_seconds)? {
                self.evicted.extend(evicted);
                let segment = new_segment(&self.folder, &*self.lock, bytes, now_seconds)?;
                self.active = Some(Active { segment: Arc::new(segment), end: START, reserved: bytes });
                return Ok(true);
            }
        }
        drop(locked);
        Ok(false)
    }

    /// Closes the active segment: it becomes as long as its records are, and may be evicted from now on.
    fn close(&mut self) -> io::Result<()> {
        let Some(active) = self.active.take() else { return Ok(()) };
        if active.end == START {
            self.folder.remove(active.segment.number)?;
        } else {
            active.segment.file.set_length(active.end)?;
        }
        active.segment.file.unlock()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // What fails here is put right by whoever opens the folder next.
        let _ = self.close();
    }
}

/// A new, locked segment of `bytes` bytes. The folder is locked, and has room for it.
pub(crate) fn new_segment(
    folder: &Folder,
    lock: &dyn OpenFile,
    bytes: u64,
    used_seconds: u64,
) -> io::Result<Segment> {
    let (number, file) = folder.new_segment(lock)?;
    if !file.try_lock()? {
        // Whoever locks segments holds the folder's lock.
        return Err(io::Error::other(format!("segment {number} is locked by somebody who may not")));
    }
    file.set_length(bytes)?;
    let segment = Segment::new(number, file, true);
    segment.begin(used_seconds)?;
    Ok(segment)
}

/// Opens a segment for reading, and for noting its use where `writable` says so; none where it is gone.
pub(crate) fn open_segment(folder: &Folder, number: u64, writable: bool) -> io::Result<Option<Segment>> {
    let how = if writable { OpenMode::Write } else { OpenMode::Read };
    Ok(folder.segment(number, how)?.map(|file| Segment::new(number, file, writable)))
}
