//! Evicts the least recently used segments.
//!
//! Eviction removes whole segments, so it rewrites nothing and keeps no order of single entries. A used entry retains the
//! other entries of its segment, which are of the same study and mostly used together. Segments with a writer stay. The
//! caller holds the folder lock.

use crate::folder::Folder;
use crate::segment::{Segment, SegmentHead};
use pleach_files::{OpenFile, OpenMode};
use std::io;
use std::time::Duration;

/// A segment that may be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EvictionCandidate {
    pub(crate) number: u64,
    pub(crate) bytes: u64,
    pub(crate) used_seconds: u64,
}

/// Returns the `candidates` to evict so that `disk_bytes` and `extra_bytes` stay within `limit_bytes`: the least recently
/// used, and no more than needed. `None` if all of them are not enough. Then nothing should be evicted.
pub(crate) fn choose(
    mut candidates: Vec<EvictionCandidate>,
    disk_bytes: u64,
    extra_bytes: u64,
    limit_bytes: u64,
) -> Option<Vec<u64>> {
    // The number breaks ties between segments of the same second.
    candidates.sort_unstable_by_key(|candidate| (candidate.used_seconds, candidate.number));
    let mut excess = disk_bytes.saturating_add(extra_bytes).saturating_sub(limit_bytes);
    let mut chosen = Vec::new();
    for candidate in candidates {
        if excess == 0 {
            break;
        }
        excess = excess.saturating_sub(candidate.bytes);
        chosen.push(candidate.number);
    }
    debug_assert!(
        chosen.iter().enumerate().all(|(number, chosen_before)| !chosen[..number].contains(chosen_before)),
        "a segment is evicted twice: {chosen:?}"
    );
    (excess == 0).then_some(chosen)
}

/// Returns whether a segment has been unused for too long.
pub(crate) fn is_expired(used_seconds: u64, now_seconds: u64, age: Option<Duration>) -> bool {
    age.is_some_and(|age| now_seconds.saturating_sub(used_seconds) > age.as_secs())
}

/// Evicts segments until `extra_bytes` more fit into `limit_bytes`. Returns their numbers. `None` if that is impossible.
pub(crate) fn make_room(
    folder: &Folder,
    extra_bytes: u64,
    limit_bytes: u64,
    now_seconds: u64,
) -> io::Result<Option<Vec<u64>>> {
    let mut taken_bytes = folder.small_files_bytes()?;
    let mut candidates = Vec::new();
    // Keeps the files open, and so locked, until the chosen segments are removed.
    let mut locked: Vec<Box<dyn OpenFile>> = Vec::new();
    for number in folder.numbers()? {
        let Some(file) = folder.segment(number, OpenMode::Write)? else { continue };
        let bytes = file.length()?;
        taken_bytes += bytes;
        if file.try_lock()? {
            let segment = Segment::new(number, file, false);
            // A time in the future is corrupt or from another machine's clock.
            let used_seconds = match segment.beginning()? {
                SegmentHead::Segment { used_seconds } => used_seconds.min(now_seconds),
                SegmentHead::Nothing | SegmentHead::Broken => 0,
            };
            candidates.push(EvictionCandidate { number, bytes, used_seconds });
            locked.push(segment.file);
        }
    }
    let Some(chosen) = choose(candidates, taken_bytes, extra_bytes, limit_bytes) else { return Ok(None) };
    for number in &chosen {
        folder.remove(*number)?;
    }
    Ok(Some(chosen))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn candidate(number: u64, bytes: u64, used_seconds: u64) -> EvictionCandidate {
        EvictionCandidate { number, bytes, used_seconds }
    }

    #[test]
    fn least_recently_used_segments_are_evicted_first() {
        let candidates = || vec![candidate(1, 100, 30), candidate(2, 100, 10), candidate(3, 100, 20)];
        assert_eq!(choose(candidates(), 300, 0, 300), Some(vec![]));
        assert_eq!(choose(candidates(), 300, 1, 300), Some(vec![2]));
        assert_eq!(choose(candidates(), 300, 101, 300), Some(vec![2, 3]));
        assert_eq!(choose(candidates(), 300, 301, 300), None);
        // Segments that cannot be evicted count as well.
        assert_eq!(choose(candidates(), 400, 300, 400), Some(vec![2, 3, 1]));
        assert_eq!(choose(candidates(), 400, 301, 400), None);
    }

    #[test]
    fn age_counts_from_the_last_use() {
        let day = Some(Duration::from_secs(86_400));
        assert!(!is_expired(1000, 1000 + 86_400, day));
        assert!(is_expired(1000, 1001 + 86_400, day));
        assert!(!is_expired(1000, u64::MAX, None));
        // Clock skew expires nothing.
        assert!(!is_expired(2000, 1000, Some(Duration::ZERO)));
    }

    proptest! {
        #[test]
        fn evicted_segments_are_sufficient_and_each_necessary(
            sizes in prop::collection::vec((1..100_u64, 0..5_u64), 0..12), fixed in 0..100_u64,
            extra in 0..300_u64, limit in 0..600_u64,
        ) {
            let candidates: Vec<EvictionCandidate> =
                (0..).zip(&sizes).map(|(number, &(bytes, used))| candidate(number, bytes, used)).collect();
            let evictable: u64 = sizes.iter().map(|(bytes, _)| bytes).sum();
            match choose(candidates.clone(), fixed + evictable, extra, limit) {
                None => prop_assert!(fixed + extra > limit),
                Some(chosen) => {
                    let bytes = |numbers: &[u64]| numbers.iter().map(|number| candidates[*number as usize].bytes).sum::<u64>();
                    prop_assert!(fixed + evictable - bytes(&chosen) + extra <= limit);
                    if let [fewer @ .., _] = &chosen[..] {
                        prop_assert!(fixed + evictable - bytes(fewer) + extra > limit);
                    }
                    let used = |number: u64| candidates[number as usize].used_seconds;
                    let stays = candidates.iter().filter(|candidate| !chosen.contains(&candidate.number));
                    let oldest = stays.map(|candidate| candidate.used_seconds).min().unwrap_or(u64::MAX);
                    prop_assert!(chosen.iter().all(|number| used(*number) <= oldest));
                }
            }
        }
    }
}
