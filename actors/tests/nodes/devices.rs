//! Faults of a device: each task ends with the result of a core, and the slot closes when it must.

#![expect(clippy::unwrap_used, reason = "clippy exempts tests, not the functions they call")]

use actix::prelude::*;
use pleach_accelerate::{Device, DeviceError, DeviceOutput, EmulatedDevice, OnDevice};
use pleach_actors::task::{
    Accelerators, DeviceCall, DeviceEvent, DeviceExclusions, DeviceSlot, OutputSource, RunTask, TaskActor,
    TaskResult, unmetered,
};
use pleach_dispatch::SlotId;
use pleach_dispatch::SlotKind;
use pleach_regions::{DataRegion, ElementType};
use pleach_workflow::{Accelerated, AcceleratedError, Argument, Operation, OperationError, Port, Value};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tracing::Span;

/// Conduct of the device variant.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Conduct {
    Works,
    Lost,
    OutOfMemory,
    Compile,
    Call,
    Panics,
    Hangs,
    Wrong,
    OperationFails,
    Unsupported,
    DownloadFails,
    DownloadHangs,
}

/// An output that never arrives.
struct Undelivered {
    hangs: bool,
}

impl OnDevice for Undelivered {
    fn download(self: Box<Self>) -> Result<DataRegion, DeviceError> {
        if self.hangs {
            loop {
                std::thread::park();
            }
        }
        Err(DeviceError::Lost { device: "test device".to_owned(), cause: "gone".to_owned() })
    }
}

struct TestDevice;

impl Device for TestDevice {
    fn name(&self) -> &str {
        "test device"
    }

    fn memory_bytes(&self) -> u64 {
        1000
    }

    fn used_bytes(&self) -> u64 {
        7
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }
}

/// Adds 1. Counts its runs on cores and on devices.
struct Increment {
    conduct: Conduct,
    /// A run on a core ends when the device has computed this many tasks.
    computed_before: u32,
    on_core: AtomicU32,
    on_device: AtomicU32,
}

const PORT: Port = Port { name: "x", element: ElementType::Scalar };

impl Operation for Increment {
    fn name(&self) -> &'static str {
        "test.increment"
    }

    fn version(&self) -> u32 {
        1
    }

    fn arguments(&self) -> &[Argument] {
        &[]
    }

    fn inputs(&self) -> &[Port] {
        &[PORT]
    }

    fn outputs(&self) -> &[Port] {
        &[PORT]
    }

    fn cost_seconds(&self, _: u64) -> f64 {
        1e-3
    }

    fn memory_bytes(&self, _: u64) -> u64 {
        8
    }

    fn run(&self, inputs: &[&DataRegion], _: &[Value]) -> Result<Vec<DataRegion>, OperationError> {
        self.on_core.fetch_add(1, Ordering::SeqCst);
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.on_device.load(Ordering::SeqCst) < self.computed_before && Instant::now() < deadline {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        let DataRegion::Scalar(x) = inputs[0] else { unreachable!("a scalar") };
        Ok(vec![DataRegion::Scalar(x + 1.0)])
    }

    fn accelerated(&self) -> Option<&dyn Accelerated> {
        Some(self)
    }
}

impl Accelerated for Increment {
    fn gain(&self) -> f64 {
        4.0
    }

    fn device_bytes(&self, pixels: u64) -> u64 {
        pixels
    }

    fn run_on(
        &self,
        _: &mut dyn Device,
        inputs: &[&DataRegion],
        _: &[Value],
    ) -> Result<Vec<DeviceOutput>, AcceleratedError> {
        self.on_device.fetch_add(1, Ordering::SeqCst);
        let device = "test device".to_owned();
        let DataRegion::Scalar(x) = inputs[0] else { unreachable!("a scalar") };
        Err(match self.conduct {
            Conduct::Works => return Ok(vec![DeviceOutput::Host(DataRegion::Scalar(x + 1.0))]),
            Conduct::Wrong => return Ok(vec![DeviceOutput::Host(DataRegion::Scalar(x + 1.000001))]),
            Conduct::DownloadFails | Conduct::DownloadHangs => {
                let hangs = self.conduct == Conduct::DownloadHangs;
                return Ok(vec![DeviceOutput::Device(Box::new(Undelivered { hangs }))]);
            }
            Conduct::Panics => std::panic::resume_unwind(Box::new("asked to")),
            Conduct::Hangs => loop {
                std::thread::park();
            },
            Conduct::OperationFails => OperationError::Arity { what: "inputs", wanted: 2, found: 1 }.into(),
            Conduct::Lost => DeviceError::Lost { device, cause: "gone".to_owned() }.into(),
            Conduct::OutOfMemory => {
                DeviceError::OutOfMemory { device, bytes: 2000, used_bytes: 0, memory_bytes: 1000 }.into()
            }
            Conduct::Compile => {
                DeviceError::Compile { device, program: "p".to_owned(), log: "bad".to_owned() }.into()
            }
            Conduct::Call => DeviceError::Call { device, call: "enqueue", cause: "odd".to_owned() }.into(),
            Conduct::Unsupported => DeviceError::Unsupported { device, cause: "no kernel".to_owned() }.into(),
        })
    }
}

/// Receives the events of a slot.
struct Listener(tokio::sync::mpsc::UnboundedSender<DeviceEvent>);

impl Actor for Listener {
    type Context = Context<Self>;
}

impl Handler<DeviceEvent> for Listener {
    type Result = ();

    fn handle(&mut self, event: DeviceEvent, _: &mut Self::Context) {
        let _ = self.0.send(event);
    }
}

/// A slot with one device and the operation that it runs.
struct Bench {
    operation: Arc<Increment>,
    slot: Addr<TaskActor>,
    accelerators: Accelerators,
    exclusions: Arc<DeviceExclusions>,
    events: UnboundedReceiver<DeviceEvent>,
}

impl Bench {
    fn new(conduct: Conduct, accelerators: Accelerators) -> Self {
        Self::with_cores_after(0, conduct, accelerators)
    }

    /// The device has computed `computed_before` tasks before one on a core ends.
    fn with_cores_after(computed_before: u32, conduct: Conduct, accelerators: Accelerators) -> Self {
        let pool = Arc::new(rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap());
        let (send, events) = unbounded_channel();
        let exclusions = Arc::default();
        let device = DeviceSlot::start(
            SlotId(1),
            accelerators.take_devices().remove(0),
            &accelerators,
            &exclusions,
            unmetered,
            Listener(send).start().recipient(),
        );
        let slot = TaskActor::new(pool, unmetered).with_device(device.unwrap()).start();
        let (on_core, on_device) = (AtomicU32::new(0), AtomicU32::new(0));
        let operation = Increment { conduct, computed_before, on_core, on_device };
        Self { operation: Arc::new(operation), slot, accelerators, exclusions, events }
    }

    async fn run(&self) -> TaskResult {
        let task = RunTask {
            name: "increment".to_owned(),
            operation: Arc::clone(&self.operation) as Arc<dyn Operation>,
            inputs: vec![Arc::new(DataRegion::Scalar(1.0))],
            arguments: Vec::new(),
            digests: vec![true],
            recall: None,
            back: None,
            short: false,
            device: Some(DeviceCall { pixels: 100, core_seconds: 0.0, place: "study 0".to_owned() }),
            span: Span::none(),
        };
        let result = self.slot.send(task).await.unwrap();
        assert_eq!(result.outputs.as_ref().unwrap(), &[Some(DataRegion::Scalar(2.0))]);
        assert_eq!(result.digests, [Some(DataRegion::Scalar(2.0).digest())]);
        assert_eq!(result.source, OutputSource::Run);
        result
    }

    /// Returns the runs on cores and on the device.
    fn runs(&self) -> (u32, u32) {
        (self.operation.on_core.load(Ordering::SeqCst), self.operation.on_device.load(Ordering::SeqCst))
    }

    /// Returns the remark on the next closed slot.
    async fn closed(&mut self) -> String {
        loop {
            if let DeviceEvent::Closed(slot, remark) = self.events.recv().await.unwrap() {
                assert_eq!(slot, SlotId(1));
                return remark;
            }
        }
    }

    fn is_closed(&self) -> bool {
        self.accelerators.states()[0].is_closed()
    }
}

fn one_device() -> Accelerators {
    Accelerators::new(vec![Box::new(TestDevice)])
}

/// Runs `tasks` tasks. Returns the runs on cores and on the device, and whether the slot is closed.
async fn runs(conduct: Conduct, accelerators: Accelerators, tasks: usize) -> (u32, u32, bool, Bench) {
    let bench = Bench::new(conduct, accelerators);
    for _ in 0..tasks {
        bench.run().await;
    }
    let (on_core, on_device) = bench.runs();
    let is_closed = bench.is_closed();
    (on_core, on_device, is_closed, bench)
}

#[actix::test]
async fn task_runs_on_the_device() {
    let bench = Bench::new(Conduct::Works, one_device());
    assert_eq!(bench.run().await.device, SlotKind::Accelerator);
    assert_eq!((bench.runs(), bench.is_closed()), ((0, 1), false));
    assert_eq!(bench.accelerators.states()[0].used_bytes(), 7);
}

#[actix::test]
async fn third_error_closes_the_slot_once() {
    for conduct in [Conduct::Call, Conduct::Panics, Conduct::Compile] {
        let (on_core, on_device, is_closed, mut bench) = runs(conduct, one_device(), 5).await;
        assert_eq!((on_core, on_device, is_closed), (5, 3, true), "{conduct:?}");
        let remark = bench.closed().await;
        assert!(remark.contains("test.increment, study 0: test device"), "{remark}");
        assert!(bench.events.try_recv().is_err(), "closed once");
        assert_eq!(bench.run().await.device, SlotKind::Core);
    }
}

#[actix::test]
async fn lost_device_closes_its_slot_at_once() {
    let (on_core, on_device, is_closed, _) = runs(Conduct::Lost, one_device(), 4).await;
    assert_eq!((on_core, on_device, is_closed), (4, 1, true));
}

#[actix::test]
async fn operation_that_does_not_fit_is_excluded_and_the_slot_stays_open() {
    for (conduct, small) in [(Conduct::OutOfMemory, false), (Conduct::Unsupported, true)] {
        let (on_core, _, is_closed, bench) = runs(conduct, one_device(), 4).await;
        assert_eq!((on_core, is_closed), (4, false), "{conduct:?}");
        assert!(bench.exclusions.contains(&*bench.operation, 100));
        assert!(bench.exclusions.contains(&*bench.operation, 5000));
        assert_eq!(bench.exclusions.contains(&*bench.operation, 99), small);
    }
}

#[actix::test]
async fn failed_operation_is_no_error_of_the_device() {
    let (on_core, on_device, is_closed, _) = runs(Conduct::OperationFails, one_device(), 4).await;
    assert_eq!((on_core, on_device, is_closed), (4, 4, false));
}

#[actix::test]
async fn hanging_thread_is_abandoned() {
    let accelerators = one_device().with_min_time_limit(Duration::from_millis(20));
    let (on_core, on_device, is_closed, mut bench) = runs(Conduct::Hangs, accelerators, 3).await;
    assert_eq!((on_core, on_device, is_closed), (3, 1, true));
    assert!(bench.closed().await.contains("hangs"));
}

#[actix::test]
async fn wrong_result_is_found_by_a_comparison_and_closes_the_slot() {
    let (on_core, on_device, is_closed, mut bench) =
        runs(Conduct::Wrong, one_device().with_check_rate(0.01), 3).await;
    assert_eq!((on_core, on_device, is_closed), (3, 1, true));
    assert!(bench.closed().await.contains("differs"));
}

/// The second task has computed before the comparison of the first one fails.
#[actix::test]
async fn result_of_a_device_that_was_wrong_before_does_not_count() {
    let bench = Bench::with_cores_after(2, Conduct::Wrong, one_device().with_check_rate(1e-9));
    let (first, second) = tokio::join!(bench.run(), bench.run());
    assert_eq!((first.device, second.device), (SlotKind::Core, SlotKind::Core));
    assert_eq!((bench.runs(), bench.is_closed()), ((2, 2), true));
}

#[actix::test]
async fn slot_is_free_once_its_task_has_computed() {
    let mut bench = Bench::new(Conduct::Works, one_device());
    for number in 1..3 {
        assert_eq!(bench.run().await.download, Some(number));
        let event = bench.events.recv().await;
        assert!(matches!(event, Some(DeviceEvent::Computed(SlotId(1), it)) if it == number));
    }
    // A task that did not compute holds its slot until it has run on a core.
    let mut bench = Bench::new(Conduct::Call, one_device());
    assert_eq!(bench.run().await.download, None);
    assert!(bench.events.try_recv().is_err());
}

#[actix::test]
async fn failed_download_runs_the_task_on_a_core() {
    let (on_core, on_device, is_closed, mut bench) = runs(Conduct::DownloadFails, one_device(), 1).await;
    assert_eq!((on_core, on_device, is_closed), (1, 1, true));
    assert!(bench.closed().await.contains("lost"));
    let result = Bench::new(Conduct::DownloadFails, one_device()).run().await;
    assert_eq!((result.download, result.device), (Some(1), SlotKind::Core));
}

#[actix::test]
async fn hanging_download_is_abandoned_with_the_task_behind_it() {
    let accelerators = one_device().with_min_time_limit(Duration::from_millis(20));
    let mut bench = Bench::new(Conduct::DownloadHangs, accelerators);
    let (first, second) = tokio::join!(bench.run(), bench.run());
    assert_eq!((first.device, second.device), (SlotKind::Core, SlotKind::Core));
    assert_eq!((first.download, second.download), (Some(1), None));
    assert_eq!((bench.runs(), bench.is_closed()), ((2, 2), true));
    assert!(bench.closed().await.contains("hangs"));
}

#[actix::test]
async fn comparisons_follow_the_rate() {
    for (rate, expected) in [(0.0, 0), (0.1, 2), (0.5, 6), (1.0, 12)] {
        let accelerators = one_device().with_check_rate(rate);
        let (on_core, on_device, is_closed, _) = runs(Conduct::Works, accelerators, 12).await;
        assert_eq!((on_core, on_device, is_closed), (expected, 12, false), "{rate}");
    }
}

#[actix::test]
async fn emulated_device_runs_the_cpu_variant() {
    let emulated = || Accelerators::new(vec![Box::new(EmulatedDevice::new(2.0, None))]);
    let bench = Bench::new(Conduct::Unsupported, emulated());
    assert_eq!(bench.run().await.device, SlotKind::Accelerator);
    assert_eq!((bench.runs(), bench.is_closed()), ((1, 1), false));
    assert!(!bench.exclusions.contains(&*bench.operation, 100));
    // A stand-in waits on the device instead.
    let (on_core, on_device, ..) = runs(Conduct::Works, emulated().with_check_rate(1.0), 2).await;
    assert_eq!((on_core, on_device), (2, 2), "its outputs are compared");
}
