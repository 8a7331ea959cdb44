//! How the room of removed regions is regained: what is left of a file is copied, and the file removed.
//!
//! Only files of owners that this process is are compacted: its own, and those of dead ones whose places it has taken, so
//! that nobody else writes to them or copies them. Others may read and bury what is in them meanwhile. When that is worth it
//! is decided elsewhere, and so is whether there is room for the copies.

use super::record::{HEADER_BYTES, Header};
use super::{Pack, Segment, State};
use crate::TierError;
use crate::folder::failed;
use crate::folder::layout::SegmentName;
use pleach_regions::RegionKey;
use std::sync::Arc;

impl Pack {
    /// The files with dead bytes in them, those with the least to copy first: name and bytes to copy.
    pub(in crate::folder) fn compactable(&self) -> Vec<(SegmentName, u64)> {
        let state = self.state();
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

    /// Bytes in files that hold nothing that is needed: compacting regains them.
    pub(in crate::folder) fn dead_bytes(&self) -> u64 {
        let state = self.state();
        self.own(&state)
            .map(|(name, segment)| segment.end.saturating_sub(state.index.needed(*name).bytes()))
            .sum()
    }

    /// Bytes of the records that are needed.
    pub(in crate::folder) fn live_bytes(&self) -> u64 {
        let state = self.state();
        self.own(&state).map(|(name, _)| state.index.needed(*name).bytes()).sum()
    }

    /// What has to stay free, so that files can be compacted, and have room for stones.
    pub(in crate::folder) fn spare_bytes(&self) -> u64 {
        let state = self.state();
        let has_files = self.own(&state).next().is_some();
        if has_files { self.segment_bytes + self.reserve_ahead_bytes() } else { 0 }
    }

    fn own<'a>(&'a self, state: &'a State) -> impl Iterator<Item = (&'a SegmentName, &'a Segment)> {
        state.segments.iter().filter(|(name, _)| self.owns(state, name.owner))
    }

    /// Copies what is needed of a file to others, and removes it. Nobody else of this process writes meanwhile: that takes as
    /// long as copying 32 MiB does.
    pub(in crate::folder) fn compact(&self, name: SegmentName) -> Result<(), TierError> {
        let mut state = self.state();
        self.check(&state, RegionKey([0; 16]))?;
        self.read_new_records(&mut state)?;
        if !self.owns(&state, name.owner) {
            return Ok(());
        }
        if state.active == Some(name) {
            self.seal(&mut state)?;
        }
        let Some(segment) = state.segments.get(&name) else { return Ok(()) };
        let (file, path) = (Arc::clone(&segment.file), self.layout.segment(name));
        for (key, place) in state.index.regions_in(name) {
            // Whoever was killed while doing this has left copies.
            let is_copied = state.index.places(key).into_iter().any(|other| {
                other.id == place.id && other.segment != name && self.owns(&state, other.segment.owner)
            });
            if is_copied {
                continue;
            }
            let mut body = vec![0; place.body_bytes as usize];
            let from = u64::from(place.offset) + HEADER_BYTES as u64;
            // What is damaged is found so when it is read; nothing here decodes.
            let length = file.read_at(&mut body, from).map_err(failed("read", &path))?;
            body.truncate(length);
            let copy = self.append(&mut state, Header::new(key, place.id, &body), &body)?;
            state.index.enter(key, copy);
        }
        for (key, id) in state.index.tombstones_in(name) {
            self.set_stone(&mut state, key, id)?;
        }
        // The copies first, then their names, and only then the file.
        self.commit_here(&mut state)?;
        self.drop_segments(&mut state, &[name]).inspect_err(|_| state.is_stopped = true)?;
        self.remove_empty_segments(&mut state)
    }
}
