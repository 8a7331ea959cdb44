//! How a stack finds a region: the fastest level that has a whole copy gives it.
//!
//! Nothing here moves a region up: that is in `stack/prefetch.rs`.

use super::stats::count;
use super::{LevelId, TierStack};
use crate::TierError;
use pleach_regions::{DataRegion, RegionKey};
use std::sync::Arc;

impl TierStack {
    /// The region, and the fastest level that has it. What a level finds damaged is out of it from then on, and the next
    /// one is asked.
    ///
    /// # Errors
    /// When no level has it whole: the first error of one that could not read it, or had lost it. Asked again, what was
    /// lost is not there.
    pub fn get(&self, key: RegionKey) -> Result<Option<(Arc<DataRegion>, LevelId)>, TierError> {
        let mut failed = None;
        for (id, (level, counted)) in self.levels.iter().zip(&self.counted).enumerate() {
            match level.tier.get(key) {
                Ok(Some(region)) => {
                    count(&counted.hits);
                    let mut books = self.books();
                    // What others have stored in a shared level is not ours to move.
                    if books.contains(id, key) {
                        books.touch(id, key);
                        books.end_ahead(id, key);
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

    /// Strikes a region out of a level that has it no more, unless it has come back meanwhile.
    fn settle(&self, id: usize, key: RegionKey) {
        if !self.books().contains(id, key) {
            return;
        }
        let _claim = self.claim(key, None);
        if !self.levels[id].tier.contains(key).unwrap_or(true) {
            self.books().forget(id, key);
        }
    }

    /// Whether a level has it; of those that only shared levels may hold, one that cannot be asked has none.
    #[must_use]
    pub fn contains(&self, key: RegionKey) -> bool {
        let mut levels = self.levels.iter().enumerate();
        let books = self.books();
        if (0..self.levels.len()).any(|id| books.contains(id, key)) {
            return true;
        }
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
