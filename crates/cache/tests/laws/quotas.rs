//! Quotas of users: a user's new entries replace the user's own, and never those of others.

use crate::entries::{Entry, at, entry, folder_bytes};
use pleach_cache::{Cache, CacheWarning, InsertOutcome, Limits};
use std::ops::Range;
use std::path::Path;

const QUOTA_BYTES: u64 = 200_000;

fn open(path: &Path, user_bytes: Option<u64>, now_seconds: u64) -> Cache {
    Cache::open(path, Limits { bytes: 1 << 30, age: None, user_bytes }, at(now_seconds)).unwrap()
}

/// Stores traces and regions for a user, about 2.6 KB of each number.
fn put(cache: &Cache, user: &str, numbers: Range<u32>) {
    for number in numbers {
        assert_ne!(entry(number).made_for(user, 1).put(cache, true), InsertOutcome::Not);
        assert_eq!(entry(number).made_for(user, 1).put(cache, false), InsertOutcome::New);
    }
}

fn count(cache: &Cache, numbers: Range<u32>) -> usize {
    numbers.filter(|number| cache.contains_region(&entry(*number).digest)).count()
}

fn bytes_of(cache: &Cache, user: &str) -> u64 {
    let users = cache.users();
    users.iter().find(|(name, _)| name.as_deref() == Some(user)).map_or(0, |(_, bytes)| *bytes)
}

#[test]
fn user_over_quota_loses_own_oldest_entries_only() {
    let folder = tempfile::tempdir().unwrap();
    put(&open(folder.path(), Some(QUOTA_BYTES), 1000), "bob", 0..40);
    // Two studies of one user. The first one's results are used again, and a third study exceeds the quota.
    put(&open(folder.path(), Some(QUOTA_BYTES), 2000), "alice", 100..130);
    put(&open(folder.path(), Some(QUOTA_BYTES), 3000), "alice", 130..160);
    let cache = open(folder.path(), Some(QUOTA_BYTES), 4000);
    assert!((100..130).all(|number| entry(number).made_for("alice", 1).is_in(&cache, true)));
    assert_eq!((cache.statistics().quota_evicted_bytes, cache.take_reports()), (0, vec![]));
    put(&cache, "alice", 200..240);
    assert_eq!((count(&cache, 100..130), count(&cache, 200..240)), (30, 40));
    assert!(count(&cache, 130..160) < 30);
    let statistics = cache.statistics();
    assert!(statistics.quota_evicted_bytes > 0, "{statistics:?}");
    // Many more entries than fit: the warning comes once, and others keep all of theirs.
    put(&cache, "alice", 300..600);
    let reached = CacheWarning::QuotaReached { user: "alice".to_owned(), quota_bytes: QUOTA_BYTES };
    assert_eq!(cache.take_reports(), [reached]);
    assert!(bytes_of(&cache, "alice") <= QUOTA_BYTES, "{:?}", cache.users());
    assert_eq!(count(&cache, 0..40), 40);
    assert!(count(&cache, 570..600) == 30, "the newest entries stay");
    put(&cache, "alice", 600..700);
    assert_eq!(cache.take_reports(), []);
    drop(cache);

    // Without quotas the folder grows.
    let cache = open(folder.path(), None, 5000);
    put(&cache, "alice", 1000..1300);
    assert!(bytes_of(&cache, "alice") > 2 * QUOTA_BYTES);
    assert_eq!((cache.statistics().quota_evicted_bytes, cache.take_reports()), (0, vec![]));
}

#[test]
fn users_share_a_writer_and_their_entries() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path(), Some(QUOTA_BYTES), 1000);
    // More users than active segments, in turn.
    for number in 0..200 {
        put(&cache, &format!("user-{}", number % 12), number..number + 1);
    }
    assert_eq!((count(&cache, 0..200), cache.users().len()), (200, 12));
    // Results of one user need no second copy for another.
    assert_eq!(entry(3).made_for("zoe", 9).put(&cache, true), InsertOutcome::Known);
    drop(cache);
    let cache = open(folder.path(), Some(QUOTA_BYTES), 2000);
    let known = |number: u32| entry(number).made_for(&format!("user-{}", number % 12), 1);
    assert!((0..200).all(|number| known(number).is_in(&cache, true) && known(number).is_in(&cache, false)));
    assert_eq!(cache.users().iter().map(|(_, bytes)| bytes).sum::<u64>() + 23, folder_bytes(folder.path()));
}

#[test]
fn entry_of_half_the_quota_is_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    let large: Entry = entry(3).made_for("alice", 1);
    let bytes = large.region.encode(&large.digest).len() as u64;
    let cache = open(folder.path(), Some(2 * bytes), 1000);
    assert_eq!(large.put(&cache, true), InsertOutcome::Not);
    assert!(matches!(&cache.take_reports()[..], [CacheWarning::QuotaReached { .. }]));
    // Entries without a user have no quota.
    assert_eq!(entry(3).put(&cache, true), InsertOutcome::New);
}

/// Small segments are merged for each user, so that each stays on its own quota.
#[test]
fn merged_segments_keep_their_user() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..60 {
        put(&open(folder.path(), None, 1000), ["alice", "bob"][number as usize % 2], number..number + 1);
    }
    let before = open(folder.path(), None, 1000).users();
    let cache = open(folder.path(), None, 1000);
    assert!(cache.statistics().segments < 40, "{:?}", cache.statistics());
    let bytes = |users: &[(Option<String>, u64)], name: &str| {
        users.iter().find(|(user, _)| user.as_deref() == Some(name)).unwrap().1
    };
    for user in ["alice", "bob"] {
        let (before, after) = (bytes(&before, user), bytes(&cache.users(), user));
        assert!(after <= before && after > before / 2, "{user}: {before}, then {after}");
    }
    assert_eq!(count(&cache, 0..60), 60);
}
