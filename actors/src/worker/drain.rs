//! Draining: the worker requests nothing new, returns unstarted instances, finishes and reports started ones. Other
//! workers fetch its sole copies, and then the manager releases it.

use super::WorkerActor;
use super::setup::WorkerEvent;
use crate::stage::InstanceSelection;
use actix::prelude::*;
use pleach_dispatch::LeaseId;
use pleach_dispatch::message::ToManager;
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
        if !self.departure.start_drain() {
            return;
        }
        self.core.handle_drain();
        // Before any returned instance, so that the manager does not assign them to this worker again.
        self.send(&ToManager::Drain, ctx);
        let leases: Vec<LeaseId> = self.running.leases().collect();
        leases
            .into_iter()
            .for_each(|lease| self.return_instances(lease, InstanceSelection::NotUnderWay, ctx));
    }

    /// Leaves once the worker has no work, no unacknowledged reports and no regions that others need.
    pub(super) fn leave_if_done(&mut self, ctx: &mut Context<Self>) {
        let has_work = !self.running.is_empty() || self.replication.has_unreported();
        let may_leave = self.departure.may_leave(self.connection.is_open());
        if may_leave && !has_work && !self.connection.has_unacknowledged() {
            self.leave(ctx);
        }
    }

    /// Announces the departure if the worker is connected, and ends the worker.
    fn leave(&mut self, ctx: &mut Context<Self>) {
        // A manager that is gone counts the worker as lost.
        let _ = self.connection.send(&ToManager::Leave);
        self.end(ctx);
    }

    /// Ends the worker.
    pub(super) fn end(&mut self, ctx: &mut Context<Self>) {
        self.connection.close();
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
        self.apply_effects(ctx);
    }
}

impl Handler<SetTimeLimit> for WorkerActor {
    type Result = ();

    fn handle(&mut self, SetTimeLimit(end): SetTimeLimit, ctx: &mut Self::Context) {
        // Stages predict durations from now on.
        self.departure.set_time_limit();
        self.observe_storage();
        self.core.handle_end(end.saturating_duration_since(self.start));
        self.apply_effects(ctx);
    }
}

impl Handler<LeaveNow> for WorkerActor {
    type Result = ();

    fn handle(&mut self, LeaveNow: LeaveNow, ctx: &mut Self::Context) {
        self.leave(ctx);
    }
}
