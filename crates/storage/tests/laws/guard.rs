//! A guarded tier answers within its time limit, whatever its medium does, and leaves a medium that fails alone.

use crate::gate::Gate;
use crate::hanging::Door;
use crate::memory::Memory;
use crate::regions::{AMPLE_BYTES, key, noise};
use pleach_regions::MemoryCounter;
use pleach_storage::files::{FileSystem, OsFileSystem};
use pleach_storage::{
    Availability, BoundedRam, EvictionPolicy, FolderKind, FolderSettings, FolderTier, GuardTimes,
    GuardedTier, LevelId, RetentionValue, Tier, TierError, TierLevel, TierLocation, TierStack, WriteMode,
};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Short times, so that the tests take seconds.
const TIMES: GuardTimes = GuardTimes {
    limit: Duration::from_millis(100),
    bytes_per_second: u64::MAX,
    first_pause: Duration::from_millis(50),
    max_pause: Duration::from_millis(100),
};

/// A guarded shared folder behind a door.
struct Guarded {
    tier: Arc<GuardedTier>,
    /// The same folder without a guard.
    within: Arc<FolderTier>,
    door: Arc<Door>,
    /// Calls of the file system.
    calls: Arc<AtomicU32>,
    changes: Arc<Mutex<Vec<Availability>>>,
}

fn guarded(times: GuardTimes) -> Guarded {
    let (door, calls) = (Arc::<Door>::default(), Arc::<AtomicU32>::default());
    let (of_gate, counted) = (Arc::clone(&door), Arc::clone(&calls));
    let files: Arc<dyn FileSystem> = Arc::new(Gate::new(Memory::default(), move |_, _| {
        counted.fetch_add(1, Ordering::SeqCst);
        of_gate.pass();
    }));
    let path = Path::new(Memory::TIER).join("lustre");
    files.create_folder(&path).unwrap();
    let settings = FolderSettings::new(FolderKind::Lustre, AMPLE_BYTES);
    let within = Arc::new(FolderTier::open(files, &path, settings).unwrap());
    let changes = Arc::<Mutex<Vec<Availability>>>::default();
    let listed = Arc::clone(&changes);
    let listener = move |change: &Availability| listed.lock().unwrap().push(change.clone());
    let place = TierLocation::Folder(PathBuf::from("/lustre"));
    let tier = Arc::new(GuardedTier::new(Arc::clone(&within) as Arc<dyn Tier>, place, times, listener));
    Guarded { tier, within, door, calls, changes }
}

fn guard(files: Arc<dyn FileSystem>, path: &Path) -> GuardedTier {
    let settings = FolderSettings::new(FolderKind::Lustre, AMPLE_BYTES);
    let tier = FolderTier::open(files, path, settings).unwrap();
    GuardedTier::new(Arc::new(tier), TierLocation::Folder(path.to_owned()), TIMES, |_| {})
}

fn is_unavailable<T: std::fmt::Debug>(result: Result<T, TierError>) -> bool {
    matches!(result, Err(TierError::Unavailable { .. }))
}

/// Polls until a condition holds.
fn wait_until(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "the condition does not hold");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

#[test]
fn hanging_tier_is_left_alone_until_it_answers() {
    let Guarded { tier, within, door, calls, changes } = guarded(TIMES);
    tier.insert(key(1), &noise(1, 500)).unwrap();
    assert!(tier.is_available());
    door.set(true);
    assert!(is_unavailable(tier.insert(key(2), &noise(2, 500))));
    assert!(!tier.is_available());
    let reached = calls.load(Ordering::SeqCst);
    // All calls within the pause return without the tier.
    let patient = GuardTimes { first_pause: Duration::from_secs(3600), ..TIMES };
    let other = guarded(patient);
    other.door.set(true);
    assert!(is_unavailable(other.tier.get(key(1))));
    let before = other.calls.load(Ordering::SeqCst);
    for number in 0..100 {
        assert!(is_unavailable(other.tier.insert(key(number), &noise(1, 500))));
        assert!(is_unavailable(other.tier.contains(key(number))));
        assert!(is_unavailable(other.tier.remove(key(number))));
        assert_eq!(other.tier.free_bytes(), 0);
    }
    assert_eq!(other.calls.load(Ordering::SeqCst), before);
    other.door.set(false);
    // The guard tries the first tier by itself, which hangs again, and answers once the door is open.
    wait_until(|| calls.load(Ordering::SeqCst) > reached);
    assert!(!tier.is_available());
    door.set(false);
    wait_until(|| tier.is_available());
    assert!(tier.contains(key(1)).unwrap() && tier.free_bytes() > 0);
    // The insertion that was given up is undone, whenever it ended.
    wait_until(|| within.list().unwrap() == [key(1)]);
    let changes = changes.lock().unwrap();
    let cause = "no answer within 0.1 s".to_owned();
    assert_eq!(changes[0], Availability::Unavailable { cause });
    assert!(
        matches!(changes[1..], [Availability::Available { after }] if after >= TIMES.first_pause),
        "{changes:?}"
    );
}

#[test]
fn missed_removals_follow_unless_the_region_is_stored_again() {
    let Guarded { tier, within, door, .. } =
        guarded(GuardTimes { first_pause: Duration::from_secs(3), ..TIMES });
    for number in 1..=4 {
        tier.insert(key(number), &noise(number, 500)).unwrap();
    }
    door.set(true);
    // The first call hangs. The others do not reach the tier.
    for number in 1..=3 {
        assert!(is_unavailable(tier.remove(key(number))));
    }
    assert!(is_unavailable(tier.insert(key(2), &noise(2, 500))));
    door.set(false);
    wait_until(|| tier.insert(key(3), &noise(3, 500)).is_ok());
    wait_until(|| within.list().unwrap() == [key(4), key(3)]);
}

#[test]
fn panic_opens_the_breaker_and_a_lack_of_room_does_not() {
    let ram = Arc::new(BoundedRam::new(Arc::new(MemoryCounter::default()), 10));
    let full = GuardedTier::new(ram, TierLocation::Ram, TIMES, |_| {});
    for number in 0..5 {
        assert!(full.insert(key(number), &noise(1, 500)).unwrap_err().is_lack_of_room());
    }
    assert!(full.is_available());
    let is_armed = Arc::new(AtomicBool::new(false));
    let armed = Arc::clone(&is_armed);
    let gate = Gate::new(Memory::default(), move |_, _| assert!(!armed.load(Ordering::SeqCst), "asked to"));
    let tier = guard(Arc::new(gate), Path::new(Memory::TIER));
    tier.insert(key(1), &noise(1, 500)).unwrap();
    is_armed.store(true, Ordering::SeqCst);
    assert!(is_unavailable(tier.get(key(1))));
    assert!(!tier.is_available());
    is_armed.store(false, Ordering::SeqCst);
    wait_until(|| tier.get(key(1)).is_ok());
}

#[test]
fn third_error_of_a_folder_that_is_gone_opens_the_breaker() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared");
    std::fs::create_dir(&path).unwrap();
    let tier = guard(Arc::new(OsFileSystem), &path);
    tier.insert(key(1), &noise(1, 500)).unwrap();
    std::fs::rename(&path, folder.path().join("away")).unwrap();
    for number in 2..5 {
        assert!(tier.is_available());
        let error = tier.insert(key(number), &noise(1, 500)).unwrap_err();
        assert!(matches!(error, TierError::Io { .. }), "{error}");
    }
    assert!(is_unavailable(tier.insert(key(5), &noise(1, 500))));
    std::fs::rename(folder.path().join("away"), &path).unwrap();
    wait_until(|| tier.insert(key(6), &noise(1, 500)).is_ok());
    assert!(tier.get(key(1)).unwrap().is_some());
}

/// The time of a call depends on its bytes.
#[test]
fn large_regions_have_more_time() {
    let times = GuardTimes { limit: Duration::from_millis(10), bytes_per_second: 100, ..TIMES };
    let Guarded { tier, door, .. } = guarded(times);
    door.set(true);
    std::thread::scope(|scope| {
        // 60 s, and no answer until the door is open.
        let inserted = scope.spawn(|| tier.insert(key(1), &noise(1, 6000)));
        door.until_waiting(1);
        // 10 ms: it fails meanwhile.
        assert!(is_unavailable(tier.contains(key(2))));
        assert!(!inserted.is_finished());
        door.set(false);
        assert!(inserted.join().unwrap().is_ok());
    });
    assert!(tier.is_available());
}

#[test]
fn many_callers_of_a_hanging_tier_end_within_the_limit() {
    let Guarded { tier, door, .. } = guarded(TIMES);
    door.set(true);
    std::thread::scope(|scope| {
        let calls: Vec<_> = (0..200)
            .map(|number| {
                scope.spawn({
                    let tier = &tier;
                    move || is_unavailable(tier.get(key(number)))
                })
            })
            .collect();
        assert!(calls.into_iter().all(|call| call.join().unwrap()));
    });
    door.set(false);
    wait_until(|| tier.get(key(1)).is_ok());
}

/// A stack falls back to the level above: what need not be durable is stored there, and reads do not wait.
#[test]
fn stack_with_a_hanging_level_uses_the_others() {
    let Guarded { tier, door, calls, .. } =
        guarded(GuardTimes { first_pause: Duration::from_secs(3600), ..TIMES });
    let ram: Arc<dyn Tier> = Arc::new(BoundedRam::new(Arc::new(MemoryCounter::default()), AMPLE_BYTES));
    let level = |name: &str, tier: Arc<dyn Tier>, shared| {
        let (name, policy, write) = (name.to_owned(), EvictionPolicy::Lru, WriteMode::Back);
        TierLevel { name, tier, policy, write, shared }
    };
    let stack = TierStack::new(vec![level("ram", ram, false), level("lustre", tier, true)]);
    stack.share(key(1), &noise(1, 500)).unwrap();
    door.set(true);
    let worth = RetentionValue { seconds: 1.0, durable: false };
    assert!(is_unavailable(stack.share(key(2), &noise(2, 500))));
    let before = calls.load(Ordering::SeqCst);
    assert_eq!(stack.store(key(3), &noise(3, 500), worth).unwrap().level, LevelId(0));
    assert!(stack.get(key(3)).unwrap().is_some());
    // It is in the hanging level only.
    assert!(is_unavailable(stack.get(key(1))));
    let counts = stack.counts();
    assert_eq!(counts.iter().map(|level| level.is_available).collect::<Vec<_>>(), [true, false]);
    assert_eq!(calls.load(Ordering::SeqCst), before);
    door.set(false);
}
