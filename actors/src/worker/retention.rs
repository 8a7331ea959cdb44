//! Several parts of a study one after another on one worker: what tasks of one have computed is there for the next.
//!
//! Without this, what has been made of a tile goes with the last region of it that a part needs.

use super::WorkerActor;
use actix::prelude::*;
use std::sync::{Arc, PoisonError};

/// Asks whether the worker has been told of a study and not heard the end of it, or goes on with a bucket of one.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "bool")]
pub struct HasWork;

/// No part of a study follows: what of it is on the shelf, and below memory, goes.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct DropRetained(pub u32);

impl WorkerActor {
    /// A part of a study begins; with `keeps` another one may follow.
    pub(super) fn next(&self, study: u32, keeps: bool) {
        self.results.lock().unwrap_or_else(PoisonError::into_inner).next(study, keeps);
    }

    /// No part of a study follows.
    pub(super) fn forget(&self, study: u32) {
        let fallen = self.results.lock().unwrap_or_else(PoisonError::into_inner).forget(study);
        if let Some(below) = self.setup.below.as_ref().filter(|_| !fallen.is_empty()) {
            let from = Arc::clone(below);
            below.spawn(move || fallen.into_iter().for_each(|key| from.remove(key)));
        }
    }

    /// Studies of which something may have been kept.
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
