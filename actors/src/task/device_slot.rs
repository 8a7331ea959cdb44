//! The slot of an accelerator: a thread that owns the device, the time limit of its tasks, and the consequences of its faults.
//!
//! The thread executes tasks as a core does, except for the operation itself. A task that the device did not finish runs on a
//! core, within the same grant: the thread pool bounds the running tasks, and the worker has reserved the memory.
//! A thread that hangs in a driver cannot be ended. Its slot closes, and the process ends without it.

use super::accelerators::{Accelerators, DeviceExclusions, DeviceState};
use super::prefetch::{PrefetchInputs, PrefetchThread};
use super::{Call, Executed, RunTask, TaskResult, execute, fits_declared, run};
use crate::panic_guard::catch_panic;
use actix::prelude::*;
use parking_lot::Mutex;
use pleach_accelerate::{Device, DeviceError};
use pleach_dispatch::SlotId;
use pleach_dispatch::SlotKind;
use pleach_dispatch::message::TaskFailure;
use pleach_regions::DataRegion;
use pleach_telemetry::catalog;
use pleach_workflow::{Accelerated, AcceleratedError, Meter, Operation};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Builder;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tracing::warn;

/// The slot of an accelerator has closed: no further task is granted there.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
pub struct DeviceClosed {
    /// The slot.
    pub slot: SlotId,
    /// Name of the device, and why.
    pub remark: String,
}

/// A task's use of a device.
#[derive(Clone, Debug)]
pub struct DeviceCall {
    /// Pixels of the image.
    pub pixels: u64,
    /// Predicted seconds on a core.
    pub core_seconds: f64,
    /// Study and instance, for logs.
    pub place: String,
}

/// Fault of a device.
#[derive(Debug)]
enum Fault {
    Device(DeviceError),
    /// The task has not ended within its time limit, and the thread does not return.
    Hung(Duration),
    /// The bits of the outputs differ from those of a core.
    WrongResult,
    Panicked(String),
    /// The thread has ended.
    Ended,
}

impl Fault {
    /// Returns the label of [`catalog::DEVICE_ERRORS`].
    fn cause(&self) -> &'static str {
        match self {
            Self::Device(error) => error.cause(),
            Self::Hung(_) => "timeout",
            Self::WrongResult => "result",
            Self::Panicked(_) | Self::Ended => "other",
        }
    }

    fn text(&self, device: &str) -> String {
        match self {
            Self::Device(error) => error.to_string(),
            Self::Hung(limit) => {
                format!("{device}: a task hangs for more than {:.1} s", limit.as_secs_f64())
            }
            Self::WrongResult => format!("{device}: the result differs from that of a core"),
            Self::Panicked(cause) => format!("{device}: {cause}"),
            Self::Ended => format!("{device}: its thread has ended"),
        }
    }

    /// Returns whether no further task may run on the device, whatever its earlier errors.
    fn is_fatal(&self) -> bool {
        match self {
            Self::Device(error) => !error.is_usable_after(),
            Self::Hung(_) | Self::WrongResult | Self::Ended => true,
            Self::Panicked(_) => false,
        }
    }

    /// Returns whether later runs of the operation meet the same fault, on images of at least this size or on all.
    fn excludes(&self, pixels: u64) -> Option<u64> {
        match self {
            Self::Device(DeviceError::OutOfMemory { .. }) => Some(pixels),
            Self::Device(DeviceError::Unsupported { .. } | DeviceError::Compile { .. }) => Some(0),
            _ => None,
        }
    }

    /// Returns whether the fault is one of the device, and not a limit of the device or of an operation.
    fn is_error(&self) -> bool {
        !matches!(self, Self::Device(DeviceError::OutOfMemory { .. } | DeviceError::Unsupported { .. }))
    }
}

/// Answer of the thread.
enum Answer {
    Done(TaskResult),
    /// The outputs of the device were wrong. The result has those of a core.
    Corrected(TaskResult),
    Fault(Fault),
    /// The operation failed on the device. A core decides whether it fails.
    Failed,
}

/// A task for the thread.
struct Job {
    task: RunTask,
    limit: Duration,
    answer: oneshot::Sender<Answer>,
}

/// The slot, on the side of the actors.
pub struct DeviceSlot {
    slot: SlotId,
    state: Arc<DeviceState>,
    jobs: Sender<Job>,
    /// `None` for a device that cannot upload while it runs a task.
    prefetch: Option<PrefetchThread>,
    /// Start of the present run on the device.
    since: Arc<Mutex<Option<Instant>>>,
    accelerators: Accelerators,
    exclusions: Arc<DeviceExclusions>,
    closed: Recipient<DeviceClosed>,
}

impl fmt::Debug for DeviceSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceSlot").field("device", &self.state.name()).finish_non_exhaustive()
    }
}

impl DeviceSlot {
    /// Starts the threads of a device.
    ///
    /// # Errors
    /// Returns the error of the system if a thread cannot be started.
    pub fn start(
        slot: SlotId,
        (mut device, state): (Box<dyn Device>, Arc<DeviceState>),
        accelerators: &Accelerators,
        exclusions: &Arc<DeviceExclusions>,
        meter: Meter,
        closed: Recipient<DeviceClosed>,
    ) -> std::io::Result<Self> {
        let (jobs, received) = channel();
        let since = Arc::default();
        let prefetcher = device.prefetcher();
        let prefetch =
            prefetcher.map(|it| PrefetchThread::start(slot, it, Arc::clone(&state))).transpose()?;
        let thread = DeviceThread {
            device,
            state: Arc::clone(&state),
            since: Arc::clone(&since),
            checks: Checks::new(accelerators.check_rate()),
            meter,
        };
        Builder::new().name(format!("device-{}", slot.0)).spawn(move || thread.serve(&received))?;
        let (accelerators, exclusions) = (accelerators.clone(), Arc::clone(exclusions));
        Ok(Self { slot, state, jobs, prefetch, since, accelerators, exclusions, closed })
    }

    /// Returns whether the device can upload while it runs a task.
    #[must_use]
    pub fn can_prefetch(&self) -> bool {
        self.prefetch.is_some()
    }

    /// Uploads inputs of the next task while the device runs a task.
    pub(super) fn prefetch(&self, inputs: PrefetchInputs) {
        if let Some(thread) = self.prefetch.as_ref().filter(|_| !self.state.is_closed()) {
            thread.send(inputs);
        }
    }

    /// Runs a task on the device. Returns `None` if it must run on a core.
    pub(super) async fn run(&self, task: RunTask) -> Option<TaskResult> {
        let call = task.device.clone()?;
        let operation = Arc::clone(&task.operation);
        if self.state.is_closed() {
            return None;
        }
        let limit = self.accelerators.time_limit(call.core_seconds);
        let (answer, answered) = oneshot::channel();
        let sent = self.jobs.send(Job { task, limit, answer });
        let answer = match sent {
            Ok(()) => self.wait(answered, limit).await,
            Err(_) => Answer::Fault(Fault::Ended),
        };
        match answer {
            Answer::Done(result) => Some(result),
            Answer::Corrected(result) => {
                self.handle_fault(&Fault::WrongResult, &*operation, &call);
                Some(result)
            }
            Answer::Fault(fault) => {
                self.handle_fault(&fault, &*operation, &call);
                None
            }
            Answer::Failed => None,
        }
    }

    /// Waits for the answer of the thread, as long as the device does not exceed the time limit. Lookups, comparisons and
    /// digests of the same task are not limited.
    async fn wait(&self, mut answered: oneshot::Receiver<Answer>, limit: Duration) -> Answer {
        let mut wait = limit;
        loop {
            if let Ok(answer) = tokio::time::timeout(wait, &mut answered).await {
                return answer.unwrap_or(Answer::Fault(Fault::Ended));
            }
            let ran_for = self.since.lock().map_or(Duration::ZERO, |since| since.elapsed());
            if ran_for >= limit {
                return Answer::Fault(Fault::Hung(limit));
            }
            wait = limit - ran_for;
        }
    }

    /// Logs and counts a fault, excludes the operation, or closes the slot.
    fn handle_fault(&self, fault: &Fault, operation: &dyn Operation, call: &DeviceCall) {
        catalog::DEVICE_ERRORS.with([fault.cause()]).increment(1);
        let (name, text) = (operation.name(), fault.text(self.state.name()));
        let is_first = fault.excludes(call.pixels).map(|pixels| self.exclusions.exclude(operation, pixels));
        let is_last = fault.is_error() && self.state.count_error();
        // An operation that the device cannot run is no news after the first time.
        if is_first != Some(false) {
            let rest = if is_first.is_some() { "; its tasks run on cores" } else { "" };
            self.log(format!("{name}, {}: {text}; the task runs on a core{rest}", call.place));
        }
        if (fault.is_fatal() || is_last) && self.state.close() {
            let device = self.state.name();
            let cause = format!("closed after an error in {name}, {}: {text}", call.place);
            self.log(format!(
                "the accelerator {device} is {cause}; the worker continues with its other slots"
            ));
            let remark = format!("{device} {cause}");
            self.closed.do_send(DeviceClosed { slot: self.slot, remark });
        }
    }

    fn log(&self, remark: String) {
        warn!("{remark}");
        self.accelerators.add_remark(remark);
    }
}

/// The thread of a device.
struct DeviceThread {
    device: Box<dyn Device>,
    state: Arc<DeviceState>,
    since: Arc<Mutex<Option<Instant>>>,
    checks: Checks,
    meter: Meter,
}

impl DeviceThread {
    /// Executes tasks until the slot closes or its worker ends.
    fn serve(mut self, jobs: &Receiver<Job>) {
        while let Ok(Job { task, limit, answer }) = jobs.recv() {
            let done = self.answer(task, limit);
            self.state.observe(&*self.device);
            // The slot may have given up waiting.
            let _ = answer.send(done);
            if self.state.is_closed() {
                return;
            }
        }
    }

    fn answer(&mut self, task: RunTask, limit: Duration) -> Answer {
        let mut is_wrong = false;
        match run(task, |call| self.execute(call, limit, &mut is_wrong)) {
            Ok(result) if is_wrong => Answer::Corrected(result),
            Ok(result) => Answer::Done(result),
            Err(answer) => answer,
        }
    }

    /// Runs an operation on the device.
    fn execute(&mut self, call: Call<'_>, limit: Duration, is_wrong: &mut bool) -> Result<Executed, Answer> {
        let Some(variant) = call.operation.accelerated() else {
            // A program outside this process uses the device by itself, within its own time limit.
            return Ok(Executed { device: SlotKind::Accelerator, ..execute(call, self.meter) });
        };
        let start = Instant::now();
        *self.since.lock() = Some(start);
        self.device.set_time_limit(Some(limit));
        let (outputs, ran_on_core) = self.run_variant(&call, variant);
        *self.since.lock() = None;
        let mut outputs = outputs?;
        let mut device = SlotKind::Accelerator;
        let seconds = start.elapsed().as_secs_f64();
        if !ran_on_core && self.checks.is_due(call.operation) {
            let on_core = execute(call, self.meter);
            let Ok(expected) = on_core.outputs else {
                (*is_wrong, device) = (true, SlotKind::Core);
                return Ok(Executed { device, ..on_core });
            };
            if !are_equal(&outputs, &expected) {
                (*is_wrong, device) = (true, SlotKind::Core);
                outputs = expected;
            }
        }
        Ok(Executed { outputs: Ok(outputs), peak_bytes: None, seconds, device })
    }

    /// Runs the device variant, or the CPU variant on an emulated device that the device variant does not know. Returns the
    /// outputs, and whether they are those of the CPU variant.
    fn run_variant(
        &mut self,
        call: &Call<'_>,
        variant: &dyn Accelerated,
    ) -> (Result<Vec<DataRegion>, Answer>, bool) {
        let emulation = self.device.emulation();
        let inputs: Vec<&DataRegion> = call.inputs.iter().map(Arc::as_ref).collect();
        let ran = catch_panic(call.name, || Ok(variant.run_on(&mut *self.device, &inputs, call.arguments)));
        let mut ran_on_core = false;
        let outputs = match (ran, emulation) {
            (Ok(Err(AcceleratedError::Device(DeviceError::Unsupported { .. }))), Some(factor)) => {
                ran_on_core = true;
                emulate(call, variant.gain() * factor).map_err(|_| Answer::Failed)
            }
            (Ok(Ok(outputs)), _) => Ok(outputs),
            (Ok(Err(AcceleratedError::Device(error))), _) => Err(Answer::Fault(Fault::Device(error))),
            (Ok(Err(AcceleratedError::Operation(_))), _) => Err(Answer::Failed),
            (Err(TaskFailure { cause, .. }), _) => Err(Answer::Fault(Fault::Panicked(cause))),
        };
        let declared = |outputs: Vec<DataRegion>| {
            if fits_declared(&outputs, call.operation) {
                Ok(outputs)
            } else {
                Err(Answer::Fault(Fault::WrongResult))
            }
        };
        (outputs.and_then(declared), ran_on_core)
    }
}

/// Runs the CPU variant, then waits until core seconds / `gain` have passed.
fn emulate(call: &Call<'_>, gain: f64) -> Result<Vec<DataRegion>, TaskFailure> {
    let start = Instant::now();
    let inputs: Vec<&DataRegion> = call.inputs.iter().map(Arc::as_ref).collect();
    let outputs = catch_panic(call.name, || {
        let fail = |error: pleach_workflow::OperationError| TaskFailure {
            at: call.name.to_owned(),
            cause: error.to_string(),
        };
        call.operation.run(&inputs, call.arguments).map_err(fail)
    });
    let on_core = start.elapsed();
    let on_device = Duration::try_from_secs_f64(on_core.as_secs_f64() / gain).unwrap_or_default();
    std::thread::sleep(on_device.saturating_sub(on_core));
    outputs
}

/// Compares the bits of outputs.
fn are_equal(outputs: &[DataRegion], expected: &[DataRegion]) -> bool {
    let is_equal = |(a, b): (&DataRegion, &DataRegion)| a.digest() == b.digest();
    outputs.len() == expected.len() && outputs.iter().zip(expected).all(is_equal)
}

/// Selects the tasks whose outputs are compared with those of a core.
struct Checks {
    rate: f64,
    /// Sum of the rates of the tasks since the last comparison.
    sum: f64,
    /// Operations that have been compared.
    compared: HashSet<(&'static str, u32)>,
}

impl Checks {
    fn new(rate: f64) -> Self {
        Self { rate, sum: 0.0, compared: HashSet::new() }
    }

    /// Returns whether a task of the operation is compared.
    fn is_due(&mut self, operation: &dyn Operation) -> bool {
        if self.rate <= 0.0 || !operation.is_deterministic() {
            return false;
        }
        self.sum += self.rate;
        let is_first = self.compared.insert((operation.name(), operation.version()));
        let is_due = is_first || self.sum >= 1.0;
        if is_due {
            self.sum = (self.sum - 1.0).max(0.0);
        }
        is_due
    }
}
