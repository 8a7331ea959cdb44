//! Dense numbers for values: equal values get equal numbers, counted from 0 in order of first appearance.
//!
//! The one hash table of this crate. It is never iterated, so its order never reaches a result.

use std::collections::HashMap;
use std::hash::Hash;

/// Gives each distinct value a dense `u32`.
///
/// ```
/// let mut levels = pleach_reuse::Interner::default();
/// assert_eq!(levels.intern(["80", "4"]), 0);
/// assert_eq!(levels.intern(["75", "4"]), 1);
/// assert_eq!(levels.intern(["80", "4"]), 0);
/// ```
#[derive(Debug, Clone)]
pub struct Interner<T> {
    numbers: HashMap<T, u32>,
}

impl<T> Default for Interner<T> {
    fn default() -> Self {
        Self { numbers: HashMap::new() }
    }
}

impl<T: Hash + Eq> Interner<T> {
    /// The number of `value`: a new one if it was not seen before.
    ///
    /// # Panics
    /// When more than 2³² distinct values are interned. [`Runs`](crate::Runs) and [`Problem`](crate::Problem)
    /// refuse inputs that could come near.
    pub fn intern(&mut self, value: T) -> u32 {
        let next = u32::try_from(self.numbers.len()).expect("fewer than 2^32 distinct values");
        *self.numbers.entry(value).or_insert(next)
    }

    /// How many distinct values were interned.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether nothing was interned yet.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Forgets every value but keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.numbers.clear();
    }
}
