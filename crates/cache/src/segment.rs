//! Segment: an append-only file of records, written by one process and read by all.
//!
//! The file begins with 32 bytes: magic and version (4 bytes each), at offset 8 the user whose entries it holds, and at
//! offset 16 the time of the last use of an entry in seconds since 1970. That time only determines the eviction order, so it is updated in place and has no checksum. Zeros
//! may follow the last record: preallocated space of the writer. The caller decides which process may write, truncate and
//! remove segments.

use crate::label::UserTag;
use crate::record::{self, HEADER_BYTES, Header, RecordState};
use pleach_files::OpenFile;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

/// Size of the file header before the first record.
pub(crate) const START: u64 = 32;

const MAGIC: [u8; 4] = *b"PLSG";
const VERSION: u32 = 1;

/// Offset of the user. Format 1 has zeros there: the unknown user.
const USER: usize = 8;

/// Offset of the time of last use.
const USED: u64 = 16;

/// Read-ahead size for headers: 64 KiB hold about 200 traces.
const PIECE_BYTES: usize = 64 * 1024;

/// An open segment.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) number: u64,
    pub(crate) file: Box<dyn OpenFile>,
    /// Whether the record states and the time of last use can be changed.
    writable: bool,
    /// Last time of use that this process has written to the file, in seconds since 1970.
    touched_seconds: AtomicU64,
}

/// Location of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordLocation {
    pub(crate) segment: u64,
    pub(crate) offset: u64,
    pub(crate) body_bytes: u64,
    pub(crate) tag: u64,
    pub(crate) written_seconds: u64,
}

/// Parsed file header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SegmentHead {
    /// A valid header.
    Segment {
        /// User of its entries.
        user: UserTag,
        /// Time of the last use of an entry, in seconds since 1970.
        used_seconds: u64,
    },
    /// Zeros or an empty file: the writer was killed before its first write.
    Nothing,
    /// Anything else.
    Broken,
}

/// Kind of end of the records in a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScanEnd {
    /// At the end of the file, or at preallocated space.
    Clean,
    /// In the middle of a record: a torn write.
    Torn,
    /// At bytes that are not a record.
    Broken,
}

impl Segment {
    /// Creates a segment from an open file.
    pub(crate) fn new(number: u64, file: Box<dyn OpenFile>, writable: bool) -> Self {
        Self { number, file, writable, touched_seconds: AtomicU64::new(0) }
    }

    /// Writes the file header.
    pub(crate) fn begin(&self, user: UserTag, used_seconds: u64) -> io::Result<()> {
        let mut bytes = [0; START as usize];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&VERSION.to_le_bytes());
        bytes[USER..][..8].copy_from_slice(&user.0.to_le_bytes());
        bytes[16..24].copy_from_slice(&used_seconds.to_le_bytes());
        self.touched_seconds.store(used_seconds, Ordering::Relaxed);
        self.file.write_at(&bytes, 0)
    }

    /// Reads the file header.
    pub(crate) fn beginning(&self) -> io::Result<SegmentHead> {
        let mut bytes = [0; START as usize];
        self.file.read_at(&mut bytes, 0)?;
        if bytes == [0; START as usize] {
            return Ok(SegmentHead::Nothing);
        }
        if bytes[..4] != MAGIC || bytes[4..8] != VERSION.to_le_bytes() {
            return Ok(SegmentHead::Broken);
        }
        let number = |offset: usize| {
            let mut number = [0; 8];
            number.copy_from_slice(&bytes[offset..][..8]);
            u64::from_le_bytes(number)
        };
        Ok(SegmentHead::Segment { user: UserTag(number(USER)), used_seconds: number(USED as usize) })
    }

    /// Records that an entry is used now, with one write per value of `now_seconds`. A failed write only affects the
    /// segment's place in the eviction order.
    pub(crate) fn touch(&self, now_seconds: u64) {
        // Relaxed: the maximum alone selects the one thread that writes each time.
        if self.writable && self.touched_seconds.fetch_max(now_seconds, Ordering::Relaxed) < now_seconds {
            let _ = self.file.write_at(&now_seconds.to_le_bytes(), USED);
        }
    }

    /// Passes every live record from `from` on to `found`. Returns the end offset and the kind of end.
    pub(crate) fn scan(
        &self,
        from: u64,
        mut found: impl FnMut(Header, RecordLocation),
    ) -> io::Result<(u64, ScanEnd)> {
        let length = self.file.length()?;
        let mut piece = Piece { file: &*self.file, bytes: Vec::new(), start: 0 };
        let mut offset = from;
        while offset < length {
            let Some(bytes) = piece.header(offset)? else { return Ok((offset, ScanEnd::Torn)) };
            let (header, live) = match RecordState::in_bytes(&bytes) {
                RecordState::Nothing => break,
                RecordState::Broken => return Ok((offset, ScanEnd::Broken)),
                RecordState::Live(header) => (header, true),
                RecordState::Buried(header) => (header, false),
            };
            let next = offset.saturating_add(header.record_bytes());
            // Bodies are written first, into a file that is long enough, so only a power loss leaves a header without
            // its whole body.
            if next > length {
                return Ok((offset, ScanEnd::Torn));
            }
            if live {
                let Header { body_bytes, tag, written_seconds, .. } = header;
                found(
                    header,
                    RecordLocation { segment: self.number, offset, body_bytes, tag, written_seconds },
                );
            }
            offset = next;
        }
        Ok((offset, ScanEnd::Clean))
    }

    /// Writes a record at `offset`. The body comes first, so that no reader sees a header without its body.
    pub(crate) fn write(&self, offset: u64, header: &Header, body: &[u8]) -> io::Result<RecordLocation> {
        self.file.write_at(body, offset + HEADER_BYTES as u64)?;
        self.file.write_at(&header.to_bytes(), offset)?;
        let Header { body_bytes, tag, written_seconds, .. } = *header;
        Ok(RecordLocation { segment: self.number, offset, body_bytes, tag, written_seconds })
    }

    /// Reads the header and body of a record. `None` if it is missing, incomplete or buried.
    pub(crate) fn read(&self, place: &RecordLocation) -> io::Result<Option<(Header, Vec<u8>)>> {
        // A location is indexed only if its record is within the file, which bounds this allocation.
        let mut bytes = vec![0; HEADER_BYTES + place.body_bytes as usize];
        let length = self.file.read_at(&mut bytes, place.offset)?;
        let Some(header) = bytes.first_chunk().filter(|_| length == bytes.len()) else { return Ok(None) };
        let RecordState::Live(header) = RecordState::in_bytes(header) else { return Ok(None) };
        bytes.drain(..HEADER_BYTES);
        Ok(header.fits(&bytes).then_some((header, bytes)))
    }

    /// Marks a record as buried. If the write fails, the next read finds the record corrupt again.
    pub(crate) fn write_tombstone(&self, place: &RecordLocation) {
        let (behind, state) = record::tombstone();
        if self.writable {
            let _ = self.file.write_at(&state, place.offset + behind);
        }
    }
}

/// Read-ahead window of a file, moved on demand.
struct Piece<'a> {
    file: &'a dyn OpenFile,
    bytes: Vec<u8>,
    start: u64,
}

impl Piece<'_> {
    /// Returns the header bytes at `offset`. `None` if the file ends within the header, unless only zeros remain.
    fn header(&mut self, offset: u64) -> io::Result<Option<[u8; HEADER_BYTES]>> {
        let within = |piece: &Self| {
            let skipped = usize::try_from(offset.checked_sub(piece.start)?).ok()?;
            piece.bytes.get(skipped..)?.first_chunk().copied()
        };
        if let Some(header) = within(self) {
            return Ok(Some(header));
        }
        self.bytes.resize(PIECE_BYTES, 0);
        let length = self.file.read_at(&mut self.bytes, offset)?;
        self.bytes.truncate(length);
        self.start = offset;
        let rest_is_empty = length < HEADER_BYTES && self.bytes.iter().all(|byte| *byte == 0);
        Ok(if rest_is_empty { Some([0; HEADER_BYTES]) } else { within(self) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pleach_files::{FileSystem, OpenMode, OsFileSystem};

    fn segment(folder: &tempfile::TempDir) -> Segment {
        let file = OsFileSystem.open_random_access(&folder.path().join("segment"), OpenMode::Create).unwrap();
        let segment = Segment::new(3, file, true);
        segment.begin(UserTag(7), 100).unwrap();
        segment
    }

    fn header(name: u8, body: &[u8]) -> Header {
        Header::of_trace([name; 32], 1, body, 50)
    }

    fn names(segment: &Segment) -> (Vec<u8>, u64, ScanEnd) {
        let mut names = Vec::new();
        let (end, ending) = segment.scan(START, |header, _| names.push(header.id[0])).unwrap();
        (names, end, ending)
    }

    #[test]
    fn records_are_found_one_behind_the_other_up_to_the_room_left() {
        let folder = tempfile::tempdir().unwrap();
        let segment = segment(&folder);
        let mut end = START;
        // Bodies shorter and longer than the read-ahead window.
        for (name, length) in [(1, 0), (2, 10), (3, 200_000), (4, 70_000), (5, 7)] {
            let body = vec![name; length];
            let place = segment.write(end, &header(name, &body), &body).unwrap();
            assert_eq!(segment.read(&place).unwrap().unwrap().1, body);
            end += HEADER_BYTES as u64 + length as u64;
        }
        assert_eq!(names(&segment), (vec![1, 2, 3, 4, 5], end, ScanEnd::Clean));
        for room in [1, 50, 300_000] {
            segment.file.set_length(end + room).unwrap();
            assert_eq!(names(&segment), (vec![1, 2, 3, 4, 5], end, ScanEnd::Clean), "{room} bytes of room");
        }
    }

    #[test]
    fn a_segment_cut_anywhere_keeps_its_whole_records() {
        let folder = tempfile::tempdir().unwrap();
        let segment = segment(&folder);
        let ends = [START, START + 98, START + 196];
        for (name, end) in [1, 2].into_iter().zip(ends) {
            segment.write(end, &header(name, &[9; 10]), &[9; 10]).unwrap();
        }
        for length in (START..ends[2]).rev() {
            segment.file.set_length(length).unwrap();
            let whole = usize::from(length >= ends[1]);
            let ending = if ends.contains(&length) { ScanEnd::Clean } else { ScanEnd::Torn };
            let expected: &[u8] = if whole == 1 { &[1] } else { &[] };
            assert_eq!(names(&segment), (expected.to_vec(), ends[whole], ending), "{length} bytes");
        }
    }

    #[test]
    fn deleted_record_is_skipped_by_a_scan() {
        let folder = tempfile::tempdir().unwrap();
        let segment = segment(&folder);
        let place = segment.write(START, &header(1, b"one"), b"one").unwrap();
        segment.write(START + 91, &header(2, b"two"), b"two").unwrap();
        segment.write_tombstone(&place);
        assert_eq!(segment.read(&place).unwrap(), None);
        assert_eq!(names(&segment).0, [2]);
    }

    #[test]
    fn the_time_of_last_use_only_moves_forward() {
        let folder = tempfile::tempdir().unwrap();
        let segment = segment(&folder);
        segment.touch(90);
        assert_eq!(
            segment.beginning().unwrap(),
            SegmentHead::Segment { user: UserTag(7), used_seconds: 100 }
        );
        segment.touch(110);
        assert_eq!(
            segment.beginning().unwrap(),
            SegmentHead::Segment { user: UserTag(7), used_seconds: 110 }
        );
        segment.file.write_at(b"?", 0).unwrap();
        assert_eq!(segment.beginning().unwrap(), SegmentHead::Broken);
        segment.file.set_length(0).unwrap();
        assert_eq!(segment.beginning().unwrap(), SegmentHead::Nothing);
    }
}
