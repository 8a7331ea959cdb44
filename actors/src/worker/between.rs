//! Several plans one after another on one worker: what tasks of one have computed is there for the next.
//!
//! Without this, what has been made of a tile goes with the last region of it that a plan needs.

use super::WorkerActor;
use actix::prelude::*;
use std::sync::{Arc, PoisonError};

/// A plan begins. What is on the shelf now was computed before it; with `keeps` it stays after it, as far as there is room.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct Next {
    /// Another plan may follow.
    pub keeps: bool,
}

/// Asks whether the worker has been told of a study and not heard the end of it, or goes on with a bucket of one.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "bool")]
pub struct IsBusy;

/// No plan follows: what is on the shelf, and below memory, goes.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct Forget;

impl Handler<Next> for WorkerActor {
    type Result = ();

    fn handle(&mut self, Next { keeps }: Next, _: &mut Self::Context) {
        self.results.lock().unwrap_or_else(PoisonError::into_inner).next(keeps);
    }
}

impl Handler<IsBusy> for WorkerActor {
    type Result = bool;

    fn handle(&mut self, _: IsBusy, _: &mut Self::Context) -> Self::Result {
        !self.studies.is_empty() || !self.running.is_empty()
    }
}

impl Handler<Forget> for WorkerActor {
    type Result = ();

    fn handle(&mut self, _: Forget, _: &mut Self::Context) {
        let fallen = self.results.lock().unwrap_or_else(PoisonError::into_inner).forget();
        if let Some(below) = self.setup.below.as_ref().filter(|_| !fallen.is_empty()) {
            let from = Arc::clone(below);
            below.spawn(move || fallen.into_iter().for_each(|key| from.remove(key)));
        }
    }
}
