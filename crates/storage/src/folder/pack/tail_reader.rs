//! Reads the segments of other writers, from the last read offset up to the commit watermark.
//!
//! Segments are reopened for this, because a network file system shows other writers' data on open. The reader lists names
//! first, then reads the watermarks, then the segments. If a listed segment has been compacted and removed meanwhile, the
//! watermarks cover the segment with the copies. This module does not write.

use super::index::PackLocation;
use super::record::records;
use super::watermarks::WriterWatermarks;
use super::{Pack, SEGMENT_BYTES, Segment, State};
use crate::TierError;
use crate::folder::failed;
use crate::folder::layout::{PACK_NAME, SegmentName, segment_name};
use parking_lot::MutexGuard;
use pleach_files::{FileMeta, OpenFile, OpenMode};
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Maximum listings in a row while other processes remove segments. After that, the next call lists again.
const TRIES: usize = 4;

impl Pack {
    /// Returns the segments of all writers, and the disk usage of other files beside them.
    pub(super) fn listed(&self) -> Result<(BTreeMap<SegmentName, FileMeta>, u64), TierError> {
        let path = self.layout.named(PACK_NAME);
        let (mut names, mut other_bytes) = (BTreeMap::new(), 0);
        for (name, about) in self.files.list(&path).map_err(failed("list", &path))? {
            match segment_name(&name) {
                Some(name) if !about.is_folder => drop(names.insert(name, about)),
                _ => other_bytes += about.disk_bytes,
            }
        }
        Ok((names, other_bytes))
    }

    /// Returns the state. If any watermark has changed, first reads the records that other writers have committed. The flag
    /// forces a reopen of the watermark file. Reads the watermarks without the state lock.
    pub(super) fn refreshed(&self, anew: bool) -> Result<MutexGuard<'_, State>, TierError> {
        let Some(board) = &self.board else { return Ok(self.state.lock()) };
        let slots = board.read(anew)?;
        let mut state = self.state.lock();
        let is_same = |owner: usize| {
            let [now, before] = [&slots, &state.seen].map(|slots| slots.get(owner).copied().flatten());
            // The segments of held numbers are indexed as this process writes them.
            now == before || u16::try_from(owner).is_ok_and(|owner| state.owned.contains_key(&owner))
        };
        if state.is_stale || !(0..slots.len().max(state.seen.len())).all(is_same) {
            self.read_new_records(&mut state)?;
        }
        Ok(state)
    }

    /// Reads the records that other writers have committed, and forgets the segments that they have removed.
    pub(super) fn read_new_records(&self, state: &mut State) -> Result<(), TierError> {
        let Some(board) = &self.board else { return Ok(()) };
        for _ in 0..TRIES {
            let (names, other_bytes) = self.listed()?;
            let slots = board.read(true)?;
            state.other_bytes = other_bytes;
            state.is_stale = !self.read_tails(state, &names, &slots)?;
            state.seen = slots;
            if !state.is_stale {
                break;
            }
        }
        Ok(())
    }

    /// Reads the tails of all other writers' segments. Returns whether every expected segment could be read.
    fn read_tails(
        &self,
        state: &mut State,
        names: &BTreeMap<SegmentName, FileMeta>,
        slots: &WriterWatermarks,
    ) -> Result<bool, TierError> {
        let foreign = |name: &SegmentName| !state.owned.contains_key(&name.owner);
        let mut wanted: BTreeSet<SegmentName> = names.keys().copied().filter(foreign).collect();
        // Includes a segment created after the listing.
        let current = slots.iter().zip(0..=u16::MAX).filter_map(|(slot, owner)| {
            let slot = slot.filter(|slot| slot.end > 0)?;
            Some(SegmentName { owner, number: slot.number })
        });
        wanted.extend(current.filter(foreign));
        let gone: Vec<SegmentName> =
            state.segments.keys().filter(|name| foreign(name) && !wanted.contains(name)).copied().collect();
        let mut is_all = true;
        for name in wanted {
            // Without a watermark, or above it, no record is known to be on disk.
            let Some(slot) = slots.get(usize::from(name.owner)).copied().flatten() else { continue };
            if slot.number >= name.number {
                let committed = (slot.number == name.number).then_some(u64::from(slot.end));
                is_all &= self.read_tail(state, name, committed)?;
            }
            if let (Some(about), Some(segment)) = (names.get(&name), state.segments.get_mut(&name)) {
                segment.disk_bytes = about.disk_bytes;
            }
        }
        // Copies of the records of a removed segment may be in one that was not read yet.
        if is_all && !gone.is_empty() {
            // Synced before removed segments are forgotten: their files must not reappear after a removal that relied on
            // their absence.
            self.sync_folder()?;
            for name in gone {
                state.segments.remove(&name);
                state.index.forget(name);
            }
        }
        Ok(is_all)
    }

    /// Reads the rest of another writer's segment, up to its watermark, or to its end if it is complete. Returns whether it
    /// was read that far.
    fn read_tail(
        &self,
        state: &mut State,
        name: SegmentName,
        committed: Option<u64>,
    ) -> Result<bool, TierError> {
        let known = state.segments.get(&name);
        let from = known.map_or(0, |segment| segment.end);
        if known.is_some_and(|segment| segment.is_complete || committed.is_some_and(|end| end <= from)) {
            return Ok(true);
        }
        let path = self.layout.segment(name);
        // A segment may be removed between the listing and here. The caller then lists again.
        let file = match self.files.open_random_access(&path, OpenMode::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(failed("read", &path)(error)),
        };
        let length_bytes = file.length().map_err(failed("read", &path))?;
        let end = self.read_records(state, name, &*file, (from, committed.unwrap_or(length_bytes)), false)?;
        let disk_bytes = state.segments.get(&name).map_or(end, |segment| segment.disk_bytes);
        let segment =
            Segment { file: file.into(), end, is_complete: committed.is_none(), disk_bytes, room_bytes: 0 };
        state.segments.insert(name, segment);
        Ok(committed.is_none_or(|committed| end >= committed))
    }

    /// Indexes the records of a range. Returns the end: the end of the last whole record if the range may never have been
    /// synced.
    pub(super) fn read_records(
        &self,
        state: &mut State,
        name: SegmentName,
        file: &dyn OpenFile,
        (from, to): (u64, u64),
        is_doubtful: bool,
    ) -> Result<u64, TierError> {
        // No valid segment is longer. The limit bounds memory for longer files.
        let mut bytes = vec![0; to.min(SEGMENT_BYTES).saturating_sub(from) as usize];
        let read = file.read_at(&mut bytes, from);
        bytes.truncate(read.map_err(failed("read", &self.layout.segment(name)))?);
        let mut end = if is_doubtful { from } else { from + bytes.len() as u64 };
        for (offset, header) in records(&bytes, is_doubtful) {
            let offset = from + offset as u64;
            end = end.max(offset + header.record_bytes());
            if header.is_stone {
                state.index.add_tombstone(header.key, header.id, name);
            } else if header.is_live {
                let place = PackLocation {
                    segment: name,
                    offset: offset as u32,
                    body_bytes: header.body_bytes,
                    id: header.id,
                };
                state.index.enter(header.key, place);
            }
        }
        Ok(end)
    }
}
