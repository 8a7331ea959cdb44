//! Instances that leave a bucket before they are finished: for others to execute, because nobody wants them, or because the
//! worker has to end before they would be finished.

use super::{StageActor, StageEvent};
use actix::prelude::*;
use pleach_dispatch::InstanceId;
use std::collections::BTreeSet;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Which instances are not to be executed here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstanceSelection {
    /// A part of those that are not under way: others are idle.
    Part,
    /// All that are not under way: the worker is to leave.
    NotUnderWay,
    /// All that are not finished.
    All,
    /// These, if they are not finished.
    These(BTreeSet<InstanceId>),
}

/// Asks a stage actor for instances; it answers with those that it does not execute any more.
#[derive(Debug, Message)]
#[rtype(result = "Vec<InstanceId>")]
pub struct TakeInstances(pub InstanceSelection);

impl StageActor {
    /// What it is believed to take until the first instance that needs the next task is finished; nothing, where the worker
    /// has all the time there is.
    pub(super) fn next_time(&self) -> Duration {
        if !self.around.ends.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        let costs = self.around.costs.lock().unwrap_or_else(PoisonError::into_inner);
        let seconds = self.run.next_path().map(|(task, arguments)| {
            let operation = &*self.operations[task];
            costs.predict(operation, arguments, self.pixels)
        });
        Duration::try_from_secs_f64(seconds.sum()).unwrap_or(Duration::MAX)
    }
}

impl Handler<TakeInstances> for StageActor {
    type Result = Vec<InstanceId>;

    fn handle(&mut self, TakeInstances(which): TakeInstances, _: &mut Self::Context) -> Self::Result {
        let back = match which {
            InstanceSelection::Part => self.run.take_unstarted(false),
            InstanceSelection::NotUnderWay => self.run.take_unstarted(true),
            InstanceSelection::All => self.run.cancel(),
            InstanceSelection::These(instances) => self.run.withdraw(&instances),
        };
        self.follow();
        let (lease, demand) = (self.lease, self.demand());
        self.around.worker.do_send(StageEvent::Demand { lease, demand });
        back
    }
}
