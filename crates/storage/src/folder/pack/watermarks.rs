//! Commit watermarks: the durable length of each writer's segment. Bytes beyond it are not on disk or half written.
//!
//! One file holds a slot per writer: the number of its active segment and the durable bytes of it. Segments with lower
//! numbers are durable to their ends. Each writer alone writes its slot, before it reports the covered records as stored.
//! One read of all slots shows whether any record is new. Slots are never synced: after a power loss no process holds a
//! writer lock, and a process that takes over a writer rewrites its slot (`writer_lock.rs`).
//!
//! This module does not know the content of segments.

use crate::TierError;
use crate::folder::failed;
use crate::folder::layout::Layout;
use pleach_files::{FileSystem, OpenFile, OpenMode};
use std::io;
use std::sync::Arc;

const TITLE: [u8; SLOT_BYTES] = *b"pleach's board 1";
const SLOT_BYTES: usize = 16;
const CHECKED: usize = 8;

/// Slots per read call: 1 KiB, and as many writers as most folders have.
const SLOTS: usize = 64;

/// End of the readable part of a writer's segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Watermark {
    pub(super) number: u32,
    pub(super) end: u32,
}

impl Watermark {
    fn to_bytes(self, owner: u16) -> [u8; SLOT_BYTES] {
        let mut bytes = [0; SLOT_BYTES];
        bytes[..4].copy_from_slice(&self.number.to_le_bytes());
        bytes[4..CHECKED].copy_from_slice(&self.end.to_le_bytes());
        // The checksum covers the writer number, so a slot at the wrong offset is invalid.
        let mut hasher = blake3::Hasher::new();
        hasher.update(&bytes[..CHECKED]).update(&owner.to_le_bytes());
        bytes[CHECKED..].copy_from_slice(&hasher.finalize().as_bytes()[..SLOT_BYTES - CHECKED]);
        bytes
    }

    /// Parses a slot. Returns `None` if it is unwritten or corrupt.
    fn read(owner: u16, bytes: &[u8]) -> Option<Self> {
        let (number, rest) = bytes.split_first_chunk()?;
        let slot =
            Self { number: u32::from_le_bytes(*number), end: u32::from_le_bytes(*rest.first_chunk()?) };
        (slot.to_bytes(owner) == *bytes).then_some(slot)
    }
}

/// The slots of all writers, starting with writer 0.
pub(super) type WriterWatermarks = Vec<Option<Watermark>>;

#[derive(Debug)]
pub(super) struct CommitWatermarks {
    files: Arc<dyn FileSystem>,
    layout: Layout,
    file: Box<dyn OpenFile>,
}

impl CommitWatermarks {
    /// Opens the watermark file, creating it if missing.
    pub(super) fn open(files: Arc<dyn FileSystem>, layout: &Layout) -> Result<Self, TierError> {
        let path = layout.board();
        let open = || match files.open_random_access(&path, OpenMode::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match files.open_random_access(&path, OpenMode::Create) {
                    Ok(file) => file.write_at(&TITLE, 0).map(|()| file),
                    // Another process has created the file since the first attempt.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        files.open_random_access(&path, OpenMode::Write)
                    }
                    other => other,
                }
            }
            other => other,
        };
        let file = open().map_err(failed("write", &path))?;
        Ok(Self { files, layout: layout.clone(), file })
    }

    /// Reads all slots. The kernel may cache an old version of the file. The flag forces a reopen, which shows the last
    /// writes.
    pub(super) fn read(&self, anew: bool) -> Result<WriterWatermarks, TierError> {
        let path = self.layout.board();
        let opened = if anew {
            let file = self.files.open_random_access(&path, OpenMode::Read);
            Some(file.map_err(failed("read", &path))?)
        } else {
            None
        };
        let file = opened.as_deref().unwrap_or(&*self.file);
        let mut bytes = vec![0; SLOTS * SLOT_BYTES];
        loop {
            let length = file.read_at(&mut bytes, SLOT_BYTES as u64).map_err(failed("read", &path))?;
            if length < bytes.len() {
                bytes.truncate(length);
                break;
            }
            // Reads from the start again, so that all slots are from one call.
            bytes.resize(2 * length, 0);
        }
        let slots = bytes.chunks_exact(SLOT_BYTES).zip(0..=u16::MAX);
        Ok(slots.map(|(bytes, owner)| Watermark::read(owner, bytes)).collect())
    }

    pub(super) fn write(&self, owner: u16, slot: Watermark) -> Result<(), TierError> {
        let place = SLOT_BYTES as u64 * (u64::from(owner) + 1);
        self.file.write_at(&slot.to_bytes(owner), place).map_err(failed("write", &self.layout.board()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_files::OsFileSystem;

    #[test]
    fn watermarks_of_all_writers_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path());
        std::fs::create_dir(folder.path().join("pack")).unwrap();
        let [one, other] = [(); 2].map(|()| CommitWatermarks::open(Arc::new(OsFileSystem), &layout).unwrap());
        assert_eq!(one.read(false).unwrap(), []);
        let slot = |number| Watermark { number, end: 7 * number };
        one.write(2, slot(3)).unwrap();
        for anew in [false, true] {
            assert_eq!(other.read(anew).unwrap(), [None, None, Some(slot(3))]);
        }
        // More writers than one call reads, and one corrupt slot.
        (0..200).for_each(|owner| other.write(owner, slot(u32::from(owner))).unwrap());
        let mut bytes = std::fs::read(layout.board()).unwrap();
        bytes[SLOT_BYTES * 6] ^= 1;
        std::fs::write(layout.board(), bytes).unwrap();
        let found = one.read(true).unwrap();
        let expected: WriterWatermarks = (0..200).map(|owner| (owner != 5).then_some(slot(owner))).collect();
        assert_eq!(found, expected);
        // A slot is bound to its writer.
        assert_eq!(Watermark::read(8, &slot(3).to_bytes(7)), None);
    }
}
