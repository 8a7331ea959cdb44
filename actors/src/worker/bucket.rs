//! Buckets that arrive, and buckets that end before they are finished.

use super::WorkerActor;
use super::state::Bucket;
use crate::stage::{InstanceSelection, ResolvedStage, StageActor, StageContext};
use crate::storage::{ExpectRegions, Prefetch, RegionOrigin, SetPlacement};
use actix::prelude::*;
use pleach_cache::PriorResults;
use pleach_dispatch::message::{BucketWork, GrantReason, InputFile, Report, ReportedEnd, TaskFailure};
use pleach_dispatch::plan::OutputPlan;
use pleach_dispatch::{InstanceId, LeaseId, PlanId, WorkerId};
use pleach_regions::RegionKey;
use pleach_workflow::{InputOrigin as StageOrigin, Registry, Stage, StageInput, Task, TaskInput, TierKind};
use std::net::SocketAddr;
use std::sync::Arc;
use tracing::debug_span;

impl WorkerActor {
    /// Sends storage the sources of a bucket's inputs.
    pub(super) fn register_origins(
        &mut self,
        work: &BucketWork,
        inputs: &[InputFile],
        peers: &[(WorkerId, SocketAddr)],
    ) {
        let mut regions: Vec<(RegionKey, RegionOrigin)> = Vec::new();
        if let Some(remote) = &self.setup.remote {
            let source = |input: &InputFile| RegionOrigin::Source(remote.opener.source(input, &remote.files));
            regions.extend(inputs.iter().map(|input| (input.key, source(input))));
            let known = inputs.iter().filter_map(|input| Some((input.key, remote.opener.identity(input)?)));
            self.tasks.add_input_identities(known);
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

    /// Starts the stage actor of an assigned bucket.
    pub(super) fn start_bucket(
        &mut self,
        (study, lease): (PlanId, LeaseId),
        work: BucketWork,
        reason: GrantReason,
        ctx: &mut Context<Self>,
    ) {
        let work = if self.setup.spill.is_some() { work.with_spill() } else { work };
        // With a free slot, the first task of the bucket loads the inputs at once.
        if !self.core.has_free_slot() {
            self.prefetch(&work);
        }
        // Before the stage actor starts: the state machine ignores the demand of an unknown bucket.
        self.core.handle_assigned(lease, work.stage, work.bucket, reason);
        let ids: Vec<InstanceId> = work.instances.iter().map(|instance| instance.id).collect();
        // Recorded before the bucket starts, so that a reattachment at any later time claims every instance.
        self.leases.begin(study, lease, ids.iter().copied().collect());
        self.record_regions(study, &work);
        self.retained.retain(study, &work);
        let context = self.stage_context((study, lease), &work, ctx);
        let stage = self.studies.stage(study, work.stage).cloned();
        if let Some(ResolvedStage { stage, .. }) = &stage {
            self.request_placement(stage, &work);
        }
        // Operations that are not linked in are missing.
        let is_complete = |stage: &ResolvedStage| stage.operations.len() == stage.stage.tasks.len();
        let actor = stage
            .filter(is_complete)
            .and_then(|stage| StageActor::new((study, lease), stage, work, context).ok());
        match actor {
            Some(actor) => self.running.insert(lease, Bucket::start(study, actor)),
            None => self.reject_bucket((study, lease), ids, ctx),
        }
    }

    /// Reports every instance of a bucket that this worker cannot run as failed. No task ran.
    fn reject_bucket(
        &mut self,
        (study, lease): (PlanId, LeaseId),
        instances: Vec<InstanceId>,
        ctx: &mut Context<Self>,
    ) {
        let at = "worker".to_owned();
        let cause =
            TaskFailure { at, cause: "the worker does not have the operations of this stage".to_owned() };
        for instance in instances {
            let end = ReportedEnd::Failed(cause.clone());
            self.report(study, Report { lease, instance, end, tasks: Vec::new() }, ctx);
        }
        self.core.handle_bucket_finished(lease);
    }

    /// Records the study of a bucket's inputs and stored outputs, for a reattachment.
    fn record_regions(&mut self, study: PlanId, work: &BucketWork) {
        if self.setup.remote.is_none() {
            return;
        }
        let stored = |output: &&OutputPlan| output.stored;
        for instance in &work.instances {
            let outputs = instance.outputs.iter().filter(stored).map(|output| output.key);
            self.studies.add_regions(study, instance.inputs.iter().copied().chain(outputs));
        }
    }

    fn stage_context(
        &self,
        (study, lease): (PlanId, LeaseId),
        work: &BucketWork,
        ctx: &Context<Self>,
    ) -> StageContext {
        let span = debug_span!(
            parent: self.studies.span_id(study),
            "bucket",
            lease = lease.0,
            bucket = work.bucket.0,
            stage = work.stage,
            instances = work.instances.len()
        );
        StageContext {
            worker: ctx.address().recipient(),
            storage: self.setup.storage.clone(),
            slots: self.tasks.slots().to_vec(),
            cores: self.tasks.cores(),
            exclusions: Arc::clone(self.tasks.exclusions()),
            ram: Arc::clone(&self.setup.ram),
            spill: self.setup.spill.clone(),
            ledger: Arc::clone(&self.setup.ledger),
            results: Arc::clone(self.tasks.shared_results()),
            own_tile: self.tasks.directory().map(|all| all.tile(work.own_tile)).unwrap_or_default(),
            directory: self.tasks.directory().cloned(),
            input_identities: Arc::clone(self.tasks.input_identities()),
            estimates: Arc::clone(self.tasks.estimates()),
            costs: Arc::clone(&self.setup.costs),
            prior: PriorResults { label: self.studies.label(study), ..self.setup.prior.clone() },
            durable: self.durable_by_default(study),
            active_paths: self.setup.resources.active_paths,
            has_time_limit: self.departure.time_limit_flag(),
            span,
        }
    }

    /// Requests a prefetch of the inputs of a waiting bucket.
    fn prefetch(&self, work: &BucketWork) {
        // All instances of a bucket read the same regions.
        let Some(first) = work.instances.first().filter(|_| self.setup.spill.is_some()) else { return };
        self.setup.storage.do_send(Prefetch(first.inputs.clone()));
    }

    /// Sends storage the preferred tiers of a bucket's outputs.
    fn request_placement(&self, stage: &Stage, work: &BucketWork) {
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
        // First: if the link is lost before the stage answers, the reattachment must not claim the lease.
        self.leases.revoke(lease);
        self.withdraw(lease, InstanceSelection::All, ctx);
    }

    /// Withdraws instances that belong to other workers now from a bucket, if it still runs.
    pub(super) fn withdraw(&self, lease: LeaseId, which: InstanceSelection, ctx: &mut Context<Self>) {
        if let Some(bucket) = self.running.get(lease) {
            let request = bucket.take(which).into_actor(self);
            // Not reported: the manager has already taken these instances from the lease.
            ctx.spawn(request.map(|_, actor, ctx| actor.apply_effects(ctx)));
        }
    }
}

/// Returns the stages of a study with their linked operations.
pub(super) fn resolve_stages(stages: &[Stage], registry: &Registry) -> Vec<ResolvedStage> {
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
    let resolve = |(number, stage): (usize, &Stage)| ResolvedStage {
        stage: Arc::new(stage.clone()),
        operations: stage.tasks.iter().filter_map(find).collect(),
        readers: (0..stage.outputs.len()).map(|output| readers(number, output)).collect(),
    };
    stages.iter().enumerate().map(resolve).collect()
}
