//! Retained task results, shared by successive plans of a study on one worker.
//!
//! Without retention, results derived from a tile are dropped with the last region of the tile that a plan needs.

use super::WorkerActor;
use crate::directory::ResultChange;
use actix::prelude::*;
use pleach_regions::RegionKey;

/// Asks whether the worker knows a study that has not ended, or still executes a bucket.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "bool")]
pub struct HasWork;

/// Drops the retained results of a study without a further plan, in memory and in the spill tiers.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct DropRetained(pub u32);

impl WorkerActor {
    /// Starts a plan of a study. With `retains_results`, another plan may follow.
    pub(super) fn begin_round(&self, study: u32, keeps: bool) {
        self.tasks.results().start_round(study, keeps);
    }

    /// Drops the results of a study without a further plan.
    pub(super) fn drop_retained(&self, study: u32) {
        // A statement of its own, so that the results are unlocked before the removal, which may take as long as the
        // disk.
        let dropped = self.tasks.results().forget(study);
        self.remove_spilled(dropped);
        self.announce_dropped();
    }

    /// Removes dropped results of this worker from the result directory.
    pub(super) fn announce_dropped(&self) {
        let dropped = self.tasks.results().take_dropped();
        if let Some(directory) = self.tasks.directory().filter(|_| !dropped.is_empty()) {
            directory.change(ResultChange::Evicted(dropped));
        }
    }

    /// Removes spilled results from their tier, off this thread.
    pub(super) fn remove_spilled(&self, keys: Vec<RegionKey>) {
        if let Some(below) = &self.setup.spill {
            keys.into_iter().for_each(|key| below.release(key));
        }
    }

    /// Returns the studies that may have retained results.
    pub(super) fn retained_studies(&self) -> Vec<u32> {
        self.tasks.results().retained_studies()
    }
}

impl Handler<HasWork> for WorkerActor {
    type Result = bool;

    fn handle(&mut self, _: HasWork, _: &mut Self::Context) -> Self::Result {
        !self.studies.is_empty() || !self.running.is_empty()
    }
}

impl Handler<DropRetained> for WorkerActor {
    type Result = ();

    fn handle(&mut self, DropRetained(study): DropRetained, _: &mut Self::Context) {
        self.drop_retained(study);
    }
}
