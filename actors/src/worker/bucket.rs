//! Buckets that arrive, and buckets that end before they are finished.

use super::{Bucket, InstanceSelection, TakeInstances, WorkerActor};
use crate::stage::{ResolvedStage, StageActor, StageContext};
use crate::storage::{ExpectRegions, Prefetch, RegionOrigin, SetPlacement};
use actix::prelude::*;
use pleach_dispatch::message::{BucketWork, InputFile, TaskFailure, ToManager};
use pleach_dispatch::{LeaseId, PlanId, WorkerId};
use pleach_regions::RegionKey;
use pleach_workflow::{InputOrigin as StageOrigin, Registry, Stage, StageInput, Task, TaskInput, TierKind};
use std::net::SocketAddr;
use std::sync::Arc;
use tracing::{Span, debug_span};

impl WorkerActor {
    /// Sends storage the sources of a bucket's inputs.
    pub(super) fn expect(
        &mut self,
        work: &BucketWork,
        inputs: &[InputFile],
        peers: &[(WorkerId, SocketAddr)],
    ) {
        let mut regions: Vec<(RegionKey, RegionOrigin)> = Vec::new();
        if let Some(remote) = &self.setup.remote {
            let source = |input: &InputFile| RegionOrigin::Source(remote.opener.source(input, &remote.files));
            regions.extend(inputs.iter().map(|input| (input.key, source(input))));
        }
        for region in &work.elsewhere {
            let address = |worker: &WorkerId| {
                peers.iter().find(|(known, _)| known == worker).map(|(_, address)| *address)
            };
            let holders = region.workers.iter().filter_map(address).collect();
            regions.push((region.key, RegionOrigin::Elsewhere { workers: holders, shared: region.shared }));
        }
        if !regions.is_empty() {
            self.setup.storage.do_send(ExpectRegions(regions));
        }
    }

    pub(super) fn assigned(
        &mut self,
        study: PlanId,
        lease: LeaseId,
        work: BucketWork,
        later: bool,
        ctx: &mut Context<Self>,
    ) {
        let work = if self.setup.below.is_some() { work.with_spill() } else { work };
        if !self.core.has_free_slot() {
            self.bring_up(&work);
        }
        self.core.handle_assigned(lease, work.stage, work.bucket, later);
        let ids: Vec<_> = work.instances.iter().map(|instance| instance.id).collect();
        self.unsafe_reports.leased(study, lease, ids.iter().copied().collect());
        if self.setup.remote.is_some() {
            let stored = |output: &&pleach_dispatch::plan::OutputPlan| output.stored;
            for instance in &work.instances {
                let outputs = instance.outputs.iter().filter(stored).map(|output| output.key);
                let keys = instance.inputs.iter().copied().chain(outputs);
                self.study_of.extend(keys.map(|key| (key, study)));
            }
        }
        let span = debug_span!(
            parent: self.spans.get(&study).and_then(Span::id),
            "bucket",
            lease = lease.0,
            bucket = work.bucket.0,
            stage = work.stage,
            instances = ids.len()
        );
        let around = StageContext {
            worker: ctx.address().recipient(),
            storage: self.setup.storage.clone(),
            slots: self.slots.clone(),
            ram: Arc::clone(&self.setup.ram),
            below: self.setup.below.clone(),
            ledger: Arc::clone(&self.setup.ledger),
            results: Arc::clone(&self.results),
            estimates: Arc::clone(&self.estimates),
            costs: Arc::clone(&self.setup.costs),
            past: self.setup.past.clone(),
            durable: self.durable(study),
            active_paths: self.setup.resources.active_paths,
            ends: Arc::clone(&self.ends),
            span,
        };
        let stage = self.studies.get(&study).and_then(|stages| stages.get(work.stage as usize)).cloned();
        // Operations that are not linked in are missing.
        if let Some(ResolvedStage { stage, .. }) = &stage {
            self.wish(stage, &work);
        }
        let is_complete = |stage: &ResolvedStage| stage.operations.len() == stage.stage.tasks.len();
        let actor = stage
            .filter(is_complete)
            .and_then(|stage| StageActor::new((study, lease), stage, work, around).ok());
        match actor {
            Some(actor) => {
                let inputs = actor.inputs().to_vec();
                self.running.insert(lease, Bucket { study, stage: actor.start(), inputs });
            }
            None => {
                // No task ran: refuse the whole bucket with a reason.
                let at = "worker".to_owned();
                let cause = TaskFailure { at, cause: "it cannot run this stage's operations".to_owned() };
                for instance in ids {
                    let (cause, tasks) = (cause.clone(), Vec::new());
                    self.report(&ToManager::Failed { study, lease, instance, cause, tasks }, ctx);
                }
                self.core.handle_bucket_finished(lease);
            }
        }
    }

    /// Requests a prefetch of the inputs of a waiting bucket.
    fn bring_up(&self, work: &BucketWork) {
        // All instances of a bucket read the same regions.
        let Some(first) = work.instances.first().filter(|_| self.setup.below.is_some()) else { return };
        self.setup.storage.do_send(Prefetch(first.inputs.clone()));
    }

    /// Sends storage the preferred tiers of a bucket's outputs.
    fn wish(&self, stage: &Stage, work: &BucketWork) {
        let wishes = work.instances.iter().flat_map(|instance| {
            let outputs = instance.outputs.iter().zip(&stage.outputs).filter(|(plan, _)| plan.stored);
            outputs.filter_map(|(plan, output)| Some((plan.key, output.tier?)))
        });
        let wishes: Vec<(RegionKey, TierKind)> = wishes.collect();
        if !wishes.is_empty() {
            self.setup.storage.do_send(SetPlacement(wishes));
        }
    }

    /// Ends a revoked lease.
    pub(super) fn revoke(&mut self, lease: LeaseId, ctx: &mut Context<Self>) {
        self.unsafe_reports.forget(lease);
        if let Some(bucket) = self.running.get(&lease) {
            let asked = bucket.stage.send(TakeInstances(InstanceSelection::All)).into_actor(self);
            ctx.spawn(asked.map(|_, actor, ctx| actor.perform(ctx)));
        }
    }
}

/// Returns the stages of a study with their linked operations.
pub(super) fn runnable(stages: &[Stage], registry: &Registry) -> Vec<ResolvedStage> {
    let find = |task: &Task| registry.get(&task.operation, task.version).cloned();
    let readers = |stage: usize, output: usize| {
        let reads = |(input, origin): (usize, &StageInput)| {
            (origin.origin == StageOrigin::Stage { stage, output }).then_some(TaskInput::StageInput(input))
        };
        let readers = stages.iter().flat_map(|other| {
            let inputs: Vec<TaskInput> = other.inputs.iter().enumerate().filter_map(reads).collect();
            let reads = move |task: &&Task| task.reads.iter().any(|read| inputs.contains(read));
            other.tasks.iter().filter(reads)
        });
        readers.filter_map(find).collect()
    };
    let runnable = |(number, stage): (usize, &Stage)| ResolvedStage {
        stage: Arc::new(stage.clone()),
        operations: stage.tasks.iter().filter_map(find).collect(),
        readers: (0..stage.outputs.len()).map(|output| readers(number, output)).collect(),
    };
    stages.iter().enumerate().map(runnable).collect()
}
