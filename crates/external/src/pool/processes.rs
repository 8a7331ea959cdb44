//! The processes of a pool with their memory, as a plain value.

use super::Launch;
use crate::process::Process;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Tasks after which a process is replaced, so that a leak stays small.
const MAX_TASKS: u32 = 1000;

/// Growth of the idle resident bytes, in percent, after which a process is replaced.
const MAX_GROWTH_PERCENT: u64 = 20;

/// 64 MB: growth of the idle resident bytes that is no reason to replace a process. Allocators keep freed memory.
const GROWTH_ALLOWANCE: u64 = 64_000_000;

/// A process with its use.
#[derive(Debug)]
pub(super) struct Pooled {
    pub(super) process: Process,
    /// Kept, so that no later one has its address, which is the kind of the process.
    _launch: Arc<dyn Launch>,
    tasks: u32,
    /// Resident bytes after the first task.
    first_bytes: Option<u64>,
    pub(super) idle_bytes: u64,
    idle_since: Instant,
}

impl Pooled {
    pub(super) fn new(process: Process, launch: &Arc<dyn Launch>, idle_bytes: u64) -> Self {
        let launch = Arc::clone(launch);
        let idle_since = Instant::now();
        Self { process, _launch: launch, tasks: 0, first_bytes: None, idle_bytes, idle_since }
    }

    /// Notes the end of a task, after which the process has `bytes`. Returns whether the process may run a further task.
    pub(super) fn is_kept(&mut self, bytes: u64) -> bool {
        self.tasks += 1;
        let first = *self.first_bytes.get_or_insert(bytes);
        let most = first + (first / 100 * MAX_GROWTH_PERCENT).max(GROWTH_ALLOWANCE);
        self.idle_bytes = bytes;
        self.idle_since = Instant::now();
        self.tasks < MAX_TASKS && bytes <= most
    }
}

/// The processes of a pool.
#[derive(Debug, Default)]
pub(super) struct Processes {
    /// Idle processes by kind, the most recently used last.
    idle: BTreeMap<usize, Vec<Pooled>>,
    /// Resident bytes of running processes when they were idle, by process. Estimates of tasks cover the rest.
    pub(super) running: BTreeMap<u32, u64>,
    /// Expected bytes of processes that start.
    pub(super) starting_bytes: Vec<u64>,
    /// Bytes of the last idle process of a kind.
    last_bytes: BTreeMap<usize, u64>,
}

impl Processes {
    /// Returns the bytes of all processes, without those of running tasks.
    pub(super) fn bytes(&self) -> u64 {
        let idle = self.idle.values().flatten().map(|pooled| pooled.idle_bytes);
        idle.chain(self.running.values().copied()).chain(self.starting_bytes.iter().copied()).sum()
    }

    /// Returns the bytes that a process of a kind has had.
    pub(super) fn expected_bytes(&self, kind: usize) -> Option<u64> {
        self.last_bytes.get(&kind).copied()
    }

    /// Returns whether no process runs or starts.
    pub(super) fn is_idle(&self) -> bool {
        self.running.is_empty() && self.starting_bytes.is_empty()
    }

    /// Removes the most recently used idle process of a kind, and counts it as running.
    pub(super) fn take(&mut self, kind: usize) -> Option<Pooled> {
        let pooled = self.idle.get_mut(&kind)?.pop()?;
        self.running.insert(pooled.process.id(), pooled.idle_bytes);
        Some(pooled)
    }

    /// Notes that a running process has no task any more. `None` for one that ends.
    pub(super) fn finish(&mut self, id: u32, kind: usize, pooled: Option<Pooled>) {
        self.running.remove(&id);
        if let Some(pooled) = pooled {
            self.last_bytes.insert(kind, pooled.idle_bytes);
            self.idle.entry(kind).or_default().push(pooled);
        }
    }

    /// Removes the least recently used idle process of all kinds.
    pub(super) fn take_oldest(&mut self) -> Option<Pooled> {
        let firsts = self.idle.iter().filter_map(|(kind, pooled)| Some((pooled.first()?.idle_since, *kind)));
        let (_, kind) = firsts.min()?;
        Some(self.idle.get_mut(&kind)?.remove(0))
    }

    /// Removes the processes without a task for longer than `most`.
    pub(super) fn take_unused(&mut self, most: Duration) -> Vec<Pooled> {
        let kinds = self.idle.values_mut();
        kinds.flat_map(|kind| kind.extract_if(.., |pooled| pooled.idle_since.elapsed() > most)).collect()
    }

    /// Removes all idle processes.
    pub(super) fn take_all(&mut self) -> Vec<Pooled> {
        std::mem::take(&mut self.idle).into_values().flatten().collect()
    }
}
