//! A simulated worker: its buckets, slots and regions, and its undelivered reports.

use crate::scenario::NodeSpec;
use pleach_dispatch::message::{RemoteRegion, TaskReport};
use pleach_dispatch::{InstanceId, LeaseId, PlanId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A granted bucket.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) study: PlanId,
    /// Unstarted instances.
    pub(super) remaining: VecDeque<InstanceId>,
    pub(super) current: Option<InstanceId>,
    /// The instance before the current one: tasks that both share are done.
    pub(super) last: Option<InstanceId>,
    /// Tasks of the current instance, with their timings.
    pub(super) tasks: Vec<TaskReport>,
    /// Start time of the current instance.
    pub(super) started_us: u64,
    /// Seconds from its start to its end as predicted then, and its end by now.
    pub(super) predicted_seconds: f64,
    pub(super) ends_us: u64,
    /// The part of a processor that it has.
    pub(super) rate: f64,
    /// Processors that it needs.
    pub(super) demand: f64,
    /// The node's time limit, as known at the start of the current instance.
    pub(super) end_us: Option<u64>,
    /// Whether the bucket has a slot.
    pub(super) started: bool,
    pub(super) elsewhere: Vec<RemoteRegion>,
    /// Number of its current step, to recognize outdated events.
    pub(super) step: u64,
}

impl Run {
    pub(super) fn new(study: PlanId, remaining: VecDeque<InstanceId>, elsewhere: Vec<RemoteRegion>) -> Self {
        Self {
            study,
            remaining,
            current: None,
            last: None,
            tasks: Vec::new(),
            started_us: 0,
            predicted_seconds: 0.0,
            ends_us: 0,
            rate: 1.0,
            demand: 1.0,
            end_us: None,
            started: false,
            elsewhere,
            step: 0,
        }
    }

    /// Starts another step.
    pub(super) fn begin(&mut self, step: u64) {
        self.step = step;
    }

    pub(super) fn open(&self) -> impl Iterator<Item = InstanceId> {
        self.current.iter().chain(&self.remaining).copied()
    }
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) spec: NodeSpec,
    /// Whether the process runs.
    pub(super) up: bool,
    /// Number of connections so far. Messages of an earlier connection do not arrive.
    pub(super) link: u32,
    pub(super) connected: bool,
    /// Worker id on this connection.
    pub(super) worker: Option<WorkerId>,
    /// End of its partition: no message arrives before.
    pub(super) cut_until_us: u64,
    /// Arrival times of the last messages to and from the manager, which keep their order.
    pub(super) last_us: [u64; 2],
    pub(super) runs: BTreeMap<LeaseId, Run>,
    /// Finished instances whose reports have not reached the manager.
    pub(super) unheard: BTreeMap<LeaseId, (PlanId, BTreeSet<InstanceId>)>,
    /// Buckets requested and not granted yet.
    pub(super) requested: u32,
    pub(super) regions: BTreeSet<(PlanId, RegionKey)>,
    /// Files that it has read.
    pub(super) files: BTreeSet<RegionKey>,
    /// End time, if the process has ended.
    pub(super) ended_us: Option<u64>,
    pub(super) draining: bool,
    /// Time limit, if any.
    pub(super) end_us: Option<u64>,
    /// Number of steps so far, to recognize events of interrupted steps.
    pub(super) steps: u64,
}

impl Node {
    pub(super) fn new(spec: NodeSpec) -> Self {
        Self {
            spec,
            up: true,
            link: 0,
            connected: false,
            worker: None,
            cut_until_us: 0,
            last_us: [0; 2],
            runs: BTreeMap::new(),
            unheard: BTreeMap::new(),
            requested: 0,
            regions: BTreeSet::new(),
            files: BTreeSet::new(),
            ended_us: None,
            draining: false,
            end_us: None,
            steps: 0,
        }
    }

    /// Requests one bucket for each slot, as the real worker does. Returns the number of new requests.
    pub(super) fn ask(&mut self) -> u32 {
        if self.draining {
            return 0;
        }
        let more = self.spec.slots.saturating_sub(self.runs.len() as u32 + self.requested);
        self.requested += more;
        more
    }

    /// Returns the first bucket that can start, if a slot is free.
    pub(super) fn next_to_start(&self) -> Option<LeaseId> {
        let started = self.runs.values().filter(|run| run.started).count();
        let waits = || self.runs.iter().find(|(_, run)| !run.started).map(|(lease, _)| *lease);
        ((started as u32) < self.spec.slots).then(waits).flatten()
    }

    /// Returns all instances by lease that the manager counts as open.
    pub(super) fn has(&self) -> BTreeMap<LeaseId, (PlanId, BTreeSet<InstanceId>)> {
        let mut all = self.unheard.clone();
        for (lease, run) in &self.runs {
            all.entry(*lease).or_insert_with(|| (run.study, BTreeSet::new())).1.extend(run.open());
        }
        all
    }

    /// Ends the process, which loses its leases and regions.
    pub(super) fn lose_all(&mut self) {
        self.up = false;
        self.runs.clear();
        self.unheard.clear();
        self.regions.clear();
    }
}
