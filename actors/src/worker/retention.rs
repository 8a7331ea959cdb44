//! Retained task results, shared by successive plans of a study on one worker.
//!
//! Without retention, results derived from a tile are dropped with the last region of the tile that a plan needs.

use super::WorkerActor;
use actix::prelude::*;
use std::sync::{Arc, PoisonError};

/// Asks whether the worker knows a study that has not ended, or still executes a bucket.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "bool")]
pub struct HasWork;

/// Drops the retained results of a study without a further plan, in memory and in the spill tiers.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct DropRetained(pub u32);

impl WorkerActor {
    /// Starts a plan of a study. With `keeps`, another plan may follow.
    pub(super) fn next(&self, study: u32, keeps: bool) {
        self.results.lock().unwrap_or_else(PoisonError::into_inner).next(study, keeps);
    }

    /// Drops the results of a study without a further plan.
    pub(super) fn forget(&self, study: u32) {
        let fallen = self.results.lock().unwrap_or_else(PoisonError::into_inner).forget(study);
        if let Some(below) = self.setup.below.as_ref().filter(|_| !fallen.is_empty()) {
            let from = Arc::clone(below);
            below.spawn(move || fallen.into_iter().for_each(|key| from.remove(key)));
        }
    }

    /// Returns the studies that may have retained results.
    pub(super) fn kept(&self) -> Vec<u32> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner).kept()
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
        self.forget(study);
    }
}
