//! Evicts the least recently used segments.
//!
//! Eviction removes whole segments, so it rewrites nothing and keeps no order of single entries. A used entry retains the
//! other entries of its segment, which are of the same user and study and mostly used together. Segments with a writer stay.
//! A quota evicts segments of its own user only. The caller holds the folder lock.

use crate::folder::Folder;
use crate::label::UserTag;
use crate::segment::{Segment, SegmentHead};
use pleach_files::{OpenFile, OpenMode};
use std::io;
use std::time::Duration;

/// Maximum segment size: 1/32 of the limit, so that eviction removes a small share, and the number of open files stays
/// within the limit of a process.
const SEGMENTS_WITHIN_LIMIT: u64 = 32;

/// Minimum segment size. Small limits, used only in tests, still fit a few traces per segment.
const SEGMENT_LEAST_BYTES: u64 = 4096;

/// Limits of a cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Maximum size of all files in the folder, including preallocated space of running processes.
    pub bytes: u64,
    /// Maximum age of unused entries. `None` keeps them forever. It is checked per segment when a cache is opened: an entry
    /// lives as long as any entry of its segment is used.
    pub age: Option<Duration>,
    /// Maximum size of each user's entries that this cache stores. Beyond it, the user's own least recently used entries are
    /// evicted, and never those of others. `None` is unlimited. Entries without a label are of no user.
    pub user_bytes: Option<u64>,
}

impl Limits {
    /// Returns the quota of a user, if there is one.
    pub(crate) fn quota(&self, user: UserTag) -> Option<(UserTag, u64)> {
        Some((user, self.user_bytes?)).filter(|_| user != UserTag::UNKNOWN)
    }

    /// Returns the maximum size of a user's segments with several records. Within the quota as well, so that it evicts a small
    /// share of the user's entries.
    pub(crate) fn segment_bytes(&self, user: UserTag) -> u64 {
        let bound = self.quota(user).map_or(self.bytes, |(_, quota_bytes)| quota_bytes.min(self.bytes));
        (bound / SEGMENTS_WITHIN_LIMIT).max(SEGMENT_LEAST_BYTES)
    }
}

/// A segment that may be evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EvictionCandidate {
    pub(crate) number: u64,
    pub(crate) bytes: u64,
    pub(crate) used_seconds: u64,
    pub(crate) user: UserTag,
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

/// Space that a writer needs, and the limits that it keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpaceRequest {
    pub(crate) extra_bytes: u64,
    /// Limit of the folder.
    pub(crate) limit_bytes: u64,
    /// User whose entries will fill the space, with the user's quota.
    pub(crate) quota: Option<(UserTag, u64)>,
    pub(crate) now_seconds: u64,
}

/// Evicted segments.
#[derive(Debug, Default)]
pub(crate) struct Evicted {
    pub(crate) numbers: Vec<u64>,
    /// Bytes of those evicted for a quota.
    pub(crate) by_quota_bytes: u64,
}

impl Evicted {
    pub(crate) fn append(&mut self, mut more: Self) {
        self.numbers.append(&mut more.numbers);
        self.by_quota_bytes += more.by_quota_bytes;
    }
}

/// Outcome of a request for space.
#[derive(Debug)]
pub(crate) enum Room {
    /// The bytes fit now.
    Made(Evicted),
    /// They cannot fit into the folder. No segment is evicted.
    FolderFull,
    /// They cannot fit into the user's quota. No segment is evicted.
    QuotaFull,
}

/// Evicts segments until the bytes requested fit into the folder's limit and into the user's quota.
pub(crate) fn make_room(folder: &Folder, request: SpaceRequest) -> io::Result<Room> {
    let SpaceRequest { extra_bytes, limit_bytes, quota, now_seconds } = request;
    let mut taken_bytes = folder.small_files_bytes()?;
    let (mut candidates, mut of_user_bytes) = (Vec::new(), 0_u64);
    // Keeps the files open, and so locked, until the chosen segments are removed.
    let mut locked: Vec<Box<dyn OpenFile>> = Vec::new();
    for number in folder.numbers()? {
        let Some(file) = folder.segment(number, OpenMode::Write)? else { continue };
        let bytes = file.length()?;
        taken_bytes += bytes;
        let segment = Segment::new(number, file, false);
        // A time in the future is corrupt or from another machine's clock.
        let (user, used_seconds) = match segment.beginning()? {
            SegmentHead::Segment { user, used_seconds } => (user, used_seconds.min(now_seconds)),
            SegmentHead::Nothing | SegmentHead::Broken => (UserTag::UNKNOWN, 0),
        };
        // Segments that cannot be evicted count against both limits as well.
        of_user_bytes += if quota.is_some_and(|(of, _)| of == user) { bytes } else { 0 };
        if segment.file.try_lock()? {
            candidates.push(EvictionCandidate { number, bytes, used_seconds, user });
            locked.push(segment.file);
        }
    }
    let mut evicted = Evicted::default();
    if let Some((user, quota_bytes)) = quota {
        let own = candidates.iter().filter(|candidate| candidate.user == user).copied().collect();
        let Some(chosen) = choose(own, of_user_bytes, extra_bytes, quota_bytes) else {
            return Ok(Room::QuotaFull);
        };
        let of_quota = |candidate: &EvictionCandidate| chosen.contains(&candidate.number);
        evicted.by_quota_bytes =
            candidates.iter().filter(|candidate| of_quota(candidate)).map(|candidate| candidate.bytes).sum();
        candidates.retain(|candidate| !of_quota(candidate));
        taken_bytes -= evicted.by_quota_bytes;
        evicted.numbers = chosen;
    }
    let Some(chosen) = choose(candidates, taken_bytes, extra_bytes, limit_bytes) else {
        return Ok(Room::FolderFull);
    };
    evicted.numbers.extend(chosen);
    for number in &evicted.numbers {
        folder.remove(*number)?;
    }
    Ok(Room::Made(evicted))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn candidate(number: u64, bytes: u64, used_seconds: u64) -> EvictionCandidate {
        EvictionCandidate { number, bytes, used_seconds, user: UserTag::UNKNOWN }
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
