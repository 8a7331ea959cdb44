//! Applies events to the audit's model, before their effects: studies, workers and regions.

use super::apply_report::counted;
use super::study::StudyModel;
use super::throughput::ThroughputModel;
use super::{Audit, Violation, WorkerModel};
use crate::event::{Event, ManagerReply};
use pleach_dispatch::manager::WorkerInfo;
use pleach_dispatch::plan::ExecutionPlan;
use pleach_dispatch::{InstanceId, LeaseId, PlanId, WorkerId};
use pleach_regions::RegionKey;
use std::collections::BTreeSet;
use std::time::Duration;

impl Audit {
    /// Applies an event to the model, before its effects.
    pub(super) fn apply_event(
        &mut self,
        event: &Event,
        answer: &ManagerReply,
        plans: &[ExecutionPlan],
    ) -> Result<(), Violation> {
        let expect = |right: bool| {
            let wrong = || Violation::Answer { event: format!("{event:?}"), answer: format!("{answer:?}") };
            if right { Ok(()) } else { Err(wrong()) }
        };
        match event {
            // Lease ids remain valid across restarts: a new manager must not reuse them.
            Event::Start { .. } => *self = Self { last_lease: self.last_lease, ..Self::default() },
            Event::Hold => self.holding = true,
            Event::Resume => self.holding = false,
            Event::Stop => self.stopping |= !self.studies.is_empty(),
            Event::Submit { study, plan, finished } => {
                let plan = plans.get(*plan).filter(|_| *answer == ManagerReply::Accepted(true));
                expect(self.submitted(*study, plan, finished))?;
            }
            Event::Cancel { study } => self.canceled(*study),
            Event::Join { facts } => expect(self.joined(facts, answer))?,
            Event::Request { worker, buckets, after } => self.requested(*worker, *buckets, *after),
            Event::Done { worker, study, lease, instance } => {
                expect(self.instance_done(*worker, *study, *lease, *instance, answer))?;
            }
            Event::Failed { worker, study, lease, instance } => {
                expect(self.report(*worker, *study, *lease, *instance) == counted(answer))?;
            }
            Event::Lacking { worker, study, lease, instance, keys } => {
                expect(self.lacking(*worker, *study, *lease, *instance, keys) == counted(answer))?;
            }
            Event::Query { worker, .. } => self.requested(*worker, 1, None),
            Event::Back { worker, study, lease, instances }
            | Event::Spare { worker, study, lease, instances, .. } => {
                expect(self.returned(*worker, *study, *lease, instances, answer))?;
            }
            Event::Replanned { .. } | Event::BucketOverhead { .. } | Event::Tick | Event::Drain { .. } => {}
            Event::LeaseEnd { worker, at_us } => self.limit_time(*worker, Duration::from_micros(*at_us)),
            Event::Ran { worker, study, instance, tasks } => {
                self.note_ran(*worker, *study, *instance, tasks);
            }
            Event::Copied { worker, study, key } => self.copied(*worker, *study, *key),
            Event::Replicate { worker, study, lease, instance, regions } => {
                self.replication_requested((*worker, *study, *lease, *instance), regions);
            }
            Event::NotCopied { worker, study, key } => self.replica_failed(*worker, *study, *key),
            Event::Dropped { worker, study, key } => {
                if let Some(model) = self.studies.get_mut(study) {
                    model.drop_copy(*worker, *key);
                }
            }
            Event::Leave { worker, lost } => self.left(*worker, *lost),
            Event::Adopt { worker, study, lease, instances } => {
                expect(self.adopt(*worker, *study, *lease, instances, answer))?;
            }
            Event::Holds { worker, study, keys } => expect(self.holds(*worker, *study, keys, answer))?,
        }
        Ok(())
    }

    /// Adds a study that the manager accepted. Returns whether it did, with a known plan.
    fn submitted(
        &mut self,
        study: PlanId,
        plan: Option<&ExecutionPlan>,
        finished: &BTreeSet<InstanceId>,
    ) -> bool {
        let Some(plan) = plan else { return false };
        self.studies.insert(study, StudyModel::new(plan, finished));
        true
    }

    /// Removes a canceled study: its leases must be revoked and its regions released.
    fn canceled(&mut self, study: PlanId) {
        let Some(model) = self.studies.remove(&study) else { return };
        let leases = model.leases.iter().map(|(id, granted)| (granted.worker, study, *id));
        self.revoked.extend(leases);
        self.given_up = model.holders.into_keys().collect();
        self.ended.insert(study);
    }

    /// Adds a worker. Returns whether the manager replied with a new id.
    fn joined(&mut self, facts: &WorkerInfo, answer: &ManagerReply) -> bool {
        let ManagerReply::Joined(worker) = answer else { return false };
        let model = WorkerModel {
            facts: facts.clone(),
            notified: BTreeSet::new(),
            requested: 0,
            wants_after: None,
            draining: false,
            end: None,
            late: BTreeSet::new(),
            speed: ThroughputModel::default(),
        };
        self.workers.insert(*worker, model).is_none()
    }

    /// Adds the buckets that a worker requests, unless it drains.
    fn requested(&mut self, worker: WorkerId, buckets: u32, after: Option<u32>) {
        let there = self.workers.get_mut(&worker).filter(|model| !model.draining && buckets > 0);
        let Some(model) = there else { return };
        match after {
            Some(after) => model.wants_after = Some(after),
            None => model.requested += buckets,
        }
    }

    /// Sets the time limit of a worker, the earliest of all.
    fn limit_time(&mut self, worker: WorkerId, end: Duration) {
        if let Some(model) = self.workers.get_mut(&worker) {
            model.end = Some(model.end.map_or(end, |known| known.min(end)));
        }
    }

    /// Adds a worker to the holders of a region that it has fetched.
    fn copied(&mut self, worker: WorkerId, study: PlanId, key: RegionKey) {
        if !self.workers.contains_key(&worker) {
            return;
        }
        let holders = self.studies.get_mut(&study).and_then(|model| model.holders.get_mut(&key));
        if let Some(holders) = holders {
            holders.insert(worker);
        }
        self.replica_came(worker, study, key);
    }

    /// Removes a worker with its leases, regions and replicas.
    fn left(&mut self, worker: WorkerId, lost: bool) {
        if self.workers.remove(&worker).is_some() {
            self.replicas_without(worker);
            self.tiles.leave(worker);
            self.studies.values_mut().for_each(|model| leave(model, worker, lost));
        }
    }

    /// Adds a reattached worker to the holders of its regions. Returns whether the manager named those of no use.
    fn holds(&mut self, worker: WorkerId, study: PlanId, keys: &[RegionKey], answer: &ManagerReply) -> bool {
        let ManagerReply::Needless(needless) = answer else { return false };
        let mut expected = Vec::new();
        for key in keys {
            let model = self.studies.get_mut(&study).filter(|_| self.workers.contains_key(&worker));
            let of_use = model.filter(|model| model.is_used(*key) && model.producers.contains_key(key));
            match of_use {
                Some(model) => _ = model.holders.entry(*key).or_default().insert(worker),
                None => expected.push(*key),
            }
        }
        let model = self.studies.get(&study).filter(|_| self.workers.contains_key(&worker));
        let held = keys.iter().filter_map(|key| model?.producers.get(key).copied());
        for producer in held.collect::<Vec<_>>() {
            self.use_tile(worker, study, producer);
        }
        self.notify(worker, study);
        *needless == expected
    }

    /// Records that a worker knows a study, if both exist.
    pub(super) fn notify(&mut self, worker: WorkerId, study: PlanId) {
        if self.studies.contains_key(&study)
            && let Some(model) = self.workers.get_mut(&worker)
        {
            model.notified.insert(study);
        }
    }
}

/// Removes a worker with its leases and regions.
fn leave(model: &mut StudyModel, worker: WorkerId, lost: bool) {
    let leases: Vec<LeaseId> =
        model.leases.iter().filter(|(_, granted)| granted.worker == worker).map(|(id, _)| *id).collect();
    for lease in leases {
        let Some(granted) = model.remove(lease) else { continue };
        if lost {
            model.lose(&granted.open);
        }
    }
    model.drop_holder(worker);
}
