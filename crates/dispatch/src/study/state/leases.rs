//! Leases: the open instances of each grant, by lease and by worker.
//!
//! Invariants: a lease has open instances, and its worker has the lease. Both maps change together. The twins of a
//! speculative execution name each other, belong to different workers, and end apart: whichever is left has no twin
//! then.

use crate::message::RemoteRegion;
use crate::{InstanceId, LeaseId, WorkerId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A grant of open instances to a worker.
#[derive(Debug)]
pub(crate) struct Lease {
    worker: WorkerId,
    open: BTreeSet<InstanceId>,
    /// Locations of the input regions, as sent to the worker.
    sent_locations: Vec<RemoteRegion>,
    /// Time of the grant, or of the last finished instance under this lease.
    since: Duration,
    /// Time that its bucket had been ready before the grant.
    waited: Duration,
    /// The worker was asked to return instances with a longer path than this and has not answered yet.
    steal_requested: Option<Duration>,
    /// The other lease of the same instances under speculative execution.
    twin: Option<LeaseId>,
    /// The worker gets nothing else: the lease has, or had, a suspect.
    isolated: bool,
}

impl Lease {
    pub(crate) fn new(
        worker: WorkerId,
        open: BTreeSet<InstanceId>,
        sent_locations: Vec<RemoteRegion>,
        now: Duration,
    ) -> Self {
        let waited = Duration::ZERO;
        Self {
            worker,
            open,
            sent_locations,
            since: now,
            waited,
            steal_requested: None,
            twin: None,
            isolated: false,
        }
    }

    /// Sets the time that its bucket had been ready before the grant.
    pub(crate) fn after(self, waited: Duration) -> Self {
        Self { waited, ..self }
    }

    /// Sets whether its worker gets nothing else.
    pub(crate) fn isolated(self, isolated: bool) -> Self {
        Self { isolated, ..self }
    }

    pub(crate) fn worker(&self) -> WorkerId {
        self.worker
    }

    /// Returns its instances that have not been reported. At least one.
    pub(crate) fn open(&self) -> &BTreeSet<InstanceId> {
        &self.open
    }

    pub(crate) fn sent_locations(&self) -> &[RemoteRegion] {
        &self.sent_locations
    }

    pub(crate) fn since(&self) -> Duration {
        self.since
    }

    pub(crate) fn waited(&self) -> Duration {
        self.waited
    }

    /// Returns whether its worker gets nothing else.
    pub(crate) fn is_isolated(&self) -> bool {
        self.isolated
    }

    /// Returns whether its worker has a steal request that it has not answered.
    pub(crate) fn has_steal_request(&self) -> bool {
        self.steal_requested.is_some()
    }

    pub(crate) fn twin(&self) -> Option<LeaseId> {
        self.twin
    }

    /// Returns whether its instances can be leased to this worker as well.
    pub(crate) fn may_twin_with(&self, worker: WorkerId) -> bool {
        self.twin.is_none() && self.worker != worker
    }

    /// Returns whether its worker can be asked for instances with a longer path than this.
    pub(crate) fn is_shareable(&self, longer_than: Duration) -> bool {
        self.steal_requested.is_none_or(|asked| longer_than < asked) && self.twin.is_none()
    }
}

/// A reported instance, after its removal from all leases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Closed {
    /// The other lease of the same instances. It may have ended.
    pub(crate) twin: Option<LeaseId>,
    /// The worker of the twin, if the instance was its last one.
    pub(crate) revoked: Option<WorkerId>,
}

/// Instances that a lease no longer has.
#[derive(Debug)]
pub(crate) struct ReturnedInstances {
    pub(crate) instances: BTreeSet<InstanceId>,
    /// The other lease, which may have some of the instances as well.
    pub(crate) twin: Option<LeaseId>,
}

/// Leases of a worker.
#[derive(Debug, Default)]
struct WorkerLeases {
    ids: BTreeSet<LeaseId>,
    /// Number of isolated ones.
    isolated: usize,
}

/// All leases of a study.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    by_id: BTreeMap<LeaseId, Lease>,
    by_worker: BTreeMap<WorkerId, WorkerLeases>,
}

impl Leases {
    pub(crate) fn get(&self, id: LeaseId) -> Option<&Lease> {
        self.by_id.get(&id)
    }

    /// Returns a lease if it belongs to the worker. Reports of expired leases, and of other workers' leases, do not
    /// count.
    pub(crate) fn of(&self, worker: WorkerId, id: LeaseId) -> Option<&Lease> {
        self.by_id.get(&id).filter(|lease| lease.worker == worker)
    }

    fn own(&mut self, worker: WorkerId, id: LeaseId) -> Option<&mut Lease> {
        self.by_id.get_mut(&id).filter(|lease| lease.worker == worker)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LeaseId, &Lease)> {
        self.by_id.iter().map(|(id, lease)| (*id, lease))
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(crate) fn of_worker(&self, worker: WorkerId) -> impl Iterator<Item = &Lease> {
        let ids = self.by_worker.get(&worker).into_iter().flat_map(|leases| &leases.ids);
        ids.filter_map(|id| self.by_id.get(id))
    }

    pub(crate) fn count_of(&self, worker: WorkerId) -> usize {
        self.by_worker.get(&worker).map_or(0, |leases| leases.ids.len())
    }

    /// Returns whether a worker has an isolated lease.
    pub(crate) fn has_isolated(&self, worker: WorkerId) -> bool {
        self.by_worker.get(&worker).is_some_and(|leases| leases.isolated > 0)
    }

    /// Returns the workers that have leases.
    pub(crate) fn workers(&self) -> impl Iterator<Item = WorkerId> {
        self.by_worker.keys().copied()
    }

    /// Adds a lease. Its id is new.
    pub(crate) fn grant(&mut self, id: LeaseId, lease: Lease) {
        assert!(!lease.open.is_empty(), "{id} of {} is empty", lease.worker);
        let of_worker = self.by_worker.entry(lease.worker).or_default();
        of_worker.isolated += usize::from(lease.isolated);
        let is_new = of_worker.ids.insert(id);
        assert!(is_new, "{id} of {} is granted twice", lease.worker);
        let before = self.by_id.insert(id, lease);
        assert!(before.is_none(), "{id} is granted twice, before as {before:?}");
    }

    /// Isolates a lease: from now on its worker gets nothing else.
    pub(crate) fn isolate(&mut self, id: LeaseId) {
        let Some(lease) = self.by_id.get_mut(&id) else { return };
        if !std::mem::replace(&mut lease.isolated, true) {
            let of_worker = self.by_worker.get_mut(&lease.worker);
            of_worker.into_iter().for_each(|leases| leases.isolated += 1);
        }
    }

    /// Adds a second lease of the same instances, for another worker.
    pub(crate) fn grant_twin(&mut self, of: LeaseId, id: LeaseId, lease: Lease) {
        let first = self.by_id.get_mut(&of).filter(|first| first.may_twin_with(lease.worker));
        assert!(first.is_some(), "{of} has ended or cannot have the twin {id} of {}", lease.worker);
        if let Some(first) = first {
            debug_assert!(first.open == lease.open, "{of} and {id} are not of the same instances");
            first.twin = Some(id);
        }
        self.grant(id, Lease { twin: Some(of), ..lease });
    }

    /// Starts the time of the next report. Returns the time since the last one. `None` if the instance is not open in
    /// the worker's lease.
    pub(crate) fn record_report(
        &mut self,
        worker: WorkerId,
        id: LeaseId,
        instance: InstanceId,
        now: Duration,
    ) -> Option<Duration> {
        let lease = self.own(worker, id).filter(|lease| lease.open.contains(&instance))?;
        Some(now.saturating_sub(std::mem::replace(&mut lease.since, now)))
    }

    /// Removes a reported instance from its lease and from the twin. A lease ends with its last instance. `None` if the
    /// instance is not open in the worker's lease.
    pub(crate) fn close(&mut self, worker: WorkerId, id: LeaseId, instance: InstanceId) -> Option<Closed> {
        let lease = self.own(worker, id)?;
        if !lease.open.remove(&instance) {
            return None;
        }
        let twin = lease.twin;
        if let Some(other) = twin.and_then(|twin| self.by_id.get_mut(&twin)) {
            assert!(other.twin == Some(id), "{id} has the twin {twin:?}, whose twin is {:?}", other.twin);
            other.open.remove(&instance);
        }
        // First the own lease: the twin, if it ends as well, has no twin any more.
        self.end_if_empty(id);
        let revoked = twin.and_then(|twin| self.end_if_empty(twin)).map(|ended| ended.worker);
        Some(Closed { twin, revoked })
    }

    /// Removes those of some instances that are open in the worker's lease. The twin keeps them. `None` if the lease
    /// does not belong to the worker.
    pub(crate) fn take_back(
        &mut self,
        worker: WorkerId,
        id: LeaseId,
        instances: &[InstanceId],
    ) -> Option<ReturnedInstances> {
        let lease = self.own(worker, id)?;
        let instances = instances.iter().copied().filter(|instance| lease.open.remove(instance)).collect();
        let twin = lease.twin;
        self.end_if_empty(id);
        Some(ReturnedInstances { instances, twin })
    }

    /// Marks a lease as asked to return instances. Returns its worker.
    pub(crate) fn request_return(&mut self, id: LeaseId, longer_than: Duration) -> Option<WorkerId> {
        let lease = self.by_id.get_mut(&id)?;
        assert!(
            lease.is_shareable(longer_than),
            "{id} is asked twice to return instances, or has a twin: {lease:?}"
        );
        lease.steal_requested = Some(longer_than);
        Some(lease.worker)
    }

    /// Records that the worker of a lease has answered a steal request. Ignores other workers.
    pub(crate) fn answer_return(&mut self, worker: WorkerId, id: LeaseId) {
        if let Some(lease) = self.own(worker, id) {
            lease.steal_requested = None;
        }
    }

    /// Ends all leases of a worker. Returns their instances, by lease in the order of ids.
    pub(crate) fn remove_worker(&mut self, worker: WorkerId) -> Vec<ReturnedInstances> {
        let mut ended = Vec::new();
        while let Some(id) = self.by_worker.get(&worker).and_then(|leases| leases.ids.first()).copied() {
            let Some(lease) = self.remove(id) else { break };
            assert!(lease.worker == worker, "{id} of {} is among the leases of {worker}", lease.worker);
            assert!(!lease.open.is_empty(), "{id} of {worker} ends with it and is empty");
            ended.push(ReturnedInstances { instances: lease.open, twin: lease.twin });
        }
        ended
    }

    fn end_if_empty(&mut self, id: LeaseId) -> Option<Lease> {
        if self.by_id.get(&id)?.open.is_empty() { self.remove(id) } else { None }
    }

    fn remove(&mut self, id: LeaseId) -> Option<Lease> {
        let lease = self.by_id.remove(&id)?;
        let worker = lease.worker;
        let of_worker = self.by_worker.get_mut(&worker);
        let (was_known, is_last) = of_worker.map_or((false, false), |leases| {
            assert!(
                leases.isolated >= usize::from(lease.isolated),
                "{id} of {worker} is not counted as isolated"
            );
            leases.isolated -= usize::from(lease.isolated);
            (leases.ids.remove(&id), leases.ids.is_empty())
        });
        assert!(was_known, "{id} ends, and {worker} does not have it");
        if is_last {
            self.by_worker.remove(&worker);
        }
        if let Some(twin) = lease.twin {
            let back = self.by_id.get_mut(&twin).and_then(|other| other.twin.take());
            assert!(back == Some(id), "{id} ends with the twin {twin}, whose twin is {back:?}");
        }
        Some(lease)
    }

    /// Compares both maps, and twins with each other.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (id, lease) in &self.by_id {
            let is_known = self.by_worker.get(&lease.worker).is_some_and(|leases| leases.ids.contains(id));
            if !is_known || lease.open.is_empty() {
                return Err(format!("{id} is empty or {} does not have it", lease.worker));
            }
            let Some(twin) = lease.twin else { continue };
            let other = self.by_id.get(&twin);
            if !other.is_some_and(|other| other.twin == Some(*id) && other.worker != lease.worker) {
                return Err(format!("{id} has the twin {twin}, which is {other:?}"));
            }
        }
        let counted: usize = self.by_worker.values().map(|leases| leases.ids.len()).sum();
        if counted != self.by_id.len() || self.by_worker.values().any(|leases| leases.ids.is_empty()) {
            return Err(format!("workers have {counted} leases, {} exist", self.by_id.len()));
        }
        for (worker, leases) in &self.by_worker {
            let isolated = self.of_worker(*worker).filter(|lease| lease.is_isolated()).count();
            if isolated != leases.isolated {
                return Err(format!(
                    "{worker} has {isolated} isolated leases, {} are counted",
                    leases.isolated
                ));
            }
        }
        Ok(())
    }
}
