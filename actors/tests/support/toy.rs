//! Operations on one-number tables, and plans over them, small enough to compute by hand.

use pleach_actors::panic_guard::{THREAD_NAME, is_running_task};
use pleach_actors::storage::Source;
use pleach_dispatch::InstanceId;
use pleach_dispatch::dry_run::rehearse;
use pleach_dispatch::memory_model::TaskMemory;
use pleach_dispatch::message::TaskFailure;
use pleach_dispatch::plan::{BucketPlan, ExecutionPlan, InstancePlan, OutputPlan};
use pleach_regions::{DataRegion, ElementType, RegionKey, Table};
use pleach_workflow::{
    Accepts, Argument, InputOrigin, Operation, OperationError, Port, RegionDecl, Registry, Stage, StageInput,
    StageOutput, Task, TaskInput, Value,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Argument that makes the operation fail.
pub(crate) const FAILS: i64 = -1;
/// Argument that makes the operation panic.
pub(crate) const PANICS: i64 = -2;
/// Argument that makes the operation return no output, unlike its declaration.
pub(crate) const LIES: i64 = -3;

/// Observations of the operation over all its runs.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    pub(crate) runs: AtomicUsize,
    running: AtomicUsize,
    pub(crate) most_running: AtomicUsize,
    /// Runs on the actors' thread.
    pub(crate) at_once: AtomicUsize,
}

/// `x → 31 x + argument`: the order of steps matters, and every step changes the result.
struct Step(Arc<Watch>);

impl Operation for Step {
    fn name(&self) -> &'static str {
        "toy.step"
    }

    fn version(&self) -> u32 {
        1
    }

    fn arguments(&self) -> &[Argument] {
        const ARGUMENTS: [Argument; 1] =
            [Argument { name: "add", accepts: Accepts::Integers { low: -10, high: 1000 } }];
        &ARGUMENTS
    }

    fn inputs(&self) -> &[Port] {
        const PORTS: [Port; 1] = [Port { name: "x", element: ElementType::Table }];
        &PORTS
    }

    fn outputs(&self) -> &[Port] {
        self.inputs()
    }

    fn cost_seconds(&self, _: u64) -> f64 {
        1e-6
    }

    fn memory_bytes(&self, pixels: u64) -> u64 {
        ElementType::Table.bytes(pixels) + 64
    }

    fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        let now = self.0.running.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.most_running.fetch_max(now, Ordering::SeqCst);
        self.0.runs.fetch_add(1, Ordering::SeqCst);
        let is_slot = std::thread::current().name().is_some_and(|name| name.starts_with(THREAD_NAME));
        self.0.at_once.fetch_add(usize::from(!is_slot), Ordering::SeqCst);
        assert!(is_running_task());
        let result = step(inputs, arguments);
        self.0.running.fetch_sub(1, Ordering::SeqCst);
        result
    }
}

fn step(inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
    let Value::Integer(add) = arguments[0] else { unreachable!("declared as an integer") };
    match add {
        // Without the panic hook, which would print. The test checks only the message.
        PANICS => std::panic::resume_unwind(Box::new("asked to")),
        FAILS => Err(OperationError::Arity { what: "inputs", wanted: 2, found: 1 }),
        LIES => Ok(vec![]),
        _ => Ok(vec![number(31.0 * read(inputs[0]) + arguments[0].as_f64())]),
    }
}

pub(crate) fn number(x: f64) -> DataRegion {
    DataRegion::Table(Table::new([("x", x)]))
}

pub(crate) fn read(region: &DataRegion) -> f64 {
    region.table().ok().and_then(|table| table.get("x")).expect("one number")
}

/// Returns the declared memory of the tasks of a stage.
fn bytes(stage: usize, pixels: u64) -> Vec<TaskMemory> {
    let output = ElementType::Table.bytes(pixels);
    vec![TaskMemory { scratch: 64, outputs: vec![output] }; if stage == 0 { 3 } else { 2 }]
}

pub(crate) fn registry() -> (Registry, Arc<Watch>) {
    let watch = Arc::new(Watch::default());
    (Registry::new([Arc::new(Step(Arc::clone(&watch))) as Arc<dyn Operation>]), watch)
}

/// Input that counts its loads.
pub(crate) struct Input {
    pub(crate) value: Result<f64, String>,
    pub(crate) loads: Arc<AtomicUsize>,
}

impl Source for Input {
    fn load(&self) -> Result<DataRegion, TaskFailure> {
        self.loads.fetch_add(1, Ordering::SeqCst);
        let fail = |cause: &String| TaskFailure { at: "input".to_owned(), cause: cause.clone() };
        self.value.as_ref().map(|x| number(*x)).map_err(fail)
    }
}

fn region(name: &str) -> RegionDecl {
    RegionDecl { region: name.to_owned(), element: ElementType::Table }
}

/// Returns a stage of `tasks` consecutive steps, each with its own parameter.
pub(crate) fn stage(name: &str, tasks: usize, origin: InputOrigin) -> Stage {
    let task = |number: usize| Task {
        name: format!("{name}{number}"),
        description: String::new(),
        operation: "toy.step".to_owned(),
        version: 1,
        arguments: vec![number],
        reads: vec![match number {
            0 => TaskInput::StageInput(0),
            _ => TaskInput::Task { task: number - 1, output: 0 },
        }],
        writes: vec![region(&format!("{name}{number}"))],
        guard: None,
    };
    Stage {
        name: name.to_owned(),
        description: String::new(),
        inputs: vec![StageInput::new(region("x"), origin)],
        outputs: vec![StageOutput::new(region("y"), tasks - 1, 0)],
        parameters: (0..tasks).collect(),
        tasks: (0..tasks).map(task).collect(),
        switch: None,
    }
}

/// Returns the key of input `tile`.
pub(crate) fn input_key(tile: usize) -> RegionKey {
    RegionKey([255, tile as u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
}

fn output_key(id: u32) -> RegionKey {
    let mut key = [0; 16];
    key[..4].copy_from_slice(&id.to_le_bytes());
    RegionKey(key)
}

/// Returns a plan of two stages. Each of `sets` runs through both, with its first three values and then its last two.
/// Buckets contain up to `bucket` instances of a stage.
pub(crate) fn plan(sets: &[(usize, [i64; 5])], bucket: usize) -> ExecutionPlan {
    let values = |numbers: &[i64]| numbers.iter().map(|n| Value::Integer(*n)).collect();
    let count = sets.len() as u32;
    let mut plan = ExecutionPlan {
        stages: vec![
            stage("a", 3, InputOrigin::Input(0)),
            stage("b", 2, InputOrigin::Stage { stage: 0, output: 0 }),
        ],
        ..ExecutionPlan::default()
    };
    for (id, (tile, set)) in (0u32..).zip(sets) {
        plan.instances.push(InstancePlan {
            stage: 0,
            parameters: values(&set[..3]),
            inputs: vec![input_key(*tile)],
            outputs: vec![OutputPlan { key: output_key(id), stored: true, reported: false }],
            parents: vec![],
        });
    }
    for (id, (_, set)) in (0u32..).zip(sets) {
        plan.instances.push(InstancePlan {
            stage: 1,
            parameters: values(&set[3..]),
            inputs: vec![output_key(id)],
            outputs: vec![OutputPlan { key: output_key(count + id), stored: false, reported: true }],
            parents: vec![InstanceId(id)],
        });
    }
    for first in [0, count] {
        let ids: Vec<_> = (first..first + count).map(InstanceId).collect();
        plan.buckets.extend(ids.chunks(bucket).map(|ids| BucketPlan { instances: ids.to_vec(), pixels: 1 }));
    }
    plan.needs = rehearse(&plan, bytes).expect("a plan that keeps the rules").needs;
    plan
}

/// Returns the expected result of a parameter set.
pub(crate) fn expected(input: f64, set: &[i64; 5]) -> f64 {
    set.iter().fold(input, |x, add| 31.0 * x + *add as f64)
}
