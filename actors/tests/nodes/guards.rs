//! Loops and choices in one process: which tasks run, which are skipped, and which results are reused.
//!
//! The workflow halves a number until an error is small enough, at most four times, and adds to large results only. The error
//! depends on a parameter that the halving does not read, so two parameter sets may compute the same numbers and end their loops
//! in different iterations.

use parking_lot::Mutex;
use pleach_actors::embedded::{EmbeddedEngine, EngineConfig, PlanRun};
use pleach_actors::storage::Source;
use pleach_actors::task::Accelerators;
use pleach_actors::task::unmetered;
use pleach_actors::worker::{Resources, unmeasured};
use pleach_cache::PriorResults;
use pleach_dispatch::InstanceId;
use pleach_dispatch::dry_run::rehearse;
use pleach_dispatch::memory_model::TaskMemory;
use pleach_dispatch::message::TaskFailure;
use pleach_dispatch::plan::{BucketPlan, ExecutionPlan, InstancePlan, OutputPlan, ReuseScope};
use pleach_dispatch::study::StudyOutcome;
use pleach_regions::{DataRegion, ElementType, RegionKey, Table};
use pleach_workflow::{
    Accepts, Argument, Operation, OperationError, Port, Registry, Value, Workflow, guard_value,
};
use proptest::prelude::*;
use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::sync::Arc;
use tokio::sync::oneshot;

type Function = fn(&[f64], &[f64]) -> f64;

/// A function of numbers.
struct Number {
    name: &'static str,
    inputs: Vec<Port>,
    output: ElementType,
    arguments: usize,
    function: Function,
    runs: Arc<Mutex<HashMap<&'static str, usize>>>,
}

const ARGUMENTS: [Argument; 1] =
    [Argument { name: "number", accepts: Accepts::Integers { low: 0, high: 1000 } }];

impl Operation for Number {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> u32 {
        1
    }

    fn arguments(&self) -> &[Argument] {
        &ARGUMENTS[..self.arguments]
    }

    fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    fn outputs(&self) -> &[Port] {
        match self.output {
            ElementType::Table => &[Port { name: "table", element: ElementType::Table }],
            _ => &[Port { name: "number", element: ElementType::Scalar }],
        }
    }

    fn cost_seconds(&self, _: u64) -> f64 {
        // High enough for a lookup before each run, and for a digest of the outputs.
        1.0
    }

    fn memory_bytes(&self, pixels: u64) -> u64 {
        self.output.bytes(pixels)
    }

    fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        *self.runs.lock().entry(self.name).or_default() += 1;
        let inputs: Vec<f64> = inputs.iter().map(|input| guard_value(input)).collect::<Result<_, _>>()?;
        let arguments: Vec<f64> = arguments.iter().map(|argument| argument.as_f64()).collect();
        let number = (self.function)(&inputs, &arguments);
        Ok(vec![match self.output {
            ElementType::Table => DataRegion::Table(Table::new([("x", number)])),
            _ => DataRegion::Scalar(number),
        }])
    }
}

fn registry(runs: &Arc<Mutex<HashMap<&'static str, usize>>>) -> Registry {
    let number = |name, inputs: usize, arguments, function: Function, output| Number {
        name,
        inputs: vec![Port { name: "number", element: ElementType::Scalar }; inputs],
        output,
        arguments,
        function,
        runs: Arc::clone(runs),
    };
    let operations = [
        number("toy.begin", 1, 1, |x, a| x[0] + a[0], ElementType::Scalar),
        number("toy.halve", 1, 0, |x, _| (x[0] / 2.0).floor(), ElementType::Scalar),
        number("toy.error", 1, 1, |x, a| x[0] * a[0], ElementType::Scalar),
        number("toy.raise", 1, 0, |x, _| x[0] + 1000.0, ElementType::Scalar),
        number("toy.end", 1, 0, |x, _| 3.0 * x[0], ElementType::Table),
    ];
    Registry::new(operations.into_iter().map(|operation| Arc::new(operation) as Arc<dyn Operation>))
}

const WORKFLOW: &str = r#"{
  "workflow": "toy",
  "inputs": [{"region": "tile", "type": "scalar"}],
  "stages": [{"descriptor": "stage.json"}],
  "response": {"region": "table", "metrics": [{"metric": "x", "over_tiles": "mean"}]}
}"#;

const STAGE: &str = r#"{
  "stage": "toy",
  "inputs": [{"region": "tile", "type": "scalar"}],
  "outputs": [{"region": "table", "type": "table"}],
  "tasks": [
    {"task": "begin", "operation": "toy.begin", "version": 1, "reads": ["tile"], "writes": ["start"],
     "parameters": [{"name": "A", "argument": "number", "type": "integer", "default": 0, "range": [0, 1000]}]},
    {"loop": "shrink", "at_most": 4, "until": {"region": "error", "below": 100},
     "carries": [{"region": "x", "first": "start", "next": "half"}],
     "tasks": [
       {"task": "halve", "operation": "toy.halve", "version": 1, "reads": ["x"], "writes": ["half"]},
       {"task": "error", "operation": "toy.error", "version": 1, "reads": ["half"], "writes": ["error"],
        "parameters": [{"name": "B", "argument": "number", "type": "integer", "default": 1, "range": [0, 1000]}]}
     ]},
    {"choice": "large", "if": {"region": "half", "at_least": 20},
     "then": [{"task": "raise", "operation": "toy.raise", "version": 1, "reads": ["half"], "writes": ["raised"]}],
     "else": [{"task": "halve-again", "operation": "toy.halve", "version": 1, "reads": ["start"], "writes": ["lowered"]}],
     "gives": [{"region": "result", "then": "raised", "else": "lowered"}]},
    {"task": "end", "operation": "toy.end", "version": 1, "reads": ["result"], "writes": ["table"]}
  ]
}"#;

/// Number of the stage's tasks.
const TASKS: u64 = 1 + 4 * 2 + 2 + 1;

struct Tile;

impl Source for Tile {
    fn load(&self) -> Result<DataRegion, TaskFailure> {
        Ok(DataRegion::Scalar(TILE))
    }
}

const TILE: f64 = 7.0;
const TILE_KEY: RegionKey = RegionKey([255; 16]);

/// What one parameter set computes without any reuse: its result, and each run as the operation with its numbers.
fn oracle(a: i64, b: i64) -> (f64, Vec<(&'static str, Vec<f64>)>) {
    let (a, b) = (a as f64, b as f64);
    let mut runs = vec![("toy.begin", vec![TILE, a])];
    let start = TILE + a;
    let mut x = start;
    for _ in 0..4 {
        runs.push(("toy.halve", vec![x]));
        x = (x / 2.0).floor();
        runs.push(("toy.error", vec![x, b]));
        if x * b < 100.0 {
            break;
        }
    }
    let result = if x >= 20.0 {
        runs.push(("toy.raise", vec![x]));
        x + 1000.0
    } else {
        runs.push(("toy.halve", vec![start]));
        (start / 2.0).floor()
    };
    runs.push(("toy.end", vec![result]));
    (3.0 * result, runs)
}

fn plan(workflow: &Workflow, sets: &[(i64, i64)], bucket: usize, sharing: ReuseScope) -> ExecutionPlan {
    let mut plan = ExecutionPlan { stages: workflow.stages.clone(), sharing, ..ExecutionPlan::default() };
    for (number, (a, b)) in (0u32..).zip(sets) {
        let mut key = [0; 16];
        key[..4].copy_from_slice(&number.to_le_bytes());
        plan.instances.push(InstancePlan {
            stage: 0,
            parameters: vec![Value::Integer(*a), Value::Integer(*b)],
            inputs: vec![TILE_KEY],
            outputs: vec![OutputPlan { key: RegionKey(key), stored: false, reported: true }],
            parents: vec![],
        });
    }
    let ids: Vec<InstanceId> = (0..sets.len() as u32).map(InstanceId).collect();
    let bucket_of = |ids: &[InstanceId]| BucketPlan { instances: ids.to_vec(), pixels: 1 };
    plan.buckets = ids.chunks(bucket).map(bucket_of).collect();
    let tasks = &workflow.stages[0].tasks;
    let bytes = |_: usize, _: u64| {
        let bytes = |task: &pleach_workflow::Task| TaskMemory {
            scratch: 0,
            outputs: task.writes.iter().map(|region| region.element.bytes(1)).collect(),
        };
        tasks.iter().map(bytes).collect()
    };
    plan.needs = rehearse(&plan, bytes).expect("a plan that keeps the rules").needs;
    plan
}

/// Executes the parameter sets. Returns the outcome and the runs of each operation.
fn execute(
    sets: &[(i64, i64)],
    bucket: usize,
    sharing: ReuseScope,
) -> (StudyOutcome, HashMap<&'static str, usize>) {
    let runs = Arc::default();
    let registry = registry(&runs);
    let workflow = Workflow::embedded(&[("workflow.json", WORKFLOW), ("stage.json", STAGE)], &registry);
    let workflow = workflow.expect("valid descriptors");
    assert_eq!(workflow.stages[0].tasks.len() as u64, TASKS);
    let (_stop, stopped) = oneshot::channel();
    let resources = Resources {
        slots: NonZeroU32::new(2).expect("not 0"),
        accelerators: Accelerators::default(),
        memory_bytes: u64::MAX,
        active_paths: None,
        meter: unmetered,
        process_bytes: unmeasured,
    };
    let tile: Arc<dyn Source> = Arc::new(Tile);
    let mut engine = EmbeddedEngine::start(EngineConfig {
        registry,
        sources: HashMap::from([(TILE_KEY, tile)]),
        resources,
        prior: PriorResults::default(),
        spill: None,
        stop: stopped,
    })
    .expect("it starts");
    let plan = plan(&workflow, sets, bucket, sharing);
    let run = PlanRun {
        plan,
        finished: BTreeSet::new(),
        costs: Arc::new(Mutex::default()),
        observer: Box::new(|_| {}),
        retains_results: false,
    };
    let done = engine.run(run).expect("the plan runs");
    assert_eq!(done.retained_bytes, 0);
    let runs = runs.lock().clone();
    (done.outcome, runs)
}

fn check_results(sets: &[(i64, i64)], outcome: &StudyOutcome) {
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    for (number, (a, b)) in (0u32..).zip(sets) {
        let result = outcome.results.get(InstanceId(number)).expect("results")[0].get("x");
        assert_eq!(result, Some(oracle(*a, *b).0), "parameter set {a}, {b} of {sets:?}");
    }
}

#[test]
fn loops_end_early_and_choices_run_one_branch() {
    // The error of 100 is below 100 after one, two and no iteration.
    for (b, iterations) in [(1, 1), (3, 2), (1000, 4)] {
        let (outcome, runs) = execute(&[(100, b)], 1, ReuseScope::Tree);
        check_results(&[(100, b)], &outcome);
        let all = outcome.all_tasks();
        assert_eq!((all.runs, all.skipped), (TASKS - 2 * (4 - iterations) - 1, 2 * (4 - iterations) + 1));
        assert_eq!(runs["toy.error"] as u64, iterations);
        let raised = runs.get("toy.raise").copied().unwrap_or(0);
        assert_eq!(raised, usize::from(iterations <= 2));
    }
}

/// Keys hold the history of the loop: two sets that compute equal numbers share them, whether their loops end together or
/// not, and never share a task after loops of different lengths.
#[test]
fn loops_of_different_lengths_share_their_first_iterations_only() {
    for sharing in [ReuseScope::Dataflow, ReuseScope::Value] {
        let sets = [(100, 1), (100, 3), (100, 2)];
        let (outcome, runs) = execute(&sets, 1, sharing);
        check_results(&sets, &outcome);
        // The second set alone needs a second iteration. The third one ends after the second iteration too.
        assert_eq!((runs["toy.begin"], runs["toy.halve"], runs["toy.error"]), (1, 2, 1 + 2 + 2));
        // One result of one iteration, and one of two.
        assert_eq!((runs["toy.raise"], runs["toy.end"]), (2, 2));
        // A branch is not computed for each value that selects it: its key does not contain the value.
        assert_eq!(outcome.all_tasks().skipped, (2 * 3 + 1) + 2 * (2 * 2 + 1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn every_reuse_scope_gives_equal_results(
        sets in prop::collection::vec((0i64..300, prop_oneof![Just(0i64), 1i64..12]), 1..12),
        bucket in 1usize..5,
    ) {
        for sharing in ReuseScope::ALL {
            let (outcome, runs) = execute(&sets, bucket, sharing);
            check_results(&sets, &outcome);
            let distinct: BTreeSet<String> =
                sets.iter().flat_map(|(a, b)| oracle(*a, *b).1).map(|run| format!("{run:?}")).collect();
            // The error of the last possible iteration decides nothing, so its value is not kept for another set that needs it.
            let unread = sets.iter().filter_map(|(a, b)| {
                oracle(*a, *b).1.into_iter().filter(|(name, _)| *name == "toy.error").nth(3)
            });
            let unread: BTreeSet<String> = unread.map(|run| format!("{run:?}")).collect();
            let total: usize = runs.values().sum();
            match sharing {
                // Each computation once: no iteration that was skipped, and no branch.
                ReuseScope::Value => prop_assert!(
                    (distinct.len()..=distinct.len() + unread.len()).contains(&total),
                    "{} runs, {} distinct, {} unread", total, distinct.len(), unread.len()
                ),
                ReuseScope::Dataflow => prop_assert!(total >= distinct.len()),
                ReuseScope::Tree => prop_assert!(
                    total <= sets.iter().map(|(a, b)| oracle(*a, *b).1.len()).sum::<usize>()
                ),
            }
        }
    }
}
