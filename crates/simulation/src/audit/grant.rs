//! Checks of grants: the worker, the bucket, and the fairness to other studies.

use super::study::{Fate, Granted, StudyModel};
use super::{Audit, GROUPS, SUSPECTED_AFTER, Violation, WorkerModel, breach, require};
use crate::event::Event;
use pleach_dispatch::manager::{Effect, Manager, WorkerInfo};
use pleach_dispatch::message::{BucketWork, GrantReason};
use pleach_dispatch::plan::{ExecutionPlan, ReuseScope};
use pleach_dispatch::study::Study;
use pleach_dispatch::{InstanceId, LeaseId, PlanId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Returns whether a worker can run a stage.
fn can_run(facts: &WorkerInfo, plan: &ExecutionPlan, stage: usize) -> bool {
    let has = |operation: &(String, u32)| facts.operations.as_ref().is_none_or(|all| all.contains(operation));
    let fits = plan.needs.with_spill(facts.spill_bytes) <= facts.memory_bytes;
    fits && plan.stages[stage].tasks.iter().all(|task| has(&(task.operation.clone(), task.version)))
}

/// Checks that a worker has requested a grant, and counts the request as served.
fn serve_request(
    there: &mut WorkerModel,
    study: PlanId,
    work: &BucketWork,
    reason: GrantReason,
) -> Result<(), Violation> {
    require(there.notified.contains(&study), "grant of a study not introduced to the worker", work)?;
    require(!there.draining, "grant to a draining worker", work)?;
    match reason {
        GrantReason::LaterRequest => {
            let is_later = there.wants_after.take().is_some_and(|after| after < work.stage);
            require(is_later, "grant of an earlier stage than requested", work)
        }
        GrantReason::Request => {
            require(there.requested > 0, "unrequested grant", work)?;
            there.requested -= 1;
            Ok(())
        }
        GrantReason::Short => require(work.elsewhere.is_empty(), "unrequested grant with transfers", work),
    }
}

/// Returns the granted instances, which must be open, of the stage, and each in the grant once.
fn open_instances(model: &StudyModel, work: &BucketWork) -> Result<BTreeSet<InstanceId>, Violation> {
    let ids: BTreeSet<InstanceId> = work.instances.iter().map(|instance| instance.id).collect();
    let is_open =
        |id: &InstanceId| model.fate(*id) == Some(Fate::Open) && model.stage(*id) == work.stage as usize;
    require(
        !ids.is_empty() && ids.iter().all(is_open),
        "granted instance not open or of another stage",
        work,
    )?;
    require(ids.len() == work.instances.len(), "instance twice in one grant", work)?;
    Ok(ids)
}

/// Returns the lease that a grant repeats, which must be the only one of the same instances, and of another worker.
fn repeated_lease(
    model: &StudyModel,
    worker: WorkerId,
    ids: &BTreeSet<InstanceId>,
    may_repeat: bool,
    work: &BucketWork,
) -> Result<Option<LeaseId>, Violation> {
    let others: BTreeSet<LeaseId> =
        ids.iter().flat_map(|id| model.leased(*id)).map(|(lease, _)| lease).collect();
    let Some(&other) = others.first() else { return Ok(None) };
    let granted = &model.leases[&other];
    let alike = others.len() == 1 && granted.open == *ids && granted.twin.is_none();
    require(alike && granted.worker != worker && may_repeat, "instance granted twice", work)?;
    Ok(Some(other))
}

/// Checks that the worker holds each input, or the grant names its holders.
fn require_holders(
    model: &StudyModel,
    worker: WorkerId,
    is_twin: bool,
    work: &BucketWork,
) -> Result<(), Violation> {
    let read: BTreeSet<RegionKey> = work.instances.iter().flat_map(|i| &i.inputs).copied().collect();
    let made = read.into_iter().filter(|key| model.producers.contains_key(key));
    let holders = made.map(|key| (key, model.holders.get(&key).cloned().unwrap_or_default()));
    let holders: BTreeMap<RegionKey, BTreeSet<WorkerId>> = holders.collect();
    let there = holders.values().all(|holders| !holders.is_empty()) || is_twin;
    require(there, "input without a holder", work)?;
    let elsewhere = holders.into_iter().filter(|(_, held)| !held.is_empty() && !held.contains(&worker));
    require(named_holders(work).eq(elsewhere), "wrong holders of an input", work)
}

/// Returns the inputs that the grant names as held by others, with their holders.
fn named_holders(work: &BucketWork) -> impl Iterator<Item = (RegionKey, BTreeSet<WorkerId>)> {
    work.elsewhere.iter().map(|region| (region.key, region.workers.iter().copied().collect()))
}

impl Audit {
    pub(super) fn introduced(
        &mut self,
        worker: WorkerId,
        study: PlanId,
        effect: &Effect,
    ) -> Result<(), Violation> {
        let Some(new) = self.studies.get(&study) else {
            return Err(breach("unknown study introduced", effect));
        };
        let Some(model) = self.workers.get(&worker) else {
            return Err(breach("study introduced to an unknown worker", effect));
        };
        let notified = model.notified.iter().filter_map(|study| self.studies.get(study));
        let least = |study: &StudyModel| study.plan.needs.with_spill(model.facts.spill_bytes);
        let bytes = notified.chain([new]).map(least).fold(0, u64::saturating_add);
        require(bytes <= model.facts.memory_bytes, "studies exceed the memory of the worker", effect)?;
        let fresh = self.workers.get_mut(&worker).is_some_and(|model| model.notified.insert(study));
        require(fresh, "study introduced twice", effect)
    }

    /// Applies and checks the answer to a query. A found bucket has been granted before, which ended the request.
    pub(super) fn query_answered(
        &mut self,
        event: &Event,
        worker: WorkerId,
        found: bool,
        effect: &Effect,
    ) -> Result<(), Violation> {
        let ended = u32::from(!found);
        let model = self.workers.get_mut(&worker).filter(|model| model.requested >= ended);
        let is_open = model.is_some() && matches!(event, Event::Query { .. });
        model.into_iter().for_each(|model| model.requested -= ended);
        require(is_open, "answer without a query", effect)
    }

    /// Applies and checks a steal request.
    pub(super) fn steal_requested(
        &mut self,
        event: &Event,
        (worker, study, lease): (WorkerId, PlanId, LeaseId),
        longer_than: Duration,
        effect: &Effect,
    ) -> Result<(), Violation> {
        let model = self.studies.get_mut(&study);
        let is_shared = model.as_ref().is_some_and(|model| model.plan.sharing != ReuseScope::Tree);
        let granted = model.and_then(|model| model.leases.get_mut(&lease)).filter(|granted| {
            granted.worker == worker
                && granted.requested.is_none_or(|asked| longer_than < asked)
                && (is_shared || granted.open.len() > 1)
                && *event == Event::Tick
        });
        let is_allowed = granted.is_some();
        granted.into_iter().for_each(|granted| granted.requested = Some(longer_than));
        require(is_allowed, "steal request that is not allowed", effect)
    }

    /// Applies and checks a grant.
    pub(super) fn assigned(
        &mut self,
        event: &Event,
        worker: WorkerId,
        study: PlanId,
        lease: LeaseId,
        work: &BucketWork,
        reason: GrantReason,
    ) -> Result<(), Violation> {
        require(!self.holding && !self.stopping, "grant while grants are suspended", work)?;
        require(self.last_lease.is_none_or(|last| last < lease), "lease id not ascending", &lease)?;
        self.last_lease = Some(lease);
        self.respects_time_limit(event, worker, study, work)?;
        self.comes_along(worker, study, work, reason)?;
        // Computed before the mutable borrow of the worker.
        let is_alone = self.is_alone(worker, None);
        let leases: usize = self.studies.values().map(|model| model.leases_of(worker)).sum();
        let Some(there) = self.workers.get_mut(&worker) else {
            return Err(breach("grant to an unknown worker", work));
        };
        serve_request(there, study, work, reason)?;
        require(!is_alone, "grant beside a suspect instance", work)?;
        let Some(model) = self.studies.get_mut(&study) else {
            return Err(breach("grant of an unknown study", work));
        };
        require(
            can_run(&there.facts, &model.plan, work.stage as usize),
            "grant of a stage that the worker cannot run",
            work,
        )?;
        let ids = open_instances(model, work)?;
        let suspects = ids.iter().filter(|id| model.is_suspected(**id));
        let most = suspects.filter_map(|id| Some(model.losses.get(id)?.among.div_ceil(GROUPS))).min();
        let suspected = most.is_some();
        let is_isolated = most.is_none_or(|most| ids.len() <= most && leases == 0);
        require(is_isolated, "suspect instance not isolated", work)?;
        // The manager looks for stragglers on ticks only. A repeated suspect instance could crash a second worker.
        let may_repeat = *event == Event::Tick && !suspected;
        let twin = repeated_lease(model, worker, &ids, may_repeat, work)?;
        require_holders(model, worker, twin.is_some(), work)?;
        let first = ids.first().copied();

        if let Some(other) = twin.and_then(|other| model.leases.get_mut(&other)) {
            other.twin = Some(lease);
        }
        let notified = named_holders(work).collect();
        model.leases.insert(lease, Granted { worker, open: ids, notified, requested: None, twin });
        let own = first.and_then(|first| self.use_tile(worker, study, first));
        require(work.own_tile == own, "tile named as the worker's own, or not named", work)
    }

    /// Checks that a short bucket follows one of its stage and study that answers a request, and that not too many do.
    fn comes_along(
        &mut self,
        worker: WorkerId,
        study: PlanId,
        work: &BucketWork,
        reason: GrantReason,
    ) -> Result<(), Violation> {
        if reason != GrantReason::Short {
            self.answer = Some((worker, study, work.stage, 0));
            return Ok(());
        }
        let answer = self.answer.as_mut();
        let fits = answer.is_some_and(|(to, of, stage, short)| {
            *short += 1;
            (*to, *of, *stage) == (worker, study, work.stage) && *short <= Manager::MAX_SHORT_LEASES
        });
        require(fits, "short bucket without an answer that it comes along with", work)
    }

    /// Checks that a grant leaves the worker enough time. A second grant of a straggler may exceed the number of
    /// instances.
    fn respects_time_limit(
        &self,
        event: &Event,
        worker: WorkerId,
        study: PlanId,
        work: &BucketWork,
    ) -> Result<(), Violation> {
        let left = self.instances_left(worker, study, work.stage as usize);
        let late = self.is_late(worker, study, work.stage as usize);
        require(
            !late && left.is_none_or(|left| left > 0),
            "grant beyond the time limit of the worker",
            work,
        )?;
        let is_twin = *event == Event::Tick;
        let many = left.is_some_and(|left| work.instances.len() > left) && !is_twin;
        require(!many, "more instances granted than the time limit allows", work)
    }

    /// Returns whether a worker has a suspect instance under a lease other than `but`.
    fn is_alone(&self, worker: WorkerId, but: Option<LeaseId>) -> bool {
        self.studies.values().any(|model| {
            model
                .leases
                .iter()
                .filter(|(id, granted)| granted.worker == worker && Some(**id) != but)
                .any(|(_, granted)| granted.open.iter().any(|id| model.is_suspected(*id)))
        })
    }

    /// Returns whether all workers can run all buckets, so that only the order of grants matters.
    fn is_uniform(&self) -> bool {
        self.workers.values().all(|model| {
            let facts = &model.facts;
            facts.operations.is_none() && facts.memory_bytes == u64::MAX && model.end.is_none()
        }) && self
            .studies
            .values()
            .all(|model| model.losses.values().all(|lost| lost.count < SUSPECTED_AFTER))
    }

    /// Checks that no other study with a ready bucket has fewer leases than the served one.
    pub(super) fn is_fair(
        &self,
        study: PlanId,
        lease: LeaseId,
        manager: &Manager,
        effect: &Effect,
    ) -> Result<(), Violation> {
        let Some(served) = self.studies.get(&study).filter(|_| self.is_uniform()) else { return Ok(()) };
        let Effect::Assign { reason, .. } = effect else { return Ok(()) };
        // A requested stage and a straggler leave the manager no choice of the study. A short bucket may be of such a stage.
        if *reason != GrantReason::Request
            || served.leases.get(&lease).is_some_and(|granted| granted.twin.is_some())
        {
            return Ok(());
        }
        // Buckets that are ready after all grants were ready before them.
        let ready = |id: &PlanId| manager.study(*id).is_some_and(Study::has_ready);
        let hungry = self
            .studies
            .iter()
            .find(|(id, other)| **id != study && ready(id) && other.leases.len() + 1 < served.leases.len());
        require(hungry.is_none(), "another study has fewer leases", effect)
    }

    /// Checks that no worker waits while a bucket is ready.
    pub(super) fn is_work_conserving(&self, manager: &Manager) -> Result<(), Violation> {
        if self.holding || self.stopping || !self.is_uniform() {
            return Ok(());
        }
        let ready: Vec<&Study> = self
            .studies
            .keys()
            .filter_map(|id| manager.study(*id))
            .filter(|study| study.has_ready())
            .collect();
        // A busy worker that asks ahead leaves the tiles of other workers to them. The tree scope has no such tiles.
        let has_tiles = ready.iter().all(|study| study.plan().sharing != ReuseScope::Tree);
        let leases = |worker: WorkerId| {
            let studies = self.studies.keys().filter_map(|id| manager.study(*id));
            studies.map(|study| study.leases_of(worker)).sum::<usize>()
        };
        let is_patient =
            |worker: WorkerId, model: &WorkerModel| has_tiles && leases(worker) >= model.facts.slots as usize;
        let waits = self.workers.iter().find(|(id, model)| model.requested > 0 && !is_patient(**id, model));
        let ready = ready.first().map(|study| study.plan().sharing);
        require(ready.is_none() || waits.is_none(), "worker waits while a bucket is ready", &(waits, ready))
    }
}
