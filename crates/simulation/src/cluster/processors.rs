//! Processors of one machine that several nodes share: their running instances get equal parts of them.
//!
//! With enough processors each instance has one, and others work beside it: they digest its outputs, ask for those of other
//! workers and send them, and serve the manager. Without, that work delays the instances. When an instance starts or ends, the
//! others go on at another rate. Fetches are not slowed down. An instance that waits for a task of another worker counts as one
//! that runs.

use super::{Cluster, DueEvent};
use pleach_dispatch::LeaseId;
use pleach_dispatch::message::{TaskOutcome, TaskReport};

/// 0.06 ms of a processor beside each task, in workers and manager together: 0.04 to 0.08 ms with tiles of 256 x 256 px on
/// loopback (`benches/RESULTS.md`, 2026-11-29). Tasks of tiles that several workers have at once take 0.3 ms, for their look-ups.
const TASK_SECONDS: f64 = 0.06e-3;

/// 0.9 ms of a processor beside a task for each 10^6 pixels of its image beyond [`CACHED_PIXELS`]: its outputs are digested and
/// kept, and tasks on other processors wait for memory. Measured with tiles of 256 x 256 to 1024 x 1024 px (2026-11-28).
const PIXEL_SECONDS: f64 = 0.9e-9;

/// Images of 256 x 256 px stay in the cache of a processor.
const CACHED_PIXELS: u64 = 1 << 16;

/// This part of the work beside a task delays the next task of its slot, even with a processor to spare (2026-11-28).
const DELAYING_PART: f64 = 1.0 / 6.0;

/// A rate that differs less from that of the running instances is not applied, which would move all their ends.
const LEAST_CHANGE: f64 = 0.01;

/// A machine that several nodes share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SharedMachine {
    /// Its processors.
    pub processors: u32,
    /// Seconds of a processor beside each task.
    pub task_seconds: f64,
    /// Seconds of a processor beside a task for each pixel of its image beyond 65,536.
    pub pixel_seconds: f64,
}

impl SharedMachine {
    /// Returns a machine with the work beside tasks that was measured for pleach.
    #[must_use]
    pub fn with_processors(processors: u32) -> Self {
        Self { processors, task_seconds: TASK_SECONDS, pixel_seconds: PIXEL_SECONDS }
    }
}

/// The shared processors.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedProcessors {
    machine: SharedMachine,
    /// The first nodes share them.
    nodes: usize,
}

impl SharedProcessors {
    /// Returns whether a node runs on the machine.
    pub(super) fn has(&self, node: usize) -> bool {
        node < self.nodes
    }

    /// Returns the part of a processor that instances have which need so many processors together.
    fn rate(&self, demand: f64) -> f64 {
        (f64::from(self.machine.processors) / demand.max(1.0)).min(1.0)
    }

    /// Returns the seconds by which the work beside tasks delays their slot, even with a processor to spare.
    pub(super) fn delay(&self, tasks: usize, pixels: u64) -> f64 {
        DELAYING_PART * self.work(tasks, pixels)
    }

    /// Returns the seconds of a processor beside these tasks.
    fn work(&self, tasks: usize, pixels: u64) -> f64 {
        let SharedMachine { task_seconds, pixel_seconds, .. } = self.machine;
        (task_seconds + pixel_seconds * pixels.saturating_sub(CACHED_PIXELS) as f64) * tasks as f64
    }

    /// Returns the processors that an instance of these tasks needs while it runs, for `seconds` with the delay.
    pub(super) fn demand(&self, tasks: usize, pixels: u64, seconds: f64) -> f64 {
        let beside = self.work(tasks, pixels) - self.delay(tasks, pixels);
        // An instance that only waits for others takes no processor beside its own.
        if seconds > 0.0 { 1.0 + (beside / seconds).min(1.0) } else { 1.0 }
    }
}

impl Cluster {
    /// Makes the first `nodes` nodes share the processors of a machine.
    #[must_use]
    pub fn with_machine(mut self, machine: SharedMachine, nodes: usize) -> Self {
        self.processors = Some(SharedProcessors { machine, nodes });
        self
    }

    /// Returns the rate of an instance that starts on a node now: 1 with a processor of its own.
    pub(super) fn starting_rate(&self, node: usize) -> f64 {
        let shared = self.processors.filter(|shared| shared.has(node));
        shared.map_or(1.0, |shared| shared.rate(self.demand_on(shared.nodes) + 1.0))
    }

    /// Returns the processors that the running instances of the first nodes need.
    fn demand_on(&self, nodes: usize) -> f64 {
        let runs = self.nodes.iter().take(nodes).flat_map(|node| node.runs.values());
        runs.filter(|run| run.current.is_some()).map(|run| run.demand).sum()
    }

    /// Moves the ends of running instances after others have started or ended.
    pub(super) fn share_processors(&mut self) {
        let Some(shared) = self.processors else { return };
        let rate = shared.rate(self.demand_on(shared.nodes));
        for node in 0..shared.nodes.min(self.nodes.len()) {
            let runs = self.nodes[node].runs.iter();
            let differs = |now: f64| (now / rate - 1.0).abs() > LEAST_CHANGE;
            let changed = runs.filter(|(_, run)| run.current.is_some() && differs(run.rate));
            let leases: Vec<LeaseId> = changed.map(|(lease, _)| *lease).collect();
            leases.into_iter().for_each(|lease| self.change_rate(node, lease, rate));
        }
    }

    fn change_rate(&mut self, node: usize, lease: LeaseId, rate: f64) {
        let now_us = self.now_us;
        let here = &mut self.nodes[node];
        let Some(run) = here.runs.get_mut(&lease) else { return };
        let left = run.ends_us.saturating_sub(now_us) as f64;
        run.ends_us = now_us + (left * run.rate / rate) as u64;
        run.rate = rate;
        here.steps += 1;
        run.begin(here.steps);
        let (ends_us, step) = (run.ends_us, run.step);
        self.at(ends_us, DueEvent::Worked(node, lease, step));
    }
}

/// Scales the measured seconds of tasks.
pub(super) fn stretch(tasks: &mut [TaskReport], factor: f64) {
    for task in tasks {
        if let TaskOutcome::Ran { seconds, predicted_seconds, .. } = &mut task.done {
            (*seconds, *predicted_seconds) = (*seconds * factor, *predicted_seconds * factor);
        }
    }
}
