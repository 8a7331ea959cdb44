//! Contract of all tiers, checked against a plain map.

use crate::regions::{key, region};
use pleach_regions::{DataRegion, RegionKey};
use pleach_storage::{Durability, Inserted, Tier, TierError};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Operation on the region with this number.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Insert(u32),
    /// Inserts another region under the same key. The region inserted first stays.
    InsertOther(u32),
    Get(u32),
    Remove(u32),
    Contains(u32),
    List,
    /// Closes the tier and opens it again, if its durability allows that.
    Reopen,
}

pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let number = 0..12_u32;
    let step = prop_oneof![
        4 => number.clone().prop_map(Step::Insert),
        1 => number.clone().prop_map(Step::InsertOther),
        2 => number.clone().prop_map(Step::Get),
        2 => number.clone().prop_map(Step::Remove),
        1 => number.prop_map(Step::Contains),
        1 => Just(Step::List),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..40)
}

/// Opens a tier. A later call opens it again with the content of the tier that the test has closed before.
pub(crate) type Open<'a> = &'a dyn Fn() -> Box<dyn Tier>;

/// Performs all steps and compares each result. A tier may refuse only a region that exceeds its capacity, and is unchanged
/// then.
pub(crate) fn check(open: Open<'_>, steps: &[Step]) {
    let mut tier = Some(open());
    let empty_bytes = tier.as_ref().unwrap().held_bytes();
    let mut recorder: BTreeMap<RegionKey, Arc<DataRegion>> = BTreeMap::new();
    for step in steps {
        let held = tier.as_ref().unwrap();
        match *step {
            Step::Insert(number) | Step::InsertOther(number) => {
                let other = matches!(step, Step::InsertOther(_));
                let (key, region) = (key(number), region(if other { number + 12 } else { number }));
                match held.insert(key, &region) {
                    Ok(inserted) => {
                        let known = recorder.contains_key(&key);
                        assert_eq!(inserted, if known { Inserted::AlreadyPresent } else { Inserted::New });
                        recorder.entry(key).or_insert(region);
                    }
                    Err(TierError::Full { needed_bytes, held_bytes, capacity_bytes, .. }) => {
                        assert!(held_bytes + needed_bytes > capacity_bytes && !recorder.contains_key(&key));
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            Step::Get(number) => {
                assert_eq!(held.get(key(number)).unwrap().as_ref(), recorder.get(&key(number)))
            }
            Step::Remove(number) => {
                assert_eq!(held.remove(key(number)).unwrap(), recorder.remove(&key(number)).is_some());
            }
            Step::Contains(number) => {
                assert_eq!(held.contains(key(number)).unwrap(), recorder.contains_key(&key(number)));
            }
            Step::List => {}
            Step::Reopen if held.durability() == Durability::Process => {}
            Step::Reopen => {
                let held_bytes = held.held_bytes();
                drop(tier.take());
                tier = Some(open());
                assert_eq!(tier.as_ref().unwrap().held_bytes(), held_bytes, "bytes counted anew");
            }
        }
        let held = tier.as_ref().unwrap();
        assert!(held.list().unwrap().iter().eq(recorder.keys()), "{step:?}");
        assert!(held.held_bytes() <= held.capacity_bytes());
    }
    let held = tier.unwrap();
    for (key, region) in &recorder {
        assert_eq!(held.get(*key).unwrap().as_ref(), Some(region));
        assert!(held.remove(*key).unwrap());
    }
    // Directories never shrink, but these hold too few names to have grown.
    assert_eq!(held.held_bytes(), empty_bytes);
}
