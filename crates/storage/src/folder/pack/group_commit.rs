//! Group commit: one fsync for all writers that have appended by then, since it costs the same for 1 record and for 100.
//!
//! In a shared folder, the watermark is published after the fsync and before any writer returns.

use super::watermarks::Watermark;
use super::{Pack, SEGMENT_BYTES, State};
use crate::TierError;
use crate::folder::failed;
use crate::folder::layout::{PACK_NAME, SegmentName};
use parking_lot::MutexGuard;
use pleach_regions::RegionKey;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Pack {
    /// Waits until everything written is on disk. The first waiter syncs for all.
    pub(super) fn commit_all<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        key: RegionKey,
    ) -> Result<(), TierError> {
        let wanted = state.written;
        while state.synced < wanted {
            self.check(&state, key)?;
            if state.is_syncing {
                // That sync may have begun before this record was written, so the loop checks again.
                self.committed.wait(&mut state);
                continue;
            }
            assert!(state.synced <= state.written, "{} of {} are synced", state.synced, state.written);
            state.is_syncing = true;
            let (written, dirty) = (state.written, std::mem::take(&mut state.dirty));
            let is_folder_dirty = std::mem::take(&mut state.is_folder_dirty);
            // The watermark belongs to the dirty set taken here: records appended during the sync are of the next
            // commit.
            let slot = active_slot(&state);
            // Clones the handles, so that the files stay open if compaction removes a segment during the sync.
            let files: Vec<_> = dirty
                .iter()
                .filter_map(|name| Some((*name, Arc::clone(&state.segments.get(name)?.file))))
                .collect();
            // Syncs without the state lock, so that further writers can append meanwhile.
            drop(state);
            let synced = files
                .into_iter()
                .try_for_each(|(name, file)| file.sync().map_err(failed("sync", &self.layout.segment(name))))
                .and_then(|()| if is_folder_dirty { self.sync_folder() } else { Ok(()) });
            state = self.state.lock();
            assert!(state.is_syncing, "a group of {written} changes is committed, and no commit has begun");
            state.is_syncing = false;
            let published = synced.and_then(|()| slot.map_or(Ok(()), |slot| self.publish(&mut state, slot)));
            // Also after a failure: this thread holds the lock until `is_stopped` is set, so woken writers find it.
            self.committed.notify_all();
            if let Err(error) = published {
                state.is_stopped = true;
                return Err(error);
            }
            state.synced = state.synced.max(written);
            let all = state.written;
            assert!(state.synced <= all, "{} changes are on disk, {all} were written", state.synced);
            self.update_usage(&mut state, &dirty);
        }
        Ok(())
    }

    /// Syncs everything while the state lock keeps other threads from writing.
    pub(super) fn commit_locked(&self, state: &mut State) -> Result<(), TierError> {
        let (slot, mut dirty) = (active_slot(state), std::mem::take(&mut state.dirty));
        // Another thread may be waiting for the commit of earlier records.
        dirty.extend(state.active);
        state.is_folder_dirty = false;
        let synced = dirty
            .iter()
            .filter_map(|name| Some((name, state.segments.get(name)?)))
            .try_for_each(|(name, segment)| {
                segment.file.sync().map_err(failed("sync", &self.layout.segment(*name)))
            })
            .and_then(|()| self.sync_folder())
            .and_then(|()| slot.map_or(Ok(()), |slot| self.publish(state, slot)));
        self.update_usage(state, &dirty);
        synced.inspect_err(|_| state.is_stopped = true)
    }

    /// Closes the active segment for good: readers trust a segment to its end only when no process writes to it any more.
    pub(super) fn seal(&self, state: &mut State) -> Result<(), TierError> {
        let Some(name) = state.active else { return Ok(()) };
        let path = self.layout.segment(name);
        let segment = &state.segments[&name];
        // Truncates the remains of a failed write.
        let sealed = segment.file.set_length(segment.end).and_then(|()| segment.file.sync());
        if let Err(error) = sealed {
            state.is_stopped = true;
            return Err(failed("sync", &path)(error));
        }
        state.active = None;
        self.update_usage(state, &BTreeSet::from([name]));
        Ok(())
    }

    /// Publishes the writer's commit watermark. The watermark never moves back.
    pub(super) fn publish(&self, state: &mut State, slot: Watermark) -> Result<(), TierError> {
        if let (Some(board), Some(owner)) = (&self.board, state.writer)
            && state.published.is_none_or(|published| published < slot)
        {
            board.write(owner, slot)?;
            state.published = Some(slot);
        }
        Ok(())
    }

    /// Removes segments of this process without any needed record.
    pub(super) fn remove_empty_segments(&self, state: &mut State) -> Result<(), TierError> {
        let empty = |state: &State| -> Vec<SegmentName> {
            let is_empty =
                |name: &SegmentName| self.owns(state, name.owner) && state.index.needed(*name).is_nothing();
            state.segments.keys().copied().filter(is_empty).collect()
        };
        if empty(state).is_empty() {
            return Ok(());
        }
        // Another process may have copied a record that a tombstone in these segments buries.
        self.read_new_records(state)?;
        // Removing a segment can make the tombstones in further segments unnecessary.
        loop {
            let names = empty(state);
            if names.is_empty() {
                return Ok(());
            }
            self.drop_segments(state, &names)?;
        }
    }

    /// Removes segments of this process permanently.
    pub(super) fn drop_segments(&self, state: &mut State, names: &[SegmentName]) -> Result<(), TierError> {
        for name in names {
            // Before the removal: a watermark in a missing segment would make every reader list again.
            self.retire(state, *name)?;
            let path = self.layout.segment(*name);
            self.files.remove(&path).map_err(failed("remove", &path))?;
            state.segments.remove(name);
            state.index.forget(*name);
        }
        // After a failed sync a removed segment may reappear, so nothing more is stored.
        self.sync_folder().inspect_err(|_| state.is_stopped = true)
    }

    /// Retires a segment: nothing is written to it, and readers ignore its unread rest.
    fn retire(&self, state: &mut State, name: SegmentName) -> Result<(), TierError> {
        state.active = state.active.filter(|active| *active != name);
        let Some(board) = &self.board else { return Ok(()) };
        let mut slot = Watermark { number: name.number + 1, end: 0 };
        if state.writer == Some(name.owner) {
            state.next_number = state.next_number.max(slot.number);
            // Does not pass the active segment, whose records a later commit publishes.
            slot.number = state.active.map_or(slot.number, |active| active.number);
            return self.publish(state, slot);
        }
        let slots = board.read(false)?;
        let is_named = |named: &Watermark| named.number <= name.number;
        if slots.get(usize::from(name.owner)).copied().flatten().as_ref().is_none_or(is_named) {
            board.write(name.owner, slot)?;
        }
        Ok(())
    }

    pub(super) fn sync_folder(&self) -> Result<(), TierError> {
        let path = self.layout.named(PACK_NAME);
        self.files.sync_folder(&path).map_err(failed("sync", &path))
    }

    /// Updates the disk usage of segments.
    pub(super) fn update_usage(&self, state: &mut State, names: &BTreeSet<SegmentName>) {
        for name in names {
            if let Some(segment) = state.segments.get_mut(name) {
                let found = self.files.metadata(&self.layout.segment(*name));
                // If the lookup fails, the maximum counts.
                segment.disk_bytes = found.map_or(SEGMENT_BYTES, |found| found.disk_bytes);
            }
        }
    }
}

/// Returns the watermark that holds once everything written is on disk.
fn active_slot(state: &State) -> Option<Watermark> {
    let name = state.active?;
    Some(Watermark { number: name.number, end: state.segments[&name].end as u32 })
}
