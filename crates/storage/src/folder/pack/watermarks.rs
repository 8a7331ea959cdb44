//! How far the files of each owner are to be read: what is behind that is not on the medium yet, or half written.
//!
//! One file for the whole folder, with a slot for each owner: the number of the file that it writes to, and the bytes of it
//! that are on the medium, its files of lower numbers being so to their ends. A slot is written before anybody is told what it
//! covers, by its owner alone; reading all of them tells in one call whether there is anything new. Slots are never waited for:
//! after a loss of power nobody is an owner, and who takes an owner's place writes its slot anew (`writer_lock.rs`).
//!
//! Nothing here knows what is in the files.

use crate::TierError;
use crate::folder::failed;
use crate::folder::layout::Layout;
use pleach_files::{FileSystem, OpenFile, OpenMode};
use std::io;
use std::sync::Arc;

const TITLE: [u8; SLOT_BYTES] = *b"pleach's board 1";
const SLOT_BYTES: usize = 16;
const CHECKED: usize = 8;

/// Slots that are read in one call: a kilobyte, and as many processes as most folders have.
const SLOTS: usize = 64;

/// How far an owner's files are to be read.
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
        let mut hasher = blake3::Hasher::new();
        hasher.update(&bytes[..CHECKED]).update(&owner.to_le_bytes());
        bytes[CHECKED..].copy_from_slice(&hasher.finalize().as_bytes()[..SLOT_BYTES - CHECKED]);
        bytes
    }

    /// None where nothing was written, or something else.
    fn read(owner: u16, bytes: &[u8]) -> Option<Self> {
        let (number, rest) = bytes.split_first_chunk()?;
        let slot =
            Self { number: u32::from_le_bytes(*number), end: u32::from_le_bytes(*rest.first_chunk()?) };
        (slot.to_bytes(owner) == *bytes).then_some(slot)
    }
}

/// The slots of all owners, from the first one.
pub(super) type WriterWatermarks = Vec<Option<Watermark>>;

#[derive(Debug)]
pub(super) struct CommitWatermarks {
    files: Arc<dyn FileSystem>,
    layout: Layout,
    file: Box<dyn OpenFile>,
}

impl CommitWatermarks {
    /// Opens the board, which is made where there is none.
    pub(super) fn open(files: Arc<dyn FileSystem>, layout: &Layout) -> Result<Self, TierError> {
        let path = layout.board();
        let open = || match files.open_anywhere(&path, OpenMode::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                match files.open_anywhere(&path, OpenMode::Create) {
                    Ok(file) => file.write_at(&TITLE, 0).map(|()| file),
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                        files.open_anywhere(&path, OpenMode::Write)
                    }
                    other => other,
                }
            }
            other => other,
        };
        let file = open().map_err(failed("write", &path))?;
        Ok(Self { files, layout: layout.clone(), file })
    }

    /// All slots. This machine may have had a part of the file in memory for some time: one that is opened `anew` is as its
    /// writers left it.
    pub(super) fn read(&self, anew: bool) -> Result<WriterWatermarks, TierError> {
        let path = self.layout.board();
        let opened = if anew {
            let file = self.files.open_anywhere(&path, OpenMode::Read);
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
    fn slots_are_told() {
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
        // More than anybody expects, and one that is not what was written.
        (0..200).for_each(|owner| other.write(owner, slot(u32::from(owner))).unwrap());
        let mut bytes = std::fs::read(layout.board()).unwrap();
        bytes[SLOT_BYTES * 6] ^= 1;
        std::fs::write(layout.board(), bytes).unwrap();
        let found = one.read(true).unwrap();
        let expected: WriterWatermarks = (0..200).map(|owner| (owner != 5).then_some(slot(owner))).collect();
        assert_eq!(found, expected);
        // The slot of one owner is not another's.
        assert_eq!(Watermark::read(8, &slot(3).to_bytes(7)), None);
    }
}
