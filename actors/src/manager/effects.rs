//! Applies the state machine's effects: sends messages to workers, notifies study observers.

use super::replanning::drop_elsewhere;
use super::{ContinueGrants, ManagerActor, Progress, StudyEvent};
use crate::transport::codec;
use actix::prelude::*;
use pleach_dispatch::manager::Effect;
use pleach_dispatch::message::{BucketWork, GrantReason, TaskFailure, ToWorker};
use pleach_dispatch::study::{self, InstanceFailure, Study};
use pleach_dispatch::{InstanceId, LeaseId, PlanId, WorkerId};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use tracing::{debug, warn};

impl ManagerActor {
    pub(super) fn apply_effects(&mut self, ctx: &mut Context<Self>) {
        // The observer of an embedded study gets every event: no operator views the study from outside.
        let mut touched: BTreeSet<PlanId> = match self.service {
            None => self.studies.keys().copied().collect(),
            Some(_) => BTreeSet::new(),
        };
        while let Some(effect) = self.core.poll_effect() {
            match effect {
                Effect::Introduce { worker, study } => self.introduce(worker, study),
                Effect::Assign { worker, study, lease, work, reason } => {
                    if let Some(study) = self.core.study(study) {
                        self.counters.count_grant(study, lease, work.bucket, worker);
                    }
                    self.log_assigned(worker, study, lease, &work);
                    self.assign(worker, study, lease, work, reason);
                }
                Effect::TileShared { worker, tile } => self.send(worker, &ToWorker::TileShared { tile }),
                Effect::Revoke { worker, lease, .. } => self.send(worker, &ToWorker::Revoke { lease }),
                Effect::Share { worker, lease, longer_than, .. } => {
                    self.send(worker, &ToWorker::StealRequest { lease, longer_than });
                }
                Effect::QueryAnswer { worker, found } => self.send(worker, &ToWorker::QueryAnswer { found }),
                Effect::Copy { worker, study, key, from, replica } => {
                    let from = self.connections.of_worker(from).and_then(|connection| connection.exchange);
                    match from {
                        Some(from) => self.send(worker, &ToWorker::FetchRegion { study, key, from, replica }),
                        // The holder has no exchange address.
                        None => self.core.handle_fetch_failed(worker, study, key),
                    }
                }
                Effect::Replicated { worker, study, lease, instance } => {
                    self.send(worker, &ToWorker::Replicated { study, lease, instance });
                }
                Effect::Study(id, effect) => {
                    touched.insert(id);
                    self.follow(id, effect, ctx);
                }
                Effect::Over { worker, study } => self.send(worker, &ToWorker::StudyFinished { study }),
                Effect::Replan(study) => self.schedule_replan(study, ctx),
                Effect::Drain(worker) => self.send(worker, &ToWorker::Drain),
                Effect::Dismiss(worker) => self.send(worker, &ToWorker::DrainComplete),
                Effect::Stop => self.broadcast(&ToWorker::Stop),
                Effect::Stopped => {
                    for running in self.studies.values_mut() {
                        running.outcome.stopped = true;
                        running.end();
                    }
                    ctx.stop();
                }
            }
        }
        for id in touched {
            self.report_progress(id);
        }
        if !self.core.has_more_grants() {
            // All effects of earlier messages have been sent.
            for (worker, call) in std::mem::take(&mut self.syncs) {
                self.send(worker, &ToWorker::SyncAck { call });
            }
        } else if !std::mem::replace(&mut self.is_continuing, true) {
            ctx.notify(ContinueGrants);
        }
    }

    fn log_assigned(&self, worker: WorkerId, study: PlanId, lease: LeaseId, work: &BucketWork) {
        let Some(running) = self.studies.get(&study) else { return };
        debug!(
            parent: &running.span,
            lease = lease.0,
            bucket = work.bucket.0,
            stage = work.stage,
            instances = work.instances.len(),
            worker = self.name_of(worker),
            "a bucket is leased"
        );
    }

    fn report_progress(&mut self, id: PlanId) {
        let unfinished = self.core.study(id).map_or(0, Study::unfinished);
        let Some(running) = self.studies.get_mut(&id) else { return };
        let progress = Progress {
            instances: running.all_instances - unfinished,
            all_instances: running.all_instances,
            tasks: running.tasks,
            failed: running.outcome.failures.len(),
        };
        (running.observer)(StudyEvent::Progress(progress));
    }

    fn follow(&mut self, id: PlanId, effect: study::Effect, ctx: &mut Context<Self>) {
        if let study::Effect::Release(keys) = effect {
            // Sent to all workers: the study does not know which of them has read a region from its file.
            return self.broadcast(&ToWorker::Release { keys });
        }
        let Some(running) = self.studies.get_mut(&id) else { return };
        match effect {
            // Reported results stay: a second execution gives equal results.
            study::Effect::Reopened(instance) => {
                self.counters.reopened.increment(1);
                (running.observer)(StudyEvent::Reopened(instance));
                // Saturates: an instance that was done at the start of the plan is not in the count.
                running.outcome.finished = running.outcome.finished.saturating_sub(1);
            }
            study::Effect::Failed { instance, origin, cause } => {
                self.counters.failed.increment(1);
                (running.observer)(StudyEvent::Failed(instance));
                if instance == origin {
                    let TaskFailure { at, cause } = &cause;
                    warn!(
                        parent: &running.span,
                        study = id.study,
                        instance = instance.0,
                        "{id}: {instance} failed at {at}: {cause}"
                    );
                }
                running.outcome.failures.insert(instance, InstanceFailure { origin, cause });
            }
            study::Effect::Complete => {
                // Before the study leaves the table, where the observer is found.
                self.report_progress(id);
                if let Some(mut running) = self.studies.remove(&id) {
                    running.end();
                    self.replanning.discard(id);
                    drop_elsewhere(running.replanner);
                }
                if self.ends_with_study {
                    self.broadcast(&ToWorker::Shutdown);
                    ctx.stop();
                }
            }
            study::Effect::Finished(_) | study::Effect::Release(_) | study::Effect::Revoke { .. } => {}
        }
    }

    fn introduce(&mut self, worker: WorkerId, study: PlanId) {
        let Some(plan) = self.core.study(study).map(Study::plan) else { return };
        let (stages, durable, retained) = (plan.stages.clone(), plan.durable, plan.retained.clone());
        let min_bytes = self.core.min_bytes(worker, study);
        let running = self.studies.get(&study);
        let retains_results = running.is_some_and(|running| running.retains_results);
        let label = running.and_then(|running| running.label.as_deref());
        let (name, user) = label.map(|label| (label.study.clone(), label.user.clone())).unwrap_or_default();
        let start =
            ToWorker::StartStudy { study, stages, min_bytes, durable, retains_results, name, user, retained };
        self.send(worker, &start);
    }

    /// Sends a bucket to a worker. A bucket too large for a frame fails, because the study would wait for it forever.
    fn assign(
        &mut self,
        worker: WorkerId,
        study: PlanId,
        lease: LeaseId,
        work: BucketWork,
        reason: GrantReason,
    ) {
        let ids: Vec<InstanceId> = work.instances.iter().map(|instance| instance.id).collect();
        let mut inputs = BTreeMap::new();
        if let Some(running) = self.studies.get(&study).filter(|running| !running.inputs.is_empty()) {
            for key in work.instances.iter().flat_map(|instance| &instance.inputs) {
                if let Some(input) = running.inputs.get(key) {
                    inputs.entry(*key).or_insert_with(|| input.clone());
                }
            }
        }
        let inputs = inputs.into_values().collect();
        let holders: BTreeSet<WorkerId> =
            work.elsewhere.iter().flat_map(|region| &region.workers).copied().collect();
        let address = |holder: WorkerId| self.connections.of_worker(holder)?.exchange;
        let peers: Vec<(WorkerId, SocketAddr)> =
            holders.into_iter().filter_map(|holder| Some((holder, address(holder)?))).collect();
        match codec::encode(&ToWorker::Assign { study, lease, work, reason, inputs, peers }) {
            // A closed link reports its own end.
            Ok(frame) => {
                if let Some(connection) = self.connections.of_worker(worker) {
                    let _ = connection.link.send(frame);
                }
            }
            Err(error) => {
                // The effects of these failures join the queue that `apply_effects` is emptying.
                let cause = TaskFailure { at: "dispatch".to_owned(), cause: error.to_string() };
                for instance in ids {
                    self.core.handle_failed(worker, study, lease, instance, &cause);
                }
            }
        }
    }
}
