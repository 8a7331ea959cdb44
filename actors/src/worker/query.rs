//! Spatial queries: has storage answer them, for this worker and its peers, and retains regions for them.

use super::WorkerActor;
use crate::exchange::QueryRegion;
use crate::storage::ReleaseRegions;
use actix::prelude::*;
use pleach_dispatch::message::{ObjectsFound, RegionQueries, ToManager};
use pleach_regions::RegionKey;
use std::collections::HashSet;

impl WorkerActor {
    /// Answers queries, each as soon as its region's holder has answered.
    pub(super) fn find_objects(&mut self, queries: RegionQueries, ctx: &mut Context<Self>) {
        let RegionQueries { call, regions, peers } = queries;
        for (number, key, query) in regions {
            let request = self.setup.storage.send(QueryRegion { key, query, peers: peers.clone() });
            ctx.spawn(request.into_actor(self).map(move |answer, actor, ctx| {
                let answer = answer.ok().flatten();
                actor.send(&ToManager::ObjectsFound(ObjectsFound { call, number, answer }), ctx);
            }));
        }
    }

    /// Ends the retention of a study's regions.
    pub(super) fn drop_regions(&mut self, study: u32) {
        let keys = self.retained.end_study(study);
        self.setup.storage.do_send(ReleaseRegions(keys));
    }

    /// Drops the regions that only queries read, except those that a bucket reads as its input.
    pub(super) fn drop_released(&mut self, but: &HashSet<RegionKey>) {
        let keys: Vec<RegionKey> = self.retained.released().filter(|key| !but.contains(key)).collect();
        keys.iter().for_each(|key| self.retained.remove(*key));
        self.setup.storage.do_send(ReleaseRegions(keys));
    }
}
