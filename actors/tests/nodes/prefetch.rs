//! Transfers beside tasks: inputs of the next task of an accelerator are uploaded while it runs a task, outputs of the task before are
//! downloaded meanwhile, and results do not depend on it.

use crate::toy::{Input, expected, input_key, plan, registry};
use pleach_accelerate::{Device, DeviceError, DeviceOutput, OnDevice, Prefetcher, Transfers};
use pleach_actors::embedded::{EmbeddedStudy, run};
use pleach_actors::storage::Source;
use pleach_actors::task::{Accelerators, unmetered};
use pleach_actors::worker::{Resources, unmeasured};
use pleach_cache::PriorResults;
use pleach_dispatch::InstanceId;
use pleach_regions::{DataRegion, Digest};
use pleach_workflow::{
    Accelerated, AcceleratedError, Argument, Operation, OperationError, Port, Registry, Value,
};
use std::any::Any;
use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tokio::sync::oneshot;

/// 5 ms: a task on a core takes as long, so that neither kind of slot gains.
const TASK_TIME: Duration = Duration::from_millis(5);

/// Regions on the device, by content.
#[derive(Debug, Default)]
struct Memory {
    ahead: Mutex<(Vec<Digest>, Transfers)>,
    arrived: Condvar,
    downloads: Mutex<Downloads>,
    began: Condvar,
}

/// Tasks that have begun on the device, and downloads that ended after a later task had begun.
#[derive(Debug, Default)]
struct Downloads {
    begun: u32,
    overlapped: u32,
}

/// An output on the device. It arrives once a later task has begun, or after the time of a task.
struct Output {
    memory: Arc<Memory>,
    task: u32,
    region: DataRegion,
}

impl OnDevice for Output {
    fn download(self: Box<Self>) -> Result<DataRegion, DeviceError> {
        let downloads = self.memory.downloads.lock().expect("the lock");
        let is_alone = |downloads: &mut Downloads| downloads.begun == self.task;
        let waited = self.memory.began.wait_timeout_while(downloads, 10 * TASK_TIME, is_alone);
        let (mut downloads, waited) = waited.expect("the lock");
        downloads.overlapped += u32::from(!waited.timed_out());
        Ok(self.region)
    }
}

/// A device with one counter for each region.
struct TestDevice {
    memory: Arc<Memory>,
    fails: bool,
}

impl Device for TestDevice {
    fn name(&self) -> &str {
        "test device"
    }

    fn memory_bytes(&self) -> u64 {
        u64::MAX
    }

    fn used_bytes(&self) -> u64 {
        0
    }

    fn transfers(&self) -> Transfers {
        self.memory.ahead.lock().expect("the lock").1
    }

    fn prefetcher(&mut self) -> Option<Box<dyn Prefetcher>> {
        Some(Box::new(TestPrefetcher { memory: Arc::clone(&self.memory), fails: self.fails }))
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

struct TestPrefetcher {
    memory: Arc<Memory>,
    fails: bool,
}

impl Prefetcher for TestPrefetcher {
    fn prefetch(&mut self, region: &DataRegion) -> Result<u64, DeviceError> {
        let mut ahead = self.memory.ahead.lock().expect("the lock");
        self.memory.arrived.notify_all();
        if self.fails {
            let device = "test device".to_owned();
            return Err(DeviceError::Lost { device, cause: "asked to".to_owned() });
        }
        ahead.0.push(region.digest());
        ahead.1.prefetched_bytes += region.bytes();
        Ok(region.bytes())
    }
}

/// The toy operation with a variant for the test device.
struct Step {
    inner: Arc<dyn Operation>,
    on_device: Arc<AtomicU32>,
}

impl Operation for Step {
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

    fn cost_seconds(&self, _: u64) -> f64 {
        TASK_TIME.as_secs_f64()
    }

    fn memory_bytes(&self, pixels: u64) -> u64 {
        self.inner.memory_bytes(pixels)
    }

    fn run(&self, inputs: &[&DataRegion], arguments: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        std::thread::park_timeout(TASK_TIME);
        self.inner.run(inputs, arguments)
    }

    fn accelerated(&self) -> Option<&dyn Accelerated> {
        Some(self)
    }
}

impl Accelerated for Step {
    fn gain(&self) -> f64 {
        2.0
    }

    fn device_bytes(&self, pixels: u64) -> u64 {
        pixels
    }

    /// Uses the regions that are on the device, then runs until the next prefetch, or as long as a core.
    fn run_on(
        &self,
        device: &mut dyn Device,
        inputs: &[&DataRegion],
        arguments: &[Value],
    ) -> Result<Vec<DeviceOutput>, AcceleratedError> {
        self.on_device.fetch_add(1, Ordering::SeqCst);
        let device: &mut TestDevice = device.as_any_mut().downcast_mut().expect("the test device");
        let mut downloads = device.memory.downloads.lock().expect("the lock");
        downloads.begun += 1;
        let task = downloads.begun;
        drop(downloads);
        device.memory.began.notify_all();
        let mut ahead = device.memory.ahead.lock().expect("the lock");
        for input in inputs {
            if let Some(found) = ahead.0.iter().position(|digest| *digest == input.digest()) {
                ahead.0.remove(found);
                ahead.1.used_prefetched_bytes += input.bytes();
            }
        }
        drop(device.memory.arrived.wait_timeout(ahead, TASK_TIME).expect("the lock"));
        let output = |region| -> Box<dyn OnDevice> {
            Box::new(Output { memory: Arc::clone(&device.memory), task, region })
        };
        let outputs = self.inner.run(inputs, arguments)?.into_iter().map(output);
        Ok(outputs.map(DeviceOutput::Device).collect())
    }
}

/// Runs a study on a core and, with `fails`, a device. Returns its results, the tasks on the device, its prefetched bytes, and the
/// downloads beside a later task.
fn execute(fails: Option<bool>) -> (Vec<Option<f64>>, u32, (u64, u64), u32) {
    let sets: Vec<(usize, [i64; 5])> = (0..24).map(|n| (n as usize % 3, [n, n % 5, 3, n % 2, 5])).collect();
    let memory = Arc::<Memory>::default();
    let there = Arc::clone(&memory);
    let devices = fails.map(|fails| Box::new(TestDevice { memory: there, fails }) as Box<dyn Device>);
    let accelerators = Accelerators::new(devices.into_iter().collect());
    let on_device = Arc::<AtomicU32>::default();
    let inner = Arc::clone(registry().0.get("toy.step", 1).expect("it is linked in"));
    let step = Step { inner, on_device: Arc::clone(&on_device) };
    let source = |tile: usize| -> (_, Arc<dyn Source>) {
        (input_key(tile), Arc::new(Input { value: Ok(tile as f64 + 1.0), loads: Arc::default() }))
    };
    let (_go_on, stop) = oneshot::channel();
    let finished = run(EmbeddedStudy {
        plan: plan(&sets, 2),
        finished: BTreeSet::new(),
        registry: Registry::new([Arc::new(step) as Arc<dyn Operation>]),
        sources: (0..3).map(source).collect::<HashMap<_, _>>(),
        resources: Resources {
            slots: NonZeroU32::MIN,
            accelerators: accelerators.clone(),
            memory_bytes: u64::MAX,
            active_paths: None,
            meter: unmetered,
            process_bytes: unmeasured,
        },
        costs: Arc::default(),
        prior: PriorResults::default(),
        ledger: Arc::default(),
        spill: None,
        observer: Box::new(|_| {}),
        stop,
    });
    let outcome = finished.expect("the plan runs").outcome;
    assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
    let result = |id: usize| outcome.results.get(InstanceId((sets.len() + id) as u32))?[0].get("x");
    let results: Vec<Option<f64>> = (0..sets.len()).map(result).collect();
    for ((tile, set), found) in sets.iter().zip(&results) {
        assert_eq!(*found, Some(expected(*tile as f64 + 1.0, set)));
    }
    let prefetched = accelerators.states().iter().map(|state| state.prefetched_bytes()).next();
    let overlapped = memory.downloads.lock().expect("the lock").overlapped;
    (results, on_device.load(Ordering::SeqCst), prefetched.unwrap_or_default(), overlapped)
}

#[test]
fn transfers_run_beside_tasks_and_results_are_those_of_cores() {
    let (on_cores, none, ..) = execute(None);
    let (results, on_device, (prefetched, used), overlapped) = execute(Some(false));
    println!(
        "{on_device} tasks on the device, {prefetched} B prefetched, {used} B of them used, {overlapped} downloads beside a task"
    );
    assert_eq!((&results, none), (&on_cores, 0));
    assert!(on_device > 0);
    assert!(overlapped > 0, "no output was downloaded beside a task");
    assert!(used > 0 && used <= prefetched, "{used} B of {prefetched} prefetched bytes were used");
}

#[test]
fn errors_of_a_prefetch_change_nothing() {
    let (results, on_device, prefetched, _) = execute(Some(true));
    assert_eq!(results, execute(None).0);
    assert!(on_device > 0);
    assert_eq!(prefetched, (0, 0));
}
