//! Leaving in order: nothing new is asked for, what has not been begun goes back, what is under way is finished and told,
//! what only this worker holds is fetched by others, and then the manager lets it go.

use super::setup::WorkerEvent;
use super::{InstanceSelection, WorkerActor};
use actix::prelude::*;
use pleach_dispatch::LeaseId;
use pleach_dispatch::message::ToManager;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// The worker is to leave, in order.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct StartDrain;

/// The worker has to end by then: nothing is begun that would not be finished.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct SetTimeLimit(pub Instant);

/// There is no more time: the worker leaves at once. What it has not told is computed again.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct LeaveNow;

impl WorkerActor {
    pub(super) fn drain(&mut self, ctx: &mut Context<Self>) {
        if std::mem::replace(&mut self.draining, true) {
            return;
        }
        self.core.handle_drain();
        self.send(&ToManager::Drain, ctx);
        let leases: Vec<LeaseId> = self.running.keys().copied().collect();
        leases.into_iter().for_each(|lease| self.hand_back(lease, InstanceSelection::NotUnderWay, ctx));
    }

    /// Leaves when there is nothing to do, nothing to tell, and nothing that anybody needs.
    pub(super) fn leave_if_done(&mut self, ctx: &mut Context<Self>) {
        // Without a manager there is nobody to hand anything to.
        let may = self.dismissed || (self.draining && self.link.is_none());
        if may && self.running.is_empty() && !self.is_sharing() && self.unsafe_reports.is_empty() {
            let _ = self.sent(&ToManager::Leave);
            self.end(ctx);
        }
    }

    pub(super) fn end(&mut self, ctx: &mut Context<Self>) {
        self.link = None;
        if let Some(remote) = &self.setup.remote {
            // The process may have ended by itself.
            let _ = remote.events.send(WorkerEvent::Left);
        }
        ctx.stop();
    }
}

impl Handler<StartDrain> for WorkerActor {
    type Result = ();

    fn handle(&mut self, StartDrain: StartDrain, ctx: &mut Self::Context) {
        self.drain(ctx);
        self.perform(ctx);
    }
}

impl Handler<SetTimeLimit> for WorkerActor {
    type Result = ();

    fn handle(&mut self, SetTimeLimit(end): SetTimeLimit, ctx: &mut Self::Context) {
        // Stages say how long things take from now on.
        self.ends.store(true, Ordering::Relaxed);
        self.look();
        self.core.handle_end(end.saturating_duration_since(self.start));
        self.perform(ctx);
    }
}

impl Handler<LeaveNow> for WorkerActor {
    type Result = ();

    fn handle(&mut self, LeaveNow: LeaveNow, ctx: &mut Self::Context) {
        let _ = self.sent(&ToManager::Leave);
        self.end(ctx);
    }
}
