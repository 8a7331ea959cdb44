//! Applies events to the audit's model: the reports that must count, and the changes before any effect.

use super::study::{Fate, Granted, StudyModel};
use super::throughput::ThroughputModel;
use super::{Audit, SUSPECTED_AFTER, Violation, WorkerModel};
use crate::event::{Event, ManagerReply};
use pleach_dispatch::plan::ExecutionPlan;
use pleach_dispatch::{InstanceId, LeaseId, PlanId, WorkerId};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

impl Audit {
    /// Applies an event to the model, before its effects.
    pub(super) fn hear(
        &mut self,
        event: &Event,
        answer: &ManagerReply,
        plans: &[ExecutionPlan],
    ) -> Result<(), Violation> {
        let wrong = || Violation::Answer { event: format!("{event:?}"), answer: format!("{answer:?}") };
        match event {
            Event::Start { .. } => {
                // Lease ids remain valid across restarts: a new manager must not reuse them.
                *self = Self { last_lease: self.last_lease, ..Self::default() };
            }
            Event::Hold => self.holding = true,
            Event::Resume => self.holding = false,
            Event::Stop => self.stopping |= !self.studies.is_empty(),
            Event::Submit { study, plan, finished } => {
                let plan =
                    plans.get(*plan).filter(|_| *answer == ManagerReply::Accepted(true)).ok_or_else(wrong)?;
                self.studies.insert(*study, StudyModel::new(plan, finished));
            }
            Event::Cancel { study } => {
                if let Some(model) = self.studies.remove(study) {
                    let leases = model.leases.iter().map(|(id, granted)| (granted.worker, *study, *id));
                    self.revoked.extend(leases);
                    self.given_up = model.holders.into_keys().collect();
                    self.ended.insert(*study);
                }
            }
            Event::Join { facts } => {
                let ManagerReply::Joined(worker) = answer else { return Err(wrong()) };
                let model = WorkerModel {
                    facts: facts.clone(),
                    told: BTreeSet::new(),
                    wanted: 0,
                    wants_after: None,
                    draining: false,
                    end: None,
                    late: BTreeSet::new(),
                    speed: ThroughputModel::default(),
                };
                if self.workers.insert(*worker, model).is_some() {
                    return Err(wrong());
                }
            }
            Event::Request { worker, buckets, after } => {
                let there = self.workers.get_mut(worker).filter(|model| !model.draining && *buckets > 0);
                if let Some(model) = there {
                    match after {
                        Some(after) => model.wants_after = Some(*after),
                        None => model.wanted += buckets,
                    }
                }
            }
            Event::Done { worker, study, lease, instance }
            | Event::Failed { worker, study, lease, instance } => {
                let own = self.own(*worker, *study, *lease, *instance);
                if self.report(*worker, *study, *lease, *instance) != counted(answer) {
                    return Err(wrong());
                }
                if own && matches!(event, Event::Done { .. }) {
                    self.note_finished(*study, *instance);
                }
            }
            Event::Lacking { worker, study, lease, instance, keys } => {
                let model = self.studies.get_mut(study);
                let had = model.is_some_and(|model| {
                    let told =
                        model.leases.get(lease).map(|granted| granted.told.clone()).unwrap_or_default();
                    let had = model.take(*worker, *lease, *instance);
                    if had {
                        let inputs = &model.plan.instances[instance.index()].inputs;
                        // Workers that have fetched the region since the grant may still provide it.
                        inputs.iter().filter(|key| keys.contains(key)).for_each(|key| {
                            let since = model.holders.get(key).zip(told.get(key));
                            let since: BTreeSet<WorkerId> =
                                since.map(|(now, told)| now - told).unwrap_or_default();
                            match since.is_empty() {
                                true => _ = model.holders.remove(key),
                                false => _ = model.holders.insert(*key, since),
                            }
                        });
                        *model.lacked.entry(*instance).or_default() += 1;
                    }
                    had
                });
                if had != counted(answer) {
                    return Err(wrong());
                }
            }
            Event::Back { worker, study, lease, instances } => {
                self.note_late(*worker, *study, *lease, instances);
                let granted = self.studies.get_mut(study).and_then(|model| {
                    let granted = model.leases.get_mut(lease).filter(|granted| granted.worker == *worker)?;
                    granted.asked = false;
                    Some(model)
                });
                if granted.is_some() != counted(answer) {
                    return Err(wrong());
                }
                if let Some(model) = granted {
                    instances.iter().for_each(|id| _ = model.take(*worker, *lease, *id));
                }
            }
            Event::Replanned { .. } | Event::Tick => {}
            Event::LeaseEnd { worker, at_us } => {
                if let Some(model) = self.workers.get_mut(worker) {
                    let end = Duration::from_micros(*at_us);
                    model.end = Some(model.end.map_or(end, |known| known.min(end)));
                }
            }
            Event::Ran { worker, study, instance, tasks } => {
                self.note_ran(*worker, *study, *instance, tasks);
            }
            Event::Drain { .. } => {}
            Event::Copied { worker, study, key } => {
                let is_there = self.workers.contains_key(worker);
                let holders = self.studies.get_mut(study).and_then(|model| model.holders.get_mut(key));
                if let Some(holders) = holders.filter(|_| is_there) {
                    holders.insert(*worker);
                }
                if is_there {
                    self.replica_came(*worker, *study, *key);
                }
            }
            Event::Replicate { worker, study, lease, instance, regions } => {
                self.asked_to_replicate((*worker, *study, *lease, *instance), regions);
            }
            Event::NotCopied { worker, study, key } => self.replica_failed(*worker, *study, *key),
            Event::Dropped { worker, study, key } => {
                if let Some(model) = self.studies.get_mut(study) {
                    model.drop_copy(*worker, *key);
                }
            }
            Event::Leave { worker, lost } => {
                if self.workers.remove(worker).is_some() {
                    self.replicas_without(*worker);
                    self.studies.values_mut().for_each(|model| leave(model, *worker, *lost));
                }
            }
            Event::Adopt { worker, study, lease, instances } => {
                let ManagerReply::Kept(kept) = answer else { return Err(wrong()) };
                if *kept != self.adopted(*worker, *study, *lease, instances) {
                    return Err(wrong());
                }
            }
            Event::Holds { worker, study, keys } => {
                let ManagerReply::Needless(needless) = answer else { return Err(wrong()) };
                let mut expected = Vec::new();
                for key in keys {
                    let model = self.studies.get_mut(study).filter(|_| self.workers.contains_key(worker));
                    let of_use =
                        model.filter(|model| model.is_used(*key) && model.producers.contains_key(key));
                    match of_use {
                        Some(model) => _ = model.holders.entry(*key).or_default().insert(*worker),
                        None => expected.push(*key),
                    }
                }
                self.tell(*worker, *study);
                if *needless != expected {
                    return Err(wrong());
                }
            }
        }
        Ok(())
    }

    fn tell(&mut self, worker: WorkerId, study: PlanId) {
        if self.studies.contains_key(&study)
            && let Some(model) = self.workers.get_mut(&worker)
        {
            model.told.insert(study);
        }
    }

    /// Applies the report of an instance. Returns whether it must count.
    fn report(&mut self, worker: WorkerId, study: PlanId, lease: LeaseId, id: InstanceId) -> bool {
        let Some(model) = self.studies.get_mut(&study) else { return false };
        let twin = model.leases.get(&lease).and_then(|granted| granted.twin);
        if !model.take(worker, lease, id) {
            return false;
        }
        if let Some(twin) = twin
            && let Some(other) = model.leases.get(&twin).map(|other| other.worker)
            && model.take(other, twin, id)
            && !model.leases.contains_key(&twin)
        {
            self.revoked.insert((other, study, twin));
        }
        true
    }

    /// Returns the instances that a reattached worker may continue with: open, not leased, and of one stage.
    fn adopted(
        &mut self,
        worker: WorkerId,
        study: PlanId,
        lease: LeaseId,
        instances: &[InstanceId],
    ) -> BTreeSet<InstanceId> {
        let is_there = self.workers.contains_key(&worker);
        let Some(model) = self.studies.get_mut(&study).filter(|_| is_there) else { return BTreeSet::new() };
        if model.leases.contains_key(&lease) {
            self.tell(worker, study);
            return BTreeSet::new();
        }
        // A reattached worker was not crashed by its instances.
        for id in instances {
            if let Some(losses) = model.losses.get_mut(id) {
                *losses = losses.saturating_sub(1);
            }
        }
        let kills = |id: &InstanceId| model.losses.get(id).is_some_and(|losses| *losses >= SUSPECTED_AFTER);
        let is_open = |id: &InstanceId| model.fate(*id) == Some(Fate::Open) && !kills(id);
        let free = |id: &InstanceId| is_open(id) && model.leased(*id).next().is_none();
        let mut open: BTreeSet<InstanceId> = instances.iter().copied().filter(free).collect();
        let stage = open.first().map(|first| model.stage(*first));
        open.retain(|id| Some(model.stage(*id)) == stage);
        if !open.is_empty() {
            let told = BTreeMap::new();
            let granted = Granted { worker, open: open.clone(), told, asked: false, twin: None };
            model.leases.insert(lease, granted);
        }
        self.tell(worker, study);
        open
    }
}

fn counted(answer: &ManagerReply) -> bool {
    *answer == ManagerReply::Counted(true)
}

/// Removes a worker with its leases and regions.
fn leave(model: &mut StudyModel, worker: WorkerId, lost: bool) {
    let leases: Vec<LeaseId> =
        model.leases.iter().filter(|(_, granted)| granted.worker == worker).map(|(id, _)| *id).collect();
    for lease in leases {
        let Some(granted) = model.remove(lease) else { continue };
        if lost {
            granted.open.iter().for_each(|id| *model.losses.entry(*id).or_default() += 1);
        }
    }
    model.drop_holder(worker);
}
