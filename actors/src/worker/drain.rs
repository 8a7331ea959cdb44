//! Draining: the worker requests nothing new, returns unstarted instances, finishes and reports started ones. Other workers
//! fetch its sole copies, and then the manager releases it.

use super::setup::WorkerEvent;
use super::{InstanceSelection, WorkerActor};
use actix::prelude::*;
use pleach_dispatch::LeaseId;
use pleach_dispatch::message::ToManager;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Starts draining the worker.
#[derive(Debug, Message)]
#[rtype(result = "()")]
pub struct StartDrain;

/// Sets the time limit of the worker. It starts only work that finishes in time.
#[derive(Clone, Copy, Debug, Message)]
#[rtype(result = "()")]
pub struct SetTimeLimit(pub Instant);

/// Makes the worker leave at once, because its time is over. Unreported work is computed again.
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

    /// Leaves once the worker has no work, no unacknowledged reports and no regions that others need.
    pub(super) fn leave_if_done(&mut self, ctx: &mut Context<Self>) {
        // A disconnected worker cannot hand over its regions, so it does not wait for the manager.
        let may = self.dismissed || (self.draining && self.link.is_none());
        if may && self.running.is_empty() && !self.is_sharing() && self.unsafe_reports.is_empty() {
            let _ = self.sent(&ToManager::Leave);
            self.end(ctx);
        }
    }

    pub(super) fn end(&mut self, ctx: &mut Context<Self>) {
        self.link = None;
        if let Some(remote) = &self.setup.remote {
            // The process may have ended already.
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
        // Stages predict durations from now on.
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
