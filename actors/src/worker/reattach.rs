//! Loss and renewal of links: the state that a worker reports over a new link, and the reports it keeps for that.

use super::setup::WorkerEvent;
use super::{InstanceSelection, TakeInstances, WorkerActor};
use crate::transport::{Incoming, Link};
use actix::prelude::*;
use pleach_dispatch::message::{ReattachState, StudyReattach, ToManager};
use pleach_dispatch::{InstanceId, LeaseId, PlanId};
use pleach_regions::RegionKey;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use tokio_stream::wrappers::UnboundedReceiverStream;

/// Connects the worker to its manager again.
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
        f.debug_struct("Connected").finish_non_exhaustive()
    }
}

/// Leases with their unacknowledged instances: not executed yet, or reported and perhaps not on the manager's disk.
#[derive(Debug)]
pub(super) struct UnackedReports {
    is_kept: bool,
    leases: BTreeMap<LeaseId, (PlanId, BTreeSet<InstanceId>)>,
    /// Reports in sending order.
    reports: VecDeque<(LeaseId, InstanceId, Vec<u8>)>,
    /// Acknowledged reports among those sent over this link.
    safe: u64,
}

impl UnackedReports {
    pub(super) fn new(is_kept: bool) -> Self {
        Self { is_kept, leases: BTreeMap::new(), reports: VecDeque::new(), safe: 0 }
    }

    pub(super) fn leased(&mut self, study: PlanId, lease: LeaseId, instances: BTreeSet<InstanceId>) {
        if self.is_kept {
            self.leases.insert(lease, (study, instances));
        }
    }

    pub(super) fn keep(&mut self, message: &ToManager, frame: &[u8]) {
        if self.is_kept
            && let ToManager::Done { lease, instance, .. } | ToManager::Failed { lease, instance, .. } =
                message
        {
            self.reports.push_back((*lease, *instance, frame.to_vec()));
        }
    }

    /// Removes the reports acknowledged over this link. `reports` is their total number.
    pub(super) fn ack(&mut self, reports: u64) {
        while self.safe < reports {
            self.safe += 1;
            let Some((lease, instance, _)) = self.reports.pop_front() else { return };
            self.not_ours(lease, &[instance]);
        }
    }

    pub(super) fn not_ours(&mut self, lease: LeaseId, instances: &[InstanceId]) {
        if let Some((_, open)) = self.leases.get_mut(&lease) {
            instances.iter().for_each(|instance| _ = open.remove(instance));
            if open.is_empty() {
                self.leases.remove(&lease);
            }
        }
    }

    /// Keeps only these instances of a lease. Returns the removed ones.
    fn only(&mut self, lease: LeaseId, kept: &BTreeSet<InstanceId>) -> BTreeSet<InstanceId> {
        let Some((_, open)) = self.leases.get_mut(&lease) else { return BTreeSet::new() };
        let gone: BTreeSet<InstanceId> = open.difference(kept).copied().collect();
        let gone_list: Vec<InstanceId> = gone.iter().copied().collect();
        self.not_ours(lease, &gone_list);
        gone
    }

    /// Returns the number of unacknowledged instances of a lease.
    pub(super) fn open(&self, lease: LeaseId) -> usize {
        self.leases.get(&lease).map_or(0, |(_, open)| open.len())
    }

    pub(super) fn forget(&mut self, lease: LeaseId) {
        self.leases.remove(&lease);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.reports.is_empty()
    }
}

impl WorkerActor {
    /// Handles the loss of the link.
    pub(super) fn disconnected(&mut self, ctx: &mut Context<Self>) {
        let was_there = self.link.take().is_some();
        self.is_welcome = false;
        self.report_unreplicated(ctx);
        match &self.setup.remote {
            Some(_) if self.dismissed => self.end(ctx),
            // The process that renews links may have ended.
            Some(remote) if was_there => drop(remote.events.send(WorkerEvent::Disconnected)),
            Some(_) => {}
            None => ctx.stop(),
        }
    }

    /// Sends the first message over a link.
    pub(super) fn join(&mut self, ctx: &mut Context<Self>) {
        let slots = self.setup.resources.slots.get();
        let (incarnation, exchange_port) = match &self.setup.remote {
            Some(remote) => (remote.incarnation, Some(remote.exchange.address().port())),
            None => (0, None),
        };
        let before =
            self.manager.map(|manager| ReattachState { manager, studies: self.before(), kept: self.kept() });
        self.send(&ToManager::Join { slots, incarnation, exchange_port, before }, ctx);
        // The manager counts the reports of each link from 0.
        self.unsafe_reports.safe = 0;
        // The join message comes first, because it lists the leases of these reports.
        let frames: Vec<Vec<u8>> =
            self.unsafe_reports.reports.iter().map(|(_, _, frame)| frame.clone()).collect();
        for frame in frames {
            if self.link.as_deref().is_some_and(|link| link.send(frame).is_err()) {
                return self.disconnected(ctx);
            }
        }
        let awaited = self.setup.remote.as_ref().map(|remote| remote.files.awaited()).unwrap_or_default();
        for digest in awaited {
            self.send(&ToManager::File { digest }, ctx);
        }
        if self.draining {
            self.send(&ToManager::Drain, ctx);
        }
    }

    fn before(&self) -> Vec<StudyReattach> {
        let mut studies: BTreeMap<PlanId, StudyReattach> = BTreeMap::new();
        let of = |study| StudyReattach { study, leases: Vec::new(), held: Vec::new() };
        for (lease, (study, open)) in &self.unsafe_reports.leases {
            let study = studies.entry(*study).or_insert_with(|| of(*study));
            study.leases.push((*lease, open.iter().copied().collect()));
        }
        let is_below = |key| self.setup.below.as_ref().is_some_and(|below| below.bytes(key).is_some());
        let is_held = |key| self.setup.ram.get(key).is_some() || is_below(key);
        for (key, study) in self.study_of.iter().filter(|(key, _)| is_held(**key)) {
            studies.entry(*study).or_insert_with(|| of(*study)).held.push(*key);
        }
        studies.into_values().collect()
    }

    /// Handles the manager's welcome. If the manager is not the previous one, the worker drops all its studies and retained
    /// results.
    pub(super) fn welcomed(&mut self, manager: u64, ctx: &mut Context<Self>) {
        if self.manager.is_some_and(|known| known != manager) {
            let studies: Vec<PlanId> = self.studies.keys().copied().collect();
            studies.into_iter().for_each(|study| self.over(study, ctx));
            self.kept().into_iter().for_each(|study| self.forget(study));
        }
        self.manager = Some(manager);
        self.is_welcome = true;
        if let Some(remote) = &self.setup.remote {
            // The process may be ending.
            let _ = remote.events.send(WorkerEvent::Welcomed);
        }
        if let Some(below) = &self.setup.below {
            below.set_namespace(manager);
        }
    }

    /// Resumes a lease from before the reattachment. Instances not in `instances` belong to other workers.
    pub(super) fn keep(&mut self, lease: LeaseId, instances: Vec<InstanceId>, ctx: &mut Context<Self>) {
        let gone = self.unsafe_reports.only(lease, &instances.into_iter().collect());
        if gone.is_empty() {
            return;
        }
        if let Some(bucket) = self.running.get(&lease) {
            let asked = bucket.stage.send(TakeInstances(InstanceSelection::These(gone))).into_actor(self);
            ctx.spawn(asked.map(|_, actor, ctx| actor.perform(ctx)));
        }
    }

    /// Drops the state of a study that has no more work.
    pub(super) fn over(&mut self, study: PlanId, ctx: &mut Context<Self>) {
        let leases: Vec<LeaseId> = self
            .running
            .iter()
            .filter(|(_, bucket)| bucket.study == study)
            .map(|(lease, _)| *lease)
            .collect();
        leases.into_iter().for_each(|lease| self.revoke(lease, ctx));
        self.studies.remove(&study);
        self.meters.end(study);
        self.spans.remove(&study);
        self.durable.remove(&study);
        let keys: Vec<RegionKey> =
            self.study_of.iter().filter(|(_, of)| **of == study).map(|(key, _)| *key).collect();
        if !keys.is_empty() {
            self.release(keys, None, ctx);
        }
        self.core.handle_study_over(study);
    }
}

impl Handler<LinkUp> for WorkerActor {
    type Result = ();

    fn handle(&mut self, LinkUp { link, incoming }: LinkUp, ctx: &mut Self::Context) {
        self.link = Some(link);
        self.is_welcome = false;
        ctx.add_stream(UnboundedReceiverStream::new(incoming));
        self.join(ctx);
        self.core.handle_connected();
        self.perform(ctx);
    }
}
