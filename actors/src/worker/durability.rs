//! What has to outlive this worker: put into a tier that all workers share before its instance is reported, or, where there
//! is none or it fails, fetched by a second worker. Here are both sides of that: who stores, and who fetches.

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

/// A tier, or another worker, that takes longer than this counts as gone: the instance is reported without, and what it
/// stored is computed again should this worker be lost.
const SHARED_WITHIN: Duration = Duration::from_secs(30);

/// An instance that is finished, as this worker has it.
pub(super) type Finished = (PlanId, LeaseId, InstanceId);

impl WorkerActor {
    /// Whether what others read of a study's instances is to outlive this worker before they are reported; `None` where there
    /// is nowhere for it to go.
    pub(super) fn durable(&self, study: PlanId) -> Option<bool> {
        let durable = self.durable.get(&study).copied().unwrap_or_default();
        let can = self.setup.remote.is_some() || self.has_shared();
        can.then_some(durable != Durability::None)
    }

    fn has_shared(&self) -> bool {
        self.setup.below.as_ref().is_some_and(|below| below.is_shared())
    }

    /// Shares what an instance has stored, and reports it then.
    pub(super) fn make_durable(
        &mut self,
        mut message: ToManager,
        keys: Vec<RegionKey>,
        ctx: &mut Context<Self>,
    ) {
        let find = |key: &RegionKey| Some((*key, self.setup.ram.get(*key)?));
        // What has left memory meanwhile is no more than private. A second copy of an instance shares nothing new.
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
            // The worker may be gone.
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

    /// Has another worker fetch what an instance has stored; it is reported when that is so, or cannot be.
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

    /// There is a second copy of what an instance has stored, or there will be none.
    pub(super) fn replicated(&mut self, finished: Finished, ctx: &mut Context<Self>) {
        if let Some(message) = self.replicating.remove(&finished) {
            self.report(&message, ctx);
        }
    }

    /// Over a link that is gone nobody answers.
    pub(super) fn report_unreplicated(&mut self, ctx: &mut Context<Self>) {
        let waiting: Vec<Finished> = self.replicating.keys().copied().collect();
        waiting.into_iter().for_each(|finished| self.replicated(finished, ctx));
    }

    /// Whether an instance is finished that the manager has not been told of.
    pub(super) fn is_sharing(&self) -> bool {
        self.sharing > 0 || !self.replicating.is_empty()
    }

    /// Fetches a region that would be lost with another worker. A `replica`, of so many bytes, goes below memory where there
    /// is something below; else it stays in memory as long as nothing else needs its room.
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
            // What has been released meanwhile nobody will read.
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
