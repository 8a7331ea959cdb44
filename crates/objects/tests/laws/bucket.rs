//! S3 tier: contract of tiers, sharing, capacity, and corrupt objects.

use crate::recorder::{check, steps};
use crate::regions::{AMPLE_BYTES, key, noise, region};
use crate::server::{Server, server};
use crate::serving::BUCKET;
use pleach_objects::{S3Location, S3Tier};
use pleach_storage::{Inserted, RegionLoss, Tier, TierError, TierMaintenance};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::TestRunner;
use std::sync::Arc;

fn bucket(server: &Server, prefix: &str) -> S3Location {
    let (name, endpoint) = (BUCKET.to_owned(), Some(server.endpoint.clone()));
    S3Location { name, endpoint, region: None, prefix: prefix.to_owned() }
}

fn open(server: &Server, prefix: &str, capacity_bytes: u64) -> S3Tier {
    S3Tier::open(&bucket(server, prefix), capacity_bytes).unwrap()
}

#[test]
fn the_contract_of_tiers() {
    let Some(server) = server("bucket::the_contract_of_tiers") else { return };
    let mut runner = TestRunner::deterministic();
    for (number, capacity_bytes) in [AMPLE_BYTES, 9000, 3000].into_iter().enumerate() {
        for case in 0..4 {
            let prefix = format!("contract/{number}-{case}");
            let steps = steps().new_tree(&mut runner).unwrap().current();
            check(&|| Box::new(open(&server, &prefix, capacity_bytes)), &steps);
        }
    }
}

#[test]
fn inserted_region_is_read_by_another_tier() {
    let Some(server) = server("bucket::inserted_region_is_read_by_another_tier") else { return };
    let [one, other] = [(); 2].map(|()| open(&server, "shared", AMPLE_BYTES));
    let tile = noise(1, 3_000_000);
    assert_eq!(one.insert(key(1), &tile).unwrap(), Inserted::New);
    assert_eq!(other.insert(key(1), &tile).unwrap(), Inserted::AlreadyPresent);
    assert_eq!(other.get(key(1)).unwrap(), Some(tile));
    assert_eq!((other.list().unwrap(), other.held_bytes()), (vec![key(1)], one.held_bytes()));
    // Another prefix is another tier.
    assert_eq!(open(&server, "elsewhere", AMPLE_BYTES).list().unwrap(), []);
    assert!(other.remove(key(1)).unwrap());
    assert!(!one.contains(key(1)).unwrap() && one.get(key(1)).unwrap().is_none());
    // If 8 threads insert the same region at the same time, one of them creates the object.
    let tier = &one;
    let new = std::thread::scope(|scope| {
        let threads = [(); 8].map(|()| scope.spawn(move || tier.insert(key(2), &region(2)).unwrap()));
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|done| *done == Inserted::New).count()
    });
    assert_eq!(new, 1);
    assert_eq!(one.list().unwrap(), [key(2)]);
}

#[test]
fn corrupt_object_is_quarantined() {
    let Some(server) = server("bucket::corrupt_object_is_quarantined") else { return };
    let tier = open(&server, "damage", AMPLE_BYTES);
    tier.insert(key(1), &region(1)).unwrap();
    let name = format!("{}.region", key(1));
    let object = format!("damage/a8/{name}");
    let mut bytes = server.read(&object);
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    server.write(&object, &bytes);
    let error = tier.get(key(1)).unwrap_err();
    let expected =
        format!("read region {} from s3://studies/damage/a8/{name}: decode a data region: ", key(1));
    assert!(error.to_string().starts_with(&expected), "{error}");
    let TierError::Lost { source: RegionLoss::Damaged { quarantined: Some(away), .. }, .. } = error else {
        panic!("{error}")
    };
    let away = away.strip_prefix("s3:/studies").unwrap();
    assert_eq!(server.read(away.to_str().unwrap()), bytes);
    assert_eq!(tier.get(key(1)).unwrap(), None);
    let held_bytes = tier.held_bytes();
    assert_eq!(tier.list().unwrap(), []);
    assert_eq!(tier.held_bytes(), held_bytes, "what is in quarantine takes room");
    assert_eq!(tier.insert(key(1), &region(1)).unwrap(), Inserted::New);
    assert_eq!(tier.get(key(1)).unwrap(), Some(region(1)));
    // An operator lists the quarantined object and removes it.
    let [kept] = tier.quarantine_files().unwrap().try_into().unwrap();
    assert_eq!((kept.path.ends_with(away), kept.disk_bytes), (true, bytes.len() as u64));
    let region_bytes = tier.inventory().unwrap()[0].disk_bytes;
    tier.discard(&kept).unwrap();
    assert_eq!((tier.quarantine_files().unwrap(), tier.held_bytes()), (vec![], region_bytes));
    assert_eq!(tier.list().unwrap(), [key(1)]);
    assert_eq!(tier.held_bytes(), region_bytes);
}

#[test]
fn large_regions_are_put_in_parts_and_listed() {
    let Some(server) = server("bucket::large_regions_are_put_in_parts_and_listed") else { return };
    let tier = open(&server, "large", AMPLE_BYTES);
    // Region sizes: 2 full parts and a rest, 1 full part and the bytes of the header, and less than 1 part.
    let sizes = [40_000_000, 16 << 20, 1000];
    for (number, bytes) in (0..).zip(sizes) {
        assert_eq!(tier.insert(key(number), &noise(number, bytes)).unwrap(), Inserted::New);
        assert_eq!(tier.insert(key(number), &noise(number, bytes)).unwrap(), Inserted::AlreadyPresent);
    }
    for (number, bytes) in (0..).zip(sizes) {
        assert!(tier.get(key(number)).unwrap() == Some(noise(number, bytes)), "{bytes} bytes");
    }
    let inventory = tier.inventory().unwrap();
    assert_eq!(inventory.iter().map(|region| region.disk_bytes).sum::<u64>(), tier.held_bytes());
    let hour = std::time::Duration::from_secs(3600);
    for region in &inventory {
        let bytes = u64::from(sizes[(0..3).find(|number| key(*number) == region.key).unwrap() as usize]);
        assert!((bytes..bytes + 1000).contains(&region.disk_bytes) && !region.is_packed, "{region:?}");
        assert!(region.modified.elapsed().unwrap_or_default() < hour);
    }
    assert_eq!(tier.compact(), 0);
    assert!((0..3).all(|number| tier.remove(key(number)).unwrap()));
    assert_eq!((tier.inventory().unwrap(), tier.held_bytes()), (vec![], 0));
}

#[test]
fn open_error_names_the_bucket() {
    let Some(server) = server("bucket::open_error_names_the_bucket") else { return };
    let missing = S3Location { name: "no-such-bucket".into(), ..bucket(&server, "") };
    let error = S3Tier::open(&missing, AMPLE_BYTES).unwrap_err().to_string();
    assert!(error.starts_with("list s3://no-such-bucket"), "{error}");
    let tier = Arc::new(open(&server, "full", 1000));
    let error = tier.insert(key(1), &noise(1, 2000)).unwrap_err();
    assert!(
        error.to_string().starts_with(&format!("store region {} in s3://studies/full: ", key(1))),
        "{error}"
    );
    assert_eq!((tier.held_bytes(), tier.contains(key(1)).unwrap()), (0, false));
}
