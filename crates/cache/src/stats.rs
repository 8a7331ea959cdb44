//! What a cache has to say for itself: counts, and what went wrong.
//!
//! Nothing here goes anywhere: whoever runs the study shows it.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// Something that whoever runs a study should be told once. None of it makes a result wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheWarning {
    /// The folder is only read.
    NotWritable {
        /// What the system says.
        reason: String,
    },
    /// Nothing is stored any more; what is there is still found.
    Stopped {
        /// What the system says.
        reason: String,
    },
    /// A segment ends in the middle of a record, or with something that is none: all from there on is dropped.
    Cut {
        /// File name of the segment.
        segment: String,
        /// Bytes that are kept.
        kept_bytes: u64,
        /// Bytes that are dropped.
        dropped_bytes: u64,
    },
    /// An entry is not what was written: it is dropped.
    Damaged {
        /// File name of the segment.
        segment: String,
        /// Where its record begins, bytes.
        offset: u64,
    },
    /// A file that begins as no segment does: it is removed.
    NotASegment {
        /// Its name.
        segment: String,
    },
    /// A segment cannot be read.
    Unreadable {
        /// Its file name.
        segment: String,
        /// What the system says.
        reason: String,
    },
}

impl fmt::Display for CacheWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWritable { reason } => write!(f, "the cache is read but not written to: {reason}"),
            Self::Stopped { reason } => write!(f, "the cache stores nothing any more: {reason}"),
            Self::Cut { segment, kept_bytes, dropped_bytes } => {
                write!(f, "{segment}: cut after {kept_bytes} bytes, {dropped_bytes} are no whole entries")
            }
            Self::Damaged { segment, offset } => {
                write!(f, "{segment}: the entry at byte {offset} is damaged and dropped")
            }
            Self::NotASegment { segment } => write!(f, "{segment}: damaged from its beginning, removed"),
            Self::Unreadable { segment, reason } => write!(f, "{segment}: cannot be read: {reason}"),
        }
    }
}

/// More reports than this are only counted: one disk that fails says the same about every entry.
const REPORTS_KEPT: usize = 100;

/// Reports that nobody has taken yet.
#[derive(Debug, Default)]
pub(crate) struct CacheWarnings(Vec<CacheWarning>);

impl CacheWarnings {
    pub(crate) fn add(&mut self, report: CacheWarning) {
        if self.0.len() < REPORTS_KEPT {
            self.0.push(report);
        }
    }

    pub(crate) fn take(&mut self) -> Vec<CacheWarning> {
        std::mem::take(&mut self.0)
    }
}

/// Counts since a cache was opened, and what there is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Traces known.
    pub traces: u64,
    /// Data regions known.
    pub blobs: u64,
    /// Segments there are.
    pub segments: u64,
    /// Bytes that the folder's files take.
    pub bytes: u64,
    /// Entries found.
    pub hits: u64,
    /// Entries asked for that were not there.
    pub misses: u64,
    /// Entries stored.
    pub stored: u64,
    /// Entries not stored because they were there.
    pub known: u64,
    /// Entries not stored for want of room, or because nothing can be written.
    pub not_stored: u64,
    /// Entries and ends of segments found damaged.
    pub damaged: u64,
    /// Segments removed for room or age.
    pub evicted: u64,
}

/// The counts among them; relaxed, since they order nothing.
#[derive(Debug, Default)]
pub(crate) struct CacheCounters {
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) stored: AtomicU64,
    pub(crate) known: AtomicU64,
    pub(crate) not_stored: AtomicU64,
    pub(crate) damaged: AtomicU64,
    pub(crate) evicted: AtomicU64,
}

/// Adds to a count.
pub(crate) fn count(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

impl CacheCounters {
    pub(crate) fn statistics(&self) -> CacheStats {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        CacheStats {
            hits: read(&self.hits),
            misses: read(&self.misses),
            stored: read(&self.stored),
            known: read(&self.known),
            not_stored: read(&self.not_stored),
            damaged: read(&self.damaged),
            evicted: read(&self.evicted),
            ..CacheStats::default()
        }
    }
}
