//! Compares the index with plain lists of each segment's records.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// One record in a segment: a region or a tombstone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Written {
    Region { key: u8, id: u64, offset: u32 },
    Stone { key: u8, id: u64 },
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Enter { segment: u32, key: u8, id: u64 },
    Bury { segment: u32, key: u8, id: u64 },
    Forget { segment: u32 },
}

fn segment(number: u32) -> SegmentName {
    SegmentName { owner: (number % 2) as u16, number }
}

fn key(name: u8) -> RegionKey {
    RegionKey([name; 16])
}

fn place(number: u32, id: u64, offset: u32) -> PackLocation {
    PackLocation { segment: segment(number), offset, body_bytes: offset % 7, id }
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (segment, key, id) = (0..4_u32, 0..3_u8, 0..3_u64);
    let one = (segment.clone(), key, id);
    let step = prop_oneof![
        4 => one.clone().prop_map(|(segment, key, id)| Step::Enter { segment, key, id }),
        2 => one.prop_map(|(segment, key, id)| Step::Bury { segment, key, id }),
        1 => segment.prop_map(|segment| Step::Forget { segment }),
    ];
    prop::collection::vec(step, 1..60)
}

proptest! {
    /// Compares with plain lists of each segment's records, searched in full after each step.
    #[test]
    fn index_equals_lists_of_written_records(steps in steps()) {
        let (mut index, mut files) = (Index::default(), BTreeMap::<u32, BTreeSet<Written>>::new());
        // A buried region stays buried in memory while any record or tombstone of it exists.
        let mut buried = BTreeSet::new();
        for (offset, step) in steps.into_iter().enumerate() {
            let offset = offset as u32;
            match step {
                Step::Enter { segment, key: name, id } => {
                    index.enter(key(name), place(segment, id, offset));
                    files.entry(segment).or_default().insert(Written::Region { key: name, id, offset });
                }
                Step::Bury { segment: number, key: name, id } => {
                    index.add_tombstone(key(name), id, segment(number));
                    files.entry(number).or_default().insert(Written::Stone { key: name, id });
                    buried.insert((name, id));
                }
                Step::Forget { segment: number } => {
                    index.forget(segment(number));
                    files.remove(&number);
                }
            }
            let all = || files.iter().flat_map(|(file, written)| written.iter().map(|one| (*file, *one)));
            buried.retain(|(name, id)| {
                all().any(|(_, one)| match one {
                    Written::Region { key, id: of, .. } | Written::Stone { key, id: of } => (key, of) == (*name, *id),
                })
            });
            let live = |(file, one): (u32, Written)| match one {
                Written::Region { key: name, id, offset } if !buried.contains(&(name, id)) => {
                    Some((key(name), place(file, id, offset)))
                }
                _ => None,
            };
            for name in 0..3 {
                let mut expected: Vec<PackLocation> =
                    all().filter_map(live).filter(|(found, _)| *found == key(name)).map(|(_, place)| place).collect();
                let mut found = index.locations(key(name));
                prop_assert_eq!(index.contains(key(name)), !expected.is_empty());
                prop_assert_eq!(index.location(key(name)), found.first().copied());
                [&mut expected, &mut found].into_iter().for_each(|all| all.sort_by_key(|place| place.offset));
                prop_assert_eq!(found, expected);
            }
            for number in 0..4 {
                let regions: Vec<_> = all().filter(|(file, _)| *file == number).filter_map(live).collect();
                let needed: BTreeSet<(RegionKey, u64)> = all()
                    .filter_map(|(file, one)| match one {
                        Written::Stone { key: name, id } if file == number => Some((name, id)),
                        _ => None,
                    })
                    .filter(|(name, id)| {
                        all().any(|(file, one)| {
                            file != number
                                && matches!(one, Written::Region { key, id: of, .. } if (key, of) == (*name, *id))
                        })
                    })
                    .map(|(name, id)| (key(name), id))
                    .collect();
                let live_bytes = regions.iter().map(|(_, place)| place.record_bytes()).sum();
                let expected = LiveUsage { live: regions.len() as u32, live_bytes, stones: needed.len() as u32 };
                prop_assert_eq!(index.needed(segment(number)), expected);
                prop_assert_eq!(index.tombstones_in(segment(number)).into_iter().collect::<BTreeSet<_>>(), needed);
                prop_assert_eq!(index.regions_in(segment(number)).len(), regions.len());
                prop_assert_eq!(expected.is_nothing(), expected.bytes() == 0);
            }
        }
    }
}

/// A killed compaction leaves a copy. One tombstone, in any segment and found at any time, buries both records.
#[test]
fn tombstone_deletes_all_copies() {
    let (one, copy) = (place(0, 9, 0), place(1, 9, 0));
    let mut index = Index::default();
    index.enter(key(1), one);
    index.add_tombstone(key(1), 9, segment(2));
    index.enter(key(1), copy);
    assert!(!index.contains(key(1)));
    // A record with another id under the same key is a different region.
    index.enter(key(1), place(3, 10, 0));
    assert_eq!(index.location(key(1)), Some(place(3, 10, 0)));
    index.forget(segment(0));
    assert_eq!(index.needed(segment(2)).stones, 1, "the copy is still there");
    index.forget(segment(1));
    assert!(index.needed(segment(2)).is_nothing());
}
