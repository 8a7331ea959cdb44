//! Power loss after every change to the file system, in private folders and in shared ones that two tiers have open.
//!
//! Any unsynced change may be lost, torn or corrupt. Regions reported as stored must be found, and regions reported as
//! removed must not. No other region may appear. With `PLEACH_EVERY_CHANGE`, the test also covers every change that creates
//! a folder.

use crate::memory::Memory;
use crate::regions::{AMPLE_BYTES, key, noise, region};
use pleach_regions::RegionKey;
use pleach_storage::{FolderKind, FolderSettings, FolderTier, Tier, TierMaintenance};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Insert,
    Remove,
    /// Ignores the number.
    Compact,
}

/// Operation of one tier on the region with this number.
#[derive(Clone, Copy, Debug)]
struct Act {
    number: u32,
    what: What,
    /// Index of the tier that performs it.
    who: usize,
    /// Changes after which all processes are killed and others open the folder.
    kill_after: Option<usize>,
}

/// Regions known to be stored in a range of the log. `began` and `ended` are numbers of changes.
#[derive(Debug)]
struct Moment {
    began: usize,
    ended: usize,
    /// Region that may or may not be stored between `began` and `ended`.
    doubtful: Option<RegionKey>,
    /// Regions stored at the end.
    stored: BTreeSet<RegionKey>,
}

/// Limits in bytes below which regions are packed: none, some or all regions of this test.
const PACKED_BELOW: [u64; 3] = [0, 2000, 64 << 10];

/// Kind of a folder, and the size in bytes below which regions are packed.
type Kind = (FolderKind, u64);

fn open(files: &Memory, (kind, pack_below_bytes): Kind) -> FolderTier {
    let settings = FolderSettings { pack_below_bytes, ..FolderSettings::new(kind, AMPLE_BYTES) };
    FolderTier::open(Arc::new(files.clone()), Path::new(Memory::TIER), settings).unwrap()
}

/// Opens the folder with 2 tiers if it is shared, and with 1 otherwise.
fn open_all(files: &Memory, kind: Kind) -> Vec<FolderTier> {
    let count = if kind.0.is_shared() { 2 } else { 1 };
    (0..count).map(|_| open(files, kind)).collect()
}

fn listed(tier: &FolderTier) -> BTreeSet<RegionKey> {
    tier.list().unwrap().into_iter().collect()
}

fn without(keys: &BTreeSet<RegionKey>, doubtful: Option<RegionKey>) -> BTreeSet<RegionKey> {
    keys.iter().copied().filter(|key| Some(*key) != doubtful).collect()
}

/// Performs all operations on one file system. Returns the regions known to be stored after each.
fn perform(acts: &[Act], kind: Kind) -> (Memory, Vec<Moment>) {
    let files = Memory::default();
    let mut tiers = open_all(&files, kind);
    let mut stored = BTreeSet::new();
    let mut moments =
        vec![Moment { began: 0, ended: files.changes(), doubtful: None, stored: stored.clone() }];
    for act in acts {
        let (began, key) = (files.changes(), key(act.number));
        files.kill_after(act.kill_after);
        let tier = &tiers[act.who % tiers.len()];
        let done = match act.what {
            What::Insert => tier.insert(key, &region(act.number)).map(drop),
            What::Remove => tier.remove(key).map(drop),
            What::Compact => {
                tier.compact();
                Ok(())
            }
        };
        match (&done, act.what) {
            (Ok(()), What::Insert) => drop(stored.insert(key)),
            (Ok(()), What::Remove) => drop(stored.remove(&key)),
            (Ok(()), What::Compact) => {}
            (Err(error), _) => assert!(act.kill_after.is_some(), "{error}"),
        }
        let doubtful = (act.what != What::Compact).then_some(key);
        if act.kill_after.is_some() {
            tiers.clear();
            files.kill_after(None);
            tiers = open_all(&files, kind);
            let found = listed(&tiers[0]);
            let doubtful = doubtful.filter(|_| done.is_err());
            assert_eq!(without(&found, doubtful), without(&stored, doubtful), "{act:?}");
            stored = found;
        }
        moments.push(Moment { began, ended: files.changes(), doubtful, stored: stored.clone() });
        for tier in &tiers {
            assert_eq!(listed(tier), stored, "{act:?}");
        }
    }
    (files, moments)
}

/// Opens the folder after a power loss that follows `changes` changes, and compares its regions. With `again`, opens it as
/// that kind of folder, and also after a second power loss.
fn check(
    files: &Memory,
    moments: &[Moment],
    changes: usize,
    again: Option<Kind>,
    mut random: impl FnMut() -> u32,
) {
    let left = files.after_power_loss(changes, &mut random);
    let before = moments.iter().rev().find(|moment| moment.ended <= changes);
    let stored = before.map_or_else(BTreeSet::new, |moment| moment.stored.clone());
    let under_way = moments.iter().find(|moment| moment.began <= changes && changes < moment.ended);
    let doubtful = under_way.and_then(|moment| moment.doubtful);
    let verify = |tier: &FolderTier, when: &str| {
        let found = listed(tier);
        assert_eq!(without(&found, doubtful), without(&stored, doubtful), "{when}, {changes} changes");
        for number in 0..NUMBERS {
            let expected = found.contains(&key(number)).then(|| region(number));
            assert_eq!(
                tier.get(key(number)).unwrap(),
                expected,
                "{when}, {changes} changes, number {number}"
            );
        }
        found
    };
    let found = verify(&open(&left, again.unwrap_or((FolderKind::Ssd, 0))), "after the loss");
    let Some(kind) = again else { return };
    // The second power loss occurs while the folder is opened, or right after its regions were listed.
    let changes_of_opening = left.changes();
    let sooner = left.after_power_loss(random() as usize % (changes_of_opening + 1), &mut random);
    verify(&open(&sooner, kind), "after a loss while the folder was opened");
    let later = left.after_power_loss(changes_of_opening, &mut random);
    assert_eq!(verify(&open(&later, kind), "after a second loss"), found);
}

const NUMBERS: u32 = 5;

/// Returns a xorshift generator, which decides the fate of each unsynced change.
fn random(seed: u32) -> impl FnMut() -> u32 {
    let mut state = seed | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state >> 3
    }
}

/// Returns whether to test a power loss after `changes`. Opening a folder creates or syncs 272 similar folders, so far from
/// an operation every 9th change is enough, unless `PLEACH_EVERY_CHANGE` is set.
fn is_worth_it(changes: usize, moments: &[Moment]) -> bool {
    const EVERY: usize = 9;
    let is_near = |moment: &Moment| {
        (moment.began..moment.began + 40).contains(&changes)
            || (moment.ended..moment.ended + 20).contains(&(changes + 15))
    };
    changes.is_multiple_of(EVERY)
        || moments.iter().any(is_near)
        || std::env::var_os("PLEACH_EVERY_CHANGE").is_some()
}

#[test]
fn stored_regions_survive_power_loss_after_every_change() {
    use What::{Compact, Insert, Remove};
    let act = |number, what, who, kill_after| Act { number, what, who, kill_after };
    let acts = [
        act(0, Insert, 0, None),
        act(1, Insert, 0, Some(5)), // in a file of its own: on the medium, and its folder too, by the name of a draft
        act(1, Insert, 1, None),
        act(0, Remove, 1, None), // another's
        act(2, Insert, 0, None),
        act(0, Compact, 0, None),
        act(0, Insert, 0, None),
        act(1, Remove, 0, Some(1)),
        act(3, Insert, 0, Some(1)), // packed: written, not synced
        act(2, Remove, 1, None),
        act(0, Compact, 1, Some(5)),
        act(0, Compact, 0, None),
    ];
    for kind in [(FolderKind::Ssd, 0), (FolderKind::Ssd, AMPLE_BYTES), (FolderKind::Lustre, AMPLE_BYTES)] {
        let (files, moments) = perform(&acts, kind);
        // A tier is created in the same way whether or not it packs regions.
        let first = if kind.1 == 0 { 0 } else { moments[0].ended };
        for changes in (first..=files.changes()).filter(|changes| is_worth_it(*changes, &moments)) {
            let is_open = changes >= moments[0].ended;
            let again = is_open.then_some(kind);
            check(&files, &moments, changes, again, random(changes as u32 * 7919 + 1));
            if is_open {
                // Fates of all unsynced changes: 0 loses them, 5 keeps them, 1 keeps the names and corrupts all bytes.
                [0, 5, 1].into_iter().for_each(|fate| check(&files, &moments, changes, None, || fate));
            }
        }
    }
}

/// A large region is preallocated, written in pieces, and completed by its head. After a power loss it is found whole or not
/// at all, under its draft name or its own.
#[test]
fn large_region_is_intact_or_absent_after_power_loss() {
    for kind in [FolderKind::Ssd, FolderKind::Lustre] {
        let files = Memory::default();
        let tier = open(&files, (kind, 0));
        let region = noise(1, 9_000_000);
        let began = files.changes();
        tier.insert(key(1), &region).unwrap();
        let stored = files.changes();
        assert!(tier.remove(key(1)).unwrap());
        let removed = files.changes();
        for changes in began..=removed {
            for fate in 0..6 {
                let seed = (changes * 6 + fate) as u32;
                let mut seeded = random(seed * 7919 + 1);
                let left =
                    files.after_power_loss(changes, || if fate < 3 { [0, 5, 1][fate] } else { seeded() });
                let tier = open(&left, (kind, 0));
                let found = tier.get(key(1)).unwrap();
                assert_eq!(tier.list().unwrap().len(), usize::from(found.is_some()));
                assert!(found.as_ref().is_none_or(|found| *found == region), "{changes} changes");
                assert!(changes != stored || found.is_some(), "{kind:?}: stored, and lost");
                assert!(changes != removed || found.is_none(), "{kind:?}: removed, and back");
            }
        }
    }
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let what = prop_oneof![6 => Just(What::Insert), 3 => Just(What::Remove), 1 => Just(What::Compact)];
    let act = (0..NUMBERS, what, 0..2_usize, prop::option::weighted(0.3, 0..12_usize));
    let act = act.prop_map(|(number, what, who, kill_after)| Act { number, what, who, kill_after });
    prop::collection::vec(act, 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn stored_regions_survive_power_loss_at_random_changes(
        acts in acts(), pack_below_bytes in prop::sample::select(&PACKED_BELOW), is_shared: bool,
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u32>()), 10),
    ) {
        let kind = (if is_shared { FolderKind::Lustre } else { FolderKind::Ssd }, pack_below_bytes);
        let (files, moments) = perform(&acts, kind);
        for (place, seed) in places {
            check(&files, &moments, place.index(files.changes() + 1), Some(kind), random(seed));
        }
    }
}
