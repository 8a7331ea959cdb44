//! How the room of removed regions is regained: what is left of a file is copied, and the file removed.
//!
//! When that is worth it is decided elsewhere, and so is whether there is room for the copies.

use super::record::HEADER_BYTES;
use super::{Pack, Place};
use crate::TierError;
use crate::folder::failed;
use pleach_regions::RegionKey;

impl Pack {
    /// The files with dead bytes in them, those with the least to copy first: number, bytes to copy, dead bytes.
    pub(in crate::folder) fn worn(&self) -> Vec<(u32, u64, u64)> {
        let state = self.state();
        let all = state
            .segments
            .iter()
            .map(|(number, segment)| (*number, segment.live_bytes, segment.end - segment.live_bytes));
        let mut worn: Vec<_> = all.filter(|(_, _, dead_bytes)| *dead_bytes > 0).collect();
        worn.sort_unstable_by_key(|(_, live_bytes, _)| *live_bytes);
        worn
    }

    /// Copies the regions of a file to others, and removes it. Nobody else writes meanwhile: that takes as long as copying
    /// 32 MiB does.
    pub(in crate::folder) fn compact(&self, number: u32) -> Result<(), TierError> {
        let mut state = self.state();
        self.check(&state, RegionKey([0; 16]))?;
        if state.active == Some(number) {
            self.seal(&mut state)?;
        }
        let Some(segment) = state.segments.get(&number) else { return Ok(()) };
        let file = std::sync::Arc::clone(&segment.file);
        let path = self.layout.segment(number);
        let of_file =
            |(key, place): (&RegionKey, &Place)| (place.segment == number).then_some((*key, *place));
        let mut moved: Vec<(RegionKey, Place)> = state.index.iter().filter_map(of_file).collect();
        moved.sort_unstable_by_key(|(_, place)| place.offset);
        let mut copies = Vec::with_capacity(moved.len());
        for (key, place) in &moved {
            let mut body = vec![0; place.body_bytes as usize];
            let from = u64::from(place.offset) + HEADER_BYTES as u64;
            // What is damaged is found so when it is read; nothing here decodes.
            let copied = file
                .read_at(&mut body, from)
                .map_err(failed("read", &path))
                .and_then(|length| self.append(&mut state, *key, &body[..length]));
            match copied {
                Ok(copy) => copies.push((*key, copy)),
                Err(error) => {
                    copies.iter().for_each(|(_, copy)| drop(self.strike(&mut state, *copy)));
                    return Err(error);
                }
            }
        }
        // The copies first, then their names, and only then the file.
        let dirty = std::mem::take(&mut state.dirty);
        let synced = dirty
            .iter()
            .filter_map(|number| Some((*number, state.segments.get(number)?)))
            .try_for_each(|(number, segment)| {
                segment.file.sync().map_err(failed("sync", &self.layout.segment(number)))
            })
            .and_then(|()| self.sync_folder());
        if let Err(error) = synced {
            state.is_stopped = true;
            return Err(error);
        }
        self.look(&mut state, &dirty);
        state.index.extend(copies);
        // A copy that is removed later must not be found here again.
        self.drop_segments(&mut state, &[number]).inspect_err(|_| state.is_stopped = true)
    }
}
