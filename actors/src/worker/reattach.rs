//! Loss and renewal of links, and the state that a worker reports over a new link.

use super::WorkerActor;
use super::setup::WorkerEvent;
use crate::stage::InstanceSelection;
use crate::transport::{Incoming, Link};
use actix::prelude::*;
use pleach_cache::Cache;
use pleach_dispatch::message::{ReattachState, StudyReattach, ToManager};
use pleach_dispatch::{InstanceId, LeaseId, PlanId};
use pleach_regions::RegionKey;
use std::collections::BTreeMap;
use std::fmt;
use tokio_stream::wrappers::UnboundedReceiverStream;

/// Connects the worker to its manager: for the first time, or after [`WorkerEvent::Disconnected`].
pub struct LinkUp {
    /// Link for messages to the manager.
    pub link: Box<dyn Link>,
    /// Frames from the manager.
    pub incoming: Incoming,
}

impl Message for LinkUp {
    type Result = ();
}

impl fmt::Debug for LinkUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LinkUp").finish_non_exhaustive()
    }
}

impl WorkerActor {
    /// Handles the loss of the link. Does nothing more if the loss was detected before, by a send or by the end of
    /// frames.
    pub(super) fn handle_disconnect(&mut self, ctx: &mut Context<Self>) {
        // Closed first, so that the following reports are queued for the next link.
        let was_open = self.connection.close();
        self.report_unreplicated(ctx);
        if self.connection.has_lost_report() {
            // As where the link is open (`handle_sent`): each reattachment would claim the instance.
            return ctx.stop();
        }
        match &self.setup.remote {
            Some(_) if self.departure.is_dismissed() => self.end(ctx),
            // The process that renews links may have ended.
            Some(remote) if was_open => drop(remote.events.send(WorkerEvent::Disconnected)),
            Some(_) => {}
            None => ctx.stop(),
        }
    }

    /// Sends the first messages over a link, in the order that the manager requires.
    pub(super) fn join(&mut self, ctx: &mut Context<Self>) {
        let by_kind = self.setup.resources.worker_slots();
        let (incarnation, exchange_port) = match &self.setup.remote {
            Some(remote) => (remote.incarnation, Some(remote.exchange.address().port())),
            None => (0, None),
        };
        let before = self.connection.manager().map(|manager| ReattachState {
            manager,
            studies: self.reattached_studies(),
            retained_studies: self.retained_studies(),
        });
        let (slots, accelerators, device_bytes) =
            (by_kind.count(), by_kind.accelerators, by_kind.device_bytes);
        let join = ToManager::Join { slots, accelerators, device_bytes, incarnation, exchange_port, before };
        self.send(&join, ctx);
        self.send_operations(ctx);
        self.send_closed_slots(ctx);
        // The join message comes first, because it lists the leases of these reports.
        if self.connection.repeat_reports().is_err() {
            return self.handle_disconnect(ctx);
        }
        let awaited = self.setup.remote.as_ref().map(|remote| remote.files.awaited()).unwrap_or_default();
        for digest in awaited {
            self.send(&ToManager::File { digest }, ctx);
        }
        // The manager forgets a drain with the link.
        if self.departure.is_draining() {
            self.send(&ToManager::Drain, ctx);
        }
    }

    /// Returns the leases and the held regions of each study, for the manager to resume.
    fn reattached_studies(&self) -> Vec<StudyReattach> {
        let mut studies: BTreeMap<PlanId, StudyReattach> = BTreeMap::new();
        let empty = |study| {
            let introduced = self.studies.contains(study);
            StudyReattach { study, introduced, leases: Vec::new(), regions: Vec::new() }
        };
        for (lease, study, instances) in self.leases.iter() {
            let study = studies.entry(study).or_insert_with(|| empty(study));
            study.leases.push((lease, instances.iter().copied().collect()));
        }
        let is_below = |key| self.setup.spill.as_ref().is_some_and(|below| below.bytes(key).is_some());
        let is_held = |key: RegionKey| self.setup.ram.get(key).is_some() || is_below(key);
        for (key, study) in self.studies.regions().filter(|(key, _)| is_held(*key)) {
            studies.entry(study).or_insert_with(|| empty(study)).regions.push(key);
        }
        studies.into_values().collect()
    }

    /// Handles the manager's welcome. If the manager is not the previous one, the worker drops all its studies and
    /// retained results.
    pub(super) fn handle_welcome(&mut self, manager: u64, ctx: &mut Context<Self>) {
        let is_other_manager = self.connection.accept(manager);
        if is_other_manager {
            self.studies.ids().into_iter().for_each(|study| self.end_study(study, ctx));
            self.retained_studies().into_iter().for_each(|study| self.drop_retained(study));
            self.retained.studies().into_iter().for_each(|study| self.drop_regions(study));
        }
        // A manager that was started again, or gave up the worker, does not know its tiles.
        if let Some(directory) = self.tasks.directory() {
            directory.share_tiles();
        }
        if let Some(remote) = &self.setup.remote {
            // The process may be ending.
            let _ = remote.events.send(WorkerEvent::Welcomed);
        }
        if let Some(below) = &self.setup.spill {
            below.set_namespace(manager);
        }
    }

    /// Resumes a lease from before the reattachment. Instances not in `instances` belong to other workers.
    pub(super) fn resume_lease(
        &mut self,
        lease: LeaseId,
        instances: Vec<InstanceId>,
        ctx: &mut Context<Self>,
    ) {
        let removed = self.leases.retain(lease, &instances.into_iter().collect());
        if !removed.is_empty() {
            self.withdraw(lease, InstanceSelection::These(removed), ctx);
        }
    }

    /// Drops the state of a study that has no more work.
    pub(super) fn end_study(&mut self, study: PlanId, ctx: &mut Context<Self>) {
        // Revoked first, because without their regions the buckets would report missing inputs.
        self.running.leases_of(study).into_iter().for_each(|lease| self.revoke(lease, ctx));
        self.counters.end(study);
        self.retained.end(study);
        // The next study may run on other workers.
        self.with_cache(Cache::flush);
        let regions = self.studies.end(study);
        if !regions.is_empty() {
            self.release(regions, None, ctx);
        }
        debug_assert!(!self.studies.has_regions_of(study), "an ended study has no region");
        // Last, because other studies may get the memory of this one from now on.
        self.core.handle_study_finished(study);
    }
}

impl Handler<LinkUp> for WorkerActor {
    type Result = ();

    fn handle(&mut self, LinkUp { link, incoming }: LinkUp, ctx: &mut Self::Context) {
        self.connection.open(link);
        ctx.add_stream(UnboundedReceiverStream::new(incoming));
        self.join(ctx);
        // After the join, because the state machine requests buckets again.
        self.core.handle_connected();
        self.apply_effects(ctx);
    }
}
