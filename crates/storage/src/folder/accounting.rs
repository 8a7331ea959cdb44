//! Accounting of a folder tier: known regions, and the disk usage of regions and other files.
//!
//! This module does no I/O.

use super::layout::{LEAVES, shard_of};
use pleach_regions::RegionKey;
use std::collections::HashMap;
use std::fmt;

/// Content of a leaf folder (shard), as found by a scan.
#[derive(Debug, Default)]
pub(super) struct ShardUsage {
    /// Disk usage of each region.
    pub(super) regions: HashMap<RegionKey, u64>,
    /// Disk usage of the folder itself and of other files in it.
    pub(super) other_bytes: u64,
}

/// Accounting of one tier. Reserved bytes belong to regions being written.
#[derive(Debug)]
pub(super) struct FolderAccounting {
    leaves: Vec<ShardUsage>,
    /// Total disk usage, packed regions included.
    held_bytes: u64,
    /// Part of it outside of the leaves, without packed regions.
    overhead_bytes: u64,
    packed_bytes: u64,
    reserved_bytes: u64,
}

impl FolderAccounting {
    /// Creates the accounting of a folder without regions.
    pub(super) fn new(overhead_bytes: u64) -> Self {
        let leaves = (0..LEAVES).map(|_| ShardUsage::default()).collect();
        Self { leaves, held_bytes: overhead_bytes, overhead_bytes, packed_bytes: 0, reserved_bytes: 0 }
    }

    /// Returns the used and reserved bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.held_bytes + self.reserved_bytes
    }

    pub(super) fn reserved_bytes(&self) -> u64 {
        self.reserved_bytes
    }

    pub(super) fn contains(&self, key: RegionKey) -> bool {
        self.leaves[shard_of(key)].regions.contains_key(&key)
    }

    /// Returns all keys in any order.
    pub(super) fn keys(&self) -> Vec<RegionKey> {
        self.leaves.iter().flat_map(|leaf| leaf.regions.keys().copied()).collect()
    }

    /// Replaces a reservation of `before` by `bytes`, if the total stays within `capacity_bytes`.
    pub(super) fn reserve(&mut self, before: u64, bytes: u64, capacity_bytes: u64) -> bool {
        let all_bytes = self.reserved_bytes;
        assert!(all_bytes >= before, "a reservation of {before} bytes is replaced, of {all_bytes} reserved");
        let reserved_bytes = all_bytes - before;
        let fits =
            (self.held_bytes + reserved_bytes).checked_add(bytes).is_some_and(|sum| sum <= capacity_bytes);
        if fits {
            self.reserved_bytes = reserved_bytes + bytes;
            let now = self.bytes();
            assert!(now <= capacity_bytes, "{now} bytes are held and reserved, of {capacity_bytes}");
        }
        fits
    }

    /// Releases a reservation.
    pub(super) fn release(&mut self, bytes: u64) {
        let all_bytes = self.reserved_bytes;
        assert!(all_bytes >= bytes, "{bytes} bytes are released, of {all_bytes} reserved");
        self.reserved_bytes -= bytes;
    }

    /// Adds a region.
    pub(super) fn add(&mut self, key: RegionKey, bytes: u64) {
        let before = self.leaves[shard_of(key)].regions.insert(key, bytes);
        // In a shared folder a region may still be listed after another process has removed its file.
        let before = before.unwrap_or(0);
        self.assert_held(before, &key);
        self.held_bytes = self.held_bytes - before + bytes;
    }

    /// Asserts that bytes which are about to be subtracted were added.
    fn assert_held(&self, bytes: u64, of: &dyn fmt::Debug) {
        let held_bytes = self.held_bytes;
        assert!(held_bytes >= bytes, "{bytes} bytes of {of:?} are subtracted, of {held_bytes} held");
    }

    /// Removes a region. Returns its disk usage.
    pub(super) fn forget(&mut self, key: RegionKey) -> Option<u64> {
        let bytes = self.leaves[shard_of(key)].regions.remove(&key)?;
        self.assert_held(bytes, &key);
        self.held_bytes -= bytes;
        Some(bytes)
    }

    /// Adds `more` bytes to the usage of the leaf folder of `key`.
    pub(super) fn grow(&mut self, key: RegionKey, more: u64) {
        self.leaves[shard_of(key)].other_bytes += more;
        self.held_bytes += more;
    }

    /// Adds bytes outside of the leaves.
    pub(super) fn add_overhead(&mut self, bytes: u64) {
        self.overhead_bytes += bytes;
        self.held_bytes += bytes;
    }

    /// Subtracts bytes outside of the leaves, at most those that are counted.
    pub(super) fn remove_overhead(&mut self, bytes: u64) {
        // Another process may have added the file, or changed its size. Regions stay counted in full.
        let bytes = bytes.min(self.overhead_bytes);
        self.assert_held(bytes, &"other files");
        self.overhead_bytes -= bytes;
        self.held_bytes -= bytes;
    }

    /// Sets the disk usage of all segments.
    pub(super) fn set_packed(&mut self, bytes: u64) {
        self.assert_held(self.packed_bytes, &"packed regions");
        self.held_bytes = self.held_bytes - self.packed_bytes + bytes;
        self.packed_bytes = bytes;
    }

    /// Replaces a leaf by the result of a scan.
    pub(super) fn replace(&mut self, leaf: usize, found: ShardUsage) {
        let bytes = |leaf: &ShardUsage| leaf.other_bytes + leaf.regions.values().sum::<u64>();
        let before = bytes(&self.leaves[leaf]);
        self.assert_held(before, &leaf);
        self.held_bytes = self.held_bytes - before + bytes(&found);
        self.leaves[leaf] = found;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn removed_files_of_other_processes_leave_regions_counted() {
        let mut books = FolderAccounting::new(7);
        books.add(RegionKey([1; 16]), 100);
        books.remove_overhead(50);
        assert_eq!(books.bytes(), 100);
        books.add_overhead(20);
        books.remove_overhead(5);
        assert_eq!(books.bytes(), 115);
        assert_eq!(books.forget(RegionKey([1; 16])), Some(100));
        assert_eq!(books.bytes(), 15);
    }

    proptest! {
        /// Compares against a plain map and sums recomputed after each step.
        #[test]
        fn accounting_equals_a_recount(steps in prop::collection::vec((0u8..7, 0u8..6, 0u64..100), 1..100)) {
            const CAPACITY: u64 = 400;
            let mut books = FolderAccounting::new(7);
            let (mut model, mut reserved, mut other) = (HashMap::new(), Vec::<u64>::new(), 7);
            let mut packed = 0;
            for (step, name, bytes) in steps {
                let key = RegionKey([name; 16]);
                let held: u64 = model.values().sum::<u64>() + other + packed;
                match step {
                    0 => {
                        books.add(key, bytes);
                        model.insert(key, bytes);
                    }
                    1 => prop_assert_eq!(books.forget(key), model.remove(&key)),
                    2 => {
                        let before = if bytes % 2 == 0 { reserved.pop().unwrap_or(0) } else { 0 };
                        let all = reserved.iter().sum::<u64>() + bytes;
                        let fits = books.reserve(before, bytes, CAPACITY);
                        prop_assert_eq!(fits, held + all <= CAPACITY);
                        reserved.extend((before > 0 && !fits).then_some(before));
                        reserved.extend(fits.then_some(bytes));
                    }
                    3 => reserved.pop().into_iter().for_each(|bytes| books.release(bytes)),
                    4 => {
                        books.add_overhead(bytes);
                        other += bytes;
                    }
                    5 => {
                        books.set_packed(bytes);
                        packed = bytes;
                    }
                    _ => {
                        model.retain(|key, _| shard_of(*key) != usize::from(name));
                        model.insert(key, bytes);
                        books.replace(shard_of(key), ShardUsage { regions: [(key, bytes)].into(), other_bytes: 0 });
                    }
                }
                let mut keys: Vec<RegionKey> = model.keys().copied().collect();
                keys.sort_unstable();
                prop_assert!(keys.iter().all(|key| books.contains(*key)));
                let mut found = books.keys();
                found.sort_unstable();
                prop_assert_eq!(found, keys);
                prop_assert_eq!(books.reserved_bytes(), reserved.iter().sum::<u64>());
                prop_assert_eq!(books.bytes(), model.values().chain(&reserved).sum::<u64>() + other + packed);
            }
        }
    }
}
