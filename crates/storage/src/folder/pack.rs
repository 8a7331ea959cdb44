//! Small regions of a folder, packed behind each other in a few files: a file of its own takes blocks, a name and two waits
//! for the medium, and many of them take long to list.
//!
//! Records are only ever written at the end of one file, the active one. Whoever writes waits until that is on the medium,
//! and one wait serves all who have written by then (`pack/group_commit.rs`). Which region is where is in memory (`pack/index.rs`),
//! made from the files when they are opened (`pack/open.rs`); what is dead in them is regained by copying what is not
//! (`pack/compaction.rs`). A record that is damaged hides no other (`pack/record.rs`).
//!
//! **In a shared folder** every file has one writer: its owner, a process that has its number locked (`pack/writer_lock.rs`). The
//! others read it as far as the owner says on the board (`pack/watermarks.rs`), behind what they have read already
//! (`pack/tail_reader.rs`): at once when the board has changed, and with everything opened anew before a region is said not to be
//! there. Files are read by calls, and never mapped. As nobody locks anything to store, two processes may store one region at
//! the same time: both records are there, and equal keys mean equal bytes.
//!
//! **Removal** in a private folder marks the record where it is, which takes no room. In a shared one it is a stone, written
//! behind the remover's own records: a mark in another's file would be a second writer of its last page, which NFS may write
//! back whole with what it held before, and on Lustre would take the lock of that file from whoever is storing; and readers
//! would not see it without reading all of a file again. A stone names the record by an id that copies keep, so that it does
//! not matter who is copying it meanwhile. It takes 104 bytes until what it buries is gone, and removal is what a full disk needs:
//! behind its last record, every owner's file has room on the disk that only stones are written to (`pack/preallocation.rs`).
//!
//! Shared folders need locks that all machines see (Lustre's `flock`); without any, nothing is packed. A network file system
//! that shows names late shows regions late.
//!
//! Nothing here keeps to a capacity.

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
use pleach_files::{FileLock, FileSystem, OpenFile};
use pleach_regions::{DataRegion, DecodeError, Head, RegionKey};
use record::{BURIED, HEADER_BYTES, Header, STATE};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use watermarks::{CommitWatermarks, Watermark, WriterWatermarks};

/// What a file grows to at most: it is read in one piece when it is opened, and copied in one when it is compacted.
const SEGMENT_BYTES: u64 = 32 << 20;

/// What a file of a tier of so many bytes grows to. As much has to be free for one to be compacted.
pub(super) fn segment_bytes(capacity_bytes: u64) -> u64 {
    (capacity_bytes / 64).clamp(16 << 10, SEGMENT_BYTES)
}

/// One file.
#[derive(Debug)]
struct Segment {
    file: Arc<dyn OpenFile>,
    /// Where the next record goes; of another's, how far it has been read.
    end: u64,
    /// Nobody will write to it any more, and it has been read to its end.
    is_whole: bool,
    /// What it takes of the disk, as far as is known.
    taken_bytes: u64,
    /// How far this process has taken room for it.
    room_bytes: u64,
}

#[derive(Debug, Default)]
struct State {
    index: Index,
    segments: BTreeMap<SegmentName, Segment>,
    /// What else lies in the folder.
    other_bytes: u64,
    /// The owners that this process is, with their locks; of a private folder all.
    owned: BTreeMap<u16, Option<Box<dyn FileLock>>>,
    /// The one of them whose files are written to, the number of its next file, and the one that is written to now.
    writer: Option<u16>,
    next_number: u32,
    active: Option<SegmentName>,
    next_id: u64,
    /// The board as it was when others' files were read, and whether one of them could not be.
    seen: WriterWatermarks,
    is_stale: bool,
    /// What the board says of the writer.
    published: Option<Watermark>,
    /// Changes that have been written, and how many of them are on the medium.
    written: u64,
    synced: u64,
    is_syncing: bool,
    /// Files with changes that are not on the medium, and whether names of files are not.
    dirty: BTreeSet<SegmentName>,
    is_folder_dirty: bool,
    /// Something could not be synced: what is on the medium is not known.
    is_stopped: bool,
}

/// What a record was found to be that is not what was written.
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
    /// What a file grows to.
    segment_bytes: u64,
    /// Of shared folders.
    board: Option<CommitWatermarks>,
    state: Mutex<State>,
    /// A wait for the medium is over.
    committed: Condvar,
}

impl Pack {
    /// Stores an encoding; it is on the medium when this returns.
    pub(super) fn insert(&self, key: RegionKey, head: &Head, body: &[u8]) -> Result<Inserted, TierError> {
        let record = [&head.0, body].concat();
        let mut state = self.looked(false)?;
        self.check(&state, key)?;
        if state.index.contains(key) {
            self.commit_all(state, key)?;
            return Ok(Inserted::AlreadyPresent);
        }
        let id = state.next_id;
        state.next_id = id.wrapping_add(1);
        let place = self.append(&mut state, Header::new(key, id, &record), &record)?;
        state.index.enter(key, place);
        if let Err(error) = self.commit_all(state, key) {
            // It was not said to be there. Whoever opens the folder next may find it whole.
            self.state().index.strike(key, place);
            return Err(error);
        }
        Ok(Inserted::New)
    }

    /// Whether a region is there, on the medium.
    pub(super) fn is_known(&self, key: RegionKey) -> Result<bool, TierError> {
        let state = self.looked(false)?;
        if !state.index.contains(key) {
            return Ok(false);
        }
        // Whoever wrote it may be waiting for that, too; it may fail, and then it is not there.
        self.commit_all(state, key)?;
        Ok(true)
    }

    /// The region, or what is there in its place; that is there no more from then on.
    pub(super) fn get(
        &self,
        key: RegionKey,
    ) -> Result<Option<Result<Arc<DataRegion>, CorruptRecord>>, TierError> {
        let mut state = self.found(key)?;
        loop {
            let Some(place) = state.index.place(key) else { return Ok(None) };
            let file = Arc::clone(&state.segments[&place.segment].file);
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
            state = self.state();
            if source.is_err() {
                // Another process may have copied it, and removed the file that it was in.
                self.read_new_records(&mut state)?;
            }
            // It may have been moved meanwhile, and what was read may be another file.
            if state.index.place(key) != Some(place) {
                continue;
            }
            let source = source?;
            // That it cannot be buried means that it will be found damaged once more.
            let _ = self.bury(&mut state, key, place);
            return Ok(Some(Err(CorruptRecord { path, body, source })));
        }
    }

    /// Takes a region out, and says whether there was one. It is off the medium when this returns.
    pub(super) fn remove(&self, key: RegionKey) -> Result<bool, TierError> {
        let mut state = self.looked(true)?;
        let places = state.index.places(key);
        if places.is_empty() {
            return Ok(false);
        }
        self.check(&state, key)?;
        places.into_iter().try_for_each(|place| self.bury(&mut state, key, place))?;
        self.commit_all(state, key)?;
        self.remove_empty_segments(&mut self.state())?;
        Ok(true)
    }

    pub(super) fn contains(&self, key: RegionKey) -> Result<bool, TierError> {
        Ok(self.found(key)?.index.contains(key))
    }

    pub(super) fn keys(&self) -> Vec<RegionKey> {
        self.state().index.regions().map(|(key, _)| key).collect()
    }

    /// Whether an encoding of so many bytes can be packed.
    pub(super) fn may_hold(&self, encoding_bytes: u64) -> Result<bool, TierError> {
        let fits = HEADER_BYTES as u64 + encoding_bytes <= self.segment_bytes - self.reserve_bytes();
        Ok(fits && self.acquire_writer(&mut self.state())?)
    }

    /// Tells what everything takes, while nothing changes that.
    pub(super) fn tell_taken(&self, tell: impl FnOnce(u64)) {
        let state = self.state();
        tell(state.other_bytes + state.segments.values().map(|segment| segment.taken_bytes).sum::<u64>());
    }

    /// What is known, where that is no region of this key, after everything that others have written has been looked at.
    fn found(&self, key: RegionKey) -> Result<MutexGuard<'_, State>, TierError> {
        let state = self.looked(false)?;
        if state.index.contains(key) || self.board.is_none() {
            return Ok(state);
        }
        drop(state);
        self.looked(true)
    }

    /// Writes a record at the end of the active file, or of a new one.
    fn append(&self, state: &mut State, header: Header, body: &[u8]) -> Result<PackLocation, TierError> {
        let bytes = header.record_bytes();
        // Who writes for the first time goes on in the last file of the owner that it becomes.
        self.writer(state, header.key)?;
        let segment = self.segment_for(state, &header)?;
        let path = self.layout.segment(segment);
        let Some(Segment { file, end, .. }) = state.segments.get_mut(&segment) else {
            return Err(TierError::Stopped { key: header.key, path });
        };
        let offset = *end as u32;
        let record = [header.to_bytes().as_slice(), body].concat();
        file.write_at(&record, *end).map_err(failed("write", &path))?;
        *end += bytes;
        state.dirty.insert(segment);
        state.written += 1;
        Ok(PackLocation { segment, offset, body_bytes: header.body_bytes, id: header.id })
    }

    /// Takes a record out of the index, and says so in the files. That is not on the medium yet.
    fn bury(&self, state: &mut State, key: RegionKey, place: PackLocation) -> Result<(), TierError> {
        if self.board.is_some() {
            return self.set_stone(state, key, place.id);
        }
        state.index.strike(key, place);
        let Some(segment) = state.segments.get(&place.segment) else { return Ok(()) };
        let marked = segment.file.write_at(&BURIED, u64::from(place.offset) + STATE);
        state.dirty.insert(place.segment);
        state.written += 1;
        marked.map_err(failed("write", &self.layout.segment(place.segment)))
    }

    /// Writes a stone, twice.
    fn set_stone(&self, state: &mut State, key: RegionKey, id: u64) -> Result<(), TierError> {
        for _ in 0..2 {
            let stone = self.append(state, Header::tombstone(key, id), &[])?;
            state.index.bury(key, id, stone.segment);
        }
        Ok(())
    }

    fn check(&self, state: &State, key: RegionKey) -> Result<(), TierError> {
        let path = || self.layout.named(PACK_NAME);
        if state.is_stopped { Err(TierError::Stopped { key, path: path() }) } else { Ok(()) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing between two changes of it panics.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
