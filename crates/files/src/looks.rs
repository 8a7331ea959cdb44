//! Recognizes a file with content that was verified before.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Identity, length and times of a file. Equal looks mean equal content, as far as the file system reports: a write changes
/// the times, and unlike `modified`, `changed` cannot be set back. Bit rot changes neither length nor times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    length_bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl From<&Metadata> for FileStamp {
    fn from(found: &Metadata) -> Self {
        Self {
            device: found.dev(),
            inode: found.ino(),
            length_bytes: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        }
    }
}
