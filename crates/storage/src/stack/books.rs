//! What a stack knows of its regions: in which levels each is, what it is worth, and who is busy with it.
//!
//! Nothing here asks a tier.

use crate::{Policy, policy::Ranking};
use pleach_regions::RegionKey;
use std::collections::HashMap;

/// What is known of a region besides where it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct About {
    pub(super) bytes: u64,
    pub(super) seconds: f64,
    pub(super) durable: bool,
}

impl About {
    /// Of one that was found, by somebody to whom it is worth nothing.
    const FOUND: Self = Self { bytes: 0, seconds: 0.0, durable: false };

    /// Both were said of the same region.
    fn and(self, other: Self) -> Self {
        let (bytes, seconds) = (self.bytes.max(other.bytes), self.seconds.max(other.seconds));
        Self { bytes, seconds, durable: self.durable || other.durable }
    }

    /// Whether it may not be given up.
    pub(super) fn is_pinned(self) -> bool {
        self.durable || self.seconds == f64::INFINITY
    }

    fn ranked_seconds(self) -> f64 {
        if self.is_pinned() { f64::INFINITY } else { self.seconds }
    }
}

#[derive(Debug)]
struct Entry {
    about: About,
    /// Somebody stores, moves or removes it.
    is_claimed: bool,
}

/// The books of one stack.
#[derive(Debug)]
pub(super) struct Books {
    entries: HashMap<RegionKey, Entry>,
    levels: Vec<Ranking>,
}

impl Books {
    pub(super) fn new(policies: impl Iterator<Item = Policy>) -> Self {
        Self { entries: HashMap::new(), levels: policies.map(Ranking::new).collect() }
    }

    /// Enters a region that a level held before.
    pub(super) fn find(&mut self, level: usize, key: RegionKey) {
        self.entries.entry(key).or_insert(Entry { about: About::FOUND, is_claimed: false });
        self.touch(level, key);
    }

    /// Claims a region for whoever asks, unless somebody has; `about` is what is said of it now.
    pub(super) fn claim(&mut self, key: RegionKey, about: Option<About>) -> bool {
        let new = Entry { about: About::FOUND, is_claimed: false };
        let entry = self.entries.entry(key).or_insert(new);
        if entry.is_claimed {
            return false;
        }
        entry.is_claimed = true;
        let before = entry.about;
        entry.about = before.and(about.unwrap_or(About::FOUND));
        if entry.about != before {
            // It is worth more wherever it is.
            for level in 0..self.levels.len() {
                if self.levels[level].contains(key) {
                    self.touch(level, key);
                }
            }
        }
        true
    }

    /// Gives a claim back. A region that is nowhere is forgotten.
    pub(super) fn release(&mut self, key: RegionKey) {
        if self.levels.iter().any(|level| level.contains(key)) {
            self.entries.entry(key).and_modify(|entry| entry.is_claimed = false);
        } else {
            self.entries.remove(&key);
        }
    }

    /// Claims the region of a level that goes first; with `is_pinned`, one that may not be given up if there is no other.
    pub(super) fn claim_victim(&mut self, level: usize, is_pinned: bool) -> Option<(RegionKey, About)> {
        let is_free = |key| self.entries.get(&key).is_some_and(|entry| !entry.is_claimed);
        let key = self.levels[level].victim(is_pinned, is_free)?;
        let entry = self.entries.get_mut(&key)?;
        entry.is_claimed = true;
        Some((key, entry.about))
    }

    /// Enters a region in a level, or notes that it is read there, or that it is worth something else.
    pub(super) fn touch(&mut self, level: usize, key: RegionKey) {
        if let Some(Entry { about, .. }) = self.entries.get(&key) {
            self.levels[level].touch(key, about.bytes, about.ranked_seconds());
        }
    }

    /// Strikes a region out of a level.
    pub(super) fn forget(&mut self, level: usize, key: RegionKey) {
        self.levels[level].forget(key);
        let is_free = self.entries.get(&key).is_some_and(|entry| !entry.is_claimed);
        if is_free && !self.levels.iter().any(|level| level.contains(key)) {
            self.entries.remove(&key);
        }
    }

    /// Strikes a region out of a level that made room there.
    pub(super) fn evict(&mut self, level: usize, key: RegionKey) {
        self.levels[level].evict(key);
    }

    pub(super) fn contains(&self, level: usize, key: RegionKey) -> bool {
        self.levels[level].contains(key)
    }

    pub(super) fn len(&self, level: usize) -> usize {
        self.levels[level].len()
    }
}
