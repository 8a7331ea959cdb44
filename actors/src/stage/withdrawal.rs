//! Instances that leave a bucket before they are finished: for execution by other workers, because of a cancellation, or
//! because the worker's time limit comes before their end.

use super::StageActor;
use actix::prelude::*;
use pleach_dispatch::InstanceId;
use pleach_workflow::Value;
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Selection of the instances to withdraw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InstanceSelection {
    /// A part of the unstarted instances, because other workers are idle.
    Part,
    /// All unstarted instances, because the worker is draining.
    NotUnderWay,
    /// All unfinished instances.
    All,
    /// Those of these instances that are not finished.
    These(BTreeSet<InstanceId>),
}

/// Requests instances from a stage actor. It answers with those that it has given up.
#[derive(Debug, Message)]
#[rtype(result = "Vec<InstanceId>")]
pub struct TakeInstances(pub InstanceSelection);

/// Requests instances that other workers can continue from a stage actor. It answers with those that it has given up, and
/// their predicted path.
#[derive(Debug, Message)]
#[rtype(result = "(Duration, Vec<InstanceId>)")]
pub struct TakeSpare {
    /// Only instances with a longer path.
    pub longer_than: Duration,
}

impl StageActor {
    /// Returns the predicted time until the first instance that needs the next task is finished. Zero for a worker without a
    /// time limit.
    pub(super) fn next_time(&self) -> Duration {
        // Relaxed: the flag guards no other data, and the next demand contains a prediction that this one lacks.
        if !self.around.has_time_limit.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        let costs = self.around.costs.lock();
        let seconds = self.run.next_path().map(|(task, arguments)| {
            let operation = &*self.operations[task];
            costs.predict(operation, arguments, self.pixels)
        });
        // An invalid or too large prediction exceeds every time limit.
        Duration::try_from_secs_f64(seconds.sum()).unwrap_or(Duration::MAX)
    }
}

impl StageActor {
    fn end_withdrawal(&mut self) {
        self.follow();
        // The last demand may name a withdrawn task as the next one, and its forecast includes the withdrawn instances.
        self.report_demand();
    }
}

impl Handler<TakeInstances> for StageActor {
    type Result = Vec<InstanceId>;

    fn handle(&mut self, TakeInstances(which): TakeInstances, _: &mut Self::Context) -> Self::Result {
        let back = match which {
            InstanceSelection::Part => {
                let costs = self.around.costs.lock();
                let seconds = |task: usize, arguments: &[Value]| {
                    costs.predict(&*self.operations[task], arguments, self.pixels)
                };
                self.run.take_part(seconds)
            }
            InstanceSelection::NotUnderWay => self.run.take_unstarted(),
            InstanceSelection::All => self.run.cancel(),
            InstanceSelection::These(instances) => self.run.withdraw(&instances),
        };
        self.end_withdrawal();
        back
    }
}

impl Handler<TakeSpare> for StageActor {
    type Result = MessageResult<TakeSpare>;

    fn handle(&mut self, TakeSpare { longer_than }: TakeSpare, _: &mut Self::Context) -> Self::Result {
        let spare = self.run.take_spare(longer_than);
        self.end_withdrawal();
        MessageResult(spare)
    }
}
