//! Search for entries by operation, values, study and user.

use crate::entries::{at, entry, open};
use pleach_cache::{Access, Cache, Limits, Query};
use std::fs;
use std::sync::Arc;

fn query(arguments: &[(&str, &str)]) -> Query {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Query { arguments: arguments.iter().map(pair).collect(), ..Query::default() }
}

#[test]
fn entries_are_found_by_every_condition() {
    let folder = tempfile::tempdir().unwrap();
    let cache = open(folder.path());
    for number in 0..12 {
        let user = ["alice", "bob", "carol"][number as usize % 3];
        entry(number).made_for(user, number / 6).put(&cache, false);
    }
    entry(12).put(&cache, false);
    entry(2).made_for("carol", 0).put(&cache, true);
    let found = |query: Query| {
        let mut found: Vec<u32> = cache
            .search(&query)
            .iter()
            .map(|found| found.trace.components.arguments[0].1.parse().unwrap())
            .collect();
        found.sort_unstable();
        found
    };
    let of = |value: &str| Some(value.to_owned());
    assert_eq!(found(Query::default()), (0..13).collect::<Vec<u32>>());
    assert_eq!(
        found(Query { operation: of("nuclei.candidates"), ..Query::default() }),
        [0, 2, 4, 6, 8, 10, 12]
    );
    assert_eq!(found(Query { user: of("bob"), ..Query::default() }), [1, 4, 7, 10]);
    assert_eq!(found(Query { study: of("study-1"), ..Query::default() }), [6, 7, 8, 9, 10, 11]);
    assert_eq!(found(Query { study: of("1"), user: of("alice"), ..Query::default() }), [6, 9]);
    assert_eq!(found(query(&[("G1", "5")])), [5]);
    assert_eq!(found(query(&[("G1", "5.0"), ("FillHoles", "4")])), [5], "numbers compare by value");
    assert_eq!(found(query(&[("G1", "5"), ("FillHoles", "8")])), [0_u32; 0]);
    assert_eq!(found(Query { operation: of("nuclei.none"), ..Query::default() }), [0_u32; 0]);

    // Tables are inside their traces. Entry 2 has its region as well.
    let [found] = cache.search(&query(&[("G1", "2")])).try_into().unwrap();
    let [other] = cache.search(&query(&[("G1", "4")])).try_into().unwrap();
    assert_eq!(
        (found.stored_outputs, other.stored_outputs),
        (2, 2 - usize::from(other.trace.outputs[0].region().is_none()))
    );
    assert_eq!((found.key, found.trace.seconds, found.written_seconds), (entry(2).key, 2.0 / 7.0, 1000));
    let region_bytes = entry(2).region.encode(&entry(2).digest).len() as u64;
    assert!(found.bytes > region_bytes && other.bytes > 100, "{found:?}");
}

/// Entries of a folder of format 1 are hits, and a search finds them by operation and value.
#[test]
fn entries_of_format_1_are_hits() {
    let folder = tempfile::tempdir().unwrap();
    entry(4).put(&open(folder.path()), false);
    fs::write(folder.path().join("FORMAT"), "pleach cache 1\n").unwrap();
    let limits = Limits { bytes: 1 << 30, ..Limits::default() };
    let files = Arc::new(pleach_cache::files::OsFileSystem);
    let reader = Cache::open_on(files, folder.path(), limits, Access::Read, at(1000)).unwrap();
    assert!(entry(4).is_in(&reader, false));
    let cache = open(folder.path());
    assert!(entry(4).is_in(&cache, false));
    entry(6).made_for("alice", 1).put(&cache, false);
    let all = cache.search(&Query { operation: Some("nuclei.candidates".to_owned()), ..Query::default() });
    assert_eq!(all.iter().filter(|found| found.trace.label.is_none()).count(), 1);
    assert_eq!((all.len(), cache.take_reports()), (2, vec![]));
    assert_eq!(fs::read_to_string(folder.path().join("FORMAT")).unwrap(), "pleach cache 2\n");
}
