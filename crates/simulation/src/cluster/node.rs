//! A simulated worker: buckets in slots, regions, and what it has not been able to say yet.

use crate::scenario::NodeSpec;
use pleach_dispatch::message::{RemoteRegion, TaskReport};
use pleach_dispatch::{InstanceId, LeaseId, PlanId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A bucket that it has been granted.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) study: PlanId,
    /// Not begun.
    pub(super) left: VecDeque<InstanceId>,
    pub(super) current: Option<InstanceId>,
    /// The one before: what it shares with the next is done.
    pub(super) last: Option<InstanceId>,
    /// What the current one takes, task by task.
    pub(super) tasks: Vec<TaskReport>,
    /// When it began the current one.
    pub(super) begun_us: u64,
    /// When the node was known to have to end as it began.
    pub(super) end_us: Option<u64>,
    /// It has a slot.
    pub(super) started: bool,
    pub(super) elsewhere: Vec<RemoteRegion>,
    /// The node's number of what it does now.
    pub(super) begun: u64,
}

impl Run {
    pub(super) fn new(study: PlanId, left: VecDeque<InstanceId>, elsewhere: Vec<RemoteRegion>) -> Self {
        Self {
            study,
            left,
            current: None,
            last: None,
            tasks: Vec::new(),
            begun_us: 0,
            end_us: None,
            started: false,
            elsewhere,
            begun: 0,
        }
    }

    /// It does something else now.
    pub(super) fn begin(&mut self, begun: u64) {
        self.begun = begun;
    }

    pub(super) fn open(&self) -> impl Iterator<Item = InstanceId> {
        self.current.iter().chain(&self.left).copied()
    }
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) spec: NodeSpec,
    /// The process runs.
    pub(super) up: bool,
    /// Connections so far: what was said over an earlier one does not arrive any more.
    pub(super) link: u32,
    pub(super) connected: bool,
    /// What the manager calls it, over this connection.
    pub(super) worker: Option<WorkerId>,
    /// Nothing gets through until then.
    pub(super) cut_until_us: u64,
    /// When the last message arrives: to the manager, and from it. They do not overtake each other.
    pub(super) last_us: [u64; 2],
    pub(super) runs: BTreeMap<LeaseId, Run>,
    /// Finished, and not heard by the manager yet.
    pub(super) unheard: BTreeMap<LeaseId, (PlanId, BTreeSet<InstanceId>)>,
    /// Asked for, and not granted yet.
    pub(super) asked: u32,
    pub(super) held: BTreeSet<(PlanId, RegionKey)>,
    /// Files that it has read.
    pub(super) files: BTreeSet<RegionKey>,
    /// When it went.
    pub(super) ended_us: Option<u64>,
    pub(super) draining: bool,
    /// When it has to end, if it has to.
    pub(super) end_us: Option<u64>,
    /// Begins of instances so far: who is interrupted does not go on.
    pub(super) begun: u64,
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
            asked: 0,
            held: BTreeSet::new(),
            files: BTreeSet::new(),
            ended_us: None,
            draining: false,
            end_us: None,
            begun: 0,
        }
    }

    /// Buckets to ask for: a window of as many as there are slots, as the real worker does.
    pub(super) fn ask(&mut self) -> u32 {
        if self.draining {
            return 0;
        }
        let more = self.spec.slots.saturating_sub(self.runs.len() as u32 + self.asked);
        self.asked += more;
        more
    }

    /// The first bucket that could begin, if a slot is free.
    pub(super) fn next_to_start(&self) -> Option<LeaseId> {
        let started = self.runs.values().filter(|run| run.started).count();
        let waits = || self.runs.iter().find(|(_, run)| !run.started).map(|(lease, _)| *lease);
        ((started as u32) < self.spec.slots).then(waits).flatten()
    }

    /// All instances of a lease that the manager has not heard of.
    pub(super) fn has(&self) -> BTreeMap<LeaseId, (PlanId, BTreeSet<InstanceId>)> {
        let mut all = self.unheard.clone();
        for (lease, run) in &self.runs {
            all.entry(*lease).or_insert_with(|| (run.study, BTreeSet::new())).1.extend(run.open());
        }
        all
    }

    /// The process is gone, with all it had.
    pub(super) fn lose_all(&mut self) {
        self.up = false;
        self.runs.clear();
        self.unheard.clear();
        self.held.clear();
    }
}
