//! Compares caches with a plain set: several caches on one folder, and several threads in one cache.

use crate::entries::{at, entry, open};
use pleach_cache::{Difference, InsertOutcome, KeyComponents};
use pleach_regions::Digest;
use proptest::prelude::*;
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
enum Step {
    Put { cache: usize, number: u32, blob: bool },
    Find { cache: usize, number: u32, blob: bool },
    Refresh { cache: usize },
    Reopen { cache: usize },
}

fn step() -> impl Strategy<Value = Step> {
    let place = || (0..2_usize, 0..12_u32, any::<bool>());
    prop_oneof![
        4 => place().prop_map(|(cache, number, blob)| Step::Put { cache, number, blob }),
        4 => place().prop_map(|(cache, number, blob)| Step::Find { cache, number, blob }),
        1 => (0..2_usize).prop_map(|cache| Step::Refresh { cache }),
        1 => (0..2_usize).prop_map(|cache| Step::Reopen { cache }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A cache finds the entries that existed when it was opened or refreshed, and those that it has stored since.
    #[test]
    fn behaves_like_a_set(steps in prop::collection::vec(step(), 1..80)) {
        let folder = tempfile::tempdir().unwrap();
        let mut caches = [Some(open(folder.path())), Some(open(folder.path()))];
        let mut all = BTreeSet::new();
        let mut known = [BTreeSet::new(), BTreeSet::new()];
        for step in steps {
            match step {
                Step::Put { cache, number, blob } => {
                    let stored = entry(number).put(caches[cache].as_ref().unwrap(), blob);
                    let expected = if known[cache].insert((number, blob)) { InsertOutcome::New } else { InsertOutcome::Known };
                    prop_assert_eq!(stored, expected);
                    all.insert((number, blob));
                }
                Step::Find { cache, number, blob } => {
                    let found = entry(number).is_in(caches[cache].as_ref().unwrap(), blob);
                    prop_assert_eq!(found, known[cache].contains(&(number, blob)));
                }
                Step::Refresh { cache } => {
                    caches[cache].as_ref().unwrap().refresh(at(1000));
                    known[cache].clone_from(&all);
                }
                Step::Reopen { cache } => {
                    caches[cache] = None;
                    caches[cache] = Some(open(folder.path()));
                    known[cache].clone_from(&all);
                }
            }
        }
        for (cache, known) in caches.iter().flatten().zip(known) {
            let statistics = cache.statistics();
            prop_assert_eq!(statistics.traces + statistics.blobs, known.len() as u64);
            prop_assert_eq!((statistics.corrupt, statistics.not_stored), (0, 0));
            prop_assert_eq!(cache.take_reports(), vec![]);
        }
    }
}

#[test]
fn threads_share_a_cache() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path());
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let cache = &cache;
            scope.spawn(move || {
                // Each thread starts elsewhere, so that threads store the same entries at the same time.
                for number in (0..60).map(|place| (place * 7 + thread * 15) % 60) {
                    assert_ne!(entry(number).put(cache, number % 2 == 0), InsertOutcome::Not);
                    assert!(entry(number).is_in(cache, number % 2 == 0));
                }
            });
        }
    });
    let statistics = cache.statistics();
    assert_eq!((statistics.stored, statistics.known, statistics.hits), (60, 180, 240));
    drop(cache);
    let cache = open(folder.path());
    assert_eq!(cache.statistics().traces + cache.statistics().blobs, 60);
    assert!((0..60).all(|number| entry(number).is_in(&cache, number % 2 == 0)));
}

#[test]
fn nearest_entry_lists_differing_components() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path());
    let wanted = |number| entry(number).trace.components;
    assert_eq!(cache.nearest(&wanted(2)), None);
    for number in [2, 4, 5] {
        entry(number).put(&cache, false);
    }
    // An exact match.
    let nearest = cache.nearest(&wanted(4)).unwrap();
    assert_eq!((nearest.key, nearest.differences), (entry(4).key, vec![]));
    // One argument differs. Entries of the other operation are ignored.
    let changed = KeyComponents { inputs: wanted(2).inputs, ..wanted(6) };
    let nearest = cache.nearest(&changed).unwrap();
    assert_eq!(nearest.trace, entry(2).trace);
    let said: Vec<String> = nearest.differences.iter().map(Difference::to_string).collect();
    assert_eq!(said, ["G1 = 6, stored is 2"]);
    // Every kind of component differs.
    let mut changed = wanted(2);
    changed.version = 3;
    changed.arguments[1].0 = "MorphRecon".to_owned();
    changed.inputs[0].1 = Digest([0xab; 32]);
    let said: Vec<String> =
        cache.nearest(&changed).unwrap().differences.iter().map(Difference::to_string).collect();
    let expected = [
        "version 3, stored is 1".to_owned(),
        "MorphRecon = 4, stored is nothing".to_owned(),
        "FillHoles = nothing, stored is 4".to_owned(),
        format!("input rc is {}, stored is {}", "ab".repeat(32), wanted(2).inputs[0].1),
    ];
    assert_eq!(said, expected);
    // No trace of this operation.
    assert_eq!(cache.nearest(&KeyComponents { operation: "nuclei.nuclei".to_owned(), ..wanted(2) }), None);
}
