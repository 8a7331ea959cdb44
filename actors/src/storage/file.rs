//! Regions from files: read on this node or, with shared inputs, taken from the node that read the file first.

use super::{Loaded, NotShared, RegionUnavailable, Source, StorageActor};
use crate::spill::SpillStore;
use actix::prelude::*;
use pleach_regions::RegionKey;
use std::sync::Arc;

impl StorageActor {
    /// Searches a shared tier for a region, and reads the file if it is missing there.
    pub(super) fn find_shared(&self, key: RegionKey, spill: &Arc<SpillStore>, ctx: &mut Context<Self>) {
        let (storage, from) = (ctx.address(), Arc::clone(spill));
        spill.send_shared(key, move || match from.get_shared(key) {
            Some(region) => storage.do_send(Loaded::new(key, region)),
            None => storage.do_send(NotShared(key)),
        });
    }

    /// Prepares and reads a file. With shared inputs, also shares its region.
    pub(super) fn read(&self, key: RegionKey, source: Arc<dyn Source>, ctx: &mut Context<Self>) {
        let storage = ctx.address();
        let preparation = source.prepare();
        let pool = Arc::clone(&self.pool);
        let on_error = storage.clone();
        let shares = self.spill.clone().filter(|_| self.shares_inputs);
        let load = move || {
            pool.spawn(move || {
                // A panic of a decoder must fail only the tasks that read this file.
                let result = crate::panic_guard::catch_panic("input", || source.load());
                let result = result.map(Arc::new).map_err(RegionUnavailable::Failed);
                if let (Some(below), Ok(region)) = (shares, &result) {
                    let (to, region) = (Arc::clone(&below), Arc::clone(region));
                    // After a failed write, other nodes read the file.
                    below.send_shared(key, move || _ = to.share(key, &region));
                }
                // Does not wait for the shared copy, because the region is already in memory.
                storage.do_send(Loaded { key, result, took: None, identity: None });
            });
        };
        match preparation {
            None => load(),
            Some(preparation) => {
                let load = async move {
                    match preparation.await {
                        Ok(()) => load(),
                        Err(cause) => {
                            on_error.do_send(Loaded::failed(key, RegionUnavailable::Failed(cause)));
                        }
                    }
                };
                ctx.spawn(load.into_actor(self));
            }
        }
    }
}
