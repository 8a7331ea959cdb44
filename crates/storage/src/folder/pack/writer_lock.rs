//! Writer locks. In a shared folder a process becomes a writer at its first write by locking a writer number. The lock ends
//! with the process, so a process that gets the lock knows that previous holders are dead. It reads their segments to the
//! end, syncs them, and publishes their watermark.
//!
//! Processes try the lowest number first, so later processes continue in the segments of earlier ones. The single process of
//! a private folder holds all numbers. This module does not decide when compaction pays off.

use super::watermarks::Watermark;
use super::{Pack, Segment, State};
use crate::TierError;
use crate::folder::failed;
use crate::folder::layout::{PACK_NAME, SegmentName};
use pleach_files::{FileLock, LockMode, OpenMode};
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// Result of trying to lock a writer number.
enum Tried {
    Locked(Box<dyn FileLock>),
    /// Another process holds this number.
    Alive,
    /// The file system has no locks.
    Unsupported,
}

impl Pack {
    /// Returns whether this process may write to and remove the segments of a writer.
    pub(super) fn owns(&self, state: &State, owner: u16) -> bool {
        self.board.is_none() || state.owned.contains_key(&owner)
    }

    /// Acquires a writer number. Returns false if the file system has no locks or no number is free.
    pub(super) fn acquire_writer(&self, state: &mut State) -> Result<bool, TierError> {
        if state.writer.is_some() {
            return Ok(true);
        }
        for owner in 0..=u16::MAX {
            match self.try_lock(owner)? {
                Tried::Alive => {}
                Tried::Unsupported => return Ok(false),
                Tried::Locked(held) => {
                    self.recover_writer(state, owner, Some(held))?;
                    self.write_as(state, owner)?;
                    // Other processes may have copied records from these segments before.
                    self.read_new_records(state)?;
                    self.remove_empty_segments(state)?;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Returns the writer number of this process.
    pub(super) fn writer(&self, state: &mut State, key: RegionKey) -> Result<u16, TierError> {
        self.acquire_writer(state)?;
        let path = self.layout.named(PACK_NAME);
        state.writer.ok_or_else(|| {
            let cause = format!(
                "region {key}: no writer lock; the file system has no locks, or too many processes \
                         write"
            );
            failed("write to", &path)(io::Error::new(io::ErrorKind::Unsupported, cause))
        })
    }

    /// Selects a writer number that this process holds for its writes. Continues in the last segment if that has space.
    pub(super) fn write_as(&self, state: &mut State, owner: u16) -> Result<(), TierError> {
        let of_owner = state.segments.keys().filter(|name| name.owner == owner);
        let last = of_owner.max().copied();
        let slot = self.slot(owner)?;
        let after_last = last.map(|last| last.number + 1);
        let after_slot = slot.map(|slot| slot.number + u32::from(slot.end > 0));
        // A segment name must not be reused while other processes may remember it. If no name is known, a random start makes
        // a collision unlikely.
        let fresh = if self.board.is_some() { state.next_id as u32 >> 1 } else { 0 };
        state.writer = Some(owner);
        state.next_number = after_last.max(after_slot).unwrap_or(fresh);
        state.published = slot;
        let goes_on = |name: &SegmentName| {
            let segment = &state.segments[name];
            // Other processes may have read a complete segment to its end, and never read it again.
            segment.end < self.segment_bytes && !segment.is_complete
        };
        state.active = last.filter(goes_on);
        Ok(())
    }

    /// Takes over a writer number and indexes all of its segments. Everything found is synced before any watermark covers
    /// it.
    pub(super) fn recover_writer(
        &self,
        state: &mut State,
        owner: u16,
        held: Option<Box<dyn FileLock>>,
    ) -> Result<(), TierError> {
        state.owned.insert(owner, held);
        // Releases the number after a failure: other code trusts that the segments of a held number are indexed.
        let taken = self.read_through(state, owner);
        taken.inspect_err(|_| drop(state.owned.remove(&owner)))
    }

    fn read_through(&self, state: &mut State, owner: u16) -> Result<(), TierError> {
        let (listed, _) = self.listed()?;
        let names: BTreeSet<SegmentName> = listed.into_keys().filter(|name| name.owner == owner).collect();
        let slot = self.slot(owner)?;
        let gone: Vec<SegmentName> = state
            .segments
            .keys()
            .filter(|name| name.owner == owner && !names.contains(name))
            .copied()
            .collect();
        for name in gone {
            state.segments.remove(&name);
            state.index.forget(name);
        }
        for name in &names {
            // Only the last segment may hold records that were never synced.
            self.read_owned(state, *name, slot, Some(name) == names.last())?;
        }
        self.sync_folder()?;
        self.update_usage(state, &names);
        let found =
            |name: &SegmentName| Watermark { number: name.number, end: state.segments[name].end as u32 };
        let found = names.last().map(found);
        let watermark = match slot {
            // The published segment is missing: the power failed after it was created and before its name was on disk.
            Some(slot) if slot.end > 0 && found.is_none_or(|found| found.number < slot.number) => {
                Some(Watermark { number: slot.number + 1, end: 0 })
            }
            _ => found,
        };
        // A watermark never moves back: readers have indexed everything below it.
        if let (Some(board), Some(told)) =
            (&self.board, watermark.filter(|told| slot.is_none_or(|slot| slot < *told)))
        {
            board.write(owner, told)?;
        }
        Ok(())
    }

    /// Reads the rest of a segment, truncates a torn write at its end, and syncs it.
    fn read_owned(
        &self,
        state: &mut State,
        name: SegmentName,
        slot: Option<Watermark>,
        is_last: bool,
    ) -> Result<(), TierError> {
        let path = self.layout.segment(name);
        let file = self.files.open_random_access(&path, OpenMode::Write).map_err(failed("read", &path))?;
        let length_bytes = file.length().map_err(failed("read", &path))?;
        let known = state.segments.get(&name).map_or(0, |segment| segment.end);
        let is_retired = slot.is_some_and(|slot| slot.number > name.number);
        let is_complete = !is_last || is_retired;
        let durable = slot.filter(|slot| slot.number == name.number).map_or(0, |slot| u64::from(slot.end));
        // Below the watermark all records were synced, so corruption hides one of them. Only behind it may a torn write
        // end the segment.
        let sure = if is_complete { length_bytes } else { durable.min(length_bytes).max(known) };
        let mut end = self.read_records(state, name, &*file, (known, sure), false)?.max(known);
        if !is_complete {
            end = self.read_records(state, name, &*file, (end, length_bytes), true)?;
            if end < length_bytes {
                file.set_length(end).map_err(failed("cut", &path))?;
            }
        }
        file.sync().map_err(failed("sync", &path))?;
        state
            .segments
            .insert(name, Segment { file: file.into(), end, is_complete, disk_bytes: 0, room_bytes: 0 });
        Ok(())
    }

    /// Temporarily takes over dead writers whose segments differ from their published watermarks.
    pub(in crate::folder) fn recover_dead_writers(&self) -> Result<(), TierError> {
        let Some(board) = &self.board else { return Ok(()) };
        let mut state = self.state.lock();
        let listed = self.listed()?.0.into_iter();
        let lasts: BTreeMap<u16, (u32, u64)> =
            listed.map(|(name, about)| (name.owner, (name.number, about.length_bytes))).collect();
        let slots = board.read(true)?;
        let told: BTreeMap<u16, Watermark> =
            (0..=u16::MAX).zip(slots).filter_map(|(owner, slot)| Some((owner, slot?))).collect();
        let owners: BTreeSet<u16> = lasts.keys().chain(told.keys()).copied().collect();
        for owner in owners {
            // A writer whose last segment agrees with its watermark has nothing to recover, dead or alive.
            let is_settled = match (told.get(&owner), lasts.get(&owner)) {
                (None, _) => false,
                (Some(slot), None) => slot.end == 0,
                (Some(slot), Some(last)) if slot.end == 0 => slot.number > last.0,
                (Some(slot), Some(last)) => (slot.number, u64::from(slot.end)) == *last,
            };
            // Released at once: this process does not write under the number, and other processes may.
            if !is_settled && self.adopt(&mut state, owner)? {
                state.owned.remove(&owner);
            }
        }
        self.read_new_records(&mut state)
    }

    /// Takes over dead writers with segments that can be compacted. Returns their numbers.
    pub(in crate::folder) fn acquire_compactable(&self) -> Result<Vec<u16>, TierError> {
        let mut state = self.refreshed(true)?;
        let is_worn = |(name, segment): (&SegmentName, &Segment)| {
            let is_worn = segment.end > state.index.needed(*name).bytes();
            (is_worn && !self.owns(&state, name.owner)).then_some(name.owner)
        };
        let worn: BTreeSet<u16> = state.segments.iter().filter_map(is_worn).collect();
        let mut adopted = Vec::new();
        for owner in worn {
            if self.adopt(&mut state, owner)? {
                adopted.push(owner);
            }
        }
        Ok(adopted)
    }

    /// Releases the numbers of dead writers.
    pub(in crate::folder) fn release(&self, adopted: &[u16]) {
        let mut state = self.state.lock();
        adopted.iter().for_each(|owner| drop(state.owned.remove(owner)));
    }

    /// Takes over a writer number if its process is dead.
    fn adopt(&self, state: &mut State, owner: u16) -> Result<bool, TierError> {
        // Callers release adopted numbers, and must not release one that this process already uses.
        if state.owned.contains_key(&owner) {
            return Ok(false);
        }
        match self.try_lock(owner)? {
            Tried::Locked(held) => self.recover_writer(state, owner, Some(held)).map(|()| true),
            Tried::Alive | Tried::Unsupported => Ok(false),
        }
    }

    fn try_lock(&self, owner: u16) -> Result<Tried, TierError> {
        let path = self.layout.owner(owner);
        match self.files.lock(&path, LockMode::Exclusive) {
            Ok(Some(held)) => Ok(Tried::Locked(held)),
            Ok(None) => Ok(Tried::Alive),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(Tried::Unsupported),
            Err(error) => Err(failed("lock", &path)(error)),
        }
    }

    fn slot(&self, owner: u16) -> Result<Option<Watermark>, TierError> {
        let Some(board) = &self.board else { return Ok(None) };
        let slots = board.read(true)?;
        Ok(slots.get(usize::from(owner)).copied().flatten())
    }
}
