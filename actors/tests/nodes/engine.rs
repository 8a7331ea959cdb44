//! Consecutive plans on one engine: retained and dropped results.

use crate::costly::Costly;
use crate::toy::{Input, Watch, expected, input_key, plan, registry};
use parking_lot::Mutex;
use pleach_actors::embedded::{EmbeddedEngine, EngineConfig, PlanOutcome, PlanRun};
use pleach_actors::panic_guard::THREAD_NAME;
use pleach_actors::storage::Source;
use pleach_actors::task::Accelerators;
use pleach_actors::task::unmetered;
use pleach_actors::worker::{Resources, unmeasured};
use pleach_cache::PriorResults;
use pleach_dispatch::InstanceId;
use pleach_dispatch::plan::{ExecutionPlan, ReuseScope};
use pleach_regions::{DataRegion, RegionKey};
use pleach_workflow::{Argument, Operation, OperationError, Port, Value};
use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

const SETS: [(usize, [i64; 5]); 3] = [(0, [1, 2, 3, 4, 5]), (0, [1, 2, 4, 4, 5]), (1, [1, 2, 3, 4, 5])];

struct Running {
    engine: EmbeddedEngine,
    watch: Arc<Watch>,
    stop: Option<oneshot::Sender<()>>,
}

impl Running {
    fn new() -> Self {
        let (registry, watch) = registry();
        let step = Arc::clone(registry.get("toy.step", 1).expect("the toys' operation"));
        let source = |tile: usize| -> (RegionKey, Arc<dyn Source>) {
            let input = Input { value: Ok(tile as f64 + 1.0), loads: Arc::new(AtomicUsize::new(0)) };
            (input_key(tile), Arc::new(input))
        };
        let (stop, stopped) = oneshot::channel();
        let slots = NonZeroU32::new(2).expect("at least one slot");
        let resources = Resources {
            slots,
            accelerators: Accelerators::default(),
            memory_bytes: u64::MAX,
            active_paths: None,
            meter: unmetered,
            process_bytes: unmeasured,
        };
        let engine = EmbeddedEngine::start(EngineConfig {
            registry: registry.with(Costly(step)),
            sources: (0..2).map(source).collect::<HashMap<_, _>>(),
            resources,
            prior: PriorResults::default(),
            spill: None,
            stop: stopped,
        });
        Self { engine: engine.expect("it starts"), watch, stop: Some(stop) }
    }

    fn part(&mut self, plan: ExecutionPlan, retains_results: bool) -> PlanOutcome {
        let costs = Arc::new(Mutex::default());
        let part =
            PlanRun { plan, finished: BTreeSet::new(), costs, observer: Box::new(|_| {}), retains_results };
        self.engine.run(part).expect("the plan runs")
    }

    fn runs(&self) -> usize {
        self.watch.runs.load(Ordering::SeqCst)
    }
}

/// The toy operation, which calls a function at each run.
struct Observed {
    inner: Costly,
    at_run: Box<dyn Fn() + Send + Sync>,
    is_external: bool,
}

impl Operation for Observed {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn version(&self) -> u32 {
        self.inner.version()
    }

    fn arguments(&self) -> &[Argument] {
        self.inner.arguments()
    }

    fn inputs(&self) -> &[Port] {
        self.inner.inputs()
    }

    fn outputs(&self) -> &[Port] {
        self.inner.outputs()
    }

    fn cost_seconds(&self, pixels: u64) -> f64 {
        self.inner.cost_seconds(pixels)
    }

    fn memory_bytes(&self, pixels: u64) -> u64 {
        self.inner.memory_bytes(pixels)
    }

    fn is_external(&self) -> bool {
        self.is_external
    }

    fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        (self.at_run)();
        self.inner.run(inputs, arguments)
    }
}

/// Runs one bucket with a branch for each of so many sets.
fn run_observed(
    slots: u32,
    active_paths: Option<NonZeroU32>,
    sets: i64,
    is_external: bool,
    at_run: impl Fn() + Send + Sync + 'static,
) {
    let (registry, _) = registry();
    let step = Arc::clone(registry.get("toy.step", 1).expect("the toys' operation"));
    let observed = Observed { inner: Costly(step), at_run: Box::new(at_run), is_external };
    let (_stop, stopped) = oneshot::channel();
    let input: Arc<dyn Source> = Arc::new(Input { value: Ok(1.0), loads: Arc::default() });
    let mut engine = EmbeddedEngine::start(EngineConfig {
        registry: registry.with(observed),
        sources: HashMap::from([(input_key(0), input)]),
        resources: Resources {
            slots: NonZeroU32::new(slots).expect("at least one slot"),
            accelerators: Accelerators::default(),
            memory_bytes: u64::MAX,
            active_paths,
            meter: unmetered,
            process_bytes: unmeasured,
        },
        prior: PriorResults::default(),
        spill: None,
        stop: stopped,
    })
    .expect("it starts");
    let sets: Vec<(usize, [i64; 5])> = (0..sets).map(|n| (0, [n, 2, 3, 4, 5])).collect();
    let part = PlanRun {
        plan: plan(&sets, sets.len()),
        finished: BTreeSet::new(),
        costs: Arc::new(Mutex::default()),
        observer: Box::new(|_| {}),
        retains_results: false,
    };
    let finished = engine.run(part).expect("the plan runs");
    assert_eq!(finished.outcome.results.len(), sets.len());
}

/// Returns the maximum number of concurrent tasks on 2 slots. Each task waits for `wanted` of them, with a time limit. If 1 is
/// enough, it waits for 1,000 turns of the scheduler.
fn most_at_once(active_paths: Option<NonZeroU32>, wanted: usize) -> usize {
    let (running, most) = (AtomicUsize::new(0), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    run_observed(2, active_paths, 8, false, move || {
        let now = running.fetch_add(1, Ordering::SeqCst) + 1;
        seen.fetch_max(now, Ordering::SeqCst);
        let deadline = Instant::now() + Duration::from_secs(60);
        for turn in 0.. {
            let is_met = seen.load(Ordering::SeqCst) >= wanted && (turn >= 1000 || wanted > 1);
            if is_met || Instant::now() > deadline {
                break;
            }
            std::thread::yield_now();
        }
        running.fetch_sub(1, Ordering::SeqCst);
    });
    most.load(Ordering::SeqCst)
}

/// Returns the number of tasks of 50 µs that have run on the thread of the actors, of 160.
fn inline_tasks(slots: u32, is_external: bool) -> usize {
    let inline = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&inline);
    run_observed(slots, None, 32, is_external, move || {
        let start = Instant::now();
        while start.elapsed() < Duration::from_micros(50) {
            std::hint::spin_loop();
        }
        let is_slot = std::thread::current().name().is_some_and(|name| name.starts_with(THREAD_NAME));
        seen.fetch_add(usize::from(!is_slot), Ordering::SeqCst);
    });
    inline.load(Ordering::SeqCst)
}

#[test]
fn short_tasks_run_on_the_thread_of_the_actors_by_the_number_of_slots() {
    // A busy machine measures longer tasks at times, never shorter ones.
    assert!((0..20).any(|_| inline_tasks(1, false) > 0), "one slot: a handover takes longer");
    assert_eq!(inline_tasks(16, false), 0, "the thread serves 16 slots");
    assert_eq!(inline_tasks(1, true), 0, "the process of an external operation may hang");
}

#[test]
fn active_paths_bound_the_tasks_of_a_bucket_that_run_at_once() {
    assert_eq!(most_at_once(None, 2), 2, "as many as there are slots");
    assert_eq!(most_at_once(NonZeroU32::new(1), 1), 1);
}

/// Returns a plan with buckets of one instance each, which share results by value.
fn shared() -> ExecutionPlan {
    ExecutionPlan { sharing: ReuseScope::Value, ..plan(&SETS, 1) }
}

fn from_before(finished: &PlanOutcome) -> u64 {
    finished.outcome.tasks.values().map(|total| total.reused_from_before).sum()
}

fn is_right(finished: &PlanOutcome) {
    for (id, (tile, set)) in SETS.iter().enumerate() {
        let result =
            finished.outcome.results.get(InstanceId((SETS.len() + id) as u32)).expect("results")[0].get("x");
        assert_eq!(result, Some(expected((tile + 1) as f64, set)));
    }
    assert_eq!((finished.retained_bytes, finished.outcome.stopped), (0, false));
}

#[test]
fn a_plan_finds_what_an_earlier_one_has_computed() {
    let mut running = Running::new();
    let first = running.part(shared(), true);
    is_right(&first);
    let runs = running.runs();
    assert!(runs > 0 && from_before(&first) == 0);
    // The first repetition finds all results. A plan without retention also finds them, and the next one finds none.
    for (keeps, is_there) in [(true, true), (false, true), (true, false)] {
        let before = running.runs();
        let again = running.part(shared(), keeps);
        is_right(&again);
        assert_eq!(running.runs() == before, is_there, "{keeps}");
        assert_eq!(from_before(&again) > 0, is_there, "{keeps}");
    }
    running.engine.end();
}

#[test]
fn without_sharing_every_plan_computes_its_own() {
    let mut running = Running::new();
    let trees = || plan(&SETS, 2);
    is_right(&running.part(trees(), true));
    let runs = running.runs();
    let again = running.part(trees(), true);
    is_right(&again);
    assert_eq!((running.runs(), from_before(&again)), (2 * runs, 0));
}

#[test]
fn a_plan_that_is_refused_is_no_harm_to_the_next() {
    let mut running = Running::new();
    let mut broken = shared();
    broken.buckets.pop();
    let costs = Arc::new(Mutex::default());
    let observer = Box::new(|_: pleach_actors::manager::StudyEvent<'_>| {});
    let part = PlanRun { plan: broken, finished: BTreeSet::new(), costs, observer, retains_results: true };
    assert!(running.engine.run(part).unwrap_err().to_string().starts_with("the plan cannot be executed"));
    is_right(&running.part(shared(), false));
}

#[test]
fn after_it_was_stopped_nothing_is_run_any_more() {
    let mut running = Running::new();
    is_right(&running.part(shared(), true));
    let runs = running.runs();
    running.stop.take().expect("once").send(()).expect("heard");
    for _ in 0..2 {
        let stopped = running.part(shared(), true);
        assert!(stopped.outcome.stopped && stopped.outcome.results.is_empty());
    }
    assert_eq!(running.runs(), runs);
    running.engine.end();
}
