//! The slot of an accelerator: the queue of its tasks, their time limits, and the consequences of faults.
//!
//! Two threads (`device_threads`) execute tasks as a core does, except for the operation itself. A task that the device did not
//! finish runs on a core, within the same grant: the thread pool bounds the running tasks, and the worker has reserved the memory.
//! A thread that hangs in a driver cannot be ended. Its slot closes, and the process ends without it.

use super::accelerators::{Accelerators, DeviceExclusions, DeviceState};
use super::device_fault::Fault;
use super::device_threads::{Answer, Job, NoResult, Progress, start_threads};
use super::prefetch::{PrefetchInputs, PrefetchThread};
use super::{RunTask, TaskResult};
use actix::prelude::*;
use parking_lot::Mutex;
use pleach_accelerate::Device;
use pleach_dispatch::SlotId;
use pleach_telemetry::catalog;
use pleach_workflow::{Meter, Operation};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;
use tokio::sync::oneshot;
use tracing::warn;

/// Event of the slot of an accelerator.
#[derive(Clone, Debug, Message)]
#[rtype(result = "()")]
pub enum DeviceEvent {
    /// The task has computed, and the device is free. Its outputs are downloaded, digested and cached meanwhile: the download with
    /// this number, unique for the slot.
    Computed(SlotId, u64),
    /// The slot has closed: no further task is granted there. With the name of the device, and why.
    Closed(SlotId, String),
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

/// The slot, on the side of the actors.
pub struct DeviceSlot {
    slot: SlotId,
    state: Arc<DeviceState>,
    jobs: Sender<Job>,
    /// `None` for a device that cannot upload while it runs a task.
    prefetch: Option<PrefetchThread>,
    /// A thread of the device does not return.
    is_hung: AtomicBool,
    accelerators: Accelerators,
    exclusions: Arc<DeviceExclusions>,
    events: Recipient<DeviceEvent>,
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
        events: Recipient<DeviceEvent>,
    ) -> std::io::Result<Self> {
        let prefetcher = device.prefetcher();
        let prefetch =
            prefetcher.map(|it| PrefetchThread::start(slot, it, Arc::clone(&state))).transpose()?;
        let check_rate = accelerators.check_rate();
        let jobs = start_threads(slot, device, &state, check_rate, meter, events.clone())?;
        let (accelerators, exclusions) = (accelerators.clone(), Arc::clone(exclusions));
        Ok(Self {
            slot,
            state,
            jobs,
            prefetch,
            is_hung: AtomicBool::new(false),
            accelerators,
            exclusions,
            events,
        })
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

    /// Runs a task on the device. Returns no result if it must run on a core, and the number of the download if the
    /// slot is free already.
    pub(super) async fn run(&self, task: RunTask) -> (Option<TaskResult>, Option<u64>) {
        let Some(call) = task.device.clone().filter(|_| !self.state.is_closed()) else {
            return (None, None);
        };
        let operation = Arc::clone(&task.operation);
        let limit = self.accelerators.time_limit(call.core_seconds);
        let progress = Arc::<Mutex<Progress>>::default();
        let (answer, answered) = oneshot::channel();
        let sent = self.jobs.send(Job { task, limit, progress: Arc::clone(&progress), answer });
        let answer = match sent {
            Ok(()) => self.wait(answered, limit, &progress).await,
            Err(_) => Answer::NoResult(NoResult::Fault(Fault::Ended)),
        };
        let result = match answer {
            Answer::Done(result) => Some(result),
            Answer::Corrected(result) => {
                self.handle_fault(&Fault::WrongResult, &*operation, &call);
                Some(result)
            }
            Answer::NoResult(NoResult::Fault(fault)) => {
                self.handle_fault(&fault, &*operation, &call);
                None
            }
            Answer::NoResult(NoResult::Failed) => None,
        };
        (result, progress.lock().download())
    }

    /// Waits for the answer of the threads, as long as neither the device nor the download exceeds the time limit. Lookups,
    /// comparisons and digests of the same task are not limited.
    async fn wait(
        &self,
        mut answered: oneshot::Receiver<Answer>,
        limit: Duration,
        progress: &Mutex<Progress>,
    ) -> Answer {
        let mut wait = limit;
        loop {
            if let Ok(answer) = tokio::time::timeout(wait, &mut answered).await {
                return answer.unwrap_or(Answer::NoResult(NoResult::Fault(Fault::Ended)));
            }
            let ran_for = progress.lock().on_device_for();
            let is_over = ran_for.is_some_and(|ran_for| ran_for >= limit);
            // A task whose own thread does not hang may wait for the other one.
            if is_over || ran_for.is_none() && self.is_hung.load(Ordering::Relaxed) {
                progress.lock().abandon();
                let why = if is_over { NoResult::Fault(Fault::Hung(limit)) } else { NoResult::Failed };
                return Answer::NoResult(why);
            }
            wait = limit - ran_for.unwrap_or_default();
        }
    }

    /// Logs and counts a fault, excludes the operation, or closes the slot.
    fn handle_fault(&self, fault: &Fault, operation: &dyn Operation, call: &DeviceCall) {
        catalog::DEVICE_ERRORS.with([fault.cause()]).increment(1);
        if matches!(fault, Fault::Hung(_)) {
            // Relaxed: the flag guards no other data.
            self.is_hung.store(true, Ordering::Relaxed);
        }
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
            self.events.do_send(DeviceEvent::Closed(self.slot, remark));
        }
    }

    fn log(&self, remark: String) {
        warn!("{remark}");
        self.accelerators.add_remark(remark);
    }
}
