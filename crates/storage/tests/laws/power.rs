//! The power fails: after every change to the file system, with any part of what was not synced lost, torn or damaged.
//! What was said to be stored is there, what was said to be removed is not, and nothing else is. With
//! `PLEACH_EVERY_CHANGE`, none of the changes is left out by which a new folder is made.

use crate::memory::Memory;
use crate::regions::{AMPLE_BYTES, key, region};
use pleach_regions::RegionKey;
use pleach_storage::{FolderKind, FolderSettings, FolderTier, Tier};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Inserts the region of a number, or removes it.
#[derive(Clone, Copy, Debug)]
struct Act {
    number: u32,
    insert: bool,
    /// The process is killed after so many changes, and another one opens the folder.
    kill_after: Option<usize>,
}

/// What was known to be stored when the log was so long.
#[derive(Debug)]
struct Moment {
    began: usize,
    ended: usize,
    /// Between the two, nobody knows whether it is there.
    doubtful: Option<RegionKey>,
    /// At the end.
    stored: BTreeSet<RegionKey>,
}

/// Regions of less than so many bytes are packed: none, some or all of those here.
const PACKED_BELOW: [u64; 3] = [0, 2000, 64 << 10];

fn open(files: &Memory, pack_below_bytes: u64) -> FolderTier {
    let settings = FolderSettings { pack_below_bytes, ..FolderSettings::new(FolderKind::Ssd, AMPLE_BYTES) };
    FolderTier::open(Arc::new(files.clone()), Path::new(Memory::TIER), settings).unwrap()
}

fn listed(tier: &FolderTier) -> BTreeSet<RegionKey> {
    tier.list().unwrap().into_iter().collect()
}

fn without(keys: &BTreeSet<RegionKey>, doubtful: Option<RegionKey>) -> BTreeSet<RegionKey> {
    keys.iter().copied().filter(|key| Some(*key) != doubtful).collect()
}

/// Does everything on one file system, and says what was known when.
fn perform(acts: &[Act], pack_below_bytes: u64) -> (Memory, Vec<Moment>) {
    let files = Memory::default();
    let mut tier = open(&files, pack_below_bytes);
    let mut stored = BTreeSet::new();
    let mut moments =
        vec![Moment { began: 0, ended: files.changes(), doubtful: None, stored: stored.clone() }];
    for act in acts {
        let (began, key) = (files.changes(), key(act.number));
        files.kill_after(act.kill_after);
        let done = if act.insert {
            tier.insert(key, &region(act.number)).map(drop)
        } else {
            tier.remove(key).map(drop)
        };
        match &done {
            Ok(()) if act.insert => drop(stored.insert(key)),
            Ok(()) => drop(stored.remove(&key)),
            Err(error) => assert!(act.kill_after.is_some(), "{error}"),
        }
        if act.kill_after.is_some() {
            drop(tier);
            files.kill_after(None);
            tier = open(&files, pack_below_bytes);
            let found = listed(&tier);
            let doubtful = done.is_err().then_some(key);
            assert_eq!(without(&found, doubtful), without(&stored, doubtful), "{act:?}");
            stored = found;
        }
        moments.push(Moment { began, ended: files.changes(), doubtful: Some(key), stored: stored.clone() });
    }
    (files, moments)
}

/// Opens what a loss of power after so many changes leaves, and perhaps, packing regions of less than `again` bytes, what a
/// second one does.
fn check(
    files: &Memory,
    moments: &[Moment],
    changes: usize,
    again: Option<u64>,
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
    let found = verify(&open(&left, again.unwrap_or(0)), "after the loss");
    let Some(pack_below_bytes) = again else { return };
    // It fails again: while the folder is opened, and right after what is there has been told.
    let changes_of_opening = left.changes();
    let sooner = left.after_power_loss(random() as usize % (changes_of_opening + 1), &mut random);
    verify(&open(&sooner, pack_below_bytes), "after a loss while the folder was opened");
    let later = left.after_power_loss(changes_of_opening, &mut random);
    assert_eq!(verify(&open(&later, pack_below_bytes), "after a second loss"), found);
}

const NUMBERS: u32 = 5;

/// Xorshift, for what becomes of changes.
fn random(seed: u32) -> impl FnMut() -> u32 {
    let mut state = seed | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state >> 3
    }
}

/// Whoever opens a folder makes or syncs 272 others, one like the next: of these changes every so many are enough, unless all
/// are asked for.
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
fn after_every_change() {
    let act = |number, insert, kill_after| Act { number, insert, kill_after };
    let acts = [
        act(0, true, None),
        act(1, true, Some(4)), // in a file of its own: renamed, its folder not synced
        act(1, true, None),
        act(0, false, None),
        act(2, true, None),
        act(0, true, None),
        act(1, false, Some(1)),
        act(3, true, Some(1)), // packed: written, not synced
    ];
    for pack_below_bytes in [0, AMPLE_BYTES] {
        let (files, moments) = perform(&acts, pack_below_bytes);
        // A tier is begun in the same way, whatever is packed in it.
        let first = if pack_below_bytes == 0 { 0 } else { moments[0].ended };
        for changes in (first..=files.changes()).filter(|changes| is_worth_it(*changes, &moments)) {
            let is_open = changes >= moments[0].ended;
            let again = is_open.then_some(pack_below_bytes);
            check(&files, &moments, changes, again, random(changes as u32 * 7919 + 1));
            if is_open {
                // All that was not synced is lost; all of it is there; all names are there and all bytes damaged.
                [0, 5, 1].into_iter().for_each(|fate| check(&files, &moments, changes, None, || fate));
            }
        }
    }
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = (0..NUMBERS, prop::bool::weighted(0.7), prop::option::weighted(0.3, 0..8_usize));
    prop::collection::vec(
        act.prop_map(|(number, insert, kill_after)| Act { number, insert, kill_after }),
        1..20,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn at_random(
        acts in acts(), pack_below_bytes in prop::sample::select(&PACKED_BELOW),
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u32>()), 10),
    ) {
        let (files, moments) = perform(&acts, pack_below_bytes);
        for (place, seed) in places {
            let again = Some(pack_below_bytes);
            check(&files, &moments, place.index(files.changes() + 1), again, random(seed));
        }
    }
}
