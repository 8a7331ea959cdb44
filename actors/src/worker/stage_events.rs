//! Handles events from stage actors, and returns instances that other workers shall execute.

use super::WorkerActor;
use crate::stage::{InstanceSelection, StageEvent};
use crate::storage::ReleaseRegions;
use actix::prelude::*;
use pleach_dispatch::LeaseId;
use pleach_dispatch::memory_model::BucketDemand;
use pleach_dispatch::message::ToManager;
use pleach_regions::RegionKey;
use std::time::Duration;

impl Handler<StageEvent> for WorkerActor {
    type Result = ();

    fn handle(&mut self, event: StageEvent, ctx: &mut Self::Context) {
        self.observe_storage();
        // Counted here, where each report passes once: a new link repeats the frames of reports.
        match &event {
            StageEvent::Report(study, report) | StageEvent::Stored(study, report, _) => {
                self.counters.count(*study, &report.tasks);
            }
            StageEvent::MissingInput(missing) => self.counters.count(missing.study, &missing.tasks),
            StageEvent::Over { study, tasks, .. } => self.counters.count(*study, tasks),
            StageEvent::Demand { .. } | StageEvent::SlotFree { .. } => {}
        }
        match event {
            StageEvent::Demand { lease, demand, offers } => {
                self.core.handle_offers(lease, offers);
                self.core.handle_demand(lease, self.present_demand(lease, demand))
            }
            StageEvent::SlotFree { slot, download, lease, demand, offers } => {
                let demand = self.present_demand(lease, demand);
                self.core.handle_offers(lease, offers);
                // Freed before the state machine hears of it, because it may grant the slot at once.
                if let Some(download) = download {
                    self.tasks.end_download(slot, download, lease);
                    self.core.handle_downloaded(slot, download, lease, demand);
                } else {
                    self.tasks.free(slot, lease);
                    self.core.handle_slot_free(slot, lease, demand);
                }
            }
            StageEvent::Stored(study, report, keys) => self.make_durable(study, report, keys, ctx),
            StageEvent::Report(study, report) => self.report(study, report, ctx),
            StageEvent::MissingInput(missing) => {
                // The manager assigns the instance again, so this worker must not claim it when it reattaches.
                self.leases.close(missing.lease, &[missing.instance]);
                self.send(&ToManager::MissingInput(missing), ctx);
            }
            StageEvent::Over { study, lease, tasks, stored } => {
                self.remove_released(stored);
                if !tasks.is_empty() {
                    self.send(&ToManager::UnreportedTasks { study, lease, tasks }, ctx);
                }
                self.running.remove(lease);
                self.core.handle_bucket_finished(lease);
            }
        }
        self.apply_effects(ctx);
    }
}

impl WorkerActor {
    /// Removes outputs that a bucket has stored after their release: another worker had the same instances and was first.
    fn remove_released(&self, mut stored: Vec<RegionKey>) {
        // A run in one process does not record which regions are in use. It executes each instance once.
        if self.setup.remote.is_some() {
            stored.retain(|key| !self.studies.has_region(*key));
            if !stored.is_empty() {
                self.setup.storage.do_send(ReleaseRegions(stored));
            }
        }
    }

    /// Takes instances from a stage and returns them to the manager.
    pub(super) fn return_instances(
        &mut self,
        lease: LeaseId,
        which: InstanceSelection,
        ctx: &mut Context<Self>,
    ) {
        let Some(bucket) = self.running.get(lease) else { return };
        let study = bucket.study();
        let request = bucket.take(which).into_actor(self);
        ctx.spawn(request.map(move |returned, actor, ctx| {
            let instances = returned.unwrap_or_default();
            // Closed before the message is sent: if the send detects a lost link, the reattachment must not claim them.
            actor.leases.close(lease, &instances);
            actor.send(&ToManager::ReturnInstances { study, lease, instances }, ctx);
            actor.apply_effects(ctx);
        }));
    }

    /// Takes instances that other workers can continue from a stage and returns them to the manager.
    pub(super) fn return_spare(&mut self, lease: LeaseId, longer_than: Duration, ctx: &mut Context<Self>) {
        let Some(bucket) = self.running.get(lease) else { return };
        let study = bucket.study();
        let request = bucket.take_spare(longer_than).into_actor(self);
        ctx.spawn(request.map(move |spare, actor, ctx| {
            let (path, instances) = spare.unwrap_or_default();
            // Closed first, as in `return_instances`.
            actor.leases.close(lease, &instances);
            actor.send(&ToManager::ReturnSpare { study, lease, instances, path }, ctx);
            actor.apply_effects(ctx);
        }));
    }

    /// Updates the demand of a waiting bucket, whose inputs may have left memory since it was computed.
    fn present_demand(&self, lease: LeaseId, demand: BucketDemand) -> BucketDemand {
        let may_leave = self.setup.spill.is_some() || self.setup.remote.is_some();
        let waits = may_leave && !demand.started;
        let Some(bucket) = self.running.get(lease).filter(|_| waits) else { return demand };
        let (local_bytes, load_bytes) = bucket.input_bytes(&self.setup.ram);
        BucketDemand { local_bytes, load_bytes, ..demand }
    }
}
