//! Pool of processes: kept warm between tasks, one task at a time each.
//!
//! A process serves one [`Launch`]: the operations of a package with one setup. A task borrows an idle process or starts one, on
//! the thread that runs the task, so that there are at most as many running processes as slots. Idle ones end after
//! [`IDLE`]. A command is a process of one task, which the pool starts and repeats only.

use crate::failure::Failure;
use crate::memory_file::KeptFiles;
use crate::process::{Limits, Process, SCRATCH};
use parking_lot::{Mutex, RwLock};
use pleach_files::scratch::Scratch;
use pleach_regions::DataRegion;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

/// 60 s: idle time of a process before it ends. Loading libraries takes seconds.
const IDLE: Duration = Duration::from_mins(1);

/// Tasks after which a process is replaced, so that a leak stays small.
const MAX_TASKS: u32 = 1000;

/// Growth of the idle resident bytes, in percent, after which a process is replaced.
const MAX_GROWTH_PERCENT: u64 = 20;

/// 64 MB: growth of the idle resident bytes that is no reason to replace a process. Allocators keep freed memory.
const GROWTH_ALLOWANCE: u64 = 64_000_000;

/// 256 MiB: maximum bytes of kept memory files, five tiles of 4096 x 4096 px.
const MAX_FILE_BYTES: u64 = 256 << 20;

/// Starter of the processes of one kind.
pub(crate) trait Launch: Send + Sync + std::fmt::Debug {
    /// Starts a process that is ready for tasks. It runs on the pool's thread.
    fn start(&self) -> io::Result<Process>;

    /// Prepares a started process. It runs on the thread of the task.
    fn prepare(&self, process: &mut Process) -> Result<(), Failure>;
}

/// A process with its use.
#[derive(Debug)]
struct Pooled {
    process: Process,
    /// Kept, so that no later one has its address, which is the kind of the process.
    _launch: Arc<dyn Launch>,
    tasks: u32,
    /// Resident bytes after the first task.
    first_bytes: Option<u64>,
    idle_bytes: u64,
    idle_since: Instant,
}

/// Job of the pool's thread.
type Job = Box<dyn FnOnce() + Send>;

/// The processes of a worker.
#[derive(Debug, Default)]
pub struct Pool {
    /// Idle processes by kind, the most recently used last.
    idle: Mutex<BTreeMap<usize, Vec<Pooled>>>,
    /// Held shared by each task, and exclusively by one that is repeated for want of memory.
    alone: RwLock<()>,
    /// Held by the task on the GPU.
    gpu: Mutex<()>,
    /// Resident bytes of running processes when they were idle, by process. Estimates of tasks cover the rest.
    running_bytes: Mutex<BTreeMap<u32, u64>>,
    /// Memory files of inputs.
    files: KeptFiles,
    starter: OnceLock<Sender<Job>>,
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
        let idle: u64 = self.idle.lock().values().flatten().map(|pooled| pooled.idle_bytes).sum();
        idle + self.running_bytes.lock().values().sum::<u64>() + self.files.bytes()
    }

    /// Ends all idle processes, and the kept memory files of inputs.
    pub fn clear(&self) {
        self.files.shrink(0, 0);
        let idle = std::mem::take(&mut *self.idle.lock());
        drop(idle);
    }

    /// Returns a memory file of the content of a region, which several tasks may share.
    pub(crate) fn file(&self, region: &DataRegion) -> io::Result<Arc<OwnedFd>> {
        self.files.file(region, MAX_FILE_BYTES)
    }

    /// Runs a task in a process of `launch`. A process that dies, hangs or grows too much is killed, and the task runs once more in
    /// a new one: after too much memory, while no other external task runs.
    pub(crate) fn run<T>(
        self: &Arc<Self>,
        launch: &Arc<dyn Launch>,
        on_gpu: bool,
        task: impl Fn(&mut Process, u64) -> TaskEnd<T>,
    ) -> Result<T, Failure> {
        self.repeated(on_gpu, |is_first| {
            let idle = if is_first { self.take(kind_of(launch)) } else { None };
            self.run_once(launch, idle, &task)
        })
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
        self.run_once(launch, self.take(kind_of(launch)), &task)
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

    fn run_once<T>(
        self: &Arc<Self>,
        launch: &Arc<dyn Launch>,
        idle: Option<Pooled>,
        task: &impl Fn(&mut Process, u64) -> TaskEnd<T>,
    ) -> Result<T, Failure> {
        let mut pooled = match idle {
            Some(pooled) => pooled,
            None => self.start(launch)?,
        };
        let id = pooled.process.id();
        self.running_bytes.lock().insert(id, pooled.idle_bytes);
        let TaskEnd { result, is_reusable } = task(&mut pooled.process, pooled.idle_bytes);
        self.running_bytes.lock().remove(&id);
        if is_reusable {
            self.give_back(kind_of(launch), pooled);
        }
        result
    }

    fn take(&self, kind: usize) -> Option<Pooled> {
        self.idle.lock().get_mut(&kind)?.pop()
    }

    fn give_back(&self, kind: usize, mut pooled: Pooled) {
        let Some(bytes) = pooled.process.resident_bytes() else { return };
        pooled.tasks += 1;
        let first = *pooled.first_bytes.get_or_insert(bytes);
        let most = first + (first / 100 * MAX_GROWTH_PERCENT).max(GROWTH_ALLOWANCE);
        if pooled.tasks >= MAX_TASKS || bytes > most {
            return;
        }
        pooled.idle_bytes = bytes;
        pooled.idle_since = Instant::now();
        self.idle.lock().entry(kind).or_default().push(pooled);
    }

    fn start(self: &Arc<Self>, launch: &Arc<dyn Launch>) -> Result<Pooled, Failure> {
        let of_thread = Arc::clone(launch);
        let mut process = self.started(move || of_thread.start())?;
        launch.prepare(&mut process)?;
        let idle_bytes = process.resident_bytes().unwrap_or(0);
        let launch = Arc::clone(launch);
        Ok(Pooled {
            process,
            _launch: launch,
            tasks: 0,
            first_bytes: None,
            idle_bytes,
            idle_since: Instant::now(),
        })
    }

    /// Ends processes that have been idle for long.
    fn sweep(&self) {
        let mut ended = Vec::new();
        for pooled in self.idle.lock().values_mut() {
            ended.extend(pooled.extract_if(.., |pooled| pooled.idle_since.elapsed() > IDLE));
        }
        // Outside the lock: a kill waits for the process.
        drop(ended);
        self.files.sweep();
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
