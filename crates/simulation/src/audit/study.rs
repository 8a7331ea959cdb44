//! A study in the audit's model, derived from the plan, the events and the effects.

use super::SUSPECTED_AFTER;
use pleach_dispatch::plan::{ExecutionPlan, PlannedInstance};
use pleach_dispatch::{InstanceId, LeaseId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// State of an instance in the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Open,
    Done,
    Failed,
}

/// A grant.
#[derive(Clone, Debug)]
pub(super) struct Granted {
    pub(super) worker: WorkerId,
    pub(super) open: BTreeSet<InstanceId>,
    /// Holders of its inputs, as named to the worker. Without inputs that the worker held itself.
    pub(super) notified: BTreeMap<RegionKey, BTreeSet<WorkerId>>,
    /// The worker has a steal request without an answer.
    pub(super) requested: Option<Duration>,
    /// Another lease of the same instances.
    pub(super) twin: Option<LeaseId>,
}

/// Lost workers that had an instance: all, those that ran nothing else, and the open instances of the smallest lost lease.
#[derive(Clone, Copy, Debug)]
pub(super) struct Losses {
    pub(super) count: u32,
    pub(super) alone: u32,
    pub(super) among: usize,
}

#[derive(Clone, Debug)]
pub(super) struct StudyModel {
    pub(super) plan: ExecutionPlan,
    pub(super) fate: Vec<Fate>,
    children: Vec<Vec<InstanceId>>,
    pub(super) leases: BTreeMap<LeaseId, Granted>,
    /// Open instances that read or store each region.
    users: HashMap<RegionKey, u32>,
    pub(super) producers: BTreeMap<RegionKey, InstanceId>,
    /// Holders of each referenced region.
    pub(super) holders: BTreeMap<RegionKey, BTreeSet<WorkerId>>,
    /// Crash count of each instance.
    pub(super) losses: HashMap<InstanceId, Losses>,
    pub(super) lacked: HashMap<InstanceId, u32>,
    /// Finished instances by stage, and the tasks run for them: index, seconds and pixels.
    pub(super) finished: HashMap<usize, u32>,
    pub(super) ran: HashMap<usize, Vec<(u32, f64, f64)>>,
}

impl StudyModel {
    pub(super) fn new(plan: &ExecutionPlan, finished: &BTreeSet<InstanceId>) -> Self {
        let open = plan.unfinished(finished);
        let fate = open.iter().map(|open| if *open { Fate::Open } else { Fate::Done }).collect();
        let mut model = Self {
            plan: plan.clone(),
            fate,
            children: vec![Vec::new(); plan.instances.len()],
            leases: BTreeMap::new(),
            users: HashMap::new(),
            producers: BTreeMap::new(),
            holders: BTreeMap::new(),
            losses: HashMap::new(),
            lacked: HashMap::new(),
            finished: HashMap::new(),
            ran: HashMap::new(),
        };
        for (id, instance) in plan.instances.enumerate() {
            stored(instance).for_each(|key| _ = model.producers.insert(key, id));
            instance.parents.iter().for_each(|parent| model.children[parent.index()].push(id));
            if open[id.index()] {
                model.use_regions(id);
            }
        }
        model
    }

    /// Counts a lost worker for each open instance of one of its leases.
    pub(super) fn lose(&mut self, open: &BTreeSet<InstanceId>) {
        for id in open {
            let alone = open.len() == 1 && self.is_suspected(*id);
            let lost = self.losses.entry(*id).or_insert(Losses { count: 0, alone: 0, among: open.len() });
            lost.count += 1;
            lost.alone += u32::from(alone);
            lost.among = lost.among.min(open.len());
        }
    }

    pub(super) fn is_suspected(&self, id: InstanceId) -> bool {
        self.losses.get(&id).is_some_and(|lost| lost.count >= SUSPECTED_AFTER)
    }

    pub(super) fn fate(&self, id: InstanceId) -> Option<Fate> {
        self.fate.get(id.index()).copied()
    }

    pub(super) fn is_complete(&self) -> bool {
        self.fate.iter().all(|fate| *fate != Fate::Open)
    }

    pub(super) fn stage(&self, id: InstanceId) -> usize {
        self.plan.instances.at(id).stage
    }

    fn uses(&self, id: InstanceId) -> BTreeSet<RegionKey> {
        let instance = self.plan.instances.at(id);
        instance.inputs.iter().copied().chain(stored(instance)).collect()
    }

    fn use_regions(&mut self, id: InstanceId) {
        self.uses(id).into_iter().for_each(|key| *self.users.entry(key).or_default() += 1);
    }

    pub(super) fn is_used(&self, key: RegionKey) -> bool {
        self.users.contains_key(&key)
    }

    /// Makes an open instance final and drops its references.
    pub(super) fn close(&mut self, id: InstanceId, fate: Fate) {
        self.fate[id.index()] = fate;
        for key in self.uses(id) {
            if let Some(users) = self.users.get_mut(&key) {
                *users -= 1;
                if *users == 0 {
                    self.users.remove(&key);
                }
            }
        }
    }

    pub(super) fn reopen(&mut self, id: InstanceId) {
        self.fate[id.index()] = Fate::Open;
        self.use_regions(id);
    }

    /// Records that a worker holds the inputs and stored outputs of an instance that it has executed.
    pub(super) fn hold(&mut self, worker: WorkerId, id: InstanceId) {
        for key in self.uses(id) {
            if self.is_used(key) && self.producers.contains_key(&key) {
                self.holders.entry(key).or_default().insert(worker);
            }
        }
    }

    pub(super) fn drop_copy(&mut self, worker: WorkerId, key: RegionKey) {
        if let Some(holders) = self.holders.get_mut(&key) {
            holders.remove(&worker);
            // A region without a holder has no entry: `instances_to_reopen` tests the key alone.
            if holders.is_empty() {
                self.holders.remove(&key);
            }
        }
    }

    pub(super) fn drop_holder(&mut self, worker: WorkerId) {
        self.holders.retain(|_, holders| {
            holders.remove(&worker);
            !holders.is_empty()
        });
    }

    /// Returns the referenced regions whose sole copy is on this worker.
    pub(super) fn only_with(&self, worker: WorkerId) -> impl Iterator<Item = RegionKey> {
        let alone = move |holders: &BTreeSet<WorkerId>| holders.len() == 1 && holders.contains(&worker);
        self.holders
            .iter()
            .filter(move |(key, holders)| alone(holders) && self.is_used(**key))
            .map(|(key, _)| *key)
    }

    /// Returns the instances that must be reopened: producers of referenced regions without a holder, and recursively the
    /// producers of their lost inputs.
    pub(super) fn instances_to_reopen(&self) -> BTreeSet<InstanceId> {
        let is_done = |id: &InstanceId| self.fate[id.index()] == Fate::Done;
        let gone = |key: &RegionKey| !self.holders.contains_key(key);
        let first = self.producers.iter().filter(|(key, id)| self.is_used(**key) && is_done(id) && gone(key));
        let mut next: Vec<InstanceId> = first.map(|(_, id)| *id).collect();
        let mut lost = BTreeSet::new();
        while let Some(id) = next.pop() {
            if lost.insert(id) {
                let inputs = self.plan.instances.at(id).inputs.iter().filter(|key| gone(key));
                next.extend(inputs.filter_map(|key| self.producers.get(key)).filter(|id| is_done(id)));
            }
        }
        lost
    }

    /// Returns the leases that contain an instance.
    pub(super) fn leased(&self, id: InstanceId) -> impl Iterator<Item = (LeaseId, &Granted)> {
        self.leases.iter().filter(move |(_, lease)| lease.open.contains(&id)).map(|(id, lease)| (*id, lease))
    }

    /// Removes a lease and its link from the twin.
    pub(super) fn remove(&mut self, lease: LeaseId) -> Option<Granted> {
        let granted = self.leases.remove(&lease)?;
        // The other lease may be granted again, as soon as it is the only one of its instances.
        if let Some(twin) = granted.twin.and_then(|twin| self.leases.get_mut(&twin)) {
            twin.twin = None;
        }
        Some(granted)
    }

    /// Removes an instance from a lease if it belongs to this worker. Removes the lease with its last instance.
    pub(super) fn take(&mut self, worker: WorkerId, lease: LeaseId, id: InstanceId) -> bool {
        let Some(granted) = self.leases.get_mut(&lease).filter(|granted| granted.worker == worker) else {
            return false;
        };
        let had = granted.open.remove(&id);
        if granted.open.is_empty() {
            self.remove(lease);
        }
        had
    }

    /// Returns whether an instance without results has all its stored outputs held by some worker, so that it need not
    /// be executed.
    pub(super) fn is_stored(&self, id: InstanceId) -> bool {
        let outputs = self.plan.instances.at(id).outputs;
        let is_there = |key: RegionKey| self.holders.contains_key(&key);
        let stores = outputs.iter().any(|output| output.stored);
        stores && outputs.iter().all(|output| !output.reported && (!output.stored || is_there(output.key)))
    }

    /// Returns whether an instance has no open reader.
    pub(super) fn has_no_reader(&self, id: InstanceId) -> bool {
        self.children[id.index()].iter().all(|child| self.fate[child.index()] != Fate::Open)
    }

    /// Returns whether an open instance has a failed parent.
    pub(super) fn has_failed_parent(&self, id: InstanceId) -> bool {
        let parents = self.plan.instances.at(id).parents;
        parents.iter().any(|parent| self.fate[parent.index()] == Fate::Failed)
    }

    pub(super) fn leases_of(&self, worker: WorkerId) -> usize {
        self.leases.values().filter(|lease| lease.worker == worker).count()
    }
}

/// Returns the outputs that an instance stores for its readers.
fn stored(instance: PlannedInstance<'_>) -> impl Iterator<Item = RegionKey> {
    instance.outputs.iter().filter(|output| output.stored).map(|output| output.key)
}
