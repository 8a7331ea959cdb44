//! Durability of outputs that must outlive this worker. The worker writes them to a shared tier before it reports the
//! instance. Without a shared tier, or after a failed write, a second worker fetches them. This module contains both sides,
//! the storing and the fetching worker.

use super::WorkerActor;
use crate::storage::{ExpectRegions, FetchReplica, GetRegion, RegionOrigin, ReleaseRegions};
use actix::prelude::*;
use pleach_dispatch::message::ToManager;
use pleach_dispatch::{InstanceId, LeaseId, PlanId};
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

/// A finished instance of a lease.
pub(super) type Finished = (PlanId, LeaseId, InstanceId);

impl WorkerActor {
    /// Returns whether a study's outputs must outlive this worker before it reports their instances. `None` if no other
    /// place can store them.
    pub(super) fn durable(&self, study: PlanId) -> Option<bool> {
        let durable = self.durable.get(&study).copied().unwrap_or_default();
        let can = self.setup.remote.is_some() || self.has_shared();
        can.then_some(durable != Durability::None)
    }

    fn has_shared(&self) -> bool {
        self.setup.below.as_ref().is_some_and(|below| below.is_shared())
    }

    /// Shares the outputs of an instance, then reports the instance.
    pub(super) fn make_durable(
        &mut self,
        mut message: ToManager,
        keys: Vec<RegionKey>,
        ctx: &mut Context<Self>,
    ) {
        let find = |key: &RegionKey| Some((*key, self.setup.ram.get(*key)?));
        // A region may have left memory, or been released before its instance ran again. Then another worker fetches the
        // outputs that are still on this node.
        let regions: Option<Vec<(RegionKey, Arc<DataRegion>)>> = keys.iter().map(find).collect();
        let below = self.setup.below.clone().filter(|below| below.is_shared());
        let (Some(below), Some(regions)) = (below, regions) else {
            return self.replicate(message, &keys, ctx);
        };
        self.sharing += 1;
        let (done, is_done) = oneshot::channel();
        let to = Arc::clone(&below);
        below.spawn(move || {
            let all = regions.iter().all(|(key, region)| to.share(*key, region));
            // The worker may have ended.
            let _ = done.send(all);
        });
        let is_shared = async move { matches!(timeout(SHARED_WITHIN, is_done).await, Ok(Ok(true))) };
        ctx.spawn(is_shared.into_actor(self).map(move |is_shared, actor, ctx| {
            actor.sharing -= 1;
            match &mut message {
                ToManager::Done { shared, .. } if is_shared => {
                    *shared = keys;
                    actor.report(&message, ctx);
                }
                _ => actor.replicate(message, &keys, ctx),
            }
            actor.look();
            actor.perform(ctx);
        }));
    }

    /// Lets another worker fetch the outputs of an instance. The report follows once the fetch has succeeded or failed.
    fn replicate(&mut self, message: ToManager, keys: &[RegionKey], ctx: &mut Context<Self>) {
        let bytes = |key: RegionKey| {
            let below = || self.setup.below.as_ref().and_then(|below| below.bytes(key));
            self.setup.ram.bytes(key).or_else(below)
        };
        let regions: Vec<(RegionKey, u64)> =
            keys.iter().filter_map(|key| Some((*key, bytes(*key)?))).collect();
        let ToManager::Done { study, lease, instance, .. } = message else { return };
        if self.link.is_none() || self.setup.remote.is_none() {
            return self.report(&message, ctx);
        }
        let finished = (study, lease, instance);
        self.replicating.insert(finished, message);
        ctx.run_later(SHARED_WITHIN, move |actor, ctx| {
            actor.replicated(finished, ctx);
            actor.perform(ctx);
        });
        self.send(&ToManager::AwaitReplica { study, lease, instance, regions }, ctx);
    }

    /// Reports an instance whose outputs have a replica or will not get one.
    pub(super) fn replicated(&mut self, finished: Finished, ctx: &mut Context<Self>) {
        if let Some(message) = self.replicating.remove(&finished) {
            self.report(&message, ctx);
        }
    }

    /// Reports all instances that wait for a replica, because a lost link brings no answers.
    pub(super) fn report_unreplicated(&mut self, ctx: &mut Context<Self>) {
        let waiting: Vec<Finished> = self.replicating.keys().copied().collect();
        waiting.into_iter().for_each(|finished| self.replicated(finished, ctx));
    }

    /// Returns whether a finished instance is not yet reported to the manager.
    pub(super) fn is_sharing(&self) -> bool {
        self.sharing > 0 || !self.replicating.is_empty()
    }

    /// Fetches a region that would be lost with another worker. A `replica` of the given bytes goes to a spill tier if there
    /// is one. Otherwise it stays in memory while nothing else needs the space.
    pub(super) fn fetch_copy(
        &mut self,
        study: PlanId,
        key: RegionKey,
        from: SocketAddr,
        replica: Option<u64>,
        ctx: &mut Context<Self>,
    ) {
        let is_here = self.setup.ram.bytes(key).is_some();
        let in_memory = replica.filter(|_| self.setup.below.is_none() && !is_here);
        if in_memory.is_some_and(|bytes| !self.core.handle_copy(bytes)) {
            return self.send(&ToManager::FetchFailed { study, key }, ctx);
        }
        self.study_of.insert(key, study);
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
            actor.look();
            if let Some(bytes) = in_memory {
                actor.core.handle_copy_over(bytes);
            }
            // Released regions have no readers.
            let is_wanted = actor.study_of.contains_key(&key);
            match got {
                true if !is_wanted => actor.setup.storage.do_send(ReleaseRegions(vec![key])),
                true => {
                    if in_memory.is_some() {
                        actor.replicas.insert(key, study);
                    }
                    actor.send(&ToManager::RegionFetched { study, key }, ctx);
                }
                false => actor.send(&ToManager::FetchFailed { study, key }, ctx),
            }
            actor.look();
            actor.perform(ctx);
        }));
    }
}
