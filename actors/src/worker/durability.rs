//! Durability of outputs that must outlive this worker. The worker writes them to a shared tier before it reports the
//! instance. Without a shared tier, or after a failed write, a second worker fetches them. This module contains both
//! sides, the storing and the fetching worker.

use super::WorkerActor;
use super::state::FinishedInstance;
use crate::storage::{ExpectRegions, FetchReplica, GetRegion, RegionOrigin, ReleaseRegions};
use actix::prelude::*;
use pleach_dispatch::PlanId;
use pleach_dispatch::message::{Report, ReportedEnd, ToManager};
use pleach_regions::{DataRegion, RegionKey};
use pleach_workflow::Durability;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// Time limit for a tier or another worker. Afterwards the worker reports the instance without a durable copy, and its
/// outputs are recomputed if this worker is lost.
const SHARED_WITHIN: Duration = Duration::from_secs(30);

impl WorkerActor {
    /// Returns whether a study's outputs must outlive this worker before it reports their instances. `None` if no other
    /// place can store them.
    pub(super) fn durable_by_default(&self, study: PlanId) -> Option<bool> {
        let has_shared_tier = self.setup.spill.as_ref().is_some_and(|below| below.is_shared());
        let can_store = self.setup.remote.is_some() || has_shared_tier;
        can_store.then_some(self.studies.durability(study) != Durability::None)
    }

    /// Shares the outputs of an instance, then reports the instance.
    pub(super) fn make_durable(
        &mut self,
        study: PlanId,
        mut report: Report,
        keys: Vec<RegionKey>,
        ctx: &mut Context<Self>,
    ) {
        let find = |key: &RegionKey| Some((*key, self.setup.ram.get(*key)?));
        // A region may have left memory, or been released before its instance ran again. Then another worker fetches
        // the outputs that are still on this node.
        let regions: Option<Vec<(RegionKey, Arc<DataRegion>)>> = keys.iter().map(find).collect();
        let below = self.setup.spill.clone().filter(|below| below.is_shared());
        let (Some(below), Some(regions)) = (below, regions) else {
            return self.replicate(study, report, &keys, ctx);
        };
        self.replication.begin_sharing();
        let shared = regions.into_iter().map(|(key, region)| {
            let (done, is_done) = oneshot::channel();
            let to = Arc::clone(&below);
            // The worker may have ended.
            below.send_shared(key, move || _ = done.send(to.share(key, &region)));
            is_done
        });
        let shared: Vec<_> = shared.collect();
        let all_shared = async move {
            for is_shared in shared {
                if !is_shared.await.unwrap_or(false) {
                    return false;
                }
            }
            true
        };
        let is_shared = async move { timeout(SHARED_WITHIN, all_shared).await.unwrap_or(false) };
        ctx.spawn(is_shared.into_actor(self).map(move |is_shared, actor, ctx| {
            // Before the report, which may be the last thing that the worker waits for before it leaves.
            actor.replication.end_sharing();
            match &mut report.end {
                ReportedEnd::Done { shared, .. } if is_shared => {
                    *shared = keys;
                    actor.report(study, report, ctx);
                }
                _ => actor.replicate(study, report, &keys, ctx),
            }
            actor.observe_storage();
            actor.apply_effects(ctx);
        }));
    }

    /// Lets another worker fetch the outputs of an instance. The report follows once the fetch has succeeded or failed.
    fn replicate(&mut self, study: PlanId, report: Report, keys: &[RegionKey], ctx: &mut Context<Self>) {
        let bytes = |key: RegionKey| {
            let below = || self.setup.spill.as_ref().and_then(|below| below.bytes(key));
            self.setup.ram.bytes(key).or_else(below)
        };
        let regions: Vec<(RegionKey, u64)> =
            keys.iter().filter_map(|key| Some((*key, bytes(*key)?))).collect();
        let Report { lease, instance, .. } = report;
        // A lost link brings no answer, and an embedded run has no second worker.
        if !self.connection.is_open() || self.setup.remote.is_none() {
            return self.report(study, report, ctx);
        }
        let finished = (study, lease, instance);
        // Before the request: a send that detects a lost link reports every awaiting instance, including this one.
        self.replication.await_replica(finished, report);
        // The timer has no effect after the answer, which has taken the report.
        ctx.run_later(SHARED_WITHIN, move |actor, ctx| {
            actor.report_replicated(finished, ctx);
            actor.apply_effects(ctx);
        });
        self.send(&ToManager::AwaitReplica { study, lease, instance, regions }, ctx);
    }

    /// Reports an instance whose outputs have a replica or will not get one.
    pub(super) fn report_replicated(&mut self, finished: FinishedInstance, ctx: &mut Context<Self>) {
        if let Some(report) = self.replication.take_report(finished) {
            self.report(finished.0, report, ctx);
        }
    }

    /// Reports all instances that wait for a replica, because a lost link brings no answers.
    pub(super) fn report_unreplicated(&mut self, ctx: &mut Context<Self>) {
        assert!(!self.connection.is_open(), "an open link may still bring the answer");
        for finished in self.replication.awaiting() {
            self.report_replicated(finished, ctx);
        }
        assert!(!self.replication.is_awaiting(), "no instance waits for an answer of a lost link");
    }

    /// Fetches a region that would be lost with another worker. A `replica` of the given bytes goes to a spill tier if
    /// there is one. Otherwise it stays in memory while nothing else needs the space.
    pub(super) fn fetch_copy(
        &mut self,
        study: PlanId,
        key: RegionKey,
        from: SocketAddr,
        replica: Option<u64>,
        ctx: &mut Context<Self>,
    ) {
        let is_here = self.setup.ram.bytes(key).is_some();
        // A replica in a spill tier, or of a region that is present, needs no further memory.
        let in_memory = replica.filter(|_| self.setup.spill.is_none() && !is_here);
        if in_memory.is_some_and(|bytes| !self.core.handle_copy(bytes)) {
            return self.send(&ToManager::FetchFailed { study, key }, ctx);
        }
        // Before the fetch: a release during the fetch removes the entry, and the region is dropped on arrival.
        self.studies.add_regions(study, [key]);
        let storage = self.setup.storage.clone();
        let got = async move {
            storage.do_send(ExpectRegions(vec![(
                key,
                RegionOrigin::Elsewhere { workers: vec![from], shared: false },
            )]));
            match replica {
                Some(bytes) => storage.send(FetchReplica { key, from, bytes }).await.unwrap_or(false),
                None => matches!(storage.send(GetRegion(key)).await, Ok(Ok(_))),
            }
        };
        ctx.spawn(got.into_actor(self).map(move |got, actor, ctx| {
            actor.observe_storage();
            if let Some(bytes) = in_memory {
                actor.core.handle_copy_finished(bytes);
            }
            // The manager may have released the region during the fetch.
            let is_wanted = actor.studies.has_region(key);
            match got {
                true if !is_wanted => actor.setup.storage.do_send(ReleaseRegions(vec![key])),
                true => {
                    if in_memory.is_some() {
                        actor.replication.add_replica(key, study);
                    }
                    actor.send(&ToManager::RegionFetched { study, key }, ctx);
                }
                false => actor.send(&ToManager::FetchFailed { study, key }, ctx),
            }
            actor.observe_storage();
            actor.apply_effects(ctx);
        }));
    }
}
