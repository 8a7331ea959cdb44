//! One wait for the medium for all who have written by then: syncing costs the same for one record and for a hundred.

use super::{Pack, SEGMENT_BYTES, State};
use crate::TierError;
use crate::folder::failed;
use crate::folder::layout::PACK_NAME;
use pleach_regions::RegionKey;
use std::collections::BTreeSet;
use std::sync::{Arc, MutexGuard, PoisonError};

impl Pack {
    /// Waits until the first `wanted` changes are on the medium. Whoever finds nobody at it syncs for all.
    pub(super) fn commit<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        key: RegionKey,
        wanted: u64,
    ) -> Result<(), TierError> {
        while state.synced < wanted {
            self.check(&state, key)?;
            if state.is_syncing {
                state = self.committed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            }
            state.is_syncing = true;
            let (written, dirty) = (state.written, std::mem::take(&mut state.dirty));
            let is_folder_dirty = std::mem::take(&mut state.is_folder_dirty);
            let files: Vec<_> = dirty
                .iter()
                .filter_map(|number| Some((*number, Arc::clone(&state.segments.get(number)?.file))))
                .collect();
            drop(state);
            let synced = files
                .into_iter()
                .try_for_each(|(number, file)| {
                    file.sync().map_err(failed("sync", &self.layout.segment(number)))
                })
                .and_then(|()| if is_folder_dirty { self.sync_folder() } else { Ok(()) });
            state = self.state();
            state.is_syncing = false;
            match synced {
                Ok(()) => {
                    state.synced = state.synced.max(written);
                    self.look(&mut state, &dirty);
                    self.committed.notify_all();
                }
                Err(error) => {
                    state.is_stopped = true;
                    self.committed.notify_all();
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Closes the active file for good: only a file that nobody writes to any more is on the medium to its end.
    pub(super) fn seal(&self, state: &mut State) -> Result<(), TierError> {
        let Some(number) = state.active else { return Ok(()) };
        let path = self.layout.segment(number);
        let segment = &state.segments[&number];
        // What a write that failed has left behind the end.
        let sealed = segment.file.set_length(segment.end).and_then(|()| segment.file.sync());
        if let Err(error) = sealed {
            state.is_stopped = true;
            return Err(failed("sync", &path)(error));
        }
        state.active = None;
        self.look(state, &BTreeSet::from([number]));
        Ok(())
    }

    /// Removes files in which no region is.
    pub(super) fn drop_empty(&self) -> Result<(), TierError> {
        let mut state = self.state();
        let empty: Vec<u32> = state
            .segments
            .iter()
            .filter(|(_, segment)| segment.live == 0)
            .map(|(number, _)| *number)
            .collect();
        self.drop_segments(&mut state, &empty)
    }

    /// Removes files; they do not come back.
    pub(super) fn drop_segments(&self, state: &mut State, numbers: &[u32]) -> Result<(), TierError> {
        if numbers.is_empty() {
            return Ok(());
        }
        for number in numbers {
            let path = self.layout.segment(*number);
            self.files.remove(&path).map_err(failed("remove", &path))?;
            state.segments.remove(number);
            state.active = state.active.filter(|active| active != number);
        }
        self.sync_folder().inspect_err(|_| state.is_stopped = true)
    }

    pub(super) fn sync_folder(&self) -> Result<(), TierError> {
        let path = self.layout.named(PACK_NAME);
        self.files.sync_folder(&path).map_err(failed("sync", &path))
    }

    /// Looks at what files take now.
    pub(super) fn look(&self, state: &mut State, numbers: &BTreeSet<u32>) {
        for number in numbers {
            if let Some(segment) = state.segments.get_mut(number) {
                let found = self.files.look(&self.layout.segment(*number));
                // A file that cannot be looked at takes what it may.
                segment.taken_bytes = found.map_or(SEGMENT_BYTES, |found| found.taken_bytes);
            }
        }
    }
}
