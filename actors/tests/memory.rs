//! The real actors within a memory budget: the bytes counted at every event never exceed it. Suspended and resumed studies
//! return the same results.

#[path = "support/encoded_results.rs"]
mod encoded_results;
#[path = "support/images.rs"]
mod images;

use actix::prelude::*;
use images::{Painted, Study, Watch};
use parking_lot::Mutex;
use pleach_actors::embedded::{EmbeddedStudy, PlanOutcome, run};
use pleach_actors::manager::StudyEvent;
use pleach_actors::spill::SpillStore;
use pleach_actors::storage::{
    ExpectRegions, FreeMemory, GetRegion, MemoryFreed, Prefetch, RegionOrigin, RegionUnavailable,
    ReleaseRegions, SetPlacement, StorageActor,
};
use pleach_actors::task::Accelerators;
use pleach_actors::task::unmetered;
use pleach_actors::worker::{Resources, unmeasured};
use pleach_cache::PriorResults;
use pleach_dispatch::InstanceId;
use pleach_dispatch::plan::ReuseScope;
use pleach_regions::{DataRegion, MemoryCounter, RamTier, Raster, RegionIdentity, RegionKey};
use pleach_storage::files::OsFileSystem;
use pleach_storage::{
    BoundedRam, EvictionPolicy, FolderKind, FolderSettings, FolderTier, Tier, TierLevel, TierStack, WriteMode,
};
use pleach_workflow::TierKind;
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Events and outcome of a run.
struct Ran {
    finished: PlanOutcome,
    results: HashMap<InstanceId, f64>,
    /// Bytes of regions held at each event.
    held_bytes: Vec<u64>,
    /// See [`Watch`].
    lit: Vec<usize>,
    runs: Vec<(Painted, usize)>,
}

/// Runs a study with these instances finished, and stops it after `notices` events.
fn execute(
    study: &Study,
    finished: &BTreeSet<InstanceId>,
    resources: (u32, u64, Option<NonZeroU32>),
    notices: usize,
) -> Ran {
    execute_above(None, study, finished, resources, notices)
}

/// Runs a study like [`execute`], with tiers below memory.
fn execute_above(
    spill: Option<Arc<SpillStore>>,
    study: &Study,
    finished: &BTreeSet<InstanceId>,
    (slots, memory_bytes, active_paths): (u32, u64, Option<NonZeroU32>),
    mut notices: usize,
) -> Ran {
    let ledger = Arc::new(MemoryCounter::default());
    let watch = Arc::new(Watch::default());
    let told = Arc::new(Mutex::new((HashMap::new(), Vec::new())));
    let (seen, counted) = (Arc::clone(&told), Arc::clone(&ledger));
    let (stop, stopped) = oneshot::channel();
    let mut stop = Some(stop);
    let slots = NonZeroU32::new(slots).expect("at least one slot");
    let finished = run(EmbeddedStudy {
        plan: study.plan(),
        finished: finished.clone(),
        registry: study.registry(&watch),
        sources: study.sources(&watch),
        resources: Resources {
            slots,
            accelerators: Accelerators::default(),
            memory_bytes,
            active_paths,
            meter: unmetered,
            process_bytes: unmeasured,
        },
        costs: Arc::default(),
        prior: PriorResults::default(),
        ledger,
        spill,
        observer: Box::new(move |notice| {
            let mut seen = seen.lock();
            if let StudyEvent::Reported { instance, results } = notice {
                let before = seen.0.insert(instance, results[0].get("x").expect("one number"));
                assert_eq!(before, None, "{instance} is reported twice");
            }
            seen.1.push(counted.held_bytes());
            notices = notices.saturating_sub(1);
            if notices == 0 {
                stop.take().map(|stop| stop.send(()));
            }
        }),
        stop: stopped,
    });
    let (results, held_bytes) = told.lock().clone();
    let lit = watch.lit.lock().clone();
    let runs = watch.runs.lock().clone().into_iter().collect();
    Ran { finished: finished.expect("the plan runs"), results, held_bytes, lit, runs }
}

/// More bytes than any study here stores.
const ROOM: u64 = 1 << 30;

fn below(tier: Arc<dyn Tier>) -> Arc<SpillStore> {
    let (name, policy, write) = ("below".to_owned(), EvictionPolicy::Lru, WriteMode::Back);
    let level = TierLevel { name, tier, policy, write, shared: false };
    Arc::new(SpillStore::new(TierStack::new(vec![level])).expect("threads"))
}

/// Runs `work` with the storage actor of a node with an SSD.
fn with_storage<W: Future<Output = ()>>(
    work: impl FnOnce(Addr<StorageActor>, Arc<RamTier>, Arc<SpillStore>, PathBuf) -> W,
) {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = FolderSettings::new(FolderKind::Ssd, ROOM);
    let tier = FolderTier::open(Arc::new(OsFileSystem), folder.path(), settings).expect("a tier");
    let below = below(Arc::new(tier));
    let ram = Arc::new(RamTier::default());
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("threads"));
    actix::System::new().block_on(async {
        let storage = StorageActor::new(HashMap::new(), pool, Arc::clone(&ram));
        let storage = storage.with_spill(Some(Arc::clone(&below))).start();
        work(storage, ram, Arc::clone(&below), folder.path().to_owned()).await;
        below.settle();
    });
}

fn region(number: u8) -> (RegionKey, Arc<DataRegion>) {
    let raster = Raster::filled(100, 100, 1, number).expect("a raster");
    (RegionKey([number; 16]), Arc::new(DataRegion::Gray8(raster)))
}

fn identity(RegionKey(key): RegionKey) -> RegionIdentity {
    RegionIdentity([key[0]; 32])
}

#[test]
fn least_recently_used_regions_are_spilled_and_read_back() {
    with_storage(|storage, ram, below, _| async move {
        for (key, region) in (1..=4).map(region) {
            ram.insert_known(key, region, Some(identity(key))).expect("a new key");
        }
        let is_known = |key| ram.identity(key) == Some(identity(key));
        // The first region is the oldest, but the next request makes it the newest. The second must stay.
        let [one, two, three, four] = [1, 2, 3, 4].map(region);
        assert_eq!(storage.send(GetRegion(one.0)).await.expect("there"), Ok(one.1.clone()));
        let but = HashSet::from([two.0]);
        let made =
            storage.send(FreeMemory { bytes: 10_001, but, replicas: Vec::new() }).await.expect("there");
        assert_eq!(made, MemoryFreed { bytes: 20_000, removed: Vec::new() });
        let mut left = ram.keys();
        left.sort_unstable();
        assert_eq!(left, [one.0, two.0]);
        assert_eq!((below.len(), ram.held_bytes()), (2, 20_000));
        for (key, region) in [three, four] {
            assert!(is_known(key), "tasks that read it have the same keys as before");
            assert_eq!(storage.send(GetRegion(key)).await.expect("there"), Ok(region));
            assert!(is_known(key));
        }
        assert_eq!(ram.held_bytes(), 40_000);
        // The regions are in the tier already, so nothing is written.
        storage
            .send(FreeMemory { bytes: 40_000, but: HashSet::new(), replicas: Vec::new() })
            .await
            .expect("there");
        let passed = below.passed();
        assert_eq!((ram.len(), passed.demoted, passed.dropped, passed.promoted), (0, 4, 2, 2));
        let keys: Vec<RegionKey> = (1..=4).map(|number| RegionKey([number; 16])).collect();
        assert!(keys.iter().all(|key| is_known(*key)));
        storage.send(ReleaseRegions(keys.clone())).await.expect("there");
        assert!(keys.iter().all(|key| ram.identity(*key).is_none()));
        below.settle();
        assert!(below.is_empty());
        assert_eq!(below.counts()[0].regions, 0);
    });
}

/// A placement hint has priority over the tiers' policies.
#[test]
fn region_with_placement_hint_goes_to_the_slower_tier() {
    let level = |name: &str| {
        let tier: Arc<dyn Tier> = Arc::new(BoundedRam::new(Arc::default(), ROOM));
        let (policy, write) = (EvictionPolicy::Lru, WriteMode::Back);
        TierLevel { name: name.to_owned(), tier, policy, write, shared: false }
    };
    let stack = TierStack::new(vec![level("ssd"), level("lustre")]);
    let below = Arc::new(SpillStore::new(stack).expect("threads"));
    let ram = Arc::new(RamTier::default());
    let regions = [1, 2, 3].map(region);
    for (key, region) in &regions {
        ram.insert(*key, Arc::clone(region)).expect("a new key");
    }
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("threads"));
    actix::System::new().block_on(async {
        let storage =
            StorageActor::new(HashMap::new(), pool, ram).with_spill(Some(Arc::clone(&below))).start();
        // Without a tier of the last kind, the region gets any tier with space.
        let wishes = vec![(regions[0].0, TierKind::Hdd), (regions[2].0, TierKind::S3)];
        storage.send(SetPlacement(wishes)).await.expect("there");
        let room = FreeMemory { bytes: 30_000, but: HashSet::new(), replicas: Vec::new() };
        storage.send(room).await.expect("there");
        assert_eq!(below.counts().iter().map(|level| level.regions).collect::<Vec<_>>(), [2, 1]);
        for (key, region) in regions {
            assert_eq!(storage.send(GetRegion(key)).await.expect("there"), Ok(region));
        }
    });
}

/// A region for a waiting bucket moves from the slow tier to a fast one before its request, even if another worker spilled
/// it.
#[test]
fn inputs_of_waiting_buckets_are_prefetched() {
    let ram = || -> Arc<dyn Tier> { Arc::new(BoundedRam::new(Arc::default(), ROOM)) };
    let level = |name: &str, tier: &Arc<dyn Tier>, shared| {
        let (tier, policy, write) = (Arc::clone(tier), EvictionPolicy::Lru, WriteMode::Back);
        TierLevel { name: name.to_owned(), tier, policy, write, shared }
    };
    let shared = ram();
    let (key, content) = region(1);
    let node = || {
        let levels = vec![level("ssd", &ram(), false), level("lustre", &shared, true)];
        let below = Arc::new(SpillStore::new(TierStack::new(levels)).expect("threads"));
        below.set_namespace(7);
        below
    };
    let (writer, reader) = (node(), node());
    let start = |below: &Arc<SpillStore>, ram: RamTier| {
        let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("threads"));
        StorageActor::new(HashMap::new(), pool, Arc::new(ram)).with_spill(Some(Arc::clone(below))).start()
    };
    actix::System::new().block_on(async {
        let held = RamTier::default();
        held.insert(key, Arc::clone(&content)).expect("a new key");
        let from = start(&writer, held);
        from.send(SetPlacement(vec![(key, TierKind::Lustre)])).await.expect("there");
        let room = FreeMemory { bytes: 1, but: HashSet::new(), replicas: Vec::new() };
        from.send(room).await.expect("there");

        let to = start(&reader, RamTier::default());
        let origin = RegionOrigin::Elsewhere { workers: Vec::new(), shared: true };
        to.send(ExpectRegions(vec![(key, origin)])).await.expect("there");
        to.send(Prefetch(vec![key, region(2).0])).await.expect("there");
        reader.settle();
        let fast = |below: &SpillStore| (below.counts()[0].prefetched, below.counts()[0].regions);
        assert_eq!((fast(&reader), fast(&writer)), ((1, 1), (0, 0)), "only what is there, and is expected");
        assert_eq!(to.send(GetRegion(key)).await.expect("there"), Ok(content));
        assert_eq!(reader.counts()[0].hits, 1, "of the fast tier");

        // After the release, no tier contains the region, requested or not.
        to.send(ReleaseRegions(vec![key])).await.expect("there");
        reader.settle();
        assert_eq!((reader.counts()[0].regions, shared.list().expect("memory").len()), (0, 0));
    });
}

/// A key identifies one content within a study only.
#[test]
fn regions_of_an_earlier_namespace_are_not_found() {
    let tier: Arc<dyn Tier> = Arc::new(BoundedRam::new(Arc::default(), ROOM));
    let runs = [1, 2].map(|_| below(Arc::clone(&tier)));
    let contents = [5, 6].map(|number| region(number).1);
    let of = |run: &Arc<SpillStore>, key: RegionKey, content: &Arc<DataRegion>| {
        let ram = Arc::new(RamTier::default());
        ram.insert(key, Arc::clone(content)).expect("a new key");
        let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("threads"));
        let storage = StorageActor::new(HashMap::new(), pool, ram).with_spill(Some(Arc::clone(run)));
        actix::System::new().block_on(async {
            let storage = storage.start();
            storage
                .send(FreeMemory { bytes: 1, but: HashSet::new(), replicas: Vec::new() })
                .await
                .expect("there");
            storage.send(GetRegion(key)).await.expect("there")
        })
    };
    for (run, content) in runs.iter().zip(&contents) {
        assert_eq!(of(run, RegionKey([9; 16]), content).as_ref(), Ok(content));
    }
    // Workers of one manager share a namespace and find each other's regions.
    runs.iter().for_each(|run| run.set_namespace(7));
    let key = RegionKey([8; 16]);
    assert_eq!(of(&runs[0], key, &contents[0]).as_ref(), Ok(&contents[0]));
    assert_eq!(of(&runs[1], key, &contents[0]).as_ref(), Ok(&contents[0]));
    assert_eq!(tier.list().expect("memory").len(), 3);
}

/// Without a tier below memory, only regions with replicas on other workers can leave.
#[test]
fn replicas_are_dropped_first_without_a_spill_tier() {
    let ram = Arc::new(RamTier::default());
    for (key, region) in (1..=4).map(region) {
        ram.insert(key, region).expect("a new key");
    }
    let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("threads"));
    let keys = [1, 2, 3, 4].map(|number| region(number).0);
    actix::System::new().block_on(async {
        let storage = StorageActor::new(HashMap::new(), pool, Arc::clone(&ram)).start();
        let (but, replicas) = (HashSet::new(), vec![keys[3], keys[1], keys[2]]);
        let made = storage.send(FreeMemory { bytes: 10_001, but, replicas }).await.expect("there");
        assert_eq!(made, MemoryFreed { bytes: 20_000, removed: vec![keys[1], keys[2]] });
    });
    let mut left = ram.keys();
    left.sort_unstable();
    assert_eq!(left, [keys[0], keys[3]]);
}

#[test]
fn corrupt_spilled_region_is_unavailable() {
    with_storage(|storage, ram, below, folder| async move {
        let (key, region) = region(7);
        ram.insert(key, region).expect("a new key");
        storage
            .send(FreeMemory { bytes: 1, but: HashSet::new(), replicas: Vec::new() })
            .await
            .expect("there");
        assert_eq!((ram.len(), below.len()), (0, 1));
        let mut files = vec![folder];
        let mut damaged = 0;
        while let Some(path) = files.pop() {
            if path.is_dir() {
                files.extend(
                    std::fs::read_dir(&path).expect("a folder").map(|entry| entry.expect("an entry").path()),
                );
            } else if path.metadata().expect("a file").len() > 40 && path.extension().is_some() {
                let mut bytes = std::fs::read(&path).expect("a file");
                let last = bytes.len() - 1;
                bytes[last] ^= 1;
                std::fs::write(&path, bytes).expect("written");
                damaged += 1;
            }
        }
        assert_eq!(damaged, 1, "one file has the region");
        assert_eq!(storage.send(GetRegion(key)).await.expect("there"), Err(RegionUnavailable::Lacks(key)));
        assert_eq!((below.len(), below.passed().lost), (0, 1));
    });
}

prop_compose! {
    fn studies()(
        tiles in prop::collection::vec(300u32..2000, 1..4),
        sets in prop::collection::hash_set([0..2i64, 0..2i64, 0..4i64, 0..9i64], 1..12),
        bucket in 1usize..6,
        scratch in prop_oneof![Just(0u64), 1u64..9],
        sharing in prop_oneof![Just(ReuseScope::Tree), Just(ReuseScope::Dataflow), Just(ReuseScope::Value)],
    ) -> Study {
        let mut sets: Vec<[i64; 4]> = sets.into_iter().collect();
        sets.sort_unstable();
        Study { tiles, sets, bucket, scratch, sharing }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn stored_bytes_stay_within_the_budget(
        study in studies(),
        slots in 1u32..5,
        more in prop_oneof![Just(0u64), 1u64..20_000],
        active_paths in prop_oneof![Just(None), (1u32..3).prop_map(NonZeroU32::new)],
    ) {
        let budget = study.plan().needs.min_bytes + more;
        let ran = execute(&study, &BTreeSet::new(), (slots, budget, active_paths), usize::MAX);
        prop_assert!(ran.finished.outcome.failures.is_empty());
        prop_assert_eq!(&ran.results, &study.expected());
        prop_assert_eq!(ran.finished.retained_bytes, 0);
        prop_assert!(ran.finished.peak_bytes <= budget, "{} of {budget}", ran.finished.peak_bytes);
        prop_assert!(ran.held_bytes.iter().all(|held| *held <= ran.finished.peak_bytes));
        prop_assert!(ran.held_bytes.iter().any(|held| *held > 0), "nothing was seen");
    }

    /// With tiers below memory, the budget can be smaller and is never exceeded. Moved regions keep their content.
    #[test]
    fn spill_tiers_lower_the_minimum_memory(
        study in studies(),
        slots in 1u32..5,
        more in prop_oneof![Just(0u64), 1u64..2_000],
        active_paths in prop_oneof![Just(None), (1u32..3).prop_map(NonZeroU32::new)],
    ) {
        let below = below(Arc::new(BoundedRam::new(Arc::default(), ROOM)));
        let budget = study.plan().needs.with_spill(ROOM) + more;
        let above = Some(Arc::clone(&below));
        let ran = execute_above(above, &study, &BTreeSet::new(), (slots, budget, active_paths), usize::MAX);
        prop_assert!(ran.finished.outcome.failures.is_empty());
        prop_assert_eq!(&ran.results, &study.expected());
        prop_assert_eq!(ran.finished.retained_bytes, 0);
        prop_assert!(below.is_empty(), "{} regions are left below", below.len());
        prop_assert!(ran.finished.peak_bytes <= budget, "{} of {budget}", ran.finished.peak_bytes);
        let passed = below.passed();
        prop_assert_eq!((passed.lost, passed.refused), (0, 0));
    }

    /// A study with too small a budget finishes and reports its peak above the budget.
    #[test]
    fn study_beyond_budget_completes_and_reports_its_peak(study in studies(), slots in 1u32..5) {
        let least = study.plan().needs.min_bytes;
        let ran = execute(&study, &BTreeSet::new(), (slots, least - 1, None), usize::MAX);
        prop_assert_eq!(&ran.results, &study.expected());
        prop_assert_eq!(ran.finished.retained_bytes, 0);
        let ran = execute(&study, &BTreeSet::new(), (slots, 1, None), usize::MAX);
        prop_assert_eq!(&ran.results, &study.expected());
        prop_assert!(ran.finished.peak_bytes > 1);
    }

    /// A study that is stopped at any event and resumed any number of times has the same results.
    #[test]
    fn resumed_study_has_the_same_results(
        study in studies(), slots in 1u32..5, stops in prop::collection::vec(1usize..40, 1..4), more in 0u64..5000,
    ) {
        let setup = (slots, study.plan().needs.min_bytes + more, None);
        let mut results = HashMap::new();
        for notices in stops.into_iter().chain([usize::MAX]) {
            let finished: BTreeSet<InstanceId> = results.keys().copied().collect();
            let ran = execute(&study, &finished, setup, notices);
            prop_assert!(ran.results.keys().all(|id| !finished.contains(id)), "reported again");
            let open: BTreeSet<InstanceId> = study.expected().into_keys().filter(|id| !finished.contains(id)).collect();
            let all = ran.results.len() == open.len();
            prop_assert_eq!(ran.finished.outcome.stopped, !all);
            prop_assert!(!all || ran.finished.retained_bytes == 0, "{} left, open {open:?}, finished {finished:?}, notices {notices}", ran.finished.retained_bytes);
            prop_assert!(ran.finished.peak_bytes <= setup.1);
            results.extend(ran.results);
        }
        prop_assert_eq!(results, study.expected());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// With unlimited memory, no operation runs twice on equal images with equal numbers, in any bucket. Only the first
    /// tasks of buckets that start at the same time and still load the same tile do not wait for each other.
    #[test]
    fn equal_tasks_run_once_with_value_reuse(mut study in studies(), slots in 1u32..5) {
        study.sharing = ReuseScope::Value;
        // Tiles of different sizes, so that their images are never equal.
        study.tiles.sort_unstable();
        study.tiles.dedup();
        let ran = execute(&study, &BTreeSet::new(), (slots, u64::MAX, None), usize::MAX);
        prop_assert_eq!(&ran.results, &study.expected());
        for ((name, shades, pixels, add), times) in &ran.runs {
            let most = if *name == "toy.first" { slots as usize } else { 1 };
            prop_assert!(*times <= most, "{name} of {shades:?}, {pixels}, {add}: {times} times");
        }
        // Avoided runs are counted as reused.
        let totals = ran.finished.outcome.tasks.values();
        let (mut run, mut reused) = (0, 0);
        for total in totals {
            run += total.runs;
            reused += total.reused_by_dataflow + total.reused_by_value;
        }
        prop_assert_eq!(run as usize, ran.runs.iter().map(|(_, times)| times).sum::<usize>());
        study.sharing = ReuseScope::Dataflow;
        let ran = execute(&study, &BTreeSet::new(), (slots, u64::MAX, None), usize::MAX);
        let totals = ran.finished.outcome.tasks.values();
        let by_dataflow: u64 = totals.clone().map(|total| total.runs + total.reused_by_dataflow).sum();
        prop_assert!(totals.into_iter().all(|total| total.reused_by_value == 0 && total.digests == 0));
        prop_assert_eq!(run + reused, by_dataflow);
    }
}

/// A bucket is admitted with all its inputs, so they are loaded before its first task. Otherwise the bytes in storage would
/// grow without admission.
#[test]
fn inputs_are_loaded_before_the_first_task_of_a_bucket() {
    let study = Study {
        tiles: vec![400],
        sets: vec![[1, 2, 3, 4], [2, 1, 3, 4], [2, 2, 3, 4]],
        bucket: 1,
        scratch: 1,
        sharing: ReuseScope::Tree,
    };
    let ran = execute(&study, &BTreeSet::new(), (3, u64::MAX, None), usize::MAX);
    assert_eq!(ran.lit, [1, 1, 1]);
    assert_eq!(ran.results, study.expected());
}

#[test]
fn finished_study_runs_no_task() {
    let study = Study {
        tiles: vec![400, 500],
        sets: vec![[1, 2, 3, 4], [1, 1, 3, 4]],
        bucket: 2,
        scratch: 1,
        sharing: ReuseScope::Value,
    };
    let finished = study.expected().into_keys().collect();
    let ran = execute(&study, &finished, (2, 1 << 20, None), usize::MAX);
    assert_eq!((ran.results.len(), ran.finished.outcome.tasks.len(), ran.finished.peak_bytes), (0, 0, 0));
    assert!(!ran.finished.outcome.stopped);
}
