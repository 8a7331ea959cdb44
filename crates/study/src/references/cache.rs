//! Annotations of slides in the memory of the process, by the content of their files.
//!
//! A slide has up to a million annotations, which take seconds to read, and thousands of tiles. The set of each file is
//! read once, while other threads wait for it, and stays until others need its memory.

use super::ReferenceError;
use pleach_pathology::image_io::AnnotationSet;
use pleach_workflow::AnnotationRules;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

/// 1 GiB: the annotations of a slide with 2,000,000 nuclei of 25 positions each. The last set stays beyond that.
const MAX_BYTES: usize = 1 << 30;

/// A set, or `None` until it is read.
type Shared = Arc<Mutex<Option<Arc<AnnotationSet>>>>;

struct Entry {
    digest: [u8; 32],
    rules: AnnotationRules,
    set: Shared,
    /// Length of the set. 0 until it is read.
    bytes: usize,
}

/// Entries in the order of their last use, the latest last.
static ENTRIES: LazyLock<Mutex<Vec<Entry>>> = LazyLock::new(Mutex::default);

/// Returns the set of a file with this digest, and reads it if no thread has.
///
/// # Errors
/// Those of `read`. The next call reads again.
pub(super) fn get(
    digest: [u8; 32],
    rules: &AnnotationRules,
    read: impl FnOnce() -> Result<AnnotationSet, ReferenceError>,
) -> Result<Arc<AnnotationSet>, ReferenceError> {
    let shared = latest(digest, rules);
    // A poisoned lock holds a complete set or none, as any other.
    let mut set = shared.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(set) = &*set {
        return Ok(Arc::clone(set));
    }
    let new = Arc::new(read()?);
    *set = Some(Arc::clone(&new));
    drop(set);
    evict(&shared, new.bytes());
    Ok(new)
}

/// Returns the entry of a file, as the latest.
fn latest(digest: [u8; 32], rules: &AnnotationRules) -> Shared {
    let mut entries = ENTRIES.lock().unwrap_or_else(PoisonError::into_inner);
    let known = entries.iter().position(|entry| entry.digest == digest && entry.rules == *rules);
    let entry = match known {
        Some(place) => entries.remove(place),
        None => Entry { digest, rules: rules.clone(), set: Shared::default(), bytes: 0 },
    };
    let set = Arc::clone(&entry.set);
    entries.push(entry);
    set
}

/// Records the length of a set, and removes the sets that were used least recently. Their readers keep them.
fn evict(shared: &Shared, bytes: usize) {
    let mut entries = ENTRIES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(entry) = entries.iter_mut().find(|entry| Arc::ptr_eq(&entry.set, shared)) {
        entry.bytes = bytes;
    }
    let mut sum: usize = entries.iter().map(|entry| entry.bytes).sum();
    while sum > MAX_BYTES && entries.len() > 1 {
        sum -= entries.remove(0).bytes;
    }
}
