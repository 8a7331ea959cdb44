//! How packed regions are found again: every record of every file, of the same region the last.
//!
//! What is found, and what is found buried, is synced before anybody is told of it.

use super::record::{BURIED, HEADER_BYTES, Header, STATE, records};
use super::{Pack, Place, SEGMENT_BYTES, Segment, State};
use crate::TierError;
use crate::folder::failed;
use crate::folder::inventory::RegionFile;
use crate::folder::layout::{Layout, PACK_NAME, segment_number};
use pleach_files::{Files, Opening};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex};

/// Whether a folder has files of packed regions, and what their folder takes with everything else in it.
pub(in crate::folder) fn numbers(
    files: &dyn Files,
    layout: &Layout,
) -> Result<(BTreeSet<u32>, u64), TierError> {
    let path = layout.named(PACK_NAME);
    let (mut numbers, mut other_bytes) = (BTreeSet::new(), 0);
    for (name, about) in files.list(&path).map_err(failed("list", &path))? {
        match segment_number(&name) {
            Some(number) if !about.is_folder => drop(numbers.insert(number)),
            _ => other_bytes += about.taken_bytes,
        }
    }
    Ok((numbers, other_bytes))
}

impl Pack {
    /// Reads all files.
    pub(in crate::folder) fn open(
        files: Arc<dyn Files>,
        layout: &Layout,
        numbers: &BTreeSet<u32>,
        segment_bytes: u64,
    ) -> Result<Self, TierError> {
        let (layout, state, committed) = (layout.clone(), Mutex::default(), Condvar::new());
        let pack = Self { files, layout, segment_bytes, state, committed };
        let mut state = pack.state();
        for number in numbers {
            // Only of the last one something may have been written that was never synced.
            pack.find(&mut state, *number, Some(number) == numbers.last())?;
        }
        for (number, segment) in &state.segments {
            segment.file.sync().map_err(failed("sync", &pack.layout.segment(*number)))?;
        }
        pack.sync_folder()?;
        pack.look(&mut state, numbers);
        let last = numbers.last().copied();
        state.next_number = last.map_or(0, |last| last + 1);
        state.active = last.filter(|last| state.segments[last].end < segment_bytes);
        let is_empty = |number: &&u32| state.segments[number].live == 0;
        let empty: Vec<u32> = numbers.iter().filter(is_empty).copied().collect();
        pack.drop_segments(&mut state, &empty)?;
        drop(state);
        Ok(pack)
    }

    /// All regions, in no order.
    pub(in crate::folder) fn inventory(&self) -> Result<Vec<RegionFile>, TierError> {
        let state = self.state();
        let mut modified = BTreeMap::new();
        for number in state.segments.keys() {
            let path = self.layout.segment(*number);
            let found = self.files.look(&path).map_err(failed("look at", &path))?;
            modified.insert(*number, found.modified);
        }
        let all = state.index.iter().filter_map(|(key, place)| {
            let taken_bytes = HEADER_BYTES as u64 + u64::from(place.body_bytes);
            let modified = *modified.get(&place.segment)?;
            Some(RegionFile { key: *key, taken_bytes, modified, is_packed: true })
        });
        Ok(all.collect())
    }

    /// Enters the records of a file.
    fn find(&self, state: &mut State, number: u32, is_doubtful: bool) -> Result<(), TierError> {
        let path = self.layout.segment(number);
        let file = self.files.open_anywhere(&path, Opening::Write).map_err(failed("read", &path))?;
        let length_bytes = self.files.look(&path).map_err(failed("read", &path))?.length_bytes;
        // No file of ours is longer, and none that is takes more memory.
        let mut bytes = vec![0; length_bytes.min(SEGMENT_BYTES) as usize];
        let length = file.read_at(&mut bytes, 0).map_err(failed("read", &path))?;
        bytes.truncate(length);
        let found = records(&bytes, is_doubtful);
        let end = found.last().map_or(0, |(offset, header)| *offset as u64 + header.record_bytes());
        if is_doubtful && end < length_bytes {
            file.set_length(end).map_err(failed("cut", &path))?;
        }
        let end = if is_doubtful { end } else { length_bytes.min(SEGMENT_BYTES) };
        let segment = Segment { file: file.into(), end, live: 0, live_bytes: 0, taken_bytes: 0 };
        state.segments.insert(number, segment);
        for (offset, header) in found.into_iter().filter(|(_, header)| header.is_live) {
            self.enter(
                state,
                Place { segment: number, offset: offset as u32, body_bytes: header.body_bytes },
                &header,
            )?;
        }
        Ok(())
    }

    /// Enters a record. One of the same region that was found before is a copy whose file was about to be removed.
    fn enter(&self, state: &mut State, place: Place, header: &Header) -> Result<(), TierError> {
        let before = state.index.insert(header.key, place);
        if let Some(segment) = state.segments.get_mut(&place.segment) {
            segment.live += 1;
            segment.live_bytes += header.record_bytes();
        }
        if let Some(before) = before
            && let Some(segment) = state.segments.get_mut(&before.segment)
        {
            let path = self.layout.segment(before.segment);
            let marked = segment.file.write_at(&BURIED, u64::from(before.offset) + STATE);
            marked.map_err(failed("write", &path))?;
            segment.live -= 1;
            segment.live_bytes -= header.record_bytes();
        }
        Ok(())
    }
}
