//! Tests of the cache: forms of a region, eviction order, byte counts.

use super::entry::Attempt;
use super::*;
use crate::EncodedRegion;
use crate::Raster;
use proptest::prelude::*;

fn region(value: u8, bytes: u32) -> CachedRegion {
    let mut identity = [value; 32];
    identity[1] = 0;
    let region = Arc::new(DataRegion::Mask(Raster::filled(bytes, 1, 1, value).unwrap()));
    CachedRegion { identity: RegionIdentity(identity), region }
}

fn key(value: u8) -> TaskKey {
    TaskKey([value; 32])
}

#[test]
fn equal_regions_of_two_tasks_are_one() {
    let mut shelf = ResultCache::default();
    let first = shelf.insert(key(1), key(0), None, vec![Some(region(7, 10))], 1.0);
    let second = shelf.insert(key(2), key(0), None, vec![Some(region(7, 10))], 1.0);
    let (first, second) = (first[0].clone().unwrap(), second[0].clone().unwrap());
    assert!(Arc::ptr_eq(&first.0.region, &second.0.region));
    assert_eq!((first.1, second.1), (RefState::First, RefState::Further));
    assert_eq!(shelf.release(&first.0.identity), RefState::Further);
    assert_eq!(shelf.idle_bytes(), 0);
    assert_eq!(shelf.release(&first.0.identity), RefState::First);
    assert_eq!((shelf.idle_bytes(), shelf.len()), (10, 1));
}

#[test]
fn task_is_acquired_only_with_all_requested_outputs() {
    let mut shelf = ResultCache::default();
    assert!(shelf.acquire(&key(1), &[true]).is_none());
    shelf.insert(key(1), key(0), None, vec![Some(region(1, 5)), None], 1.0);
    assert!(shelf.acquire(&key(1), &[true, true]).is_none());
    let (found, origin) = shelf.acquire(&key(1), &[true, false]).unwrap();
    assert_eq!(origin, key(0));
    assert!(found[0].is_some() && found[1].is_none());
    shelf.release(&region(1, 5).identity);
    shelf.release(&region(1, 5).identity);
    shelf.shrink_to(4);
    assert!(shelf.is_empty());
    assert!(shelf.acquire(&key(1), &[true, false]).is_none());
}

#[test]
fn cheapest_result_is_evicted_first_and_values_age() {
    let mut shelf = ResultCache::default();
    for (value, seconds) in [(1, 9.0), (2, 1.0), (3, 5.0)] {
        shelf.insert(key(value), key(0), None, vec![Some(region(value, 10))], seconds);
        shelf.release(&region(value, 10).identity);
    }
    shelf.shrink_to(20);
    assert!(shelf.acquire(&key(2), &[true]).is_none());
    // A region inserted after evictions is worth its saved time plus the value of the last evicted one.
    for value in 4..20 {
        shelf.insert(key(value), key(0), None, vec![Some(region(value, 10))], 2.0);
        shelf.release(&region(value, 10).identity);
        shelf.shrink_to(20);
    }
    assert!(shelf.acquire(&key(1), &[true]).is_none());
}

#[test]
fn invalidated_region_drops_its_derived_results() {
    let mut shelf = ResultCache::default();
    let source = RegionKey([1; 16]);
    for value in [1, 2] {
        shelf.insert(key(value), key(0), Some(source), vec![Some(region(value, 10))], 1.0);
    }
    shelf.insert(key(3), key(0), None, vec![Some(region(3, 10))], 1.0);
    shelf.release(&region(1, 10).identity);
    shelf.release(&region(3, 10).identity);
    shelf.invalidate(&source);
    assert_eq!((shelf.idle_bytes(), shelf.len()), (10, 2));
    shelf.release(&region(2, 10).identity);
    assert_eq!((shelf.idle_bytes(), shelf.len()), (10, 1));
}

/// Masks of background are equal on all tiles.
#[test]
fn equal_result_of_two_sources_outlives_the_first() {
    let (first, second) = (RegionKey([1; 16]), RegionKey([2; 16]));
    let insert = |shelf: &mut ResultCache, task: u8, source: RegionKey| {
        shelf.insert(key(task), key(0), Some(source), vec![Some(region(7, 10))], 1.0);
    };
    // The first source is gone before its region has left, and the second has it since: in use, or idle.
    for is_idle in [false, true] {
        let mut shelf = ResultCache::default();
        insert(&mut shelf, 1, first);
        if is_idle {
            insert(&mut shelf, 2, second);
            (0..2).for_each(|_| _ = shelf.release(&region(7, 10).identity));
            shelf.invalidate(&first);
        } else {
            shelf.invalidate(&first);
            insert(&mut shelf, 2, second);
            (0..2).for_each(|_| _ = shelf.release(&region(7, 10).identity));
        }
        assert!(shelf.acquire(&key(1), &[true]).is_none(), "its source is gone");
        assert_eq!(shelf.tasks_of(&second).collect::<Vec<_>>(), [&key(2)]);
        assert!(shelf.acquire(&key(2), &[true]).is_some());
        shelf.release(&region(7, 10).identity);
        shelf.invalidate(&second);
        assert!(shelf.is_empty() && shelf.tasks.is_empty() && shelf.by_source.is_empty());
    }
}

/// A region of `size` times 8 KiB, which can be encoded unless `size` is 6.
fn large(size: u8) -> CachedRegion {
    let small = region(size, u32::from(size) * 8192);
    let mut noise = u64::from(size);
    let mut data = vec![size; 6 * 8192];
    data.iter_mut().for_each(|byte| {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        *byte = (noise >> 56) as u8;
    });
    match size {
        6 => CachedRegion {
            region: Arc::new(DataRegion::Gray8(Raster::new(6 * 8192, 1, 1, data).unwrap())),
            ..small
        },
        _ => small,
    }
}

fn encode_all(shelf: &mut ResultCache) {
    for done in shelf.start_encoding(0, u64::MAX) {
        shelf.finish_encoding(&done, EncodedRegion::new(&done.region));
    }
}

#[test]
fn encoded_region_counts_less_and_is_found_until_it_is_evicted() {
    let mut shelf = ResultCache::default();
    let given = large(2);
    shelf.insert(key(1), key(0), None, vec![Some(given.clone())], 1.0);
    shelf.release(&given.identity);
    assert_eq!((shelf.idle_bytes(), shelf.reducible_bytes()), (16_384, 16_384));
    encode_all(&mut shelf);
    let encoded_bytes = shelf.encoded_bytes();
    assert!(encoded_bytes < 1_000 && shelf.idle_bytes() == encoded_bytes, "{encoded_bytes}");
    // A reader decodes the region and inserts it. It keeps its encoded form.
    assert!(shelf.acquire(&key(1), &[true]).is_none());
    let Some(CachedForm::Encoded(encoded)) = shelf.form(&given.identity) else { panic!("not encoded") };
    assert_eq!(encoded.decode().as_ref(), Ok(&*given.region));
    shelf.insert(key(1), key(0), None, vec![Some(given.clone())], 0.0);
    assert!(shelf.acquire(&key(1), &[true]).is_some());
    assert_eq!(shelf.idle_bytes(), encoded_bytes);
    assert_eq!(shelf.release(&given.identity), RefState::Further);
    assert_eq!(shelf.release(&given.identity), RefState::First);
    assert_eq!(shelf.idle_bytes(), 16_384 + encoded_bytes);
    assert!(shelf.start_encoding(0, u64::MAX).is_empty(), "it is encoded already");
    assert_eq!(shelf.idle_bytes(), encoded_bytes);
    let evicted = shelf.shrink_to(encoded_bytes - 1);
    assert_eq!(evicted[0].form.region(), Some(given.region));
    assert!(shelf.is_empty() && shelf.idle_bytes() == 0);
}

#[test]
fn shrinking_drops_second_forms_before_it_evicts() {
    let mut shelf = ResultCache::default();
    for value in [1, 2] {
        shelf.insert(key(value), key(0), None, vec![Some(large(value))], 1.0);
        shelf.release(&large(value).identity);
    }
    encode_all(&mut shelf);
    let both = shelf.encoded_bytes();
    for value in [1, 2] {
        shelf.insert(key(value), key(0), None, vec![Some(large(value))], 1.0);
    }
    shelf.release(&large(1).identity);
    assert!(shelf.shrink_to(both).is_empty());
    assert_eq!((shelf.len(), shelf.idle_bytes()), (2, both));
    // Only the region in use is left, without its encoded form.
    assert_eq!(shelf.shrink_to(0).len(), 1);
    assert_eq!((shelf.len(), shelf.idle_bytes()), (1, 0));
    assert!(shelf.acquire(&key(2), &[true]).is_some());
}

#[test]
fn only_regions_that_take_longer_than_decoding_are_encoded_and_once() {
    let mut shelf = ResultCache::default();
    for (value, seconds) in [(1, 1e-9), (2, 1.0), (6, 1.0)] {
        shelf.insert(key(value), key(0), None, vec![Some(large(value))], seconds);
        shelf.release(&large(value).identity);
    }
    let first = shelf.start_encoding(0, 16_384);
    assert_eq!(first.iter().map(|one| one.identity.0[0]).collect::<Vec<_>>(), [2]);
    assert!(shelf.start_encoding(0, 16_384).is_empty(), "one is being encoded");
    shelf.finish_encoding(&first[0], EncodedRegion::new(&first[0].region));
    encode_all(&mut shelf);
    assert!(shelf.start_encoding(0, u64::MAX).is_empty(), "the last one does not shrink");
    assert_eq!(shelf.idle_bytes(), 7 * 8192 + shelf.encoded_bytes());
}

#[test]
fn region_used_while_it_is_encoded_stays_decoded() {
    let mut shelf = ResultCache::default();
    shelf.insert(key(1), key(0), None, vec![Some(large(1))], 1.0);
    shelf.release(&large(1).identity);
    let started = shelf.start_encoding(0, u64::MAX);
    assert!(shelf.acquire(&key(1), &[true]).is_some());
    shelf.finish_encoding(&started[0], EncodedRegion::new(&started[0].region));
    assert_eq!((shelf.encoded_bytes(), shelf.idle_bytes()), (0, 0));
    shelf.release(&large(1).identity);
    encode_all(&mut shelf);
    assert!(shelf.encoded_bytes() > 0);
}

proptest! {
    /// Byte counts equal a recount in all forms, held regions are decoded and never evicted, and keys lead to their regions.
    #[test]
    fn byte_counts_equal_a_recount(steps in prop::collection::vec((0u8..8, 0u8..8, 1u8..7, 0u64..60), 1..200)) {
        let mut shelf = ResultCache::default();
        let (mut held, mut started) = (Vec::new(), Vec::new());
        for (step, task, value, bytes) in steps {
            let bytes = bytes * 1024;
            match step {
                0 => {
                    let outputs = vec![Some(large(value)), None];
                    let source = Some(RegionKey([task % 3; 16]));
                    let put = shelf.insert(key(task), key(0), source, outputs, f64::from(task));
                    held.push(put[0].as_ref().unwrap().0.identity);
                }
                1 => {
                    if let Some((found, _)) = shelf.acquire(&key(task), &[true, false]) {
                        let (shelved, _) = found[0].clone().unwrap();
                        prop_assert_eq!(shelved.region, large(shelved.identity.0[0]).region);
                        held.push(shelved.identity);
                    }
                }
                2 => {
                    if let Some(identity) = held.pop() {
                        let others = held.contains(&identity);
                        prop_assert_eq!(shelf.release(&identity) == RefState::Further, others);
                    }
                }
                3 => {
                    let source = RegionKey([task % 3; 16]);
                    shelf.invalidate(&source);
                    prop_assert!(!shelf.by_source.contains_key(&source));
                }
                4 => {
                    started.extend(shelf.start_encoding(bytes, 200_000));
                    prop_assert!(shelf.encoding_bytes <= 200_000);
                }
                5 => {
                    if let Some(done) = started.pop() {
                        shelf.finish_encoding(&done, EncodedRegion::new(&done.region));
                    }
                }
                _ => {
                    let evicted = shelf.shrink_to(bytes);
                    prop_assert!(shelf.idle_bytes() <= bytes);
                    for result in evicted {
                        prop_assert_eq!(result.form.region(), Some(large(result.identity.0[0]).region));
                    }
                }
            }
            recount(&shelf)?;
            prop_assert_eq!(shelf.encoding_bytes, started.iter().map(|one| one.region.bytes()).sum::<u64>());
            prop_assert!(held.iter().all(|identity| shelf.regions[identity].decoded.is_some()));
            for Outputs { identities, .. } in shelf.tasks.values() {
                prop_assert!(identities.iter().any(Option::is_some));
                prop_assert!(identities.iter().flatten().all(|identity| shelf.regions.contains_key(identity)));
            }
        }
        // Without users, everything can be evicted.
        held.iter().for_each(|identity| _ = shelf.release(identity));
        shelf.shrink_to(0);
        prop_assert!(shelf.is_empty() && shelf.tasks.is_empty());
    }
}

fn recount(shelf: &ResultCache) -> Result<(), TestCaseError> {
    let (mut idle_bytes, mut encoded_bytes, mut reducible_bytes) = (0, 0, 0);
    for entry in shelf.regions.values() {
        prop_assert!(entry.form().is_some());
        let encoded = entry.encoded.as_ref().map_or(0, |encoded| encoded.bytes());
        let decoded = entry.decoded.as_ref().map_or(0, |region| region.bytes());
        encoded_bytes += encoded;
        idle_bytes += encoded;
        if entry.holders == 0 {
            idle_bytes += decoded;
            let waits = entry.attempt == Attempt::None && entry.seconds > 0.0;
            if encoded > 0 || waits {
                reducible_bytes += decoded;
            }
        }
    }
    prop_assert_eq!(shelf.idle_bytes(), idle_bytes);
    prop_assert_eq!(shelf.encoded_bytes(), encoded_bytes);
    prop_assert_eq!(shelf.reducible_bytes(), reducible_bytes);
    Ok(())
}
