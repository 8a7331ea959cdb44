//! Accelerators of a worker: their devices, the options of their slots, their state, and the operations that they cannot run.

use parking_lot::Mutex;
use pleach_accelerate::Device;
use pleach_dispatch::worker::SchedulePolicy;
use pleach_workflow::Operation;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

/// Errors after which the slot of a device closes. One error may be chance; a device that fails three tasks costs more time
/// than it saves, because each of them runs again.
const MAX_ERRORS: u32 = 3;

/// 60 s: the driver of a device compiles all kernels of an operation in its first run, which takes seconds.
const MIN_TIME_LIMIT: Duration = Duration::from_secs(60);

/// A task may take 10 × its predicted seconds on a core. Declared seconds are wrong by less, and a device that is slower than
/// that is of no use.
const TIME_LIMIT_FACTOR: f64 = 10.0;

/// 100 remarks: with at most three errors of each device and one exclusion of each operation, no worker has more.
const MAX_REMARKS: usize = 100;

/// Devices of a worker, one for each accelerator slot, and the options of these slots.
#[derive(Clone)]
pub struct Accelerators {
    /// Taken by the worker that starts with them.
    devices: Arc<Mutex<Vec<Box<dyn Device>>>>,
    /// Names and memory limits of the devices.
    states: Vec<Arc<DeviceState>>,
    policy: SchedulePolicy,
    check_rate: f64,
    min_time_limit: Duration,
    /// Texts about faults, for a run in one process, which has no log.
    remarks: Arc<Mutex<Vec<String>>>,
}

impl Default for Accelerators {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl fmt::Debug for Accelerators {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.states.iter().map(|state| state.name()).collect();
        f.debug_struct("Accelerators").field("devices", &names).finish_non_exhaustive()
    }
}

impl Accelerators {
    /// Creates the accelerators of a worker: one slot for each device, without comparisons of results.
    #[must_use]
    pub fn new(devices: Vec<Box<dyn Device>>) -> Self {
        Self {
            states: devices.iter().map(|device| Arc::new(DeviceState::new(&**device))).collect(),
            devices: Arc::new(Mutex::new(devices)),
            policy: SchedulePolicy::default(),
            check_rate: 0.0,
            min_time_limit: MIN_TIME_LIMIT,
            remarks: Arc::default(),
        }
    }

    /// Sets the policy that assigns tasks to cores and accelerators.
    #[must_use]
    pub fn with_policy(mut self, policy: SchedulePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets the share of tasks, from 0 to 1, that run on a core as well to compare the bits. Above 0, the first run of each
    /// operation on each device is always compared.
    #[must_use]
    pub fn with_check_rate(mut self, rate: f64) -> Self {
        self.check_rate = rate;
        self
    }

    /// Sets the minimum of the time limit of a task on a device. A device that exceeds the limit counts as hung.
    #[must_use]
    pub fn with_min_time_limit(mut self, limit: Duration) -> Self {
        self.min_time_limit = limit;
        self
    }

    /// Counts the accelerator slots.
    #[must_use]
    pub fn len(&self) -> u32 {
        u32::try_from(self.states.len()).unwrap_or(u32::MAX)
    }

    /// Returns whether the worker has no accelerator.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.states.is_empty()
    }

    /// Returns the states of the devices, in the order of their slots.
    #[must_use]
    pub fn states(&self) -> &[Arc<DeviceState>] {
        &self.states
    }

    /// Returns the memory limit of the device with the least memory, bytes. A task that fits there fits every device.
    #[must_use]
    pub fn min_device_bytes(&self) -> u64 {
        self.states.iter().map(|state| state.memory_bytes).min().unwrap_or(0)
    }

    /// Takes the texts about faults of the devices since the last call: the first one of each operation that a device cannot run,
    /// errors, and closed slots.
    #[must_use]
    pub fn take_remarks(&self) -> Vec<String> {
        std::mem::take(&mut *self.remarks.lock())
    }

    pub(super) fn add_remark(&self, remark: String) {
        let mut remarks = self.remarks.lock();
        if remarks.len() < MAX_REMARKS {
            remarks.push(remark);
        }
    }

    /// Takes the devices, each with its state. Later calls return none.
    #[must_use]
    pub fn take_devices(&self) -> Vec<(Box<dyn Device>, Arc<DeviceState>)> {
        let devices = std::mem::take(&mut *self.devices.lock());
        devices.into_iter().zip(self.states.iter().cloned()).collect()
    }

    pub(crate) fn policy(&self) -> SchedulePolicy {
        self.policy
    }

    pub(crate) fn check_rate(&self) -> f64 {
        self.check_rate
    }

    /// Returns the time limit of a task on a device that takes `core_seconds` on a core.
    pub(crate) fn time_limit(&self, core_seconds: f64) -> Duration {
        let by_cost = Duration::try_from_secs_f64(core_seconds * TIME_LIMIT_FACTOR);
        by_cost.unwrap_or(Duration::MAX).max(self.min_time_limit)
    }
}

/// State of a device, shared by its slot, its worker and its observers.
#[derive(Debug)]
pub struct DeviceState {
    name: String,
    memory_bytes: u64,
    used_bytes: AtomicU64,
    prefetched_bytes: AtomicU64,
    used_prefetched_bytes: AtomicU64,
    errors: AtomicU32,
    is_closed: AtomicBool,
}

// Relaxed throughout: each value stands alone and guards no other data.
impl DeviceState {
    fn new(device: &dyn Device) -> Self {
        Self {
            name: device.name().to_owned(),
            memory_bytes: device.memory_bytes(),
            used_bytes: AtomicU64::new(0),
            prefetched_bytes: AtomicU64::new(0),
            used_prefetched_bytes: AtomicU64::new(0),
            errors: AtomicU32::new(0),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Returns the name of the device.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the limit of buffers on the device, bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    /// Returns the bytes of buffers on the device after its last task.
    #[must_use]
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// Returns the bytes that were uploaded ahead of their tasks, and those of them that a task has used, until the last task.
    #[must_use]
    pub fn prefetched_bytes(&self) -> (u64, u64) {
        let used = self.used_prefetched_bytes.load(Ordering::Relaxed);
        (self.prefetched_bytes.load(Ordering::Relaxed), used)
    }

    /// Returns whether the slot of the device is closed: no task runs on it any more.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Takes the values of a device after a task.
    pub(super) fn observe(&self, device: &dyn Device) {
        let transfers = device.transfers();
        self.used_bytes.store(device.used_bytes(), Ordering::Relaxed);
        self.prefetched_bytes.store(transfers.prefetched_bytes, Ordering::Relaxed);
        self.used_prefetched_bytes.store(transfers.used_prefetched_bytes, Ordering::Relaxed);
    }

    /// Counts an error. Returns whether it is one too many.
    pub(super) fn count_error(&self) -> bool {
        self.errors.fetch_add(1, Ordering::Relaxed) + 1 >= MAX_ERRORS
    }

    /// Closes the slot. Returns whether it was open.
    pub(super) fn close(&self) -> bool {
        !self.is_closed.swap(true, Ordering::Relaxed)
    }
}

/// Operations that the devices of a worker cannot run, with the minimum number of pixels.
#[derive(Debug, Default)]
pub struct DeviceExclusions(Mutex<HashMap<(&'static str, u32), u64>>);

impl DeviceExclusions {
    /// Excludes an operation on images of `pixels` pixels and more. Returns whether it is the first exclusion of the operation.
    pub(super) fn exclude(&self, operation: &dyn Operation, pixels: u64) -> bool {
        let mut excluded = self.0.lock();
        let before = excluded.insert((operation.name(), operation.version()), pixels);
        if let Some(before) = before.filter(|before| *before < pixels) {
            excluded.insert((operation.name(), operation.version()), before);
        }
        before.is_none()
    }

    /// Returns whether an operation is excluded on images of `pixels` pixels.
    #[must_use]
    pub fn contains(&self, operation: &dyn Operation, pixels: u64) -> bool {
        let excluded = self.0.lock();
        excluded.get(&(operation.name(), operation.version())).is_some_and(|from| *from <= pixels)
    }
}
