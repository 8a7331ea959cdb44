//! Pool of processes: kept warm between tasks, one task at a time each.
//!
//! A process serves one [`Launch`]: the operations of a package with one setup. A task borrows an idle process or starts one, on
//! the thread that runs the task, so that there are at most as many running processes as slots. Idle ones end after
//! [`IDLE`]. A command is a process of one task, which the pool starts and repeats only.
//!
//! Processes have a memory limit. Beyond it idle ones end, the least recently used first, and then tasks that need a new process wait
//! for a running one. A single process always may run.

mod gpu;
mod processes;

use crate::failure::Failure;
use crate::memory_file::KeptFiles;
use crate::process::{Limits, Process, SCRATCH};
use gpu::GpuLock;
use parking_lot::{Condvar, Mutex, MutexGuard, RwLock};
use pleach_files::scratch::Scratch;
use pleach_regions::DataRegion;
use processes::{Pooled, Processes};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// 60 s: idle time of a process before it ends. Loading libraries takes seconds.
const IDLE: Duration = Duration::from_mins(1);

/// 256 MiB: maximum bytes of kept memory files, five tiles of 4096 x 4096 px.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// Part of the limit that kept memory files may have: a quarter. Processes need the rest.
const FILE_SHARE: u64 = 4;

/// Starter of the processes of one kind.
pub(crate) trait Launch: Send + Sync + std::fmt::Debug {
    /// Starts a process that is ready for tasks. It runs on the pool's thread.
    fn start(&self) -> io::Result<Process>;

    /// Prepares a started process. It runs on the thread of the task.
    fn prepare(&self, process: &mut Process) -> Result<(), Failure>;

    /// Returns the estimated resident bytes of an idle process.
    fn resident_bytes(&self) -> u64;

    /// Returns the failure of a recent preparation that another process would meet again.
    fn refusal(&self) -> Option<Failure> {
        None
    }
}

/// Job of the pool's thread.
type Job = Box<dyn FnOnce() + Send>;

/// The processes of a worker.
#[derive(Debug, Default)]
pub struct Pool {
    processes: Mutex<Processes>,
    /// A process has ended its task or its start.
    returned: Condvar,
    limit_bytes: Limit,
    /// Held shared by each task, and exclusively by one that is repeated for want of memory.
    alone: RwLock<()>,
    /// Held by the task on the GPU.
    gpu: GpuLock,
    /// Memory files of inputs.
    files: KeptFiles,
    starter: OnceLock<Sender<Job>>,
}

/// Maximum bytes of processes and kept files.
#[derive(Debug)]
struct Limit(AtomicU64);

impl Default for Limit {
    fn default() -> Self {
        Self(AtomicU64::new(u64::MAX))
    }
}

/// Result of one task in a process.
pub(crate) struct TaskEnd<T> {
    /// Its result.
    pub(crate) result: Result<T, Failure>,
    /// The process may run another task.
    pub(crate) is_reusable: bool,
}

impl Pool {
    /// Creates an empty pool.
    #[must_use]
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// Returns the resident bytes of all processes, without those of running tasks, and of the kept memory files of inputs.
    #[must_use]
    pub fn resident_bytes(&self) -> u64 {
        self.processes.lock().bytes().saturating_add(self.files.bytes())
    }

    /// Sets the maximum of [`resident_bytes`](Self::resident_bytes). A single process may have more.
    pub fn set_limit_bytes(&self, limit: u64) {
        self.limit_bytes.0.store(limit, Ordering::Relaxed);
        self.shrink();
    }

    fn limit_bytes(&self) -> u64 {
        self.limit_bytes.0.load(Ordering::Relaxed)
    }

    /// Ends all idle processes, and the kept memory files of inputs.
    pub fn clear(&self) {
        self.files.shrink(0, 0);
        let idle = self.processes.lock().take_all();
        drop(idle);
    }

    /// Returns a memory file of the content of a region, which several tasks may share.
    pub(crate) fn file(&self, region: &DataRegion) -> io::Result<Arc<OwnedFd>> {
        self.files.file(region, MAX_FILE_BYTES.min(self.limit_bytes() / FILE_SHARE))
    }

    /// Runs a task in a process of `launch`. A process that dies, hangs or grows too much is killed, and the task runs once more in
    /// a new one: after too much memory, while no other external task runs.
    pub(crate) fn run<T>(
        self: &Arc<Self>,
        launch: &Arc<dyn Launch>,
        on_gpu: bool,
        task: impl Fn(&mut Process, u64) -> TaskEnd<T>,
    ) -> Result<T, Failure> {
        self.repeated(on_gpu, |is_first| self.run_once(launch, is_first, &task))
    }

    /// Runs a task in a process of `launch` once, whatever happens.
    pub(crate) fn attempt<T>(
        self: &Arc<Self>,
        launch: &Arc<dyn Launch>,
        on_gpu: bool,
        task: impl Fn(&mut Process, u64) -> TaskEnd<T>,
    ) -> Result<T, Failure> {
        let _gpu = on_gpu.then(|| self.gpu.lock());
        let _shared = self.alone.read();
        self.run_once(launch, true, &task)
    }

    /// Runs a task, and repeats it once if it dies, hangs or grows too much: after too much memory, while no other external task
    /// runs. `once` gets whether it is the first attempt.
    pub(crate) fn repeated<T>(
        &self,
        on_gpu: bool,
        once: impl Fn(bool) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let _gpu = on_gpu.then(|| self.gpu.lock());
        let first = {
            let _shared = self.alone.read();
            once(true)
        };
        // The second attempt runs in a new process: idle ones may have been killed with the first.
        match first {
            Err(Failure::TooLarge { .. }) => {
                let _alone = self.alone.write();
                self.clear();
                once(false)
            }
            Err(failure) if failure.is_repeated() => {
                let _shared = self.alone.read();
                once(false)
            }
            first => first,
        }
    }

    /// Starts a process on the pool's thread, which lives as long as the pool: processes die with the thread that has started
    /// them.
    pub(crate) fn started<T: Send + 'static>(
        self: &Arc<Self>,
        start: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> Result<T, Failure> {
        let system = |text: String| Failure::System(format!("failed to start the process: {text}"));
        let (answer, answered) = channel();
        let starter = self.starter.get_or_init(|| starter(Arc::downgrade(self)));
        // The receiver waits for the answer.
        let job: Job = Box::new(move || drop(answer.send(start())));
        starter.send(job).map_err(|error| system(error.to_string()))?;
        let started = answered.recv().map_err(|error| system(error.to_string()))?;
        started.map_err(|error| system(error.to_string()))
    }

    /// Runs a task in an idle process or a new one.
    fn run_once<T>(
        self: &Arc<Self>,
        launch: &Arc<dyn Launch>,
        takes_idle: bool,
        task: &impl Fn(&mut Process, u64) -> TaskEnd<T>,
    ) -> Result<T, Failure> {
        let mut pooled = match self.take_or_reserve(launch, takes_idle) {
            Taken::Idle(pooled) => *pooled,
            Taken::Reserved(reserved) => self.start(launch, reserved)?,
        };
        let mut running = Running { pool: self, id: Some(pooled.process.id()) };
        let TaskEnd { result, is_reusable } = task(&mut pooled.process, pooled.idle_bytes);
        // First: once the process is given back, it may count as running for another task.
        running.id = None;
        self.give_back(kind_of(launch), pooled, is_reusable);
        result
    }

    /// Returns an idle process of a kind, or room for a new one. Waits until the memory suffices.
    fn take_or_reserve(&self, launch: &Arc<dyn Launch>, takes_idle: bool) -> Taken<'_> {
        let kind = kind_of(launch);
        let mut has_files = true;
        let mut processes = self.processes.lock();
        loop {
            if takes_idle && let Some(pooled) = processes.take(kind) {
                return Taken::Idle(Box::new(pooled));
            }
            let bytes = processes.expected_bytes(kind).unwrap_or_else(|| launch.resident_bytes());
            let needed = processes.bytes().saturating_add(self.files.bytes()).saturating_add(bytes);
            if needed <= self.limit_bytes() || processes.is_idle() {
                processes.starting_bytes.push(bytes);
                let reserved = Reserved { pool: self, bytes };
                // A single process may exceed the limit, but then without idle ones.
                drop(processes);
                self.shrink();
                return Taken::Reserved(reserved);
            }
            if std::mem::take(&mut has_files) {
                self.files.shrink(0, 0);
                continue;
            }
            match processes.take_oldest() {
                // A kill waits for the process.
                Some(oldest) => MutexGuard::unlocked(&mut processes, || drop(oldest)),
                None => self.returned.wait(&mut processes),
            }
        }
    }

    fn give_back(&self, kind: usize, mut pooled: Pooled, is_reusable: bool) {
        let id = pooled.process.id();
        let bytes = pooled.process.resident_bytes().filter(|_| is_reusable);
        let is_kept = bytes.is_some_and(|bytes| pooled.is_kept(bytes));
        // Outside the lock: a kill waits for the process. Its memory counts until then.
        let pooled = is_kept.then_some(pooled);
        self.processes.lock().finish(id, kind, pooled);
        self.returned.notify_all();
        self.shrink();
    }

    fn start(self: &Arc<Self>, launch: &Arc<dyn Launch>, reserved: Reserved<'_>) -> Result<Pooled, Failure> {
        if let Some(refusal) = launch.refusal() {
            return Err(refusal);
        }
        let of_thread = Arc::clone(launch);
        let mut process = self.started(move || of_thread.start())?;
        launch.prepare(&mut process)?;
        let idle_bytes = process.resident_bytes().unwrap_or(0);
        let pooled = Pooled::new(process, launch, idle_bytes);
        let mut processes = self.processes.lock();
        processes.running.insert(pooled.process.id(), idle_bytes);
        drop(processes);
        drop(reserved);
        Ok(pooled)
    }

    /// Ends kept files beyond the limit, then idle processes, the least recently used first.
    fn shrink(&self) {
        if self.resident_bytes() > self.limit_bytes() {
            self.files.shrink(0, 0);
        }
        while self.resident_bytes() > self.limit_bytes() {
            let oldest = self.processes.lock().take_oldest();
            match oldest {
                Some(oldest) => drop(oldest),
                None => return,
            }
        }
    }

    /// Ends processes that have been idle for long.
    fn sweep(&self) {
        let ended = self.processes.lock().take_unused(IDLE);
        // Outside the lock: a kill waits for the process.
        drop(ended);
        self.files.sweep();
    }
}

/// A process for a task: an idle one, or the right to start one.
enum Taken<'a> {
    Idle(Box<Pooled>),
    Reserved(Reserved<'a>),
}

/// Ends the count of a running process whose task panics.
struct Running<'a> {
    pool: &'a Pool,
    /// `None` once the process is given back.
    id: Option<u32>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.pool.processes.lock().running.remove(&id);
            self.pool.returned.notify_all();
        }
    }
}

/// Memory of a process that starts.
struct Reserved<'a> {
    pool: &'a Pool,
    bytes: u64,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        let starting = &mut self.pool.processes.lock().starting_bytes;
        if let Some(place) = starting.iter().position(|bytes| *bytes == self.bytes) {
            starting.swap_remove(place);
        }
        self.pool.returned.notify_all();
    }
}

fn kind_of(launch: &Arc<dyn Launch>) -> usize {
    Arc::as_ptr(launch).cast::<()>() as usize
}

/// Starts the thread that starts processes, and returns its inbox.
fn starter(pool: Weak<Pool>) -> Sender<Job> {
    let (jobs, inbox) = channel();
    let work = move || {
        // Folders of a pleach that was killed. One that cannot be removed is no reason to run nothing.
        drop(Scratch::sweep(&std::env::temp_dir(), SCRATCH));
        serve(&inbox, &pool);
    };
    // Without the thread, `send` reports that the inbox is closed.
    drop(std::thread::Builder::new().name("external".to_owned()).spawn(work));
    jobs
}

/// Interval between sweeps.
const SWEEP_INTERVAL: Duration = Duration::from_secs(5);

fn serve(inbox: &Receiver<Job>, pool: &Weak<Pool>) {
    loop {
        match inbox.recv_timeout(SWEEP_INTERVAL) {
            Ok(job) => job(),
            Err(RecvTimeoutError::Timeout) => match pool.upgrade() {
                Some(pool) => pool.sweep(),
                None => return,
            },
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

/// Limits of starting a process and loading its operations: models are loaded from disk.
pub(crate) const START_LIMITS: Limits = Limits { timeout: Duration::from_mins(10), bytes: u64::MAX };

#[cfg(test)]
mod tests;
