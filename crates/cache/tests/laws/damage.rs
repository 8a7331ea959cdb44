//! Corrupt caches: after any change of bytes, the cache returns only right entries, and reports corrupt ones.

use crate::entries::{AMPLE, at, entry, open};
use pleach_cache::{Cache, CacheWarning};
use proptest::prelude::*;
use std::fs;
use std::path::PathBuf;

/// Creates a folder with the traces and regions of the numbers below `count`.
fn filled(count: u32) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path());
    for number in 0..count {
        entry(number).put(&cache, false);
        entry(number).put(&cache, true);
    }
    folder
}

fn files(folder: &tempfile::TempDir) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// Returns the path of the only segment, whose name sorts first.
fn segment(folder: &tempfile::TempDir) -> PathBuf {
    let path = files(folder).remove(0);
    assert_eq!(path.file_name().unwrap(), "000000000001.segment");
    path
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn changed_bytes_never_give_wrong_results(
        changes in prop::collection::vec((0..3_usize, any::<prop::sample::Index>(), 1..=255_u8), 1..4),
    ) {
        const COUNT: u32 = 6;
        let folder = filled(COUNT);
        let mut marker_changed = false;
        for (file, place, change) in &changes {
            let path = &files(&folder)[*file];
            marker_changed |= path.ends_with("FORMAT");
            let mut bytes = fs::read(path).unwrap();
            let place = place.index(bytes.len());
            bytes[place] ^= change;
            fs::write(path, bytes).unwrap();
        }
        let cache = match Cache::open(folder.path(), AMPLE, at(2000)) {
            Ok(cache) => cache,
            Err(error) => {
                prop_assert!(marker_changed, "{error}");
                return Ok(());
            }
        };
        let all = || (0..COUNT).flat_map(|number| [(entry(number), false), (entry(number), true)]);
        let missing = all().filter(|(entry, blob)| !entry.is_in(&cache, *blob)).count();
        // A changed state byte buries its record without a warning. The cache detects every other change.
        let damaged = cache.statistics().corrupt as usize;
        prop_assert!(missing <= changes.len() || damaged > 0);
        prop_assert_eq!(cache.take_reports().len(), damaged);

        // Lost entries can be stored again, and stay.
        all().for_each(|(entry, blob)| { entry.put(&cache, blob); });
        prop_assert!(all().all(|(entry, blob)| entry.is_in(&cache, blob)));
        drop(cache);
        let cache = open(folder.path());
        prop_assert!(all().all(|(entry, blob)| entry.is_in(&cache, blob)));
        prop_assert_eq!((cache.statistics().corrupt, cache.take_reports()), (0, vec![]));
    }

    #[test]
    fn a_segment_of_any_bytes_is_harmless(bytes in prop::collection::vec(any::<u8>(), 0..500), keep in 0..200_usize) {
        let folder = filled(2);
        let path = segment(&folder);
        let mut content = fs::read(&path).unwrap();
        content.truncate(keep);
        content.extend(bytes);
        fs::write(&path, content).unwrap();
        let cache = open(folder.path());
        for number in 0..2 {
            entry(number).is_in(&cache, false);
            entry(number).is_in(&cache, true);
        }
    }
}

#[test]
fn warning_names_segment_and_offset_of_a_corrupt_entry() {
    let folder = filled(1);
    let path = segment(&folder);
    // The last byte belongs to the region.
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, &bytes).unwrap();
    let cache = open(folder.path());
    assert!(entry(0).is_in(&cache, false));
    assert!(!entry(0).is_in(&cache, true));
    let offset = bytes.len() - entry(0).region.encode(&entry(0).digest).len() - 88;
    let expected = format!("000000000001.segment: corrupt record at byte {offset} dropped");
    assert_eq!(cache.take_reports().iter().map(CacheWarning::to_string).collect::<Vec<_>>(), [expected]);
    // The cache reports the entry only once, since it has buried it.
    drop(cache);
    let cache = open(folder.path());
    assert!(!entry(0).is_in(&cache, true));
    assert_eq!(cache.statistics().corrupt, 0);
    drop(cache);

    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    let cache = open(folder.path());
    let expected = format!(
        "000000000001.segment: truncated to {offset} bytes; {} bytes of incomplete records dropped",
        bytes.len() - 1 - offset
    );
    assert_eq!(cache.take_reports().iter().map(CacheWarning::to_string).collect::<Vec<_>>(), [expected]);
    assert_eq!(fs::metadata(&path).unwrap().len(), offset as u64);
}
