//! Compaction: copies the live records of a segment and removes the segment.
//!
//! A process compacts only segments of writer numbers that it holds: its own and those of dead writers it has taken over. No
//! other process writes to them or copies them, but other processes may read them and bury their records. The caller decides
//! when compaction pays off and whether the copies have space.

use super::record::{HEADER_BYTES, Header};
use super::{Pack, Segment, State};
use crate::TierError;
use crate::folder::failed;
use crate::folder::layout::SegmentName;
use pleach_regions::RegionKey;
use std::sync::Arc;

impl Pack {
    /// Returns the segments with dead bytes and the bytes to copy, fewest first.
    pub(in crate::folder) fn compactable(&self) -> Vec<(SegmentName, u64)> {
        let state = self.state.lock();
        let needed_bytes = |name: &SegmentName| state.index.needed(*name).bytes();
        let mut worn: Vec<_> = self
            .own(&state)
            .map(|(name, segment)| (*name, needed_bytes(name), segment.end))
            .filter(|(_, needed_bytes, end)| end > needed_bytes)
            .map(|(name, needed_bytes, _)| (name, needed_bytes))
            .collect();
        worn.sort_unstable_by_key(|(_, needed_bytes)| *needed_bytes);
        worn
    }

    /// Returns the bytes of segments that hold nothing needed. Compaction frees them.
    pub(in crate::folder) fn dead_bytes(&self) -> u64 {
        let state = self.state.lock();
        self.own(&state)
            .map(|(name, segment)| segment.end.saturating_sub(state.index.needed(*name).bytes()))
            .sum()
    }

    /// Returns the bytes of live records.
    pub(in crate::folder) fn live_bytes(&self) -> u64 {
        let state = self.state.lock();
        self.own(&state).map(|(name, _)| state.index.needed(*name).bytes()).sum()
    }

    /// Returns the bytes that must stay free for compaction and for tombstones.
    pub(in crate::folder) fn spare_bytes(&self) -> u64 {
        let state = self.state.lock();
        let has_files = self.own(&state).next().is_some();
        if has_files { self.segment_bytes + self.reserve_ahead_bytes() } else { 0 }
    }

    fn own<'a>(&'a self, state: &'a State) -> impl Iterator<Item = (&'a SegmentName, &'a Segment)> {
        state.segments.iter().filter(|(name, _)| self.owns(state, name.owner))
    }

    /// Copies the live records of a segment to others and removes it. Other threads of this process cannot write for the
    /// duration of copying 32 MiB.
    pub(in crate::folder) fn compact(&self, name: SegmentName) -> Result<(), TierError> {
        let mut state = self.state.lock();
        self.check(&state, RegionKey([0; 16]))?;
        // Reads the tombstones of other processes first, so that no record they have buried is copied.
        self.read_new_records(&mut state)?;
        // Another thread may have released the number since the caller listed the segment.
        if !self.owns(&state, name.owner) {
            return Ok(());
        }
        // The copies must not go to the segment that is about to be removed.
        if state.active == Some(name) {
            self.seal(&mut state)?;
        }
        let Some(segment) = state.segments.get(&name) else { return Ok(()) };
        let (file, path) = (Arc::clone(&segment.file), self.layout.segment(name));
        for (key, place) in state.index.regions_in(name) {
            // A process killed during compaction has left a copy.
            let is_copied = state.index.locations(key).into_iter().any(|other| {
                other.id == place.id && other.segment != name && self.owns(&state, other.segment.owner)
            });
            if is_copied {
                continue;
            }
            let mut body = vec![0; place.body_bytes as usize];
            let from = u64::from(place.offset) + HEADER_BYTES as u64;
            // Copies corrupt records as they are: a later read detects them.
            let length = file.read_at(&mut body, from).map_err(failed("read", &path))?;
            body.truncate(length);
            let copy = self.append(&mut state, Header::new(key, place.id, &body), &body)?;
            state.index.enter(key, copy);
        }
        for (key, id) in state.index.tombstones_in(name) {
            self.set_stone(&mut state, key, id)?;
        }
        // Sync the copies and their names before the removal of the segment.
        self.commit_locked(&mut state)?;
        self.drop_segments(&mut state, &[name]).inspect_err(|_| state.is_stopped = true)?;
        self.remove_empty_segments(&mut state)
    }
}
