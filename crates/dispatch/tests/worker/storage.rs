//! Eviction under memory pressure, against a selection by repeated minimum.

use crate::shapes::key;
use pleach_dispatch::storage::{Eviction, IdleRegion, select_evictions, select_replicas};
use pleach_regions::{RamRegion, RegionKey};
use proptest::collection::vec;
use proptest::prelude::*;

/// A region: its bytes, insertion, last request, and whether it can be read again.
type Case = (u64, u64, Option<u64>, bool);

/// Returns the expected evictions: always the region with the lowest last use of those that are left, as long as bytes are
/// missing.
fn expected(cases: &[Case], bytes: u64) -> Vec<Eviction> {
    let last_use = |number: usize| cases[number].1.max(cases[number].2.unwrap_or(0));
    let mut remaining: Vec<usize> = (0..cases.len()).collect();
    let (mut missing_bytes, mut evictions) = (bytes, Vec::new());
    while missing_bytes > 0
        && let Some(&oldest) = remaining.iter().min_by_key(|number| (last_use(**number), **number))
    {
        remaining.retain(|number| *number != oldest);
        let (bytes, _, _, is_readable) = cases[oldest];
        let key = key(oldest as u32);
        evictions.push(if is_readable {
            Eviction::Drop { key, bytes }
        } else {
            Eviction::Spill { key, bytes }
        });
        missing_bytes = missing_bytes.saturating_sub(bytes);
    }
    evictions
}

fn number(of: RegionKey) -> usize {
    u128::from_be_bytes(of.0) as usize
}

proptest! {
    #[test]
    fn least_recently_used_regions_leave_until_the_bytes_suffice(
        cases in vec((0u64..100, 0u64..6, prop::option::of(0u64..6), any::<bool>()), 0..12), bytes in 0u64..400,
    ) {
        let idle = |(number, case): (usize, &Case)| {
            let region = RamRegion { key: key(number as u32), bytes: case.0, since: case.1 };
            IdleRegion::new(&region, case.2)
        };
        // The order of the regions that memory lists does not matter.
        let regions: Vec<IdleRegion> = cases.iter().enumerate().rev().map(idle).collect();
        let evictions = select_evictions(regions, bytes, |key| cases[number(key)].3);
        prop_assert_eq!(evictions, expected(&cases, bytes));
    }

    #[test]
    fn replicas_leave_by_key_until_the_bytes_suffice(sizes in vec(0u64..100, 0..12), bytes in 0u64..400) {
        let replicas: Vec<RegionKey> = (0..sizes.len() as u32).rev().map(key).collect();
        let selected = select_replicas(replicas, bytes, |key| sizes[number(key)]);
        let keys: Vec<RegionKey> = (0..selected.len() as u32).map(key).collect();
        prop_assert_eq!(&selected, &keys, "the first keys");
        let freed = |count: usize| sizes[..count].iter().sum::<u64>();
        prop_assert!(freed(selected.len()) >= bytes || selected.len() == sizes.len());
        // Without the last one, the bytes do not suffice.
        prop_assert!(selected.is_empty() || freed(selected.len() - 1) < bytes);
    }
}
