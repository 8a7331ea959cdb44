//! Small regions of a private folder, packed behind each other in a few files: a file of its own takes blocks, a name and
//! two waits for the medium, and many of them take long to list.
//!
//! Records are only ever written at the end of one file, the active one, and buried where they are. Whoever writes waits
//! until that is on the medium, and one wait serves all who have written by then (`pack/commit.rs`). Which region is where
//! is in memory, made from the files when they are opened (`pack/open.rs`); what is dead in them is regained by copying
//! what is not (`pack/compact.rs`). A record that is damaged hides no other (`pack/record.rs`).
//!
//! Nothing here keeps to a capacity, and nothing here is for folders that several processes have open.

mod commit;
mod compact;
mod open;
mod record;

pub(super) use open::numbers;

use super::layout::{Layout, PACK_NAME};
use super::{failed, read};
use crate::{Inserted, TierError};
use pleach_files::{Files, OpenFile, Opening};
use pleach_regions::{DataRegion, DecodeError, Head, RegionKey};
use record::{BURIED, HEADER_BYTES, Header, STATE};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What a file grows to at most: it is read in one piece when it is opened, and copied in one when it is compacted.
const SEGMENT_BYTES: u64 = 32 << 20;

/// What a file of a tier of so many bytes grows to. As much has to be free for one to be compacted.
pub(super) fn segment_bytes(capacity_bytes: u64) -> u64 {
    (capacity_bytes / 64).clamp(16 << 10, SEGMENT_BYTES)
}

/// Where the record of a region is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    segment: u32,
    offset: u32,
    body_bytes: u32,
}

/// One file.
#[derive(Debug)]
struct Segment {
    file: Arc<dyn OpenFile>,
    /// Where the next record goes.
    end: u64,
    /// Regions in it, and the bytes of their records.
    live: u32,
    live_bytes: u64,
    /// What it takes of the disk, as far as is known.
    taken_bytes: u64,
}

#[derive(Debug, Default)]
struct State {
    index: HashMap<RegionKey, Place>,
    segments: BTreeMap<u32, Segment>,
    /// The file that is written to: the one of the highest number, if any.
    active: Option<u32>,
    next_number: u32,
    /// Changes that have been written, and how many of them are on the medium.
    written: u64,
    synced: u64,
    is_syncing: bool,
    /// Files with changes that are not on the medium, and whether names of files are not.
    dirty: BTreeSet<u32>,
    is_folder_dirty: bool,
    /// Something could not be synced: what is on the medium is not known.
    is_stopped: bool,
}

/// What a record was found to be that is not what was written.
#[derive(Debug)]
pub(super) struct Damaged {
    pub(super) path: PathBuf,
    pub(super) body: Vec<u8>,
    pub(super) source: DecodeError,
}

/// The packed regions of a folder.
#[derive(Debug)]
pub(super) struct Pack {
    files: Arc<dyn Files>,
    layout: Layout,
    /// What a file grows to.
    segment_bytes: u64,
    state: Mutex<State>,
    /// A wait for the medium is over.
    committed: Condvar,
}

impl Pack {
    /// Stores an encoding; it is on the medium when this returns.
    pub(super) fn insert(&self, key: RegionKey, head: &Head, body: &[u8]) -> Result<Inserted, TierError> {
        let record = [&head.0, body].concat();
        if self.is_known(key)? {
            return Ok(Inserted::Known);
        }
        let mut state = self.state();
        self.check(&state, key)?;
        if state.index.contains_key(&key) {
            // Another thread was faster.
            drop(state);
            return self.insert(key, head, body);
        }
        let place = self.append(&mut state, key, &record)?;
        state.index.insert(key, place);
        let wanted = state.written;
        if let Err(error) = self.commit(state, key, wanted) {
            // It was not said to be there. If it cannot be buried either, whoever opens the folder next finds it whole.
            let _ = self.bury(&mut self.state(), key);
            return Err(error);
        }
        Ok(Inserted::New)
    }

    /// Whether a region is there, on the medium.
    pub(super) fn is_known(&self, key: RegionKey) -> Result<bool, TierError> {
        let state = self.state();
        if !state.index.contains_key(&key) {
            return Ok(false);
        }
        // Whoever wrote it may be waiting for that, too; it may fail, and then it is not there.
        let wanted = state.written;
        self.commit(state, key, wanted)?;
        Ok(true)
    }

    /// The region, or what is there in its place; that is there no more from then on.
    pub(super) fn get(&self, key: RegionKey) -> Result<Option<Result<Arc<DataRegion>, Damaged>>, TierError> {
        loop {
            let state = self.state();
            let Some(place) = state.index.get(&key).copied() else { return Ok(None) };
            let file = Arc::clone(&state.segments[&place.segment].file);
            drop(state);
            let path = self.layout.segment(place.segment);
            let mut body = vec![0; place.body_bytes as usize];
            let from = u64::from(place.offset) + HEADER_BYTES as u64;
            let length = file.read_at(&mut body, from).map_err(failed("read", &path))?;
            body.truncate(length);
            let decoded = read::decode(&mut body.as_slice(), length as u64).map_err(failed("read", &path))?;
            let source = match decoded {
                Ok(region) => return Ok(Some(Ok(Arc::new(region)))),
                Err(source) => source,
            };
            let mut state = self.state();
            // It may have been moved meanwhile, and what was read may be another file.
            if state.index.get(&key) != Some(&place) {
                continue;
            }
            // That it cannot be marked means that it will be found damaged once more.
            let _ = self.bury(&mut state, key);
            return Ok(Some(Err(Damaged { path, body, source })));
        }
    }

    /// Takes a region out, and says whether there was one. It is off the medium when this returns.
    pub(super) fn remove(&self, key: RegionKey) -> Result<bool, TierError> {
        let mut state = self.state();
        if !state.index.contains_key(&key) {
            return Ok(false);
        }
        self.check(&state, key)?;
        self.bury(&mut state, key)?;
        let wanted = state.written;
        self.commit(state, key, wanted)?;
        self.drop_empty()?;
        Ok(true)
    }

    pub(super) fn contains(&self, key: RegionKey) -> bool {
        self.state().index.contains_key(&key)
    }

    pub(super) fn keys(&self) -> Vec<RegionKey> {
        self.state().index.keys().copied().collect()
    }

    /// Bytes in files that hold no region: compacting regains them.
    pub(super) fn dead_bytes(&self) -> u64 {
        let state = self.state();
        state.segments.values().map(|segment| segment.end - segment.live_bytes).sum()
    }

    /// Whether an encoding of so many bytes can be packed.
    pub(super) fn may_hold(&self, encoding_bytes: u64) -> bool {
        HEADER_BYTES as u64 + encoding_bytes <= self.segment_bytes
    }

    /// What has to stay free, so that files can be compacted.
    pub(super) fn spare_bytes(&self) -> u64 {
        if self.state().segments.is_empty() { 0 } else { self.segment_bytes }
    }

    /// Bytes of the records of regions.
    pub(super) fn live_bytes(&self) -> u64 {
        self.state().segments.values().map(|segment| segment.live_bytes).sum()
    }

    /// Tells what all files take, while nothing changes that.
    pub(super) fn tell_taken(&self, tell: impl FnOnce(u64)) {
        let state = self.state();
        tell(state.segments.values().map(|segment| segment.taken_bytes).sum());
    }

    /// Writes a record at the end of the active file, or of a new one.
    fn append(&self, state: &mut State, key: RegionKey, body: &[u8]) -> Result<Place, TierError> {
        let header = Header::new(key, body);
        let bytes = header.record_bytes();
        if let Some(active) = state.active
            && state.segments[&active].end + bytes > self.segment_bytes
        {
            self.seal(state)?;
        }
        let number = match state.active {
            Some(active) => active,
            None => self.begin(state)?,
        };
        let path = self.layout.segment(number);
        let Some(segment) = state.segments.get_mut(&number) else {
            return Err(TierError::Stopped { key, path });
        };
        let offset = segment.end;
        let record = [header.to_bytes().as_slice(), body].concat();
        segment.file.write_at(&record, offset).map_err(failed("write", &path))?;
        segment.end += bytes;
        segment.live += 1;
        segment.live_bytes += bytes;
        state.dirty.insert(number);
        state.written += 1;
        Ok(Place { segment: number, offset: offset as u32, body_bytes: header.body_bytes })
    }

    /// Makes the next file the active one.
    fn begin(&self, state: &mut State) -> Result<u32, TierError> {
        let number = state.next_number;
        let path = self.layout.segment(number);
        let file = self.files.open_anywhere(&path, Opening::Create).map_err(failed("write", &path))?;
        state.next_number += 1;
        let segment = Segment { file: file.into(), end: 0, live: 0, live_bytes: 0, taken_bytes: 0 };
        state.segments.insert(number, segment);
        state.active = Some(number);
        state.is_folder_dirty = true;
        Ok(number)
    }

    /// Takes a region out of the index, and marks its record. The mark is not on the medium yet.
    fn bury(&self, state: &mut State, key: RegionKey) -> Result<(), TierError> {
        state.index.remove(&key).map_or(Ok(()), |place| self.strike(state, place))
    }

    /// Marks a record as not to be read again.
    fn strike(&self, state: &mut State, place: Place) -> Result<(), TierError> {
        let Some(segment) = state.segments.get_mut(&place.segment) else { return Ok(()) };
        let path = self.layout.segment(place.segment);
        let marked = segment.file.write_at(&BURIED, u64::from(place.offset) + STATE);
        segment.live -= 1;
        segment.live_bytes -= HEADER_BYTES as u64 + u64::from(place.body_bytes);
        state.dirty.insert(place.segment);
        state.written += 1;
        marked.map_err(failed("write", &path))
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
