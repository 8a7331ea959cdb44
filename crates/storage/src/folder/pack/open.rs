//! Opens the packed regions of a folder: reads every record of every segment.
//!
//! Everything found live or buried is synced before it is reported (`writer_lock.rs`). The exception is a segment with a
//! live writer, which readers trust up to the published watermark (`tail_reader.rs`).

use super::record::HEADER_BYTES;
use super::watermarks::CommitWatermarks;
use super::{Pack, State};
use crate::TierError;
use crate::folder::failed;
use crate::folder::inventory::RegionFile;
use crate::folder::layout::Layout;
use parking_lot::{Condvar, Mutex};
use pleach_files::FileSystem;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

impl Pack {
    /// Reads all segments. `unique` is a number that no other process has. `is_shared` allows other processes.
    pub(in crate::folder) fn open(
        files: Arc<dyn FileSystem>,
        layout: &Layout,
        segment_bytes: u64,
        is_shared: bool,
        unique: u64,
    ) -> Result<Self, TierError> {
        let board = if is_shared { Some(CommitWatermarks::open(Arc::clone(&files), layout)?) } else { None };
        let state = Mutex::new(State { next_id: unique, ..State::default() });
        let pack =
            Self { files, layout: layout.clone(), segment_bytes, board, state, committed: Condvar::new() };
        if is_shared {
            pack.recover_dead_writers()?;
        } else {
            pack.open_alone(&mut pack.state.lock())?;
        }
        Ok(pack)
    }

    /// Opens all segments as the only writer.
    fn open_alone(&self, state: &mut State) -> Result<(), TierError> {
        // The watermarks become stale with the first write that they do not cover.
        let path = self.layout.board();
        match self.files.remove(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(failed("remove", &path)(error));
            }
            _ => self.sync_folder()?,
        }
        let (names, other_bytes) = self.listed()?;
        state.other_bytes = other_bytes;
        let owners: BTreeSet<u16> = names.into_keys().map(|name| name.owner).collect();
        for owner in owners {
            self.recover_writer(state, owner, None)?;
        }
        self.write_as(state, 0)?;
        self.remove_empty_segments(state)
    }

    /// Reads the changes of other processes, including dead ones.
    pub(in crate::folder) fn refresh(&self) -> Result<(), TierError> {
        self.recover_dead_writers()
    }

    /// Returns all regions in no particular order.
    pub(in crate::folder) fn inventory(&self) -> Result<Vec<RegionFile>, TierError> {
        self.recover_dead_writers()?;
        let state = self.state.lock();
        let (listed, _) = self.listed()?;
        let modified: BTreeMap<_, _> =
            listed.into_iter().map(|(name, about)| (name, about.modified)).collect();
        let all = state.index.regions().filter_map(|(key, place)| {
            let disk_bytes = HEADER_BYTES as u64 + u64::from(place.body_bytes);
            // Another process may have removed the segment since its records were read.
            let modified = *modified.get(&place.segment)?;
            Some(RegionFile { key, disk_bytes, modified, is_packed: true })
        });
        Ok(all.collect())
    }
}
