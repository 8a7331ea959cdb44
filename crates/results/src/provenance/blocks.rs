//! Blocks of the records: a kind, a length, the content, and a checksum of all three.

use std::ops::Range;

/// First bytes of the file. The number is the format version.
pub const MAGIC: &[u8] = b"pleach provenance 1\n";

/// Bytes of [`MAGIC`] before the version.
pub(super) const MAGIC_NAME: &[u8] = b"pleach provenance ";

/// Bytes of a block before its content: kind and length.
pub(super) const HEAD_BYTES: usize = 5;

/// 16 bytes of BLAKE3: a block of one second may have only a few records, and accidental changes are all that is looked for.
const CHECKSUM_BYTES: usize = 16;

/// Kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    /// A plan's table: the start of an execution.
    Plan,
    /// Events of the execution, after the place of its plan's block in the file. It differs from that of the last intact plan
    /// if the own plan is corrupt.
    Events,
    /// The end of an execution. A missing one shows that events may be missing.
    End,
}

impl BlockKind {
    fn code(self) -> u8 {
        match self {
            Self::Plan => 1,
            Self::Events => 2,
            Self::End => 3,
        }
    }

    fn new(code: u8) -> Option<Self> {
        [Self::Plan, Self::Events, Self::End].into_iter().find(|kind| kind.code() == code)
    }
}

/// Returns the bytes of a block.
pub(super) fn block(kind: BlockKind, content: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEAD_BYTES + content.len() + CHECKSUM_BYTES);
    bytes.push(kind.code());
    bytes.extend((content.len() as u32).to_le_bytes());
    bytes.extend(content);
    let checksum = blake3::hash(&bytes);
    bytes.extend(&checksum.as_bytes()[..CHECKSUM_BYTES]);
    bytes
}

/// Intact blocks of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Blocks {
    /// Kind and content of each block, as a range of the file.
    pub(super) intact: Vec<(BlockKind, Range<usize>)>,
    /// Length of the file up to the end of the last intact block.
    pub(super) intact_end: usize,
    /// Bytes of corrupt blocks between intact ones.
    pub(super) corrupt_bytes: usize,
    /// Bytes after the last intact block.
    pub(super) torn_bytes: usize,
}

/// Returns the block at a position: kind, content, and the end of the block. `None` if it is incomplete or corrupt.
fn block_at(file: &[u8], at: usize) -> Option<(BlockKind, Range<usize>, usize)> {
    let (content, end) = extent(file, at)?;
    let checksum = blake3::hash(&file[at..content.end]);
    let kind = BlockKind::new(file[at])?;
    (checksum.as_bytes()[..CHECKSUM_BYTES] == file[content.end..end]).then_some((kind, content, end))
}

/// Returns the content and the end of the block at a position by its length, without a check.
fn extent(file: &[u8], at: usize) -> Option<(Range<usize>, usize)> {
    let length = file.get(at + 1..at + HEAD_BYTES)?;
    let length = u32::from_le_bytes(length.try_into().ok()?) as usize;
    let content = at + HEAD_BYTES..(at + HEAD_BYTES).checked_add(length)?;
    let end = content.end.checked_add(CHECKSUM_BYTES)?;
    (end <= file.len()).then_some((content, end))
}

/// Finds the intact blocks of a file that begins with [`MAGIC`]. A corrupt block is skipped if an intact one follows.
pub(super) fn read(file: &[u8]) -> Blocks {
    let mut blocks = Blocks { intact_end: MAGIC.len(), ..Blocks::default() };
    let mut at = MAGIC.len();
    let mut skipped = 0;
    while at < file.len() {
        if let Some((kind, content, end)) = block_at(file, at) {
            blocks.intact.push((kind, content));
            blocks.corrupt_bytes += std::mem::take(&mut skipped);
            (at, blocks.intact_end) = (end, end);
        } else if let Some((_, end)) = extent(file, at) {
            skipped += end - at;
            at = end;
        } else {
            break;
        }
    }
    blocks.torn_bytes = file.len() - blocks.intact_end.min(file.len());
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Vec<u8> {
        let blocks =
            [block(BlockKind::Plan, b"plan"), block(BlockKind::Events, b""), block(BlockKind::End, b"end")];
        [MAGIC, &blocks.concat()].concat()
    }

    #[test]
    fn blocks_are_read_back() {
        let file = file();
        let blocks = read(&file);
        let content: Vec<_> =
            blocks.intact.iter().map(|(kind, range)| (*kind, &file[range.clone()])).collect();
        let expected: [(BlockKind, &[u8]); 3] =
            [(BlockKind::Plan, b"plan"), (BlockKind::Events, b""), (BlockKind::End, b"end")];
        assert_eq!(content, expected);
        assert_eq!((blocks.intact_end, blocks.corrupt_bytes, blocks.torn_bytes), (file.len(), 0, 0));
    }

    #[test]
    fn cut_is_found_at_every_length() {
        let file = file();
        let ends: Vec<usize> =
            read(&file).intact.iter().map(|(_, range)| range.end + CHECKSUM_BYTES).collect();
        for length in MAGIC.len()..file.len() {
            let blocks = read(&file[..length]);
            let whole = ends.iter().filter(|end| **end <= length).count();
            assert_eq!(blocks.intact.len(), whole, "cut at {length}");
            assert_eq!(blocks.intact_end + blocks.torn_bytes, length, "cut at {length}");
        }
    }

    #[test]
    fn change_of_any_bit_costs_its_block_and_no_other_record_is_invented() {
        let file = file();
        let all = read(&file).intact;
        for place in MAGIC.len()..file.len() {
            for bit in 0..8 {
                let mut changed = file.clone();
                changed[place] ^= 1 << bit;
                let blocks = read(&changed);
                assert!(blocks.intact.len() < all.len(), "bit {bit} of byte {place}");
                assert!(blocks.corrupt_bytes + blocks.torn_bytes > 0, "bit {bit} of byte {place}");
                assert!(blocks.intact.iter().all(|block| all.contains(block)), "bit {bit} of byte {place}");
            }
        }
    }
}
