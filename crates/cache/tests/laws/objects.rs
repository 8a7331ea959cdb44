//! Task cache in object storage, on objects in memory: sharing, verification, quotas, and storage that fails.

use crate::entries::{at, entry};
use pleach_cache::{
    Access, Cache, CacheError, CacheWarning, InsertOutcome, Limits, ObjectInfo, Objects, Query,
};
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

/// Objects in memory, with the number of requests.
#[derive(Debug, Default)]
struct Memory(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<String, (Vec<u8>, u64)>,
    requests: u64,
    /// Numbers the objects in the order of their creation, as times.
    clock: u64,
    is_lost: bool,
    is_read_only: bool,
    /// The next read finds nothing, as if another process wrote right after it.
    is_late: bool,
}

impl Memory {
    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap())
    }

    fn request(&self) -> io::Result<std::sync::MutexGuard<'_, State>> {
        let mut state = self.0.lock().unwrap();
        state.requests += 1;
        if state.is_lost { Err(io::Error::other("no route to host")) } else { Ok(state) }
    }

    fn bytes(&self) -> u64 {
        self.with(|state| state.objects.values().map(|(bytes, _)| bytes.len() as u64).sum())
    }
}

impl Objects for Memory {
    fn list(&self) -> io::Result<Vec<ObjectInfo>> {
        let state = self.request()?;
        let info = |(name, (bytes, time)): (&String, &(Vec<u8>, u64))| ObjectInfo {
            name: name.clone(),
            bytes: bytes.len() as u64,
            written_seconds: *time,
        };
        Ok(state.objects.iter().map(info).collect())
    }

    fn get(&self, names: &[String]) -> io::Result<Vec<Option<Vec<u8>>>> {
        let mut state = self.request()?;
        if std::mem::take(&mut state.is_late) {
            return Ok(vec![None; names.len()]);
        }
        Ok(names.iter().map(|name| state.objects.get(name).map(|(bytes, _)| bytes.clone())).collect())
    }

    fn put(&self, objects: Vec<(String, Vec<u8>)>) -> io::Result<()> {
        let mut state = self.request()?;
        if state.is_read_only {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        for (name, bytes) in objects {
            state.clock += 1;
            let time = state.clock;
            state.objects.entry(name).or_insert((bytes, time));
        }
        Ok(())
    }

    fn remove(&self, names: &[String]) -> io::Result<()> {
        let mut state = self.request()?;
        names.iter().for_each(|name| drop(state.objects.remove(name)));
        Ok(())
    }
}

fn open_with(store: &Arc<Memory>, limits: Limits, access: Access) -> Result<Cache, CacheError> {
    let store = Arc::clone(store) as Arc<dyn Objects>;
    Cache::open_objects(store, "s3://studies/cache", limits, access, at(1000))
}

fn open(store: &Arc<Memory>) -> Cache {
    open_with(store, Limits { bytes: 1 << 30, ..Limits::default() }, Access::Write).unwrap()
}

/// Stores regions and traces.
fn put_both(cache: &Cache, numbers: std::ops::Range<u32>) {
    for number in numbers {
        entry(number).put(cache, true);
        entry(number).put(cache, false);
    }
}

#[test]
fn entries_serve_other_processes_without_a_request_for_each_lookup() {
    let store: Arc<Memory> = Arc::default();
    let (one, other) = (open(&store), open(&store));
    for number in 0..50 {
        assert_eq!(entry(number).made_for("alice", 7).put(&one, true), InsertOutcome::New);
        assert_eq!(entry(number).made_for("alice", 7).put(&one, false), InsertOutcome::New);
    }
    one.flush();
    assert!(!entry(3).made_for("alice", 7).is_in(&other, false));
    other.refresh(at(1000));
    let before = store.with(|state| state.requests);
    assert!((0..50).all(|number| entry(number).made_for("alice", 7).is_in(&other, false)));
    assert_eq!(store.with(|state| state.requests), before, "lookups of traces send no request");
    assert!((0..50).all(|number| entry(number).made_for("alice", 7).is_in(&other, true)));
    assert_eq!(store.with(|state| state.requests), before + 50);
    // Stored entries are known, and a search finds them.
    assert_eq!(entry(3).put(&other, false), InsertOutcome::Known);
    assert_eq!(entry(3).put(&other, true), InsertOutcome::Known);
    let of_user = Query { user: Some("alice".to_owned()), ..Query::default() };
    assert_eq!(other.search(&of_user).len(), 50);
    assert_eq!(other.users().len(), 1);
    let statistics = other.statistics();
    assert_eq!((statistics.traces, statistics.blobs, statistics.segments), (50, 50, 1));
    assert_eq!((other.take_reports(), one.take_reports()), (vec![], vec![]));
    // The rest is uploaded when a cache ends.
    entry(60).put(&other, false);
    drop(other);
    assert!(entry(60).is_in(&open(&store), false));
}

/// Workers start at once, and one of them creates the cache between the requests of another.
#[test]
fn cache_may_be_created_by_two_processes_at_once() {
    let store: Arc<Memory> = Arc::default();
    drop(open(&store));
    store.with(|state| state.is_late = true);
    let cache = open(&store);
    assert_eq!(entry(1).put(&cache, false), InsertOutcome::New);
    assert_eq!(cache.take_reports(), []);
}

#[test]
fn corrupt_objects_are_misses() {
    let store: Arc<Memory> = Arc::default();
    let cache = open(&store);
    put_both(&cache, 0..20);
    drop(cache);
    store.with(|state| {
        for (name, (bytes, _)) in &mut state.objects {
            // The end of the bundle, and one region.
            let is_one = name.ends_with(&entry(4).digest.to_string());
            if is_one || name.starts_with("traces/") {
                *bytes.last_mut().unwrap() ^= 1;
            }
        }
    });
    let cache = open(&store);
    let intact = (0..20).filter(|number| entry(*number).is_in(&cache, false)).count();
    assert_eq!(intact, 19, "all records before the corrupt one are read");
    assert!(!entry(4).is_in(&cache, true) && entry(5).is_in(&cache, true));
    let reports: Vec<String> = cache.take_reports().iter().map(CacheWarning::to_string).collect();
    assert_eq!(reports.len(), 2, "{reports:?}");
    assert!(reports[0].ends_with("corrupt, its traces are read up to there"), "{reports:?}");
    assert!(reports[1].ends_with("corrupt region removed"), "{reports:?}");
    assert_eq!(cache.statistics().corrupt, 2);
    assert_eq!(entry(4).put(&cache, true), InsertOutcome::New);
    drop(cache);
    assert!(entry(4).is_in(&open(&store), true));
}

#[test]
fn lost_storage_is_reported_once_and_used_again_after_a_refresh() {
    let store: Arc<Memory> = Arc::default();
    let cache = open(&store);
    put_both(&cache, 0..10);
    cache.flush();
    store.with(|state| state.is_lost = true);
    assert!(!entry(1).is_in(&cache, true));
    let requests = store.with(|state| state.requests);
    // Traces are in memory. Regions are missing without further requests, and nothing is stored.
    for number in 0..10 {
        assert!(entry(number).is_in(&cache, false) && !entry(number).is_in(&cache, true));
        assert!(!cache.contains_region(&entry(number).digest));
        assert_eq!(entry(number + 100).put(&cache, true), InsertOutcome::Not);
    }
    cache.flush();
    assert_eq!(store.with(|state| state.requests), requests);
    let reports: Vec<String> = cache.take_reports().iter().map(CacheWarning::to_string).collect();
    assert_eq!(reports, ["the cache is not used until the next study: no route to host"]);
    store.with(|state| state.is_lost = false);
    cache.refresh(at(2000));
    assert!(entry(1).is_in(&cache, true));
    assert_eq!(entry(100).put(&cache, true), InsertOutcome::New);
    assert_eq!(cache.take_reports(), []);
    store.with(|state| state.is_lost = true);
    assert!(matches!(open_with(&store, Limits::default(), Access::Read), Err(CacheError::Io { .. })));
}

#[test]
fn quota_evicts_the_oldest_objects_of_its_user() {
    let store: Arc<Memory> = Arc::default();
    const QUOTA_BYTES: u64 = 30_000;
    let limits = Limits { bytes: 1 << 30, age: None, user_bytes: Some(QUOTA_BYTES) };
    let cache = open_with(&store, limits, Access::Write).unwrap();
    for number in 0..15 {
        entry(number).made_for("bob", 1).put(&cache, true);
    }
    for number in 100..200 {
        entry(number).made_for("alice", 1).put(&cache, true);
        cache.flush();
    }
    let of = |numbers: std::ops::Range<u32>| {
        numbers.filter(|number| cache.contains_region(&entry(*number).digest)).count()
    };
    assert_eq!((of(0..15), of(195..200), of(100..150)), (15, 5, 0));
    let reached = CacheWarning::QuotaReached { user: "alice".to_owned(), quota_bytes: QUOTA_BYTES };
    assert_eq!(cache.take_reports(), [reached]);
    assert!(cache.statistics().quota_evicted_bytes > 0);
    assert!(store.bytes() < 2 * QUOTA_BYTES);
    // The limit of the location holds for all users together.
    let limits = Limits { bytes: 10_000, ..Limits::default() };
    let small = open_with(&store, limits, Access::Write).unwrap();
    entry(300).put(&small, true);
    small.flush();
    assert!(store.bytes() <= 10_000 && small.contains_region(&entry(300).digest));
}

#[test]
fn other_content_and_versions_are_refused_and_read_only_locations_read() {
    let store: Arc<Memory> = Arc::default();
    store.put(vec![("thesis.txt".to_owned(), vec![1])]).unwrap();
    let limits = Limits { bytes: 1 << 30, ..Limits::default() };
    let text = |opened: Result<Cache, CacheError>| opened.unwrap_err().to_string();
    let error = text(open_with(&store, limits, Access::Write));
    assert!(
        error.starts_with("open the cache s3://studies/cache: the folder contains other files"),
        "{error}"
    );
    store.put(vec![("FORMAT".to_owned(), b"pleach cache 9 in objects\n".to_vec())]).unwrap();
    let error = text(open_with(&store, limits, Access::Read));
    assert!(
        error.contains("FORMAT is \"pleach cache 9 in objects\"; \"pleach cache 2 in objects\""),
        "{error}"
    );

    let store: Arc<Memory> = Arc::default();
    store.with(|state| state.is_read_only = true);
    let cache = open(&store);
    assert!(matches!(&cache.take_reports()[..], [CacheWarning::NotWritable { .. }]));
    assert_eq!(entry(1).put(&cache, false), InsertOutcome::Not);
    // An empty location is read as an empty cache.
    let reader = open_with(&store, limits, Access::Read).unwrap();
    assert_eq!((reader.statistics().traces, reader.take_reports()), (0, vec![]));
}
