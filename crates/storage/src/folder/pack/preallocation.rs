//! Which file the next record goes to, and room for stones on a full disk: it has to be there before the disk is full.
//!
//! In a shared folder, a sixteenth of a file is for stones: nothing else is written there, and room for as much as is left of it
//! is taken of the disk behind the last record, without making the file longer. A region that cannot be stored without using
//! that up is not stored. So many stones bury all of another file whose records take 1,664 bytes or more; when it is gone, and
//! every process has looked that had it open, there is room again, which whoever writes next takes for stones to come.
//!
//! File systems that cannot take room so have none for stones, and a process that has never stored anything has none of its own:
//! it goes on in the file of one that is dead, or waits for room.

use super::record::Header;
use super::{Pack, Segment, State};
use crate::TierError;
use crate::folder::failed;
use crate::folder::layout::SegmentName;
use pleach_files::OpenMode;
use pleach_regions::RegionKey;
use std::io;

/// Of a file, the part that is for stones: a sixteenth is 2 MiB for each process where files are largest.
const STONES: u64 = 16;

/// Of that part, what is taken more than is needed at a time, so that this is rare.
const AHEAD: u64 = 8;

impl Pack {
    /// What only stones are written to, of each file.
    pub(super) fn reserve_bytes(&self) -> u64 {
        if self.board.is_some() { self.segment_bytes / STONES } else { 0 }
    }

    /// What is taken of the disk for stones at most.
    pub(super) fn reserve_ahead_bytes(&self) -> u64 {
        self.reserve_bytes() + self.reserve_bytes() / AHEAD
    }

    /// The active file, or a new one where that has no room for the record; with room for stones behind it.
    pub(super) fn segment_for(&self, state: &mut State, header: &Header) -> Result<SegmentName, TierError> {
        let (bytes, is_stone) = (header.record_bytes(), header.is_stone);
        let most = if is_stone { self.segment_bytes } else { self.segment_bytes - self.reserve_bytes() };
        let active = state.active.map(|active| (active, state.segments[&active].end + bytes));
        if let Some((active, end)) = active.filter(|(_, end)| *end <= most) {
            if let Some(segment) = state.segments.get_mut(&active) {
                let taken = self.take_room(segment, end);
                // For stones it may have been taken before, when there was some.
                if !is_stone {
                    taken.map_err(|error| self.refused(active, header, error))?;
                }
            }
            return Ok(active);
        }
        if is_stone {
            // All of its room is used.
            self.seal(state)?;
            let (name, mut segment) = self.begin(state, header.key)?;
            let _ = self.take_room(&mut segment, bytes);
            return Ok(activate(state, name, segment));
        }
        // The one that there is stays the active one, with its room for stones, unless the next one has as much.
        let (name, mut segment) = self.begin(state, header.key)?;
        if let Err(error) = self.take_room(&mut segment, bytes) {
            let _ = self.files.remove(&self.layout.segment(name));
            return Err(self.refused(name, header, error));
        }
        self.seal(state)?;
        Ok(activate(state, name, segment))
    }

    /// Takes room for stones behind what will be the end of a file, and a little more if there is some.
    fn take_room(&self, segment: &mut Segment, end: u64) -> io::Result<()> {
        let bytes = self.reserve_bytes();
        let [least, ample] = [0, bytes / AHEAD].map(|more| (end + bytes + more).min(self.segment_bytes));
        if bytes == 0 || segment.room_bytes >= least {
            return Ok(());
        }
        let take = |segment: &mut Segment, room_bytes| {
            segment.file.reserve_behind(room_bytes)?;
            segment.room_bytes = room_bytes;
            Ok(())
        };
        take(segment, ample).or_else(|_: io::Error| take(segment, least))
    }

    /// Why a region is not stored.
    fn refused(&self, segment: SegmentName, header: &Header, error: io::Error) -> TierError {
        if !matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
            return failed("write", &self.layout.segment(segment))(error);
        }
        let path = self.layout.root.clone();
        let free_bytes = self.files.space(&path).map_or(0, |space| space.free_bytes);
        let (needed_bytes, reserve_bytes) = (header.record_bytes() + self.reserve_bytes(), 0);
        TierError::DiskFull { key: header.key, path, needed_bytes, free_bytes, reserve_bytes }
    }

    /// Makes the next file.
    fn begin(&self, state: &mut State, key: RegionKey) -> Result<(SegmentName, Segment), TierError> {
        let owner = self.writer(state, key)?;
        let name = SegmentName { owner, number: state.next_number };
        let path = self.layout.segment(name);
        let file = self.files.open_anywhere(&path, OpenMode::Create).map_err(failed("write", &path))?;
        state.next_number += 1;
        Ok((name, Segment { file: file.into(), end: 0, is_whole: false, taken_bytes: 0, room_bytes: 0 }))
    }
}

/// Makes a file the active one.
fn activate(state: &mut State, name: SegmentName, segment: Segment) -> SegmentName {
    state.segments.insert(name, segment);
    state.active = Some(name);
    state.is_folder_dirty = true;
    name
}
