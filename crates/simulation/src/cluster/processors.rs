//! Processors of one machine that several nodes share: their running instances get equal parts of them.
//!
//! With at most as many running instances as processors, each has one. When an instance starts or ends, the others go on at
//! another rate. Fetches are not slowed down. An instance that waits for a task of another worker counts as one that runs.

use super::{Cluster, DueEvent};
use pleach_dispatch::LeaseId;
use pleach_dispatch::message::{TaskOutcome, TaskReport};

/// The shared processors.
#[derive(Clone, Copy, Debug)]
pub(super) struct SharedProcessors {
    processors: u32,
    /// The first nodes share them.
    nodes: usize,
    /// Running instances at the last change.
    running: u32,
}

impl SharedProcessors {
    /// Returns the part of a processor that each of a number of running instances has.
    fn rate(&self, running: u32) -> f64 {
        (f64::from(self.processors) / f64::from(running.max(1))).min(1.0)
    }
}

impl Cluster {
    /// Makes the first `nodes` nodes share this number of processors.
    #[must_use]
    pub fn with_processors(mut self, processors: u32, nodes: usize) -> Self {
        self.processors = Some(SharedProcessors { processors, nodes, running: 0 });
        self
    }

    /// Returns the rate of an instance that starts on a node now: 1 with a processor of its own.
    pub(super) fn starting_rate(&self, node: usize) -> f64 {
        let shared = self.processors.filter(|shared| node < shared.nodes);
        shared.map_or(1.0, |shared| shared.rate(self.running_on(shared.nodes) + 1))
    }

    fn running_on(&self, nodes: usize) -> u32 {
        let runs = self.nodes.iter().take(nodes).flat_map(|node| node.runs.values());
        runs.filter(|run| run.current.is_some()).count() as u32
    }

    /// Moves the ends of running instances after others have started or ended.
    pub(super) fn share_processors(&mut self) {
        let Some(shared) = self.processors else { return };
        let running = self.running_on(shared.nodes);
        if running == shared.running {
            return;
        }
        self.processors = Some(SharedProcessors { running, ..shared });
        let rate = shared.rate(running);
        for node in 0..shared.nodes.min(self.nodes.len()) {
            let runs = self.nodes[node].runs.iter();
            let slowed = runs.filter(|(_, run)| run.current.is_some() && run.rate != rate);
            let leases: Vec<LeaseId> = slowed.map(|(lease, _)| *lease).collect();
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
