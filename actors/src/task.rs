//! The task actor: one slot of a worker, running one operation at a time on the thread pool; or, where that takes less than
//! waking a thread, at once.

use crate::spill::SpillStore;
use crate::storage::RegionUnavailable;
use crate::task_cache::{CachedTask, TaskLookup};
use crate::task_results::{OutputLocation, SpilledTask};
use actix::prelude::*;
use pleach_dispatch::message::TaskFailure;
use pleach_regions::{DataRegion, Digest, RegionIdentity};
use pleach_workflow::{Operation, Port, Value};
use std::cell::Cell;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;
use tracing::Span;

/// Start of the names of threads that run tasks: a panic there is the operation's, and fails its evaluation.
pub const THREAD_NAME: &str = "task-";

/// What is believed to take no longer runs on the actors' own thread: to have another one do it, and to be told, takes
/// as long.
pub const SHORT_SECONDS: f64 = 20e-6;

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs a task just now: a panic is the operation's here as well.
#[must_use]
pub fn is_running_task() -> bool {
    GUARDED.get()
}

/// Runs one operation.
#[derive(Message)]
#[rtype(result = "TaskResult")]
pub struct RunTask {
    /// The task's name, for failures.
    pub name: String,
    /// What to run.
    pub operation: Arc<dyn Operation>,
    /// Its inputs, in order.
    pub inputs: Vec<Arc<DataRegion>>,
    /// Its arguments, in order.
    pub arguments: Vec<Value>,
    /// Outputs of which the digest is wanted.
    pub digests: Vec<bool>,
    /// Where it may be found instead, and is kept.
    pub recall: Option<TaskLookup>,
    /// Where its outputs may be brought back from.
    pub(crate) back: Option<StoredOutputs>,
    /// It takes no longer than [`SHORT_SECONDS`], as far as is known.
    pub short: bool,
    /// What is said of it.
    pub span: Span,
}

/// Outputs that a worker's tasks have written before, and that may have left memory since.
pub(crate) struct StoredOutputs {
    below: Arc<SpillStore>,
    outputs: Vec<Option<(RegionIdentity, OutputLocation)>>,
}

/// Outputs, and what stands for each.
type Brought = (Vec<Option<DataRegion>>, Vec<Option<Digest>>);

impl StoredOutputs {
    pub(crate) fn new(below: &Arc<SpillStore>, found: &SpilledTask) -> Self {
        Self { below: Arc::clone(below), outputs: found.outputs.clone() }
    }

    /// The outputs, if all of them are what they were.
    fn bring(&self) -> Option<Brought> {
        let bring = |place: &OutputLocation| match place {
            OutputLocation::Here(region) => Some(DataRegion::clone(region)),
            OutputLocation::Below(key) => Some(Arc::unwrap_or_clone(self.below.get(*key)?)),
        };
        let mut outputs = Vec::with_capacity(self.outputs.len());
        for output in &self.outputs {
            outputs.push(match output {
                Some((_, place)) => Some(bring(place)?),
                None => None,
            });
        }
        // Known by the same identity as before: whoever has read them then and whoever reads them now read the same.
        let digests =
            self.outputs.iter().map(|output| output.as_ref().map(|(identity, _)| Digest(identity.0)));
        Some((outputs, digests.collect()))
    }
}

/// Where the outputs of a task come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputSource {
    /// It was run.
    Run,
    /// It was not: an earlier study had.
    Cache,
    /// It was not: this worker had, and they had left memory.
    Below,
}

impl fmt::Debug for RunTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunTask").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Runs some work and says how many bytes it had in use at most, beyond what there was before; `None` where that is
/// not measured.
pub type Meter = fn(&mut dyn FnMut()) -> Option<u64>;

/// The meter that measures nothing.
pub fn unmetered(work: &mut dyn FnMut()) -> Option<u64> {
    work();
    None
}

/// What came of it.
#[derive(Debug)]
pub struct TaskResult {
    /// Outputs in order, or why there are none. Of a task that was recalled, those that were wanted.
    pub outputs: Result<Vec<Option<DataRegion>>, RegionUnavailable>,
    /// Where they come from.
    pub source: OutputSource,
    /// Wall seconds of finding it there, or of keeping it.
    pub cache_seconds: f64,
    /// Of each output, where it was wanted.
    pub digests: Vec<Option<Digest>>,
    /// Wall seconds, without those of the digests.
    pub seconds: f64,
    /// Wall seconds that the digests took.
    pub digest_seconds: f64,
    /// The most bytes in use while it ran, outputs included, inputs not.
    pub peak_bytes: Option<u64>,
}

impl TaskResult {
    /// A task that was not run.
    pub(crate) fn failed(cause: TaskFailure) -> Self {
        Self::not_done(RegionUnavailable::Failed(cause))
    }

    /// A task that was not run, for whichever reason.
    pub(crate) fn not_done(why: RegionUnavailable) -> Self {
        Self {
            outputs: Err(why),
            source: OutputSource::Run,
            digests: Vec::new(),
            seconds: 0.0,
            digest_seconds: 0.0,
            cache_seconds: 0.0,
            peak_bytes: None,
        }
    }
}

/// See the module.
#[derive(Debug)]
pub struct TaskActor {
    pool: Arc<rayon::ThreadPool>,
    meter: Meter,
}

impl TaskActor {
    /// A slot that runs its tasks on `pool`, measured by `meter`.
    #[must_use]
    pub fn new(pool: Arc<rayon::ThreadPool>, meter: Meter) -> Self {
        Self { pool, meter }
    }
}

impl Actor for TaskActor {
    type Context = Context<Self>;
}

impl Handler<RunTask> for TaskActor {
    type Result = ResponseFuture<TaskResult>;

    fn handle(&mut self, task: RunTask, _: &mut Self::Context) -> Self::Result {
        let meter = self.meter;
        if task.short {
            return Box::pin(std::future::ready(run(task, meter)));
        }
        let (answer, answered) = oneshot::channel();
        self.pool.spawn(move || {
            // The stage actor may be gone; then nobody waits for this.
            let _ = answer.send(run(task, meter));
        });
        Box::pin(async move {
            let gone = || TaskFailure { at: "task".to_owned(), cause: "its thread is gone".to_owned() };
            answered.await.unwrap_or_else(|_| TaskResult::failed(gone()))
        })
    }
}

fn run(task: RunTask, meter: Meter) -> TaskResult {
    let RunTask { name, operation, inputs, arguments, digests, recall, back, short: _, span } = task;
    let _within = span.enter();
    let start = Instant::now();
    if let Some((outputs, digests)) = back.as_ref().and_then(StoredOutputs::bring) {
        let fits = |(region, port): (&Option<DataRegion>, &Port)| {
            region.as_ref().is_none_or(|region| region.element() == port.element)
        };
        if outputs.iter().zip(operation.outputs()).all(fits) {
            let found = TaskResult::not_done(RegionUnavailable::Failed(TaskFailure {
                at: name,
                cause: String::new(),
            }));
            return TaskResult { outputs: Ok(outputs), source: OutputSource::Below, digests, ..found };
        }
    }
    if let Some(CachedTask { outputs, digests }) = recall.as_ref().and_then(|recall| recall.find(&*operation))
    {
        let cache_seconds = start.elapsed().as_secs_f64();
        let (outputs, digests) = (Ok(outputs), digests.into_iter().map(Some).collect());
        let (seconds, digest_seconds, peak_bytes) = (0.0, 0.0, None);
        return TaskResult {
            outputs,
            source: OutputSource::Cache,
            cache_seconds,
            digests,
            seconds,
            digest_seconds,
            peak_bytes,
        };
    }
    let looked_for = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let mut peak_bytes = None;
    let outputs = catch_panic(&name, || {
        let inputs: Vec<&DataRegion> = inputs.iter().map(Arc::as_ref).collect();
        let mut outputs = None;
        peak_bytes = meter(&mut || outputs = Some(operation.run(&inputs, &arguments)));
        let Some(outputs) = outputs else {
            return Err(TaskFailure { at: name.clone(), cause: "the meter did not run it".to_owned() });
        };
        let fail = |cause: String| TaskFailure { at: name.clone(), cause };
        let outputs = outputs.map_err(|error| fail(error.to_string()))?;
        let declared = operation.outputs();
        let fits = outputs.len() == declared.len()
            && outputs.iter().zip(declared).all(|(region, port)| region.element() == port.element);
        if fits { Ok(outputs) } else { Err(fail("its outputs are not those it declares".to_owned())) }
    });
    // The inputs are let go of before the time is taken: freeing large regions is part of the task.
    drop(inputs);
    let seconds = start.elapsed().as_secs_f64();
    // Here rather than where they are needed: this thread has just written the regions, and is not the actors'.
    let regions = outputs.as_ref().map_or(&[][..], Vec::as_slice);
    let digest = |(region, wanted): (&DataRegion, bool)| wanted.then(|| region.digest());
    let digests: Vec<Option<Digest>> =
        regions.iter().zip(digests.into_iter().chain(std::iter::repeat(false))).map(digest).collect();
    let any = digests.iter().any(Option::is_some);
    let digest_seconds = if any { start.elapsed().as_secs_f64() - seconds } else { 0.0 };
    let mut cache_seconds = 0.0;
    if let (Some(recall), Ok(outputs)) = (&recall, &outputs) {
        let start = Instant::now();
        recall.keep(outputs, &digests, seconds);
        cache_seconds = looked_for + start.elapsed().as_secs_f64();
    }
    let outputs =
        outputs.map(|outputs| outputs.into_iter().map(Some).collect()).map_err(RegionUnavailable::Failed);
    TaskResult {
        outputs,
        source: OutputSource::Run,
        cache_seconds,
        digests,
        seconds,
        digest_seconds,
        peak_bytes,
    }
}

/// Runs `work`, turning a panic into a failure at `at`.
pub(crate) fn catch_panic<T>(
    at: &str,
    work: impl FnOnce() -> Result<T, TaskFailure>,
) -> Result<T, TaskFailure> {
    let before = GUARDED.replace(true);
    // What the closure holds is dropped with it: nothing half-changed is seen again.
    let done = catch_unwind(AssertUnwindSafe(work));
    GUARDED.set(before);
    done.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(ToString::to_string);
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let cause = format!("panicked: {}", text.as_deref().unwrap_or("without a message"));
        Err(TaskFailure { at: at.to_owned(), cause })
    })
}
