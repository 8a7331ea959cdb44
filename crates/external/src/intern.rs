//! Strings and lists for the lifetime of the process, each distinct one once.
//!
//! Declarations of operations are `&'static`, so that built-in ones are constants. Those of manifests are leaked: a process
//! reads a few manifests, and a manager that reads the same one again gets the same strings.

use parking_lot::Mutex;
use std::collections::BTreeSet;

static STRINGS: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
static NUMBERS: Mutex<BTreeSet<&'static [i64]>> = Mutex::new(BTreeSet::new());

/// Returns this text, interned.
pub(crate) fn interned(text: &str) -> &'static str {
    let mut known = STRINGS.lock();
    if let Some(found) = known.get(text) {
        return found;
    }
    let leaked: &'static str = Box::leak(text.to_owned().into_boxed_str());
    known.insert(leaked);
    leaked
}

/// Returns these numbers, interned.
pub(crate) fn interned_numbers(numbers: &[i64]) -> &'static [i64] {
    let mut known = NUMBERS.lock();
    if let Some(found) = known.get(numbers) {
        return found;
    }
    let leaked: &'static [i64] = Box::leak(numbers.to_vec().into_boxed_slice());
    known.insert(leaked);
    leaked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_texts_are_leaked_once() {
        // Of two allocations, which no compiler merges.
        let (first, second) = (String::from("a name"), String::from("a name"));
        assert!(std::ptr::eq(interned(&first), interned(&second)));
        let (first, second) = (Vec::from([1, 2]), Vec::from([1, 2]));
        assert!(std::ptr::eq(interned_numbers(&first), interned_numbers(&second)));
    }
}
