//! Statistics and warnings of a cache.
//!
//! The caller displays them.

use std::collections::HashSet;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

/// A warning for the user of a study. No warning affects the correctness of results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CacheWarning {
    /// The folder is opened for reading only.
    NotWritable {
        /// The system error.
        reason: String,
    },
    /// A request to object storage failed. Until the next refresh, regions are missing and no entries are stored.
    Unreachable {
        /// The error.
        reason: String,
    },
    /// A bundle of traces is corrupt from some record on.
    CorruptBundle {
        /// Name of the object.
        name: String,
    },
    /// A region in object storage is corrupt and has been removed.
    CorruptObject {
        /// Name of the object.
        name: String,
    },
    /// A user's entries have reached the quota. Reported once for each user.
    QuotaReached {
        /// The user.
        user: String,
        /// The quota.
        quota_bytes: u64,
    },
    /// Storing has stopped. Lookups continue.
    Stopped {
        /// The system error.
        reason: String,
    },
    /// A segment ends in the middle of a record or with invalid bytes. The cache drops the rest.
    Cut {
        /// File name of the segment.
        segment: String,
        /// Bytes kept.
        kept_bytes: u64,
        /// Bytes dropped.
        dropped_bytes: u64,
    },
    /// The cache has dropped a corrupt entry.
    Damaged {
        /// File name of the segment.
        segment: String,
        /// Offset of its record in bytes.
        offset: u64,
    },
    /// The cache has removed a file without a segment header.
    NotASegment {
        /// Its file name.
        segment: String,
    },
    /// A segment cannot be read.
    Unreadable {
        /// Its file name.
        segment: String,
        /// The system error.
        reason: String,
    },
}

impl fmt::Display for CacheWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWritable { reason } => write!(f, "the cache is read-only: {reason}"),
            Self::Unreachable { reason } => {
                write!(f, "the cache is not used until the next study: {reason}")
            }
            Self::CorruptBundle { name } => write!(f, "{name}: corrupt, its traces are read up to there"),
            Self::CorruptObject { name } => write!(f, "{name}: corrupt region removed"),
            Self::QuotaReached { user, quota_bytes } => write!(
                f,
                "the entries of {user} have reached the quota of {quota_bytes} bytes; new ones replace those that {user} \
                 has not used for longest"
            ),
            Self::Stopped { reason } => write!(f, "the cache has stopped storing: {reason}"),
            Self::Cut { segment, kept_bytes, dropped_bytes } => {
                write!(
                    f,
                    "{segment}: truncated to {kept_bytes} bytes; {dropped_bytes} bytes of incomplete \
                           records dropped"
                )
            }
            Self::Damaged { segment, offset } => {
                write!(f, "{segment}: corrupt record at byte {offset} dropped")
            }
            Self::NotASegment { segment } => write!(f, "{segment}: corrupt segment head, removed"),
            Self::Unreadable { segment, reason } => write!(f, "{segment}: cannot be read: {reason}"),
        }
    }
}

/// Warnings beyond 100 are only counted: a failing disk reports the same for every entry.
const REPORTS_KEPT: usize = 100;

/// Warnings not yet taken by the caller.
#[derive(Debug, Default)]
pub(crate) struct CacheWarnings {
    pending: Vec<CacheWarning>,
    /// Users whose quota has been reported.
    of_quota: HashSet<String>,
}

impl CacheWarnings {
    pub(crate) fn add(&mut self, report: CacheWarning) {
        if let CacheWarning::QuotaReached { user, .. } = &report
            && !self.of_quota.insert(user.clone())
        {
            return;
        }
        if self.pending.len() < REPORTS_KEPT {
            self.pending.push(report);
        }
    }

    pub(crate) fn take(&mut self) -> Vec<CacheWarning> {
        std::mem::take(&mut self.pending)
    }
}

/// Counters since a cache was opened, and its content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Indexed traces.
    pub traces: u64,
    /// Indexed data regions.
    pub blobs: u64,
    /// Segments in the folder.
    pub segments: u64,
    /// Size of the folder's files in bytes.
    pub bytes: u64,
    /// Lookups that found an entry.
    pub hits: u64,
    /// Lookups that found no entry.
    pub misses: u64,
    /// Entries stored.
    pub stored: u64,
    /// Entries not stored because they were already present.
    pub known: u64,
    /// Entries not stored for lack of space or because the folder is not writable.
    pub not_stored: u64,
    /// Corrupt entries and segment ends.
    pub corrupt: u64,
    /// Segments evicted for space or age.
    pub evicted: u64,
    /// Bytes of those evicted for a user's quota.
    pub quota_evicted_bytes: u64,
}

/// The live counters. Relaxed, since they imply no memory ordering.
#[derive(Debug, Default)]
pub(crate) struct CacheCounters {
    pub(crate) hits: AtomicU64,
    pub(crate) misses: AtomicU64,
    pub(crate) stored: AtomicU64,
    pub(crate) known: AtomicU64,
    pub(crate) not_stored: AtomicU64,
    pub(crate) corrupt: AtomicU64,
    pub(crate) evicted: AtomicU64,
    pub(crate) quota_evicted_bytes: AtomicU64,
}

/// Adds to a counter.
pub(crate) fn count(counter: &AtomicU64, more: u64) {
    // Relaxed: each counter is read by itself and orders no other access.
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
            corrupt: read(&self.corrupt),
            evicted: read(&self.evicted),
            quota_evicted_bytes: read(&self.quota_evicted_bytes),
            ..CacheStats::default()
        }
    }
}
