//! Reads from a stack: the fastest level with an intact copy serves the region.
//!
//! Promotion is in `stack/prefetch.rs`.

use super::stats::count;
use super::{LevelId, TierStack};
use crate::TierError;
use pleach_regions::{DataRegion, RegionKey};
use std::sync::Arc;
use std::time::Instant;

impl TierStack {
    /// Returns the region and the fastest level that has it. A level that finds its copy corrupt loses it, and the next
    /// level is tried.
    ///
    /// # Errors
    /// If no level has an intact copy, returns the first error of a level that could not read it or had lost it. After a
    /// loss, the next call returns `None`.
    pub fn get(&self, key: RegionKey) -> Result<Option<(Arc<DataRegion>, LevelId)>, TierError> {
        let mut failed = None;
        for (id, (level, counted)) in self.levels.iter().zip(&self.counted).enumerate() {
            let begun = Instant::now();
            match level.tier.get(key) {
                Ok(Some(region)) => {
                    count(&counted.hits);
                    let mut books = self.books.lock();
                    books.observe_read(id, region.bytes(), begun.elapsed());
                    // Regions that other nodes stored in a shared level must not be moved from here.
                    if books.contains(id, key) {
                        books.touch(id, key);
                        books.end_prefetch(id, key);
                    }
                    return Ok(Some((region, LevelId(id))));
                }
                Ok(None) => {
                    count(&counted.misses);
                    if level.shared {
                        self.settle(id, key);
                    }
                }
                Err(error) => {
                    if matches!(error, TierError::Lost { .. }) {
                        count(&counted.lost);
                        self.settle(id, key);
                    } else {
                        count(&counted.errors);
                    }
                    failed = failed.or(Some(error));
                }
            }
        }
        failed.map_or(Ok(None), Err)
    }

    /// Removes a region from the index of a level that no longer has it, unless it was stored again meanwhile.
    fn settle(&self, id: usize, key: RegionKey) {
        if !self.books.lock().contains(id, key) {
            return;
        }
        // Claimed, so that no thread stores the region between the lookup and the change of the index.
        let _claim = self.claim(key, None);
        // A level that cannot be queried may still have the region.
        if !self.levels[id].tier.contains(key).unwrap_or(true) {
            self.books.lock().forget(id, key);
        }
    }

    /// Returns whether any level has the region. A shared level that cannot be queried counts as not having it.
    #[must_use]
    pub fn contains(&self, key: RegionKey) -> bool {
        let mut levels = self.levels.iter().enumerate();
        let books = self.books.lock();
        if (0..self.levels.len()).any(|id| books.contains(id, key)) {
            return true;
        }
        // Releases the index lock first: a hanging shared level must not block other threads.
        drop(books);
        levels.any(|(id, level)| {
            level.shared
                && level.tier.contains(key).unwrap_or_else(|_| {
                    count(&self.counted[id].errors);
                    false
                })
        })
    }
}
