//! Dense numbers for values: equal values get equal numbers, counted from 0 in order of first appearance.
//!
//! The hash table of an interner is never iterated, so its order never affects a result.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// Assigns each distinct value a dense `u32`.
///
/// ```
/// let mut levels = pleach_reuse::Interner::default();
/// assert_eq!(levels.intern(["80", "4"]), 0);
/// assert_eq!(levels.intern(["75", "4"]), 1);
/// assert_eq!(levels.intern(["80", "4"]), 0);
/// ```
#[derive(Debug, Clone)]
pub struct Interner<T> {
    numbers: HashMap<T, u32, BuildHasherDefault<Fold>>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { numbers: HashMap::default() }
    }
}

impl<T: Hash + Eq> Interner<T> {
    /// Returns the number of `value`, a new one for a new value.
    ///
    /// # Panics
    /// If more than 2³² distinct values are interned. [`Runs`](crate::Runs) and
    /// [`MergeProblem`](crate::MergeProblem) reject inputs that could reach this limit.
    pub fn intern(&mut self, value: T) -> u32 {
        let next = u32::try_from(self.numbers.len()).expect("fewer than 2^32 distinct values");
        // The next number is taken before the look-up, because the entry borrows the table.
        *self.numbers.entry(value).or_insert(next)
    }

    /// Returns the number of distinct values.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Returns whether no value was interned yet.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Removes all values but keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.numbers.clear();
    }
}

/// Returns the hash of a value that the table uses.
pub(crate) fn hash(value: impl Hash) -> u64 {
    let mut hasher = Fold::default();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Hashes by multiplying into 128 bits and folding the halves. Planning mostly looks up pairs of small
/// numbers, and the standard library's hash takes four times as long for 1 million runs. Its protection
/// against chosen keys is not needed, because the keys come from the user's own study.
#[derive(Debug, Clone, Copy, Default)]
struct Fold(u64);

impl Hasher for Fold {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(u64::from(word));
    }

    fn write_u64(&mut self, word: u64) {
        // Two odd constants with irregular bits (2^64 / golden ratio, and wyhash's first). The sum moves
        // small words away from 0, which the multiplication would leave unchanged.
        let word = self.0.rotate_left(23) ^ word.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let product = u128::from(word) * 0xa076_1d64_78bd_642f;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The planner hashes consecutive numbers. Neither the low bits (the table's slot) nor the high bits (its
    /// tag) may cluster. 65,536 random balls in 65,536 slots leave 24,109 empty on average (1/e of them).
    #[test]
    fn pairs_of_consecutive_numbers_scatter() {
        let mut slots = vec![false; 1 << 16];
        let mut tags = [0_u32; 128];
        for (a, b) in (0..256_u32).flat_map(|a| (0..256_u32).map(move |b| (a, b))) {
            let mut hasher = Fold::default();
            (a, b).hash(&mut hasher);
            slots[(hasher.finish() & 0xffff) as usize] = true;
            tags[(hasher.finish() >> 57) as usize] += 1;
        }
        let empty = slots.iter().filter(|taken| !**taken).count();
        assert!((23_000..25_200).contains(&empty), "{empty} empty slots");
        assert!(tags.iter().all(|count| (350..700).contains(count)), "{tags:?}");
    }
}
