//! The task actor: one slot of a worker. It runs one operation at a time on the thread pool, or on the thread of the actors if
//! the task is short (ADR 63). The slot of an accelerator has two threads (`device_threads`), and one that uploads the inputs of
//! its next task (`prefetch`).

mod accelerators;
mod device_fault;
mod device_slot;
mod device_threads;
mod prefetch;

pub use accelerators::{Accelerators, DeviceExclusions, DeviceState};
pub use device_slot::{DeviceCall, DeviceEvent, DeviceSlot};
pub use prefetch::PrefetchInputs;

use crate::panic_guard::catch_panic;
use crate::spill::SpillStore;
use crate::storage::RegionUnavailable;
use crate::task_cache::{CachedTask, TaskLookup};
use crate::task_results::{OutputLocation, StoredTask};
use actix::prelude::*;
use pleach_dispatch::SlotKind;
use pleach_dispatch::message::TaskFailure;
use pleach_regions::{DataRegion, Digest, RegionIdentity};
use pleach_workflow::{Meter, Operation, Port, Value};
use std::fmt;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;
use tracing::Span;

/// Maximum predicted duration of a task on the actors' own thread, on a worker of many cores.
pub const SHORT_SECONDS: f64 = 20e-6;

/// Runs one operation.
#[derive(Clone, Message)]
#[rtype(result = "TaskResult")]
pub struct RunTask {
    /// Name of the task, for failures.
    pub name: String,
    /// Operation to run.
    pub operation: Arc<dyn Operation>,
    /// Its inputs, in order.
    pub inputs: Vec<Arc<DataRegion>>,
    /// Its arguments, in order.
    pub arguments: Vec<Value>,
    /// Outputs that need a digest.
    pub digests: Vec<bool>,
    /// Entry of the task cache for lookup and storage.
    pub recall: Option<TaskLookup>,
    /// Encoded or spilled outputs that may be read instead of a run.
    pub back: Option<StoredOutputs>,
    /// The task runs on the actors' own thread.
    pub short: bool,
    /// Use of the slot's device. `None` runs the task on a core, whatever the slot.
    pub device: Option<DeviceCall>,
    /// Span of the task.
    pub span: Span,
}

/// Outputs of an earlier run on this worker. They may have left memory since.
#[derive(Clone)]
pub struct StoredOutputs {
    spill: Option<Arc<SpillStore>>,
    outputs: Vec<Option<(RegionIdentity, OutputLocation)>>,
}

/// Outputs with their digests.
type Brought = (Vec<Option<DataRegion>>, Vec<Option<Digest>>);

impl StoredOutputs {
    pub(crate) fn new(spill: Option<&Arc<SpillStore>>, found: &StoredTask) -> Self {
        Self { spill: spill.cloned(), outputs: found.outputs.clone() }
    }

    /// Reads the outputs. `None` if any is missing or changed.
    fn bring(&self) -> Option<Brought> {
        let bring = |place: &OutputLocation| match place {
            OutputLocation::Here(form) => Some(Arc::unwrap_or_clone(form.region()?)),
            OutputLocation::Below(key) => Some(Arc::unwrap_or_clone(self.spill.as_ref()?.read(*key)?)),
        };
        let mut outputs = Vec::with_capacity(self.outputs.len());
        for output in &self.outputs {
            outputs.push(match output {
                Some((_, place)) => Some(bring(place)?),
                None => None,
            });
        }
        // The identities are the same as before, so earlier and later readers read equal regions.
        let digests =
            self.outputs.iter().map(|output| output.as_ref().map(|(identity, _)| Digest(identity.0)));
        Some((outputs, digests.collect()))
    }
}

/// Source of a task's outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputSource {
    /// A run of the task.
    Run,
    /// The task cache, from a run of an earlier study.
    Cache,
    /// An encoded copy in memory or a spill tier, from an earlier run on this worker.
    Below,
}

impl fmt::Debug for StoredOutputs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredOutputs").finish_non_exhaustive()
    }
}

impl fmt::Debug for RunTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunTask").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Meter without measurement.
pub fn unmetered(work: &mut dyn FnMut()) -> Option<u64> {
    work();
    None
}

/// Result of a task.
#[derive(Debug)]
pub struct TaskResult {
    /// Outputs in order, or the reason for their absence. Cached tasks return only the wanted outputs.
    pub outputs: Result<Vec<Option<DataRegion>>, RegionUnavailable>,
    /// Source of the outputs.
    pub source: OutputSource,
    /// Wall seconds of the task cache's lookup and storage.
    pub cache_seconds: f64,
    /// Digests of the wanted outputs.
    pub digests: Vec<Option<Digest>>,
    /// Kind of slot that the task ran in.
    pub device: SlotKind,
    /// Wall seconds of the run, without digests.
    pub seconds: f64,
    /// Wall seconds of the digests.
    pub digest_seconds: f64,
    /// Peak bytes of the run, with outputs and without inputs.
    pub peak_bytes: Option<u64>,
    /// Number of the download if the slot of the accelerator is free already ([`DeviceEvent::Computed`]).
    pub download: Option<u64>,
}

impl TaskResult {
    /// Returns the result of a failed task that did not run.
    pub(crate) fn failed(cause: TaskFailure) -> Self {
        Self::not_done(RegionUnavailable::Failed(cause))
    }

    /// Returns the result of a task that did not run, for any reason.
    pub(crate) fn not_done(why: RegionUnavailable) -> Self {
        Self {
            outputs: Err(why),
            source: OutputSource::Run,
            digests: Vec::new(),
            device: SlotKind::Core,
            seconds: 0.0,
            digest_seconds: 0.0,
            cache_seconds: 0.0,
            peak_bytes: None,
            download: None,
        }
    }
}

/// Actor of one slot.
pub struct TaskActor {
    pool: Arc<rayon::ThreadPool>,
    meter: Meter,
    device: Option<Arc<DeviceSlot>>,
}

impl fmt::Debug for TaskActor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskActor").field("pool", &self.pool).finish_non_exhaustive()
    }
}

impl TaskActor {
    /// Creates a slot that runs its tasks on `pool`, measured by `meter`.
    #[must_use]
    pub fn new(pool: Arc<rayon::ThreadPool>, meter: Meter) -> Self {
        Self { pool, meter, device: None }
    }

    /// Makes this the slot of an accelerator. Tasks that the accelerator cannot run use the pool.
    #[must_use]
    pub fn with_device(self, device: DeviceSlot) -> Self {
        Self { device: Some(Arc::new(device)), ..self }
    }
}

impl Actor for TaskActor {
    type Context = Context<Self>;
}

impl Handler<RunTask> for TaskActor {
    type Result = ResponseFuture<TaskResult>;

    fn handle(&mut self, task: RunTask, _: &mut Self::Context) -> Self::Result {
        let (pool, meter) = (Arc::clone(&self.pool), self.meter);
        if task.short {
            return Box::pin(std::future::ready(run_on_core(task, meter)));
        }
        let Some(device) = self.device.clone().filter(|_| task.device.is_some()) else {
            // Spawned here and not in the future, which is polled after other actors.
            return Box::pin(run_in_pool(&pool, task, meter));
        };
        Box::pin(async move {
            let again = task.clone();
            let (result, download) = device.run(task).await;
            let result = match result {
                Some(result) => result,
                None => run_in_pool(&pool, again, meter).await,
            };
            TaskResult { download, ..result }
        })
    }
}

impl Handler<PrefetchInputs> for TaskActor {
    type Result = ();

    fn handle(&mut self, inputs: PrefetchInputs, _: &mut Self::Context) {
        if let Some(device) = &self.device {
            device.prefetch(inputs);
        }
    }
}

/// Begins a task on a thread of the pool. Returns its result once it has ended.
fn run_in_pool(
    pool: &rayon::ThreadPool,
    task: RunTask,
    meter: Meter,
) -> impl Future<Output = TaskResult> + use<> {
    let (answer, answered) = oneshot::channel();
    // Granted to a core once all accelerators of the worker are closed.
    if task.operation.needs_accelerator() {
        let cause = "the operation needs an accelerator; those of the worker are closed".to_owned();
        let _ = answer.send(TaskResult::failed(TaskFailure { at: task.name, cause }));
    } else {
        pool.spawn(move || {
            // The stage actor may have ended.
            let _ = answer.send(run_on_core(task, meter));
        });
    }
    let gone = || TaskFailure { at: "task".to_owned(), cause: "the task thread has ended".to_owned() };
    async move { answered.await.unwrap_or_else(|_| TaskResult::failed(gone())) }
}

/// Returns the outputs of a task: encoded, spilled, cached or from a run on this thread.
fn run_on_core(task: RunTask, meter: Meter) -> TaskResult {
    match prepare(task) {
        Preparation::Stored(result) => result,
        Preparation::Run(mut prepared) => {
            let inputs = std::mem::take(&mut prepared.inputs);
            let executed = prepared.span.in_scope(|| execute(Call { inputs, ..prepared.call() }, meter));
            prepared.finish(executed)
        }
    }
}

/// Operation to run, with its inputs.
struct Call<'a> {
    name: &'a str,
    operation: &'a dyn Operation,
    inputs: Vec<Arc<DataRegion>>,
    arguments: &'a [Value],
}

/// Result of an operation.
struct Executed {
    outputs: Result<Vec<DataRegion>, TaskFailure>,
    peak_bytes: Option<u64>,
    seconds: f64,
    device: SlotKind,
}

/// Preparation of a task.
enum Preparation {
    /// Nothing: its outputs are encoded, spilled or cached.
    Stored(TaskResult),
    /// A run.
    Run(PreparedTask),
}

/// A task whose outputs nothing has: its operation must run.
struct PreparedTask {
    name: String,
    operation: Arc<dyn Operation>,
    inputs: Vec<Arc<DataRegion>>,
    arguments: Vec<Value>,
    digests: Vec<bool>,
    recall: Option<TaskLookup>,
    /// Seconds of the task cache's lookup.
    looked_for: f64,
    span: Span,
}

/// Looks for the outputs of a task.
fn prepare(task: RunTask) -> Preparation {
    let RunTask { name, operation, inputs, arguments, digests, recall, back, short: _, device: _, span } =
        task;
    let start = Instant::now();
    // A later study would get one of several results.
    let recall = recall.filter(|_| operation.is_deterministic());
    let found = span.in_scope(|| {
        if let Some(brought) = back.as_ref().and_then(StoredOutputs::bring)
            && fits_ports(&brought, &*operation)
        {
            return Some(stored(name.clone(), brought));
        }
        Some(cached(recall.as_ref()?.find(&*operation)?, start))
    });
    if let Some(found) = found {
        return Preparation::Stored(found);
    }
    let looked_for = start.elapsed().as_secs_f64();
    Preparation::Run(PreparedTask { name, operation, inputs, arguments, digests, recall, looked_for, span })
}

impl PreparedTask {
    fn call(&self) -> Call<'_> {
        let Self { name, operation, inputs, arguments, .. } = self;
        Call { name, operation: &**operation, inputs: inputs.clone(), arguments }
    }

    /// Digests and caches the outputs of the run.
    fn finish(self, executed: Executed) -> TaskResult {
        let Self { operation, digests, recall, looked_for, span, .. } = self;
        let _within = span.enter();
        let Executed { outputs, peak_bytes, seconds, device } = executed;
        // Digested on this thread, which has just written the regions and does not block the actors.
        let start = Instant::now();
        let digests = wanted_digests(outputs.as_ref().map_or(&[][..], Vec::as_slice), digests);
        let any = digests.iter().any(Option::is_some);
        let digest_seconds = if any { start.elapsed().as_secs_f64() } else { 0.0 };
        let mut cache_seconds = 0.0;
        if let (Some(recall), Ok(outputs)) = (&recall, &outputs) {
            let start = Instant::now();
            recall.store(&*operation, outputs, &digests, seconds);
            cache_seconds = looked_for + start.elapsed().as_secs_f64();
        }
        let outputs =
            outputs.map(|outputs| outputs.into_iter().map(Some).collect()).map_err(RegionUnavailable::Failed);
        TaskResult {
            outputs,
            source: OutputSource::Run,
            cache_seconds,
            digests,
            device,
            seconds,
            digest_seconds,
            peak_bytes,
            download: None,
        }
    }
}

/// Returns whether stored outputs have the types that the operation declares.
fn fits_ports((outputs, _): &Brought, operation: &dyn Operation) -> bool {
    let fits = |(region, port): (&Option<DataRegion>, &Port)| {
        region.as_ref().is_none_or(|region| region.element() == port.element)
    };
    outputs.iter().zip(operation.outputs()).all(fits)
}

/// Returns the result of a task whose outputs an earlier run has stored.
fn stored(name: String, (outputs, digests): Brought) -> TaskResult {
    let not_run = TaskResult::failed(TaskFailure { at: name, cause: String::new() });
    TaskResult { outputs: Ok(outputs), source: OutputSource::Below, digests, ..not_run }
}

/// Returns the result of a task found in the task cache by a lookup that began at `start`.
fn cached(CachedTask { outputs, digests }: CachedTask, start: Instant) -> TaskResult {
    TaskResult {
        cache_seconds: start.elapsed().as_secs_f64(),
        outputs: Ok(outputs),
        source: OutputSource::Cache,
        digests: digests.into_iter().map(Some).collect(),
        device: SlotKind::Core,
        seconds: 0.0,
        digest_seconds: 0.0,
        peak_bytes: None,
        download: None,
    }
}

/// Runs the operation on this thread. Checks its outputs against the declared types.
fn execute(call: Call<'_>, meter: Meter) -> Executed {
    let Call { name, operation, inputs, arguments } = call;
    let start = Instant::now();
    let mut peak_bytes = None;
    let outputs = catch_panic(name, || {
        let inputs: Vec<&DataRegion> = inputs.iter().map(Arc::as_ref).collect();
        let (outputs, peak) = operation.run_metered(&inputs, arguments, meter);
        peak_bytes = peak;
        let fail = |cause: String| TaskFailure { at: name.to_owned(), cause };
        let outputs = outputs.map_err(|error| fail(error.to_string()))?;
        if fits_declared(&outputs, operation) {
            Ok(outputs)
        } else {
            Err(fail("the outputs do not match the declared outputs".to_owned()))
        }
    });
    // Drop the inputs before the time is taken: freeing large regions is part of the task.
    drop(inputs);
    Executed { outputs, peak_bytes, seconds: start.elapsed().as_secs_f64(), device: SlotKind::Core }
}

/// Returns whether outputs have the types that the operation declares.
fn fits_declared(outputs: &[DataRegion], operation: &dyn Operation) -> bool {
    let declared = operation.outputs();
    outputs.len() == declared.len()
        && outputs.iter().zip(declared).all(|(region, port)| region.element() == port.element)
}

/// Digests the wanted regions.
fn wanted_digests(regions: &[DataRegion], wanted: Vec<bool>) -> Vec<Option<Digest>> {
    let digest = |(region, wanted): (&DataRegion, bool)| wanted.then(|| region.digest());
    // `wanted` is empty for a stage without keys.
    regions.iter().zip(wanted.into_iter().chain(std::iter::repeat(false))).map(digest).collect()
}
