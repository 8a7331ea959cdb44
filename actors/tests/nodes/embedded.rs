//! Complete runs through the real actors: results, failures, slots, bytes.

use crate::toy::{FAILS, Input, LIES, PANICS, Watch, expected, input_key, plan, registry};
use parking_lot::Mutex;
use pleach_actors::embedded::{EmbeddedStudy, PlanOutcome, run};
use pleach_actors::manager::{Progress, StudyEvent};
use pleach_actors::storage::Source;
use pleach_actors::task::Accelerators;
use pleach_actors::task::unmetered;
use pleach_actors::worker::{Resources, unmeasured};
use pleach_cache::PriorResults;
use pleach_dispatch::InstanceId;
use pleach_dispatch::cost_model::CostModel;
use pleach_regions::{MemoryCounter, RegionKey};
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::oneshot;

struct Ran {
    finished: PlanOutcome,
    watch: Arc<Watch>,
    loads: Vec<Arc<AtomicUsize>>,
    progress: Vec<Progress>,
    /// Reported instances, in order.
    reported: Vec<InstanceId>,
}

fn resources(slots: u32) -> Resources {
    let slots = NonZeroU32::new(slots).expect("at least one slot");
    Resources {
        slots,
        accelerators: Accelerators::default(),
        memory_bytes: u64::MAX,
        active_paths: None,
        meter: unmetered,
        process_bytes: unmeasured,
    }
}

/// Runs `sets` over tiles with the inputs `tiles`.
fn execute(tiles: &[Result<f64, String>], sets: &[(usize, [i64; 5])], bucket: usize, slots: u32) -> Ran {
    execute_knowing(CostModel::default(), tiles, sets, bucket, slots)
}

/// Runs `sets` like [`execute`], with a given cost model.
fn execute_knowing(
    costs: CostModel,
    tiles: &[Result<f64, String>],
    sets: &[(usize, [i64; 5])],
    bucket: usize,
    slots: u32,
) -> Ran {
    let (registry, watch) = registry();
    let loads: Vec<_> = tiles.iter().map(|_| Arc::new(AtomicUsize::new(0))).collect();
    let source = |tile: usize| -> (RegionKey, Arc<dyn Source>) {
        let input = Input { value: tiles[tile].clone(), loads: Arc::clone(&loads[tile]) };
        (input_key(tile), Arc::new(input))
    };
    let sources: HashMap<_, _> = (0..tiles.len()).map(source).collect();
    let told = Arc::new(Mutex::new((Vec::new(), Vec::new())));
    let seen = Arc::clone(&told);
    let (_go_on, stop) = oneshot::channel();
    let finished = run(EmbeddedStudy {
        plan: plan(sets, bucket),
        finished: BTreeSet::new(),
        registry,
        sources,
        resources: resources(slots),
        costs: Arc::new(Mutex::new(costs)),
        prior: PriorResults::default(),
        ledger: Arc::default(),
        spill: None,
        observer: Box::new(move |notice| {
            let mut seen = seen.lock();
            match notice {
                StudyEvent::Progress(progress) => seen.0.push(progress),
                StudyEvent::Reported { instance, .. } => seen.1.push(instance),
                StudyEvent::Failed(_)
                | StudyEvent::Done(_)
                | StudyEvent::BucketOverheads(_)
                | StudyEvent::Reopened(_)
                | StudyEvent::Lost { .. } => {}
            }
        }),
        stop,
    });
    let (progress, reported) = told.lock().clone();
    Ran { finished: finished.expect("the plan runs"), watch, loads, progress, reported }
}

/// Returns the number of tasks that a plan runs: distinct prefixes of the first three values in each bucket, and both steps
/// of every second stage.
fn tasks(sets: &[(usize, [i64; 5])], bucket: usize) -> usize {
    let first: usize = sets
        .chunks(bucket)
        .map(|sets| {
            let prefixes =
                sets.iter().flat_map(|(tile, set)| (1..=3).map(move |n| (*tile, set[..n].to_vec())));
            prefixes.collect::<BTreeSet<_>>().len()
        })
        .sum();
    first + 2 * sets.len()
}

#[test]
fn an_empty_study_is_over_at_once() {
    let ran = execute(&[], &[], 1, 2);
    assert!(ran.finished.outcome.results.is_empty());
}

#[test]
fn a_failing_task_takes_its_descendants_and_nothing_else() {
    for (bad, cause) in [
        (FAILS, "1 inputs given, 2 declared"),
        (PANICS, "panicked: asked to"),
        (LIES, "the outputs do not match the declared outputs"),
    ] {
        // The second set fails in the second task of the first stage. The third set shares only the first task with it.
        let sets = [(0, [1, 2, 3, 4, 5]), (0, [1, bad, 3, 4, 5]), (0, [1, 7, 3, 4, 5])];
        let ran = execute(&[Ok(1.0)], &sets, 3, 2);
        let outcome = ran.finished.outcome;
        let failed: Vec<_> = outcome.failures.keys().copied().collect();
        assert_eq!(failed, [InstanceId(1), InstanceId(4)]);
        let failure = &outcome.failures[&InstanceId(4)];
        assert_eq!(failure.origin, InstanceId(1));
        assert_eq!((failure.cause.at.as_str(), failure.cause.cause.as_str()), ("a1", cause));
        for (id, set) in [(3, &sets[0]), (5, &sets[2])] {
            let value = outcome.results.get(InstanceId(id)).expect("results")[0].get("x");
            assert_eq!(value, Some(expected(1.0, &set.1)));
        }
        assert_eq!(ran.finished.retained_bytes, 0);
    }
}

/// Very short tasks run on the actors' thread, because slots would otherwise mostly wait for threads.
#[test]
fn tasks_measured_as_short_run_inline() {
    let sets: Vec<_> = (0..20).map(|n| (0, [n, 2, 3, 4, if n == 0 { PANICS } else { 5 }])).collect();
    let tiles = [Ok(7.0)];
    let mut costs = CostModel::default();
    let (registry, _) = registry();
    let step = registry.get("toy.step", 1).expect("it is linked in");
    assert_eq!(execute(&tiles, &sets[..1], 1, 1).watch.at_once.load(Ordering::SeqCst), 0, "not known yet");
    for _ in 0..8 {
        costs.observe(&**step, &[pleach_workflow::Value::Integer(1)], 1, 1e-6);
    }
    let ran = execute_knowing(costs, &tiles, &sets, 4, 2);
    assert!(ran.watch.at_once.load(Ordering::SeqCst) > 0);
    let outcome = &ran.finished.outcome;
    assert_eq!((outcome.finished, outcome.failures.len()), (sets.len() * 2 - 1, 1), "one has panicked");
    for (n, set) in sets.iter().enumerate().skip(1) {
        let results = outcome.results.get(InstanceId((sets.len() + n) as u32)).unwrap();
        assert_eq!(results[0].get("x"), Some(expected(7.0, &set.1)));
    }
}

#[test]
fn an_input_that_cannot_be_read_fails_its_runs_and_is_tried_once() {
    let sets = [(0, [1, 2, 3, 4, 5]), (1, [1, 2, 3, 4, 5]), (1, [2, 2, 3, 4, 5])];
    let ran = execute(&[Ok(1.0), Err("torn".to_owned())], &sets, 1, 2);
    let failed: Vec<_> = ran.finished.outcome.failures.keys().map(|id| id.0).collect();
    assert_eq!(failed, [1, 2, 4, 5]);
    assert_eq!(ran.finished.outcome.failures[&InstanceId(5)].cause.cause, "torn");
    assert_eq!(ran.finished.outcome.results.len(), 1);
    assert_eq!(ran.loads[1].load(Ordering::SeqCst), 1);
    assert_eq!(ran.finished.retained_bytes, 0);
}

#[test]
fn a_plan_that_breaks_its_rules_is_refused() {
    let mut broken = plan(&[(0, [1, 2, 3, 4, 5])], 1);
    broken.buckets.pop();
    let (_go_on, stop) = oneshot::channel();
    let study = EmbeddedStudy {
        plan: broken,
        finished: BTreeSet::new(),
        registry: registry().0,
        sources: HashMap::new(),
        resources: resources(1),
        costs: Arc::default(),
        prior: PriorResults::default(),
        ledger: Arc::new(MemoryCounter::default()),
        spill: None,
        observer: Box::new(|_| {}),
        stop,
    };
    let error = run(study).unwrap_err();
    assert_eq!(error.to_string(), "the plan cannot be executed: instance 1 is not in exactly one bucket");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// For any sets, buckets and slots, results equal those of each set alone. Every task of the plan runs once, concurrent
    /// tasks never exceed the slots, every input is loaded once, and no region is left at the end.
    #[test]
    fn results_do_not_depend_on_how_they_are_computed(
        sets in prop::collection::vec(
            (0..3usize, [0..3i64, 0..3i64, 0..3i64, 0..9i64, 0..9i64]), 1..40),
        bucket in 1..9usize,
        slots in 1..5u32,
    ) {
        let tiles = [Ok(1.0), Ok(2.0), Ok(3.0)];
        let ran = execute(&tiles, &sets, bucket, slots);
        let outcome = ran.finished.outcome;
        prop_assert!(outcome.failures.is_empty());
        for (id, (tile, set)) in sets.iter().enumerate() {
            let result = outcome.results.get(InstanceId((sets.len() + id) as u32)).expect("results")[0].get("x");
            prop_assert_eq!(result, Some(expected((tile + 1) as f64, set)));
        }
        prop_assert_eq!(ran.watch.runs.load(Ordering::SeqCst), tasks(&sets, bucket));
        let counted: u64 = outcome.tasks.values().map(|total| total.runs).sum();
        prop_assert_eq!(counted as usize, tasks(&sets, bucket));
        prop_assert!(ran.watch.most_running.load(Ordering::SeqCst) <= slots as usize);
        for (tile, loads) in ran.loads.iter().enumerate() {
            let used = sets.iter().any(|(used, _)| *used == tile);
            prop_assert_eq!(loads.load(Ordering::SeqCst), usize::from(used));
        }
        prop_assert_eq!(ran.finished.retained_bytes, 0);
        let steps = ran.progress.windows(2);
        prop_assert!(steps.into_iter().all(|pair| pair[0].instances <= pair[1].instances));
        let last = ran.progress.last().copied();
        prop_assert_eq!(last.map(|p| (p.instances, p.all_instances)), Some((2 * sets.len(), 2 * sets.len())));
        prop_assert_eq!(last.map(|p| (p.tasks as usize, p.failed)), Some((tasks(&sets, bucket), 0)));
        let mut reported = ran.reported;
        reported.sort_unstable();
        prop_assert_eq!(reported, (sets.len() as u32..2 * sets.len() as u32).map(InstanceId).collect::<Vec<_>>());
    }
}
