//! Packs small regions of a folder into append-only segments. A file per region would take blocks, a name and two fsyncs,
//! and many files are slow to list.
//!
//! Writers append records only to the active segment. A writer waits until its record is on disk, and one fsync serves all
//! writers that have appended by then (`pack/group_commit.rs`). The in-memory index (`pack/index.rs`) is built from the
//! segments at open (`pack/open.rs`). Compaction copies live records and frees dead ones (`pack/compaction.rs`). A corrupt
//! record hides no other record (`pack/record.rs`).
//!
//! **In a shared folder** every segment has one writer: the process that holds the lock on the writer's number
//! (`pack/writer_lock.rs`). Other processes read the segment up to its commit watermark (`pack/watermarks.rs`), starting
//! where they stopped before (`pack/tail_reader.rs`). They read at once when a watermark has changed, and reopen everything
//! before they report a region as missing. Segments are read by system calls and never mapped. Storing takes no lock across
//! processes, so two processes may store the same region at once. Both records remain, and equal keys mean equal bytes.
//!
//! **Removal** in a private folder marks the record in place, which takes no space. In a shared folder the remover appends a
//! tombstone to its own segment. A mark in another writer's segment would be a second writer of its last page: NFS may write
//! that page back whole with its previous content, and Lustre would take the file's lock from the process that is storing.
//! Readers would also have to reread the whole segment to see the mark. A tombstone names the record by an id that copies
//! keep, so a concurrent compaction does not matter. It takes 104 bytes until the buried record is gone. A full disk needs
//! removal, so every writer's segment has preallocated space behind its last record that only tombstones use
//! (`pack/preallocation.rs`).
//!
//! Shared folders need locks that all machines see (Lustre's `flock`). Without locks, nothing is packed. On a network file
//! system that shows names late, regions appear late.
//!
//! The pack enforces no capacity.

mod compaction;
mod group_commit;
mod index;
mod open;
mod preallocation;
mod record;
mod tail_reader;
mod watermarks;
mod writer_lock;

use super::layout::{Layout, PACK_NAME, SegmentName};
use super::{failed, read};
use crate::{Inserted, TierError};
use index::{Index, PackLocation};
use parking_lot::{Condvar, Mutex, MutexGuard};
use pleach_files::{FileLock, FileSystem, OpenFile};
use pleach_regions::{DataRegion, DecodeError, Head, RegionKey};
use record::{HEADER_BYTES, Header, STATE, TOMBSTONED};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use watermarks::{CommitWatermarks, Watermark, WriterWatermarks};

/// Maximum segment size: a segment is read in one piece at open and copied in one piece by compaction.
const SEGMENT_BYTES: u64 = 32 << 20;

/// Returns the segment size for a tier of `capacity_bytes`. Compacting a segment needs as many free bytes.
pub(super) fn segment_bytes(capacity_bytes: u64) -> u64 {
    (capacity_bytes / 64).clamp(16 << 10, SEGMENT_BYTES)
}

/// An open segment.
#[derive(Debug)]
struct Segment {
    file: Arc<dyn OpenFile>,
    /// Offset of the next record. In another writer's segment, the end of the part that has been read.
    end: u64,
    /// Whether no process writes to the segment any more, and it has been read to its end.
    is_complete: bool,
    /// Last known disk usage.
    disk_bytes: u64,
    /// End of the space that this process has preallocated.
    room_bytes: u64,
}

#[derive(Debug, Default)]
struct State {
    index: Index,
    segments: BTreeMap<SegmentName, Segment>,
    /// Disk usage of all other files in the folder.
    other_bytes: u64,
    /// Writer numbers that this process holds, with their locks. In a private folder, all of them.
    owned: BTreeMap<u16, Option<Box<dyn FileLock>>>,
    /// The writer number in use, the number of its next segment, and its active segment.
    writer: Option<u16>,
    next_number: u32,
    active: Option<SegmentName>,
    next_id: u64,
    /// The watermarks at the last read of other writers' segments, and whether any of those reads failed.
    seen: WriterWatermarks,
    is_stale: bool,
    /// The watermark that this writer has published.
    published: Option<Watermark>,
    /// Changes written, and how many of them are on disk.
    written: u64,
    synced: u64,
    is_syncing: bool,
    /// Segments with changes that are not on disk, and whether the folder has unsynced names.
    dirty: BTreeSet<SegmentName>,
    is_folder_dirty: bool,
    /// Whether an fsync has failed. The content on disk is then unknown.
    is_stopped: bool,
}

/// A record with corrupt content.
#[derive(Debug)]
pub(super) struct CorruptRecord {
    pub(super) path: PathBuf,
    pub(super) body: Vec<u8>,
    pub(super) source: DecodeError,
}

/// The packed regions of a folder.
#[derive(Debug)]
pub(super) struct Pack {
    files: Arc<dyn FileSystem>,
    layout: Layout,
    /// Maximum segment size.
    segment_bytes: u64,
    /// Shared folders only.
    board: Option<CommitWatermarks>,
    /// No code between two changes of the state panics, so it is consistent whenever the lock is free.
    state: Mutex<State>,
    /// Signaled when a group commit ends.
    committed: Condvar,
}

impl Pack {
    /// Stores an encoding. It is on disk when this returns.
    pub(super) fn insert(&self, key: RegionKey, head: &Head, body: &[u8]) -> Result<Inserted, TierError> {
        let record = [&head.0, body].concat();
        let mut state = self.refreshed(false)?;
        self.check(&state, key)?;
        // Another thread may have appended the record and still wait for its commit.
        if state.index.contains(key) {
            self.commit_all(state, key)?;
            return Ok(Inserted::AlreadyPresent);
        }
        // Wraps, since the first id is random.
        let id = state.next_id;
        state.next_id = id.wrapping_add(1);
        let place = self.append(&mut state, Header::new(key, id, &record), &record)?;
        // Indexed before the commit, so that a second writer of the region waits for the same one.
        state.index.enter(key, place);
        if let Err(error) = self.commit_all(state, key) {
            // The region was not reported as stored. The next process that opens the folder may find the record whole.
            self.state.lock().index.strike(key, place);
            return Err(error);
        }
        Ok(Inserted::New)
    }

    /// Returns whether a region is stored and on disk.
    pub(super) fn is_durable(&self, key: RegionKey) -> Result<bool, TierError> {
        let state = self.refreshed(false)?;
        if !state.index.contains(key) {
            return Ok(false);
        }
        // The writer of the region may still wait for the same commit. If the commit fails, the region is not stored.
        self.commit_all(state, key)?;
        Ok(true)
    }

    /// Returns the region, or its record if that is corrupt. A corrupt record is removed from the index.
    pub(super) fn get(
        &self,
        key: RegionKey,
    ) -> Result<Option<Result<Arc<DataRegion>, CorruptRecord>>, TierError> {
        let mut state = self.found(key)?;
        loop {
            let Some(place) = state.index.location(key) else { return Ok(None) };
            let file = Arc::clone(&state.segments[&place.segment].file);
            // Reads without the state lock, so that other threads do not wait for the disk.
            drop(state);
            let path = self.layout.segment(place.segment);
            let mut body = vec![0; place.body_bytes as usize];
            let from = u64::from(place.offset) + HEADER_BYTES as u64;
            let read = file.read_at(&mut body, from).and_then(|length| {
                body.truncate(length);
                read::decode(&mut body.as_slice(), length as u64)
            });
            let source = match read.map_err(failed("read", &path)) {
                Ok(Ok(region)) => return Ok(Some(Ok(Arc::new(region)))),
                Ok(Err(source)) => Ok(source),
                Err(error) => Err(error),
            };
            state = self.state.lock();
            if source.is_err() {
                // Another process may have copied the record and removed its segment.
                self.read_new_records(&mut state)?;
            }
            // Compaction may have moved the record meanwhile, and the bytes read may belong to another file.
            if state.index.location(key) != Some(place) {
                continue;
            }
            let source = source?;
            // If the record cannot be buried, the next read finds it corrupt again.
            let _ = self.bury(&mut state, key, place);
            return Ok(Some(Err(CorruptRecord { path, body, source })));
        }
    }

    /// Removes a region. Returns whether it existed. The removal is on disk when this returns.
    pub(super) fn remove(&self, key: RegionKey) -> Result<bool, TierError> {
        // Reopens the watermarks: a record of another process that is not indexed yet would survive the removal.
        let mut state = self.refreshed(true)?;
        let places = state.index.locations(key);
        if places.is_empty() {
            return Ok(false);
        }
        self.check(&state, key)?;
        places.into_iter().try_for_each(|place| self.bury(&mut state, key, place))?;
        self.commit_all(state, key)?;
        self.remove_empty_segments(&mut self.state.lock())?;
        Ok(true)
    }

    pub(super) fn contains(&self, key: RegionKey) -> Result<bool, TierError> {
        Ok(self.found(key)?.index.contains(key))
    }

    pub(super) fn keys(&self) -> Vec<RegionKey> {
        self.state.lock().index.regions().map(|(key, _)| key).collect()
    }

    /// Returns whether an encoding of `encoding_bytes` can be packed.
    pub(super) fn may_hold(&self, encoding_bytes: u64) -> Result<bool, TierError> {
        let fits = HEADER_BYTES as u64 + encoding_bytes <= self.segment_bytes - self.reserve_bytes();
        Ok(fits && self.acquire_writer(&mut self.state.lock())?)
    }

    /// Passes the disk usage of all files to the closure under the state lock, so that it cannot change meanwhile.
    pub(super) fn with_disk_usage(&self, use_bytes: impl FnOnce(u64)) {
        let state = self.state.lock();
        use_bytes(state.other_bytes + state.segments.values().map(|segment| segment.disk_bytes).sum::<u64>());
    }

    /// Returns the state. If the key is unknown, first reads everything that other writers have committed.
    fn found(&self, key: RegionKey) -> Result<MutexGuard<'_, State>, TierError> {
        let state = self.refreshed(false)?;
        if state.index.contains(key) || self.board.is_none() {
            return Ok(state);
        }
        drop(state);
        self.refreshed(true)
    }

    /// Appends a record to the active segment, or to a new one.
    fn append(&self, state: &mut State, header: Header, body: &[u8]) -> Result<PackLocation, TierError> {
        let bytes = header.record_bytes();
        // A process that writes for the first time continues in the last segment of the writer number that it acquires.
        self.writer(state, header.key)?;
        let segment = self.segment_for(state, &header)?;
        let path = self.layout.segment(segment);
        let Some(Segment { file, end, .. }) = state.segments.get_mut(&segment) else {
            return Err(TierError::Stopped { key: header.key, path });
        };
        // Cannot truncate: segments have at most 32 MiB.
        let offset = *end as u32;
        let record = [header.to_bytes().as_slice(), body].concat();
        file.write_at(&record, *end).map_err(failed("write", &path))?;
        // The end moves only after a complete write, so the next record overwrites the remains of a failed one.
        *end += bytes;
        state.dirty.insert(segment);
        state.written += 1;
        Ok(PackLocation { segment, offset, body_bytes: header.body_bytes, id: header.id })
    }

    /// Removes a record from the index and from the files. The caller commits the change.
    fn bury(&self, state: &mut State, key: RegionKey, place: PackLocation) -> Result<(), TierError> {
        if self.board.is_some() {
            return self.set_stone(state, key, place.id);
        }
        // The index loses the record even if the mark fails: a region does not reappear after a failed removal.
        state.index.strike(key, place);
        let Some(segment) = state.segments.get(&place.segment) else { return Ok(()) };
        let marked = segment.file.write_at(&TOMBSTONED, u64::from(place.offset) + STATE);
        state.dirty.insert(place.segment);
        state.written += 1;
        marked.map_err(failed("write", &self.layout.segment(place.segment)))
    }

    /// Writes a tombstone twice, since one corrupt header must not restore a region.
    fn set_stone(&self, state: &mut State, key: RegionKey, id: u64) -> Result<(), TierError> {
        for _ in 0..2 {
            let stone = self.append(state, Header::tombstone(key, id), &[])?;
            state.index.add_tombstone(key, id, stone.segment);
        }
        Ok(())
    }

    fn check(&self, state: &State, key: RegionKey) -> Result<(), TierError> {
        let path = || self.layout.named(PACK_NAME);
        if state.is_stopped { Err(TierError::Stopped { key, path: path() }) } else { Ok(()) }
    }
}
