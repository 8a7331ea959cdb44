//! The threads of an accelerator. The first runs operations on the device. The second downloads the outputs of a task, compares
//! them with those of a core if a comparison is due, digests and caches them, while the first runs the next task.
//!
//! The second takes a task once it has finished the one before. The first waits for it until then, so at most two tasks hold the
//! device: one that computes, and one whose outputs are downloaded.

use super::accelerators::DeviceState;
use super::device_fault::Fault;
use super::device_slot::DeviceEvent;
use super::{
    Call, Executed, Preparation, PreparedTask, RunTask, TaskResult, execute, fits_declared, prepare,
};
use crate::panic_guard::catch_panic;
use actix::prelude::*;
use parking_lot::Mutex;
use pleach_accelerate::{Device, DeviceError, DeviceOutput};
use pleach_dispatch::message::TaskFailure;
use pleach_dispatch::{SlotId, SlotKind};
use pleach_regions::DataRegion;
use pleach_workflow::{Accelerated, AcceleratedError, Meter, Operation};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::Builder;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Answer of the threads.
pub(super) enum Answer {
    Done(TaskResult),
    /// The outputs of the device were wrong. The result has those of a core.
    Corrected(TaskResult),
    NoResult(NoResult),
}

/// Why the device has no result for a task.
pub(super) enum NoResult {
    Fault(Fault),
    /// The operation failed on the device, or the device has failed before. A core decides whether the operation fails.
    Failed,
}

/// Progress of a task, shared by the slot and the threads.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Start of the present call of the device.
    since: Option<Instant>,
    /// Number of the download. The worker knows that the device is free.
    download: Option<u64>,
    /// The slot waits no longer.
    is_abandoned: bool,
}

impl Progress {
    pub(super) fn download(&self) -> Option<u64> {
        self.download
    }

    /// Returns the time since the start of the present call of the device. `None` without one.
    pub(super) fn on_device_for(&self) -> Option<Duration> {
        self.since.map(|since| since.elapsed())
    }

    /// Ends the wait for the task. The worker will not hear that it has computed.
    pub(super) fn abandon(&mut self) {
        self.is_abandoned = true;
    }
}

/// A task for the threads.
pub(super) struct Job {
    pub(super) task: RunTask,
    pub(super) limit: Duration,
    pub(super) progress: Arc<Mutex<Progress>>,
    pub(super) answer: oneshot::Sender<Answer>,
}

/// A task that has computed.
struct ComputedTask {
    prepared: PreparedTask,
    outputs: Outputs,
    seconds: f64,
    progress: Arc<Mutex<Progress>>,
    answer: oneshot::Sender<Answer>,
}

/// Outputs of a task.
enum Outputs {
    /// Of the device variant.
    Device(Vec<DeviceOutput>),
    /// Of the CPU variant, on an emulated device that the device variant does not know.
    Core(Vec<DeviceOutput>),
    /// Of a program outside this process, which has used the device by itself.
    External(Executed),
}

/// Starts the threads of a device.
///
/// # Errors
/// Returns the error of the system if a thread cannot be started.
pub(super) fn start_threads(
    slot: SlotId,
    device: Box<dyn Device>,
    state: &Arc<DeviceState>,
    check_rate: f64,
    meter: Meter,
    events: Recipient<DeviceEvent>,
) -> std::io::Result<Sender<Job>> {
    let (jobs, received) = channel();
    // Without room: a task is handed over when the second thread takes it.
    let (computed, to_finish) = sync_channel(0);
    let checks = Checks::new(check_rate);
    let finish = FinishThread { slot, downloads: 0, checks, is_wrong: false, meter, events };
    let compute = ComputeThread { device, state: Arc::clone(state), computed, meter };
    Builder::new().name(format!("download-{}", slot.0)).spawn(move || finish.serve(&to_finish))?;
    Builder::new().name(format!("device-{}", slot.0)).spawn(move || compute.serve(&received))?;
    Ok(jobs)
}

/// The thread that owns the device.
struct ComputeThread {
    device: Box<dyn Device>,
    state: Arc<DeviceState>,
    computed: SyncSender<ComputedTask>,
    meter: Meter,
}

impl ComputeThread {
    /// Executes tasks until the slot closes or its worker ends.
    fn serve(mut self, jobs: &Receiver<Job>) {
        while let Ok(Job { task, limit, progress, answer }) = jobs.recv() {
            let prepared = match prepare(task) {
                // The slot may have given up waiting, here and below.
                Preparation::Stored(result) => {
                    let _ = answer.send(Answer::Done(result));
                    continue;
                }
                Preparation::Run(prepared) => prepared,
            };
            let start = Instant::now();
            let outputs = self.compute(&prepared, limit, &progress);
            self.state.observe(&*self.device);
            let seconds = start.elapsed().as_secs_f64();
            match outputs {
                Ok(outputs) => {
                    let task = ComputedTask { prepared, outputs, seconds, progress, answer };
                    // Fails once the other thread has ended, which drops the sender of the answer.
                    let _ = self.computed.send(task);
                }
                Err(why) => _ = answer.send(Answer::NoResult(why)),
            }
            if self.state.is_closed() {
                return;
            }
        }
    }

    /// Runs an operation on the device.
    fn compute(
        &mut self,
        prepared: &PreparedTask,
        limit: Duration,
        progress: &Mutex<Progress>,
    ) -> Result<Outputs, NoResult> {
        let _within = prepared.span.enter();
        let call = prepared.call();
        let Some(variant) = call.operation.accelerated() else {
            // A program outside this process limits its time by itself.
            return Ok(Outputs::External(execute(call, self.meter)));
        };
        self.device.set_time_limit(Some(limit));
        progress.lock().since = Some(Instant::now());
        let outputs = self.run_variant(&call, variant);
        progress.lock().since = None;
        outputs
    }

    /// Runs the device variant, or the CPU variant on an emulated device that the device variant does not know.
    fn run_variant(&mut self, call: &Call<'_>, variant: &dyn Accelerated) -> Result<Outputs, NoResult> {
        let emulation = self.device.emulation();
        let inputs: Vec<&DataRegion> = call.inputs.iter().map(Arc::as_ref).collect();
        let ran = catch_panic(call.name, || Ok(variant.run_on(&mut *self.device, &inputs, call.arguments)));
        match (ran, emulation) {
            (Ok(Err(AcceleratedError::Device(DeviceError::Unsupported { .. }))), Some(factor)) => {
                let outputs = emulate(call, variant.gain() * factor).map_err(|_| NoResult::Failed)?;
                Ok(Outputs::Core(DeviceOutput::on_host(outputs)))
            }
            (Ok(Ok(outputs)), _) => Ok(Outputs::Device(outputs)),
            (Ok(Err(AcceleratedError::Device(error))), _) => Err(NoResult::Fault(Fault::Device(error))),
            (Ok(Err(AcceleratedError::Operation(_))), _) => Err(NoResult::Failed),
            (Err(TaskFailure { cause, .. }), _) => Err(NoResult::Fault(Fault::Panicked(cause))),
        }
    }
}

/// The thread that ends tasks.
struct FinishThread {
    slot: SlotId,
    /// Number of downloads so far.
    downloads: u64,
    checks: Checks,
    /// A comparison has failed: no later result of the device counts.
    is_wrong: bool,
    meter: Meter,
    events: Recipient<DeviceEvent>,
}

impl FinishThread {
    /// Ends tasks until the other thread ends.
    fn serve(mut self, tasks: &Receiver<ComputedTask>) {
        while let Ok(ComputedTask { prepared, outputs, seconds, progress, answer }) = tasks.recv() {
            {
                let mut progress = progress.lock();
                if progress.is_abandoned {
                    continue;
                }
                self.downloads += 1;
                progress.download = Some(self.downloads);
                progress.since = Some(Instant::now());
                // Before the answer, after which the slot may be granted again.
                self.events.do_send(DeviceEvent::Computed(self.slot, self.downloads));
            }
            let done = self.finish(prepared, outputs, seconds, &progress);
            let _ = answer.send(done);
        }
    }

    fn finish(
        &mut self,
        prepared: PreparedTask,
        outputs: Outputs,
        seconds: f64,
        progress: &Mutex<Progress>,
    ) -> Answer {
        let (outputs, ran_on_core) = match outputs {
            Outputs::Device(outputs) => (outputs, false),
            Outputs::Core(outputs) => (outputs, true),
            Outputs::External(executed) => {
                progress.lock().since = None;
                let executed = Executed { device: SlotKind::Accelerator, ..executed };
                return Answer::Done(prepared.finish(executed));
            }
        };
        let start = Instant::now();
        let outputs = DeviceOutput::download_all(outputs);
        progress.lock().since = None;
        let seconds = seconds + start.elapsed().as_secs_f64();
        let outputs = match outputs {
            Ok(outputs) if fits_declared(&outputs, prepared.call().operation) => outputs,
            Ok(_) => return Answer::NoResult(NoResult::Fault(Fault::WrongResult)),
            Err(error) => return Answer::NoResult(NoResult::Fault(Fault::Device(error))),
        };
        if self.is_wrong {
            return Answer::NoResult(NoResult::Failed);
        }
        let device = SlotKind::Accelerator;
        let executed = Executed { outputs: Ok(outputs), peak_bytes: None, seconds, device };
        match self.correct(&prepared, &executed, ran_on_core) {
            None => Answer::Done(prepared.finish(executed)),
            Some(correct) => {
                self.is_wrong = true;
                Answer::Corrected(prepared.finish(correct))
            }
        }
    }

    /// Returns the result of a core if a comparison is due and the bits differ.
    fn correct(
        &mut self,
        prepared: &PreparedTask,
        executed: &Executed,
        ran_on_core: bool,
    ) -> Option<Executed> {
        let call = prepared.call();
        if ran_on_core || !self.checks.is_due(call.operation) {
            return None;
        }
        let _within = prepared.span.enter();
        let on_core = execute(call, self.meter);
        let is_equal = match (&executed.outputs, &on_core.outputs) {
            (Ok(outputs), Ok(expected)) => are_equal(outputs, expected),
            _ => false,
        };
        (!is_equal).then_some(on_core)
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
