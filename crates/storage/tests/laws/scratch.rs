//! Scratch folders: no operation syncs, the next process finds every region, and a region is whole or detected as corrupt
//! after a power loss.

use crate::gate::Gate;
use crate::memory::Memory;
use crate::regions::{AMPLE_BYTES, key, noise, open, open_on, open_with, region};
use pleach_storage::files::{FileSystem, OsFileSystem};
use pleach_storage::{
    Durability, FolderKind, FolderSettings, FolderTier, Inserted, Tier, TierError, TierMaintenance,
};
use proptest::prelude::*;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const COUNT: u32 = 12;

/// Returns scratch settings that pack some of the regions.
fn scratch() -> FolderSettings {
    FolderSettings { pack_below_bytes: 2000, ..FolderSettings::new(FolderKind::Ssd, AMPLE_BYTES).scratch() }
}

fn durable() -> FolderSettings {
    FolderSettings { durability: Durability::PowerLoss, ..scratch() }
}

fn open_in(files: &Memory, settings: FolderSettings) -> FolderTier {
    FolderTier::open(Arc::new(files.clone()), Path::new(Memory::TIER), settings).unwrap()
}

fn store(tier: &FolderTier, number: u32) {
    assert_eq!(tier.insert(key(number), &region(number)).unwrap(), Inserted::New);
}

#[test]
fn scratch_folder_never_syncs() {
    let syncs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&syncs);
    let gate: Arc<dyn FileSystem> = Arc::new(Gate::new(Memory::default(), move |what, _| {
        counted.fetch_add(usize::from(what.starts_with("sync")), Ordering::Relaxed);
    }));
    for (settings, waits) in [(scratch(), false), (durable(), true)] {
        let tier = FolderTier::open(Arc::clone(&gate), Path::new(Memory::TIER), settings).unwrap();
        assert_eq!(tier.durability(), settings.durability);
        let opened = syncs.load(Ordering::Relaxed);
        (0..COUNT).for_each(|number| store(&tier, number));
        tier.insert(key(99), &noise(99, 50_000)).unwrap();
        (0..COUNT).step_by(2).for_each(|number| assert!(tier.remove(key(number)).unwrap()));
        tier.compact();
        assert_eq!(syncs.load(Ordering::Relaxed) > opened, waits, "{settings:?}");
    }
}

#[test]
fn the_next_process_finds_everything() {
    let folder = tempfile::tempdir().unwrap();
    let open_it = || open_with(folder.path(), scratch());
    let tier = open_it();
    (0..COUNT).for_each(|number| store(&tier, number));
    assert!(tier.remove(key(3)).unwrap());
    let held_bytes = tier.held_bytes();
    drop(tier);
    let tier = open_it();
    assert_eq!((tier.list().unwrap().len() as u32, tier.held_bytes()), (COUNT - 1, held_bytes));
    for number in 0..COUNT {
        assert_eq!(tier.get(key(number)).unwrap(), (number != 3).then(|| region(number)));
    }
}

#[test]
fn scratch_folder_is_emptied_before_durable_use() {
    let folder = tempfile::tempdir().unwrap();
    let found = || FolderTier::durability_of(&OsFileSystem, folder.path()).unwrap();
    assert_eq!(found(), None);
    let empty_bytes = open(folder.path(), FolderKind::Ssd).held_bytes();
    assert_eq!(found(), Some(Durability::PowerLoss));
    let tier = open_with(folder.path(), scratch());
    (0..COUNT).for_each(|number| store(&tier, number));
    drop(tier);
    assert_eq!(found(), Some(Durability::Process));
    let error = open_on(Arc::new(OsFileSystem), folder.path(), FolderKind::Lustre).unwrap_err();
    assert!(matches!(error, TierError::Scratch { .. }), "{error}");
    let tier = open_with(folder.path(), durable());
    assert_eq!((tier.list().unwrap(), tier.held_bytes()), (vec![], empty_bytes));
    tier.insert(key(1), &region(1)).unwrap();
    drop(tier);
    // A durable folder keeps its regions when it is opened as scratch.
    let tier = open_with(folder.path(), scratch());
    assert_eq!(tier.list().unwrap(), [key(1)]);
    drop(tier);
    // A shared folder is durable even if scratch is requested.
    let place = tempfile::tempdir().unwrap();
    let settings = FolderSettings::new(FolderKind::Lustre, AMPLE_BYTES).scratch();
    let tier = open_with(place.path(), settings);
    assert_eq!(tier.durability(), Durability::PowerLoss);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// After a power loss, a scratch folder returns only regions with their content, and can be used. Opened as durable, it
    /// is empty.
    #[test]
    fn power_loss_in_scratch_is_detected(
        removed in prop::collection::btree_set(0..COUNT, 0..5), place: prop::sample::Index,
        seeds in prop::collection::vec(any::<u32>(), 1..40),
    ) {
        let files = Memory::default();
        let tier = open_in(&files, scratch());
        let opened = files.changes();
        for number in 0..COUNT {
            tier.insert(key(number), &region(number)).unwrap();
            if removed.contains(&number) {
                tier.remove(key(number)).unwrap();
            }
        }
        let changes = opened + place.index(files.changes() - opened + 1);
        let fates = || {
            let mut seeds = seeds.clone().into_iter().cycle();
            move || seeds.next().unwrap()
        };
        let tier = open_in(&files.after_power_loss(changes, fates()), scratch());
        for number in 0..COUNT {
            match tier.get(key(number)) {
                Ok(found) => prop_assert!(found.is_none_or(|found| found == region(number))),
                Err(TierError::Lost { .. }) => {
                    prop_assert_eq!(tier.get(key(number)).unwrap(), None);
                    prop_assert_eq!(tier.insert(key(number), &region(number)).unwrap(), Inserted::New);
                }
                Err(error) => panic!("{error}"),
            }
        }
        let tier = open_in(&files.after_power_loss(changes, fates()), durable());
        prop_assert_eq!(tier.list().unwrap(), vec![]);
        tier.insert(key(1), &region(1)).unwrap();
        prop_assert_eq!(tier.get(key(1)).unwrap(), Some(region(1)));
    }
}
