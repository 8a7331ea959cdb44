//! Chooses the segment for the next record, and preallocates space for tombstones: removal must work on a full disk.
//!
//! In a shared folder, 1/16 of each segment is reserved for tombstones. The writer preallocates the unused part of it behind
//! the last record without changing the file length. A region that would use up this space is not stored. These tombstones
//! suffice to bury all of another segment with records of at least 1,664 bytes. Once that segment is removed and every
//! process that had it open has noticed, its space is free again, and the next writer preallocates it for further
//! tombstones.
//!
//! File systems without preallocation have no space for tombstones. A process that never stored anything has no segment of
//! its own: it continues in the segment of a dead writer, or waits for space.

use super::record::Header;
use super::{Pack, Segment, State};
use crate::TierError;
use crate::folder::failed;
use crate::folder::layout::SegmentName;
use pleach_files::OpenMode;
use pleach_regions::RegionKey;
use std::io;

/// Divisor for the tombstone part of a segment: 1/16 is 2 MiB per process at the maximum segment size.
const STONES: u64 = 16;

/// Divisor for preallocating more than is needed, so that preallocation is rare.
const AHEAD: u64 = 8;

impl Pack {
    /// Returns the bytes of each segment reserved for tombstones.
    pub(super) fn reserve_bytes(&self) -> u64 {
        if self.board.is_some() { self.segment_bytes / STONES } else { 0 }
    }

    /// Returns the maximum preallocation for tombstones.
    pub(super) fn reserve_ahead_bytes(&self) -> u64 {
        self.reserve_bytes() + self.reserve_bytes() / AHEAD
    }

    /// Returns the active segment, or a new one if the record does not fit, with tombstone space preallocated behind it.
    pub(super) fn segment_for(&self, state: &mut State, header: &Header) -> Result<SegmentName, TierError> {
        let (bytes, is_stone) = (header.record_bytes(), header.is_stone);
        let most = if is_stone { self.segment_bytes } else { self.segment_bytes - self.reserve_bytes() };
        let active = state.active.map(|active| (active, state.segments[&active].end + bytes));
        if let Some((active, end)) = active.filter(|(_, end)| *end <= most) {
            if let Some(segment) = state.segments.get_mut(&active) {
                let taken = self.take_room(segment, end);
                // A tombstone may fit into earlier preallocation.
                if !is_stone {
                    taken.map_err(|error| self.refused(active, header, error))?;
                }
            }
            return Ok(active);
        }
        if is_stone {
            // All of its space is used.
            self.seal(state)?;
            let (name, mut segment) = self.begin(state, header.key)?;
            // Without preallocation, the write of the tombstone shows whether the disk has space for it.
            let _ = self.take_room(&mut segment, bytes);
            return Ok(activate(state, name, segment));
        }
        // The current segment and its tombstone space stay active unless the next segment gets as much.
        let (name, mut segment) = self.begin(state, header.key)?;
        if let Err(error) = self.take_room(&mut segment, bytes) {
            // If the removal fails, the next process that recovers this writer removes the empty segment.
            let _ = self.files.remove(&self.layout.segment(name));
            return Err(self.refused(name, header, error));
        }
        self.seal(state)?;
        Ok(activate(state, name, segment))
    }

    /// Preallocates tombstone space behind the new end of a segment, and slightly more if the disk has it.
    fn take_room(&self, segment: &mut Segment, end: u64) -> io::Result<()> {
        let bytes = self.reserve_bytes();
        let [least, ample] = [0, bytes / AHEAD].map(|more| (end + bytes + more).min(self.segment_bytes));
        if bytes == 0 || segment.room_bytes >= least {
            return Ok(());
        }
        let max_bytes = self.segment_bytes;
        assert!(least <= ample, "{least} bytes are the minimum of {ample} bytes to preallocate");
        assert!(ample <= max_bytes, "{ample} bytes are preallocated, a segment has {max_bytes}");
        let take = |segment: &mut Segment, room_bytes| {
            segment.file.reserve_behind(room_bytes)?;
            segment.room_bytes = room_bytes;
            Ok(())
        };
        take(segment, ample).or_else(|_: io::Error| take(segment, least))
    }

    /// Returns the reason why a region is not stored.
    fn refused(&self, segment: SegmentName, header: &Header, error: io::Error) -> TierError {
        if !matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            return failed("write", &self.layout.segment(segment))(error);
        }
        let path = self.layout.root.clone();
        let free_bytes = self.files.space(&path).map_or(0, |space| space.free_bytes);
        let (needed_bytes, reserve_bytes) = (header.record_bytes() + self.reserve_bytes(), 0);
        TierError::DiskFull { key: header.key, path, needed_bytes, free_bytes, reserve_bytes }
    }

    /// Creates the next segment.
    fn begin(&self, state: &mut State, key: RegionKey) -> Result<(SegmentName, Segment), TierError> {
        let owner = self.writer(state, key)?;
        let name = SegmentName { owner, number: state.next_number };
        let path = self.layout.segment(name);
        let file = self.files.open_random_access(&path, OpenMode::Create).map_err(failed("write", &path))?;
        state.next_number += 1;
        Ok((name, Segment { file: file.into(), end: 0, is_complete: false, disk_bytes: 0, room_bytes: 0 }))
    }
}

/// Makes a segment the active one.
fn activate(state: &mut State, name: SegmentName, segment: Segment) -> SegmentName {
    let before = state.active.replace(name);
    assert!(before.is_none(), "{name:?} becomes active before {before:?} is sealed");
    state.segments.insert(name, segment);
    // The name must be on disk before any record of the segment counts as stored.
    state.is_folder_dirty = true;
    name
}
