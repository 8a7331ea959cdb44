//! Folder layout of a tier: file names and paths.
//!
//! - `FORMAT` identifies the tier and the format version.
//! - `SCRATCH` marks a folder that was never synced (`folder/scratch.rs`).
//! - `lock` is locked by the process that has the tier open: exclusively if it is private, shared otherwise.
//! - `a/b/ab….region` is the encoding of one region, named by its key. The folders are the first two digits of the key.
//! - `a/b/ab….0123….part` is a region being written, or left by a killed writer.
//! - `a/b/ab….0123….draft` is a region being written in a private, durable folder. The next opener turns it into a region if
//!   it is whole, since it may have been reported as stored.
//! - `pack/0003-00000007.pack` is segment 7 of writer 3, which holds small regions (`folder/pack.rs`). In a shared folder,
//!   `pack/0003.lock` is locked by the process that is writer 3.
//! - `pack/board` holds the commit watermark of each writer (`folder/pack/watermarks.rs`).
//! - `quarantine/ab….0123….region` is a corrupt region.
//!
//! This module does no I/O.

use pleach_regions::RegionKey;
use std::path::{Path, PathBuf};

pub(super) const MARKER_NAME: &str = "FORMAT";
pub(super) const SCRATCH_NAME: &str = "SCRATCH";
pub(super) const LOCK_NAME: &str = "lock";
pub(super) const QUARANTINE_NAME: &str = "quarantine";
pub(super) const PACK_NAME: &str = "pack";

/// The marker of this version. The number is raised when anything on disk changes its meaning.
pub const MARKER: &str = "pleach tier 2";

/// Folder in the root of a new file system.
pub(super) const LOST_AND_FOUND: &str = "lost+found";

const REGION_SUFFIX: &str = ".region";
const PART_SUFFIX: &str = ".part";
const DRAFT_SUFFIX: &str = ".draft";
const SEGMENT_SUFFIX: &str = ".pack";
const OWNER_SUFFIX: &str = ".lock";
pub(super) const BOARD_NAME: &str = "board";

/// Folders per folder: one per hexadecimal digit.
pub(super) const FANOUT: usize = 16;

/// Leaf folders (shards), which hold the regions. With 1 million regions each holds about 4,000, which every file system
/// lists quickly. All are created with the tier, so an insertion creates none.
pub(super) const LEAVES: usize = FANOUT * FANOUT;

/// Returns the leaf of a region.
pub(super) fn shard_of(key: RegionKey) -> usize {
    usize::from(key.0[0])
}

/// Kind of a file in a leaf, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Region(RegionKey),
    Part,
    Draft(RegionKey),
    /// Not a file of the tier.
    Other,
}

/// The paths of a tier.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub(super) root: PathBuf,
}

impl Layout {
    pub(super) fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub(super) fn named(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Returns the parent folder of the leaves with this first digit.
    pub(super) fn branch(&self, digit: usize) -> PathBuf {
        self.root.join(format!("{digit:x}"))
    }

    pub(super) fn leaf(&self, leaf: usize) -> PathBuf {
        self.branch(leaf / FANOUT).join(format!("{:x}", leaf % FANOUT))
    }

    pub(super) fn region(&self, key: RegionKey) -> PathBuf {
        self.leaf(shard_of(key)).join(format!("{key}{REGION_SUFFIX}"))
    }

    /// Returns the path of a part file. It is unused if `unique` is.
    pub(super) fn part(&self, key: RegionKey, unique: u64) -> PathBuf {
        self.leaf(shard_of(key)).join(format!("{key}.{unique:016x}{PART_SUFFIX}"))
    }

    /// Returns the path of a draft, which becomes a region if it is whole. It is unused if `unique` is.
    pub(super) fn draft(&self, key: RegionKey, unique: u64) -> PathBuf {
        self.leaf(shard_of(key)).join(format!("{key}.{unique:016x}{DRAFT_SUFFIX}"))
    }

    pub(super) fn marker_part(&self, unique: u64) -> PathBuf {
        self.root.join(format!("{MARKER_NAME}.{unique:016x}{PART_SUFFIX}"))
    }

    pub(super) fn quarantined(&self, key: RegionKey, unique: u64) -> PathBuf {
        self.root.join(QUARANTINE_NAME).join(format!("{key}.{unique:016x}{REGION_SUFFIX}"))
    }
}

/// A segment: its writer and its number. Later segments of a writer have higher numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct SegmentName {
    pub(super) owner: u16,
    pub(super) number: u32,
}

impl Layout {
    pub(super) fn segment(&self, SegmentName { owner, number }: SegmentName) -> PathBuf {
        self.root.join(PACK_NAME).join(format!("{owner:04x}-{number:08x}{SEGMENT_SUFFIX}"))
    }

    /// Returns the lock file of a writer.
    pub(super) fn owner(&self, owner: u16) -> PathBuf {
        self.root.join(PACK_NAME).join(format!("{owner:04x}{OWNER_SUFFIX}"))
    }

    pub(super) fn board(&self) -> PathBuf {
        self.root.join(PACK_NAME).join(BOARD_NAME)
    }
}

/// Parses the file name of a segment.
pub(super) fn segment_name(name: &str) -> Option<SegmentName> {
    // Only the canonical spelling is accepted, so that no two files mean one segment.
    let (owner, number) = name.strip_suffix(SEGMENT_SUFFIX)?.split_once('-')?;
    let found = SegmentName {
        owner: u16::from_str_radix(owner, 16).ok()?,
        number: u32::from_str_radix(number, 16).ok()?,
    };
    (format!("{:04x}-{:08x}{SEGMENT_SUFFIX}", found.owner, found.number) == name).then_some(found)
}

/// Returns whether the name is that of an unfinished marker.
pub(super) fn is_marker_part(name: &str) -> bool {
    let middle = name.strip_prefix(MARKER_NAME).and_then(|rest| rest.strip_suffix(PART_SUFFIX));
    middle.is_some_and(|middle| middle.starts_with('.'))
}

/// Returns the kind of a file in `leaf`.
pub(super) fn named(leaf: usize, name: &str) -> FileKind {
    // In a foreign leaf no lookup finds the region, so its file only takes space.
    if let Some(key) = name.strip_suffix(REGION_SUFFIX).and_then(key)
        && shard_of(key) == leaf
    {
        return FileKind::Region(key);
    }
    let begun = |suffix| key(name.strip_suffix(suffix)?.split_once('.')?.0);
    match (begun(PART_SUFFIX), begun(DRAFT_SUFFIX)) {
        (Some(_), _) => FileKind::Part,
        (None, Some(key)) if shard_of(key) == leaf => FileKind::Draft(key),
        _ => FileKind::Other,
    }
}

/// Parses a key. Only the canonical spelling is accepted.
fn key(digits: &str) -> Option<RegionKey> {
    let key = RegionKey(u128::from_str_radix(digits, 16).ok()?.to_be_bytes());
    (key.to_string() == digits).then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_again() {
        let layout = Layout::new(Path::new("/t"));
        let mut bytes = [0x5c; 16];
        bytes[0] = 0xa7;
        let key = RegionKey(bytes);
        let path = layout.region(key);
        assert_eq!(path.to_str().unwrap(), format!("/t/a/7/a7{}.region", "5c".repeat(15)));
        let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
        assert_eq!(named(0xa7, &name(&path)), FileKind::Region(key));
        assert_eq!(named(0xa6, &name(&path)), FileKind::Other, "in a leaf where nobody looks for it");
        assert_eq!(named(0xa7, &name(&layout.part(key, 9))), FileKind::Part);
        assert_eq!(named(0xa7, &name(&layout.draft(key, 9))), FileKind::Draft(key));
        assert_eq!(named(0xa6, &name(&layout.draft(key, 9))), FileKind::Other);
        let segment = SegmentName { owner: 3, number: 0xa7 };
        assert_eq!(segment_name(&name(&layout.segment(segment))), Some(segment));
        assert_eq!(segment_name("0003-+00000a7.pack").or(segment_name("000000a7.pack")), None);
        assert_eq!(segment_name(&name(&layout.owner(3))).or(segment_name(&name(&layout.board()))), None);
        assert!(is_marker_part(&name(&layout.marker_part(9))));
        assert!(!is_marker_part(MARKER_NAME));
    }

    #[test]
    fn other_names_are_others() {
        let upper = format!("A7{}.region", "5C".repeat(15));
        let long = format!("a7{}.region", "5c".repeat(16));
        for name in ["", ".region", "a7.region", "notes.txt", "x.part", "+7.1.part", &upper, &long] {
            assert_eq!(named(0xa7, name), FileKind::Other, "{name}");
        }
    }
}
