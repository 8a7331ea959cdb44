//! What has to outlive this worker: put into a tier that all workers share before its instance is reported.

use super::WorkerActor;
use actix::prelude::*;
use pleach_dispatch::StudyId;
use pleach_dispatch::message::ToManager;
use pleach_regions::{DataRegion, RegionKey};
use pleach_workflow::Durable;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// A tier that takes longer than this counts as gone: the instance is reported without, and what it stored is computed
/// again should this worker be lost.
const SHARED_WITHIN: Duration = Duration::from_secs(30);

impl WorkerActor {
    /// Whether what others read of a study's instances is shared before they are reported.
    pub(super) fn shares(&self, study: StudyId) -> bool {
        let durable = self.durable.get(&study).copied().unwrap_or_default();
        durable != Durable::None && self.setup.below.as_ref().is_some_and(|below| below.is_shared())
    }

    /// Shares what an instance has stored, and reports it then.
    pub(super) fn share(&mut self, mut message: ToManager, keys: Vec<RegionKey>, ctx: &mut Context<Self>) {
        let find = |key: RegionKey| Some((key, self.setup.ram.get(key)?));
        // What has left memory meanwhile is no more than private. A second copy of an instance shares nothing new.
        let regions: Option<Vec<(RegionKey, Arc<DataRegion>)>> = keys.into_iter().map(find).collect();
        let (Some(below), Some(regions)) = (self.setup.below.clone(), regions) else {
            return self.report(&message, ctx);
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
            if let ToManager::Done { shared, .. } = &mut message {
                *shared = is_shared;
            }
            actor.report(&message, ctx);
            actor.look();
            actor.perform(ctx);
        }));
    }
}
